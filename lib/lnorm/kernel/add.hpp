#pragma once

#include <optional>

#include "lnorm/core/dtype.hpp"
#include "lnorm/kernel/rows.hpp"

// Sums of two tensors, element by element, as what is normalized.
namespace lnorm {

// What holds every sum of two elements exactly: float64 or float64_pair. Nothing where neither does: of a 64-bit
// integer and a float.
std::optional<DType> exact_sum_dtype(DType a, DType b) noexcept;

// sum = a + b of one row each. Each sum is exact where its dtype is exact_sum_dtype of a's and b's; otherwise its dtype is a
// float's, and it is rounded once, to nearest, ties to even. Beyond the range of float64 a sum is an infinity. Zero is
// +0.
void add(const RowsIn& a, const RowsIn& b, const RowsOut& sum);

// Rounds each element of a row once, so that it is of y's dtype.
void round_row(const RowsIn& x, const RowsOut& y);

}  // namespace lnorm
