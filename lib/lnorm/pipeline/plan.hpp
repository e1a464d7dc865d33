#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lnorm/core/options.hpp"
#include "lnorm/core/row_view.hpp"
#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

// Every decision about a run, made before the first element is read: the tensor as rows x
// row_length, and what becomes of it.
struct Plan {
  Shape shape;
  std::vector<std::size_t> axes;  // normalised, in the order of the input; of x of no dimensions, 0
  std::int64_t rows = 0;
  std::int64_t row_length = 0;
  Formula formula;
  DType in = DType::float64;
  DType out = DType::float64;
  bool stats = false;           // whether mean and rstd of every row are wanted
  std::int64_t block_rows = 1;  // how many rows go through the loop at once
  bool long_rows = false;       // a row is more than should be held: it goes through in parts
  bool transposes = false;      // x is brought into C order first, since its rows lie too scattered

  // Where the rows and their elements are, in the same order: of x, of y (which is in C order), and of
  // what has one number a row. Rows are numbered in C order of the axes that are not normalised, or,
  // where x is in Fortran order, in an order in which those that are neighbours in x follow each other.
  RowView in_view;
  RowView out_view;
  RowView stats_view;

  Shape normalized_shape() const;

  // The shape of mean and rstd: 1 in the place of the normalised axes, or without them.
  Shape stats_shape(bool keepdim) const;

  // What goes through at once, the first time: block_rows of whole rows; or, of long rows, a segment or
  // less of one or several.
  Tile first_tile() const noexcept;

  // Whether blocks of block_rows follow each other in x; in y. If not, what holds them must have
  // positions.
  bool reads_in_order() const noexcept;
  bool writes_in_order() const noexcept;

  // Whether rows are numbered in C order.
  bool rows_in_order() const noexcept { return stats_view.is_plain(); }
};

// What a tile takes in memory while it is under way: as rows in, rows out, and raw.
std::int64_t bytes_under_way(const Plan& plan);

// How many neighbouring elements are read or written at once, whichever are fewer, in the mean.
std::int64_t mean_run_length(const Plan& plan);

// Whether the rows may be numbered in the order of the file, or are wanted in C order.
enum class RowOrder { any, c };

// out: the dtype of the result; by default the input's, or float64 where that is no float.
// Throws Error, in the words of the command line, if the options do not fit the tensor.
Plan make_plan(const TensorInfo& x, const LayerNormOptions& options, std::optional<DType> out = {},
               RowOrder order = RowOrder::any);

}  // namespace lnorm
