#pragma once

#include <cmath>
#include <cstdint>

#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

// A sum in three doubles. Of a sum that cancels, double-doubles keep too few digits.
// [Ogita, Rump, Oishi 2005, "Accurate sum and dot product", SumK with K = 3]
struct TripleSum {
  double high = 0;
  double middle = 0;
  double low = 0;

  TripleSum& operator+=(const TripleSum& other) noexcept {
    const DoubleDouble first = two_sum(high, other.high);
    const DoubleDouble second = two_sum(middle, other.middle);
    const DoubleDouble third = two_sum(second.high, first.low);
    high = first.high;
    middle = third.high;
    low += other.low + (second.low + third.low);
    return *this;
  }

  // Off by 2 u^2 of itself.
  DoubleDouble rounded() const noexcept {
    const DoubleDouble sum = two_sum(high, middle);
    return sum + low;
  }
};

// The error of such a sum of n elements, of which squares is at least the sum of the squares. Let S be the sum of their
// sizes: S <= sqrt(n squares). What goes into middle has at most the size n u S, what goes into low n^2 u^2 S. Only the
// additions to low are rounded.
inline double triple_error(std::int64_t n, double squares) noexcept {
  const double nu = 2 * static_cast<double>(n) * kUnit;  // two terms an addition
  return nu * nu * nu * std::sqrt(static_cast<double>(n) * squares) * (1 + 0x1p-8);
}

}  // namespace lnorm
