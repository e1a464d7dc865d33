#pragma once

#include <cstdint>

#include "lnorm/core/moments.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/two_pass.hpp"

namespace lnorm {

// The moments of every row of x, each by itself: x.rows of them.
//
// Accuracy: sum, mean and variance are within 0.501 ulp of exact, but for an allowance of 2^-96 of
// the terms where these cancel. A constant row has exactly its element for mean, and variance 0. A
// sum or variance beyond the largest double is infinite. min and max are float64: of 64-bit integers
// the nearest. A row of no elements has the sum 0 and NaN for all else.
//
// Does not depend on how rows are grouped into calls, nor on the passes. Does not throw, allocate or print.
//
// Requires 0 <= ddof, and ddof < row_length unless that is 0.
void measure_moments(const RowsIn& x, std::int64_t ddof, Moments* moments,
                     const Passes& passes = best_passes()) noexcept;

}  // namespace lnorm
