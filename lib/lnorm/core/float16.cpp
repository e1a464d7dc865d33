#include "lnorm/core/float16.hpp"

#include <bit>
#include <cmath>

namespace lnorm {

double to_double(Float16 half) noexcept {
  const std::uint64_t sign = std::uint64_t{half.bits & 0x8000u} << 48;
  const std::uint64_t exponent = (half.bits >> 10) & 0x1f;
  const std::uint64_t mantissa = half.bits & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in binary64
    const double magnitude = static_cast<double>(mantissa) * 0x1p-24;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) | sign);
  }
  const std::uint64_t wide_exponent = exponent == 0x1f ? 0x7ff : exponent - 15 + 1023;
  return std::bit_cast<double>(sign | wide_exponent << 52 | mantissa << 42);
}

Float16 to_float16(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return {0x7e00};
  if (magnitude >= 65520.0) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x1p-14) {
    // Subnormal: adding 2^28 leaves no bit below 2^-24 in the sum, so the hardware rounds there.
    const double aligned = magnitude + 0x1p28;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint64_t>(aligned) & 0x7ff))};
  }
  // Round the 52-bit mantissa to 10 bits, to nearest even; a carry rightly runs into the exponent.
  std::uint64_t rounded = bits & 0x7fffffffffffffff;
  rounded += (std::uint64_t{1} << 41) - 1 + (rounded >> 42 & 1);
  return {static_cast<std::uint16_t>(sign | ((rounded >> 42) - (std::uint64_t{1023 - 15} << 10)))};
}

}  // namespace lnorm
