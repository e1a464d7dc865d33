#include "lnorm/core/rounded_decimal.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "lnorm/core/decimal_digits.hpp"

namespace lnorm {

namespace {

constexpr auto kExactPowers = [] {  // those that a double holds
  std::array<double, 23> powers{};
  double power = 1;
  for (double& each : powers) {
    each = power;
    power *= 10;
  }
  return powers;
}();

// The power of ten of the first digit, or one less.
int least_exponent(double value) noexcept {
  const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(value) >> 52) - 1023;
  return static_cast<int>((bits * 1233) >> 12);  // log10(2) is 1233 / 4096
}

}  // namespace

std::optional<std::uint64_t> rounded_multiple(double value, int power) noexcept {
  constexpr double kMax = 4503599627370496;  // 2^52
  const auto size = static_cast<std::size_t>(std::abs(power));
  if (size >= kExactPowers.size()) return std::nullopt;
  const double ten = kExactPowers[size];
  const double result = power < 0 ? value / ten : value * ten;
  if (!(result < kMax)) return std::nullopt;
  const auto below = static_cast<std::int64_t>(result);
  const double fraction = result - static_cast<double>(below);
  // The result is off by half a unit of its last place at most: it lies on the right side of the middle, unless it is the
  // middle. Then what it lacks decides, which fma gives exactly.
  bool up = fraction > 0.5;
  if (fraction == 0.5) {
    const double lacks = power < 0 ? std::fma(-result, ten, value) : std::fma(value, ten, -result);
    up = lacks > 0 || (lacks == 0 && below % 2 != 0);
  }
  return static_cast<std::uint64_t>(below) + (up ? 1 : 0);
}

std::optional<RoundedDecimal> rounded_decimal(double value, int digits) noexcept {
  if (digits > 15) return std::nullopt;
  const std::uint64_t end = kPowersOfTen[static_cast<std::size_t>(digits)];
  int exponent = least_exponent(value) - digits + 1;
  auto found = rounded_multiple(value, -exponent);
  if (found && *found >= end) found = rounded_multiple(value, -++exponent);
  if (!found || 10 * *found < end || *found >= end) return std::nullopt;
  return RoundedDecimal{*found, exponent};
}

}  // namespace lnorm
