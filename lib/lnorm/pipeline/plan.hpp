#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/layout/row_view.hpp"
#include "lnorm/layout/tiles.hpp"

namespace lnorm {

// How the data goes, and why. It is decided in make_plan, and nowhere else.
struct Route {
  bool in_parts = false;        // rows go in parts; otherwise in blocks of whole rows
  std::int64_t rows = 1;        // at a time, or fewer: of a tile
  std::int64_t count = 0;       // elements of each of them, or fewer
  std::int64_t bytes = 0;       // what these take under way: as rows in, rows out, and packed
  std::int64_t block_rows = 1;  // of a tile that the kernel takes at a time
  IoPath in;
  IoPath out;
  std::string reason;  // why it is not blocks that follow each other; empty if it is

  Tile first_tile(std::int64_t all_rows) const noexcept {
    return {0, std::min(rows, all_rows), 0, count};
  }
};

// Every decision about a run, made before the first element is read: the tensor as rows x
// row_length, and what becomes of it.
struct Plan {
  Shape shape;         // as rows see it: an axis may be split into groups
  Shape result_shape;  // of y
  Axes axes;           // normalized, in the order of a row's elements; none if x has no dimensions
  AffineLayout affine;
  AffineLayout
      statistics;  // of given ones, which have one number for each combination of the kept axes
  bool has_groups = false;
  std::int64_t rows = 0;
  std::int64_t row_length = 0;
  Formula formula;
  DType in = DType::float64;
  DType out = DType::float64;
  DType rounding = DType::float64;  // of sums and steps: the output's, unless that is quantized
  bool wants_mean_and_rstd = false;
  bool wants_variance = false;     // with these
  bool wants_empty_rows = false;   // observers see rows of no elements
  std::int64_t bytes_beside = 0;   // as of RowNeeds
  bool saturates = false;          // as of RowsOut
  std::int64_t scales_of_row = 0;  // of quantized rows
  bool has_scale_groups = false;   // which have an axis of their own
  std::int64_t shared_scales = 0;  // that rows share, by this layout; 0: each has its own, or none
  AffineLayout scales = {};
  Axes scale_axes = {};  // whose elements share one; empty: all
  Route route;

  // Where the rows and their elements lie: in x, in y (which is in C order), and in what has one number a
  // row. Rows have the same numbers in all three: C order of the axes that are kept, or, where x is in
  // Fortran order, an order in which neighbors in x follow each other.
  RowView in_view;
  RowView out_view;
  RowView row_number_view;
  RowView scale_view;

  Shape normalized_shape() const { return extents(shape, axes); }

  // The shape of weight and bias.
  Shape affine_shape() const {
    return has_groups ? Shape{element_count(affine.shape)} : affine.shape;
  }

  // What is written, but for its name.
  TensorInfo result() const { return {"", out, result_shape}; }

  // What is written of x + residual.
  TensorInfo sum() const { return {"", rounding, result_shape}; }

  // The shape of scales: that of mean and rstd, where the last normalized axis is one of groups if there are any, and 1 for each
  // of scale_axes where rows share them; of one for all it is (1).
  Shape scale_shape(bool keepdim) const;

  // The shape of mean and rstd. Of groups there is none with keepdim.
  Shape row_shape(bool keepdim) const {
    return lnorm::row_shape(shape, axes, keepdim && !has_groups);
  }

  // What goes through at once, the first time.
  Tile first_tile() const noexcept { return route.first_tile(rows); }

  // Whether rows are numbered in C order.
  bool rows_in_order() const noexcept { return row_number_view.is_contiguous(); }
};

// How many neighboring elements are read or written at once, whichever are fewer, in the mean.
std::int64_t mean_run_length(const Plan& plan);

// What the work asks of its rows.
struct RowNeeds {
  bool whole = false;             // parts will not do
  bool ordered = false;           // they are numbered in C order
  bool keeps_order = false;       // so are their elements, wherever weight and bias run
  bool in_tiles = false;          // a few at a time will do, of tiles that are held
  bool any_dtype = false;         // the output dtype need be no float
  bool over_rows = false;         // variances are: ddof may be as large as a row
  std::int64_t bytes_beside = 0;  // of what is read along with each element of x
  bool given = false;  // statistics are: rows may be parts of those of the normalized axes
  std::optional<std::int64_t> scale_group{};  // as of Quantization: rows have scales
  bool one_scale = false;                     // for all rows
  std::optional<AxisList>
      scale_axes{};  // the normalized ones and others: rows along these share a scale
};

// The dtype of the result: out if it is given; by default the input's, or float64 where that is no float.
DType output_dtype(DType x, std::optional<DType> out);

// out: as of output_dtype.
// Throws Error, in the words of the command line, if the options do not fit the tensor.
Plan make_plan(const TensorInfo& x, const LayerNormOptions& options, std::optional<DType> out = {},
               const RowNeeds& needs = {});

// Throws Error, naming both shapes, unless a weight or bias has the shape of the plan's layout or no dimensions.
void check_affine_shape(const TensorInfo& term, const Plan& plan);

// What is given of the plan's rows, where mean may be empty. Throws Error for a variance below 0; spread_info is that of its
// tensor.
GivenStatistics given_statistics(const AffineTerm& mean, const AffineTerm& spread,
                                 const TensorInfo& spread_info, bool is_rstd, const Plan& plan);

// How a tensor is brought into C order, for work that has no rows.
IoPath make_c_order_plan(const TensorInfo& x);

}  // namespace lnorm
