#pragma once

#include <cmath>
#include <cstdint>

#include "lnorm/kernel/exp.hpp"
#include "lnorm/kernel/statistics.hpp"

// The bounds of softmax by doubles; docs/numbers.md has their derivation.
namespace lnorm {

// (21) The relative error of a result of a row of n elements is at most this, and kSoftmaxUnit for every unit that its element
// is below max. growth: additions that an exponential goes through on its way into a chunk's sum.
//
// x - max is off by u |x - max|, which is a relative error of its exponential. In the sum these errors are on average
// at most 2 (ln n + 1) u: let L = ln n + 1; elements up to L below max make at most L u of the sum, each of the others
// less than L exp(-L) u, which is less than L/n u. The sum as a double, its reciprocal, the product with that, a scale,
// and each end of the interval make u.
inline constexpr double kSoftmaxUnit = kUnit * kSlack;
inline double softmax_error(std::int64_t n, std::int64_t growth) noexcept {
  const double in_sum = 2 * (std::log(static_cast<double>(n)) + 1);
  const double units = in_sum + static_cast<double>(growth) + 6;
  return 2 * Exp::kDoubleError * kSlack + units * kSoftmaxUnit;
}

// (22) The same in double-doubles, for every element: the difference is exact where elements have no low parts.
// The sum is off by double_double_growth() u^2, its reciprocal by 10 u^2, the product with it by 5 u^2, each end of the
// interval by 2 u^2. Both exponentials have their errors.
inline double double_double_softmax_error(std::int64_t n, std::int64_t lanes) noexcept {
  const double growth = double_double_growth(n, lanes);
  return (2 * Exp::kDoubleDoubleError + (growth + 17) * kUnit2) * kSlack;
}

}  // namespace lnorm
