#include "lnorm/core/bfloat16.hpp"

#include <cmath>

namespace lnorm {

BFloat16 to_bfloat16(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return {0x7fc0};
  if (magnitude >= 0x1.ffp127) return {static_cast<std::uint16_t>(sign | 0x7f80)};
  if (magnitude < 0x1p-126) {
    // Subnormal: adding 2^-81 leaves no bit below 2^-133 in the sum, so the hardware rounds there.
    const double aligned = magnitude + 0x1p-81;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint64_t>(aligned) & 0xff))};
  }
  // Round the 52-bit mantissa to 7 bits, to nearest even; a carry rightly runs into the exponent.
  std::uint64_t rounded = bits & 0x7fffffffffffffff;
  rounded += (std::uint64_t{1} << 44) - 1 + (rounded >> 45 & 1);
  return {static_cast<std::uint16_t>(sign | ((rounded >> 45) - (std::uint64_t{1023 - 127} << 7)))};
}

}  // namespace lnorm
