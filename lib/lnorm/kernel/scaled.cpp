#include "lnorm/kernel/scaled.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lnorm {

Scaled normalized(DoubleDouble m, std::int64_t exponent) noexcept {
  if (m.high == 0) return {};
  const int shift = std::ilogb(m.high);
  return {{std::ldexp(m.high, -shift), std::ldexp(m.low, -shift)}, exponent + shift};
}

Scaled scaled(double high, double low) noexcept {
  if (high == 0) return {};
  const int shift = std::ilogb(high);  // low first, since scaling a subnormal pair up is exact
  return {{std::scalbn(high, -shift), std::scalbn(low, -shift)}, shift};
}

Scaled operator*(Scaled a, Scaled b) noexcept {
  return normalized(a.m * b.m, a.exponent + b.exponent);
}

Scaled operator/(Scaled a, Scaled b) noexcept {
  if (a.m.high == 0) return {};
  return normalized(a.m / b.m, a.exponent - b.exponent);
}

Scaled operator+(Scaled a, Scaled b) noexcept {
  if (a.m.high == 0) return b;
  if (b.m.high == 0) return a;
  if (a.exponent < b.exponent) std::swap(a, b);
  const auto shift = static_cast<int>(std::max<std::int64_t>(b.exponent - a.exponent, -400));
  const DoubleDouble aligned{std::ldexp(b.m.high, shift), std::ldexp(b.m.low, shift)};
  return normalized(a.m + aligned, a.exponent);
}

Scaled sqrt(Scaled a) noexcept {
  if (a.m.high == 0) return {};
  const std::int64_t odd = a.exponent & 1;
  const double factor = odd ? 2 : 1;
  return normalized(sqrt(DoubleDouble{a.m.high * factor, a.m.low * factor}),
                    (a.exponent - odd) / 2);
}

double to_double(Scaled value) noexcept {
  constexpr int kUnit = 1074;  // the smallest number is 2^-1074
  const auto exponent = static_cast<int>(std::clamp<std::int64_t>(value.exponent, -5000, 5000));
  const double result = std::ldexp(value.m.high, exponent);
  if (std::fabs(result) >= std::numeric_limits<double>::min() || value.m.high == 0) return result;
  // A subnormal result keeps fewer bits than m.high, which is rounded already: round both parts at
  // once, in units of the smallest number.
  const double sign = value.m.high < 0 ? -1 : 1;
  const double high = std::ldexp(sign * value.m.high, exponent + kUnit);
  const double low = sign * value.m.low;  // its sign is all that counts
  const double whole = std::floor(high);
  const double fraction = high - whole;
  const bool odd = std::fmod(whole, 2) != 0;
  const bool up = fraction > 0.5 || (fraction == 0.5 && (low > 0 || (low == 0 && odd)));
  return std::ldexp(sign * (whole + (up ? 1 : 0)), -kUnit);
}

}  // namespace lnorm
