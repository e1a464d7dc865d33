#pragma once

#include <cstdint>
#include <optional>

#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

// Every decision about a run, made before the first element is read: the tensor as rows x
// row_length, and what becomes of it.
struct Plan {
  Shape shape;
  std::size_t first_axis = 0;  // normalised: this axis and all after it
  std::int64_t rows = 0;
  std::int64_t row_length = 0;
  Formula formula;
  DType in = DType::float64;
  DType out = DType::float64;
  bool stats = false;           // whether mean and rstd of every row are wanted
  std::int64_t block_rows = 1;  // how many rows go through the loop at once
  bool long_rows = false;       // a row is more than should be held: it goes through in parts

  Shape normalized_shape() const;

  // The shape of mean and rstd: 1 in the place of the normalised axes, or without them.
  Shape stats_shape(bool keepdim) const;
};

// out: the dtype of the result; by default the input's, or float64 where that is no float.
// Throws Error, in the words of the command line, if the options do not fit the tensor.
Plan make_plan(const TensorInfo& x, const LayerNormOptions& options, std::optional<DType> out = {});

}  // namespace lnorm
