#pragma once

#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/parameter_gradients.hpp"

namespace lnorm {

// The backward pass of Backend::layer_norm, every row by itself: with g = dy * weight, sums over the row, n its
// length, f = n - ddof,
//
//   dx = (g - sum(g) / n) / s - (x - mean) * sum(g * (x - mean)) / (f * s^2 * t)
//   RMS: g / s - x * sum(g * x) / (f * s^2 * t)
//
// where t = s with eps on the variance, and sqrt(var) with eps on the standard deviation.
//
//   x, dy    rows x row_length, row-major, of any dtypes
//   dx       as x; float16, bfloat16, float32 or float64. data may be null: it is not wanted. Must not overlap x or dy
//   weight   row_length elements, or one for all of them, or none
//   saved    null, or one of every row: they stand for mean and 1/s, and t = s; eps does not count. Constants stand for mean and
//            variance: dx = g / s
//   columns  null, or what is to gather dweight and dbias
//
// Accuracy: each dx is the exact value of the formula rounded once, as Backend::layer_norm rounds. An exact zero is
// +0. A row with a NaN or an infinity in x or g, or without a derivative (s = 0, or var = 0 with eps on the standard
// deviation), gives NaN in all its elements.
//
// Requires 0 <= ddof < row_length, eps finite and >= 0. Throws std::bad_alloc alone.
void layer_norm_backward(const Backend& backend, const RowsIn& x, const RowsIn& dy,
                         const RowsOut& dx, const AffineTerm& weight, const Formula& formula,
                         const SavedStatistics* saved, ColumnGradients* columns);

// dx alone, of rows that have weights by a layout.
void layer_norm_backward(const Backend& backend, const RowsIn& x, const RowsIn& dy,
                         const RowsOut& dx, const AffineTerm& weight, const AffineLayout& layout,
                         const Formula& formula, const SavedStatistics* saved);

// The weights of one row of so many elements, or one for all of them.
AffineTerm weight_of_row(const AffineTerm& weight, const AffineLayout& layout, std::int64_t row,
                         std::int64_t row_length);

}  // namespace lnorm
