#pragma once

#include <cstdint>
#include <optional>

namespace lnorm {

// value * 10^power, rounded to the nearest integer, of two equally near ones to the even one: what printf prints of an exact
// value. Nothing where the fast way does not reach: powers beyond 22, results beyond 2^52. value: not negative.
std::optional<std::uint64_t> rounded_multiple(double value, int power) noexcept;

// digits * 10^exponent
struct RoundedDecimal {
  std::uint64_t digits;
  int exponent;
};

// The same of a value's first so many digits, 15 at most. value: positive.
std::optional<RoundedDecimal> rounded_decimal(double value, int digits) noexcept;

}  // namespace lnorm
