#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "lnorm/core/non_finite.hpp"

// The 8-bit floats of OCP OFP8, as their bits.
// [Open Compute Project 2023, "OCP 8-bit Floating Point Specification (OFP8)", revision 1.0]
namespace lnorm {

// E4M3: 448 is the greatest. There is no infinity, and one NaN of each sign: what would be 480.
struct Float8E4M3 {
  std::uint8_t bits;
  static constexpr int kMantissaBits = 3;
  static constexpr std::uint8_t kBeyond = 0x7f;  // what follows the greatest: NaN
  static constexpr std::uint8_t kNan = 0x7f;
};

// E5M2: the upper half of a binary16.
struct Float8E5M2 {
  std::uint8_t bits;
  static constexpr int kMantissaBits = 2;
  static constexpr std::uint8_t kBeyond = 0x7c;  // infinity
  static constexpr std::uint8_t kNan = 0x7e;
};

namespace detail {

// The exponent of the smallest normal number.
template <class Float8>
inline constexpr int kMinNormal = 2 - (1 << (6 - Float8::kMantissaBits));

// What the bits stand for.
template <class Float8>
constexpr double value_of(unsigned bits) noexcept {
  constexpr int kMantissa = Float8::kMantissaBits;
  const unsigned magnitude = bits & 0x7f;
  if (magnitude >= Float8::kBeyond) {
    if (magnitude > Float8::kBeyond || Float8::kBeyond == Float8::kNan) {
      return kNan;
    }
    return bits > 0x7f ? -kInfinity : kInfinity;
  }
  const unsigned fraction = magnitude & ((1U << kMantissa) - 1);
  const unsigned exponent = magnitude >> kMantissa;
  const unsigned significand = exponent == 0 ? fraction : fraction + (1U << kMantissa);
  const int scale =
      kMinNormal<Float8> - kMantissa + (exponent == 0 ? 0 : static_cast<int>(exponent) - 1);
  const auto power = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + scale) << 52);
  return (bits > 0x7f ? -1.0 : 1.0) * (static_cast<double>(significand) * power);
}

template <class Float8>
inline constexpr std::array<double, 256> kValues = [] {
  std::array<double, 256> values{};
  for (unsigned bits = 0; bits < values.size(); ++bits) values[bits] = value_of<Float8>(bits);
  return values;
}();

// A sum without bits below the last one of the result is rounded there by the hardware. Then its last bits are the
// significand.
template <class Float8>
Float8 rounded_to(double value) noexcept {
  constexpr int kMantissa = Float8::kMantissaBits;
  constexpr std::uint64_t kMin = 1023 + kMinNormal<Float8>;
  constexpr double kFarBeyond = 0x1p20;
  const double magnitude = std::min(std::fabs(value), kFarBeyond);
  const std::uint64_t exponent = std::max(std::bit_cast<std::uint64_t>(magnitude) >> 52, kMin);
  const auto aligner = std::bit_cast<double>((exponent + 52 - kMantissa) << 52);
  const std::uint64_t significand =
      std::bit_cast<std::uint64_t>(magnitude + aligner) & ((4U << kMantissa) - 1);
  const std::uint64_t bits = ((exponent - kMin) << kMantissa) + significand;
  const std::uint64_t sign = std::bit_cast<std::uint64_t>(value) >> 56 & 0x80;
  const auto result =
      static_cast<std::uint8_t>(sign | std::min<std::uint64_t>(bits, Float8::kBeyond));
  return {std::isnan(value) ? Float8::kNan : result};
}

}  // namespace detail

// Exact: every value of theirs is a binary64 value.
inline double to_double(Float8E4M3 value) noexcept {
  return detail::kValues<Float8E4M3>[value.bits];
}
inline double to_double(Float8E5M2 value) noexcept {
  return detail::kValues<Float8E5M2>[value.bits];
}

// The nearest value, ties to even, in one rounding. E4M3 rounds as if 480 followed 448: above 464 it is NaN, with the sign
// of the value. E5M2 has infinity from 61440 on. Every NaN becomes 0x7f, or 0x7e.
inline Float8E4M3 to_float8_e4m3(double value) noexcept {
  return detail::rounded_to<Float8E4M3>(value);
}
inline Float8E5M2 to_float8_e5m2(double value) noexcept {
  return detail::rounded_to<Float8E5M2>(value);
}

}  // namespace lnorm
