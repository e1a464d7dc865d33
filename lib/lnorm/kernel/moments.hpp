#pragma once

#include <cstdint>

#include "lnorm/core/moments.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// The moments of every row of x, each by itself: x.rows of them.
//
// Accuracy: sum, mean and variance are the exact values rounded once to float64, infinite beyond its range. min
// and max are the elements as float64: of 64-bit integers the nearest. A row of no elements has the sum 0 and NaN
// for all else.
//
// Requires 0 <= ddof, and ddof < row_length unless that is 0. Throws std::bad_alloc alone.
void measure_moments(const RowsIn& x, std::int64_t ddof, Moments* moments,
                     const Backend& backend = backends().front());

// The moments of one row of n elements that is read in parts.
Moments measure_moments(const ReadRow& row, DType dtype, std::int64_t n, std::int64_t ddof,
                        const Backend& backend = backends().front());

}  // namespace lnorm
