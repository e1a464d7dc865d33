#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "arguments.hpp"
#include "lnorm/core/axes.hpp"
#include "lnorm/io/tensor_source.hpp"

// --rows: a command sees some rows of each tensor as if they were the tensor.
namespace lnorm::app {

// Some rows of a tensor with these normalized axes.
struct RowChoice {
  Axes axes;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Which rows of x, from what its header says. Empty: the tensor as it is.
using ChooseRows = std::function<RowChoice(const TensorInfo& x)>;

// The rows of a range. As in a slice of Python there may be none: an array of jobs may end so.
RowChoice rows_in(const RowRange& range, const TensorInfo& x, const NormalizedAxes& axes);

// The same for each tensor. The axes outlive it.
ChooseRows rows_in(const std::optional<RowRange>& range, const NormalizedAxes& axes);

// What is chosen of x.
TensorInfo chosen(const ChooseRows& choose, const TensorInfo& x);
std::unique_ptr<TensorSource> chosen(const ChooseRows& choose, std::unique_ptr<TensorSource> x);

// The same rows of a tensor that goes beside x, element by element or with a number for each row; all of it where x is no
// slice. The first two throw Error unless it has that shape.
TensorInfo elements_beside(const TensorInfo& x, const TensorInfo& other);
TensorInfo row_numbers_beside(const TensorInfo& x, const TensorInfo& other);
std::unique_ptr<TensorSource> rows_beside(const TensorInfo& x, std::unique_ptr<TensorSource> other);

}  // namespace lnorm::app
