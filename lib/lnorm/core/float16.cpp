#include "lnorm/core/float16.hpp"

#include <algorithm>
#include <cmath>

namespace lnorm {

namespace {

// The bits of a 16-bit float: a sign, an exponent, and a mantissa of that many bits.
template <int mantissa_bits>
std::uint16_t rounded(double value) noexcept {
  constexpr std::uint64_t kBias = (1 << (14 - mantissa_bits)) - 1;
  constexpr std::uint64_t kInfinity = 0x7fff >> mantissa_bits << mantissa_bits;
  constexpr int kDropped = 52 - mantissa_bits;
  constexpr auto kMinNormal = std::bit_cast<double>((1023 - kBias + 1) << 52);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const double magnitude = std::fabs(value);
  std::uint64_t result;
  if (std::isnan(value)) return kInfinity | 1 << (mantissa_bits - 1);
  if (magnitude < kMinNormal) {
    // Subnormal: the sum has no bit below the last one of the result, so the hardware rounds there.
    constexpr auto kAligner = std::bit_cast<double>((1023 - kBias + 1 + kDropped) << 52);
    result = std::bit_cast<std::uint64_t>(magnitude + kAligner) & ((2 << mantissa_bits) - 1);
  } else {
    // Round the mantissa to nearest even; a carry rightly runs into the exponent.
    const std::uint64_t positive = bits & 0x7fffffffffffffff;
    const std::uint64_t half =
        (std::uint64_t{1} << (kDropped - 1)) - 1 + (positive >> kDropped & 1);
    result = ((positive + half) >> kDropped) - ((1023 - kBias) << mantissa_bits);
  }
  return static_cast<std::uint16_t>((bits >> 48 & 0x8000) | std::min(result, kInfinity));
}

}  // namespace

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

Float16 to_float16(double value) noexcept { return {rounded<10>(value)}; }
BFloat16 to_bfloat16(double value) noexcept { return {rounded<7>(value)}; }

}  // namespace lnorm
