#include "lnorm/kernel/exact_statistics.hpp"

#include <cmath>

#include "lnorm/core/int128.hpp"

namespace lnorm {

ExactElement exact_element(double high, double low) noexcept {
  if (low != 0) {  // a 64-bit integer
    const Int128 value = static_cast<Int128>(high) + static_cast<Int128>(low);
    return {static_cast<std::uint64_t>(value < 0 ? -value : value), kExactUnit, value < 0};
  }
  if (high == 0) return {0, 0, false};
  int exponent;
  const double mantissa = std::frexp(std::fabs(high), &exponent);
  auto magnitude = static_cast<std::uint64_t>(std::ldexp(mantissa, 53));
  std::int64_t shift = exponent - 53 + kExactUnit;
  if (shift < 0) {  // subnormal: the bits below the smallest unit are zeros
    magnitude >>= -shift;
    shift = 0;
  }
  return {magnitude, shift, high < 0};
}

ExactSums exact_sums(const RowsIn& x) noexcept {
  ExactSums sums;
  for_each_element(x, [&](std::int64_t, double high, double low) {
    sums.finite = sums.finite && std::isfinite(high);
    if (!sums.finite) return;
    const ExactElement e = exact_element(high, low);
    sums.sum.add(e.magnitude, e.shift, e.negative);
    sums.squares.add(static_cast<UInt128>(e.magnitude) * e.magnitude, 2 * e.shift, false);
  });
  return sums;
}

ExactSums operator+(const ExactSums& a, const ExactSums& b) noexcept {
  return {a.finite && b.finite, a.sum + b.sum, a.squares + b.squares};
}

Scaled exact_mean(const ExactSums& sums, std::int64_t n) noexcept {
  return sums.sum.scaled(-kExactUnit) / scaled(static_cast<double>(n));
}

Scaled exact_variance(const ExactSums& sums, std::int64_t n, std::int64_t ddof) noexcept {
  const ExactInteger centered = sums.squares * static_cast<std::uint64_t>(n) + -square(sums.sum);
  return centered.scaled(-2 * kExactUnit) / scaled(static_cast<double>(n)) /
         scaled(static_cast<double>(n - ddof));
}

}  // namespace lnorm
