#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "lnorm/core/non_finite.hpp"

// The floats of 8 and 16 bits, as their bits.
namespace lnorm {

// E4M3 of OCP OFP8: 448 is the greatest. There is no infinity, and one NaN of each sign: what would be 480.
// [Open Compute Project 2023, "OCP 8-bit Floating Point Specification (OFP8)", revision 1.0]
struct Float8E4M3 {
  std::uint8_t bits;
  static constexpr int kMantissaBits = 3;
  static constexpr std::uint8_t kBeyond = 0x7f;  // what follows the greatest: NaN
  static constexpr std::uint8_t kNan = 0x7f;
};

// E5M2 of OCP OFP8: the upper half of a binary16.
struct Float8E5M2 {
  std::uint8_t bits;
  static constexpr int kMantissaBits = 2;
  static constexpr std::uint8_t kBeyond = 0x7c;  // infinity
  static constexpr std::uint8_t kNan = 0x7e;
};

// E4M3 with a bias of 8, as AMD's MI300 has it: 240 is the greatest, and what would be -0 is the one NaN.
struct Float8E4M3Fnuz {
  std::uint8_t bits;
  static constexpr int kMantissaBits = 3;
  static constexpr std::uint8_t kBeyond = 0x80;
  static constexpr std::uint8_t kNan = 0x80;
};

// 2^(bits - 127), and NaN: a scale of the OCP's microscaling formats.  [Open Compute Project 2023, "OCP Microscaling Formats (MX)
// Specification", version 1.0]
struct Float8E8M0 {
  std::uint8_t bits;
  static constexpr int kMantissaBits = 0;
  static constexpr std::uint8_t kBeyond = 0xff;
  static constexpr std::uint8_t kNan = 0xff;
};

// IEEE 754 binary16.
struct Float16 {
  std::uint16_t bits;
  static constexpr int kMantissaBits = 10;
  static constexpr std::uint16_t kBeyond = 0x7c00;  // infinity
  static constexpr std::uint16_t kNan = 0x7e00;
};

// The upper half of an IEEE 754 binary32.
struct BFloat16 {
  std::uint16_t bits;
  static constexpr int kMantissaBits = 7;
  static constexpr std::uint16_t kBeyond = 0x7f80;  // infinity
  static constexpr std::uint16_t kNan = 0x7fc0;
};

template <class T>
concept SmallFloat = requires {
  T::kMantissaBits;
};

namespace detail {

// The exponent of the smallest normal number.
template <SmallFloat T>
inline constexpr int kMinNormal = (T::kNan == 0x80 ? 1 : 2) -
                                  (1 << (8 * sizeof(T) - 2 - T::kMantissaBits));

// The number that the bits of a float8 stand for.
template <class Float8>
constexpr double value_of(unsigned bits) noexcept {
  constexpr int kMantissa = Float8::kMantissaBits;
  if (bits == Float8::kNan) return kNan;
  const double sign = bits > 0x7f ? -1 : 1;
  const unsigned magnitude = bits & 0x7f;
  constexpr bool kHasInfinity = Float8::kBeyond != Float8::kNan;
  if (kHasInfinity && magnitude == Float8::kBeyond) return sign * kInfinity;
  if (magnitude >= Float8::kBeyond) return kNan;
  const unsigned fraction = magnitude & ((1U << kMantissa) - 1);
  const unsigned exponent = magnitude >> kMantissa;
  const unsigned significand = exponent == 0 ? fraction : fraction + (1U << kMantissa);
  const int scale = kMinNormal<Float8> - kMantissa + std::max(static_cast<int>(exponent) - 1, 0);
  const auto power = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + scale) << 52);
  return sign * (static_cast<double>(significand) * power);
}

template <class Float8>
inline constexpr std::array<double, 256> kValues = [] {
  std::array<double, 256> values{};
  for (unsigned bits = 0; bits < values.size(); ++bits) values[bits] = value_of<Float8>(bits);
  return values;
}();

}  // namespace detail

// Exact: every value of theirs is a binary64 value.
inline double to_double(Float8E4M3 value) noexcept {
  return detail::kValues<Float8E4M3>[value.bits];
}
inline double to_double(Float8E5M2 value) noexcept {
  return detail::kValues<Float8E5M2>[value.bits];
}
inline double to_double(Float8E4M3Fnuz value) noexcept {
  return detail::kValues<Float8E4M3Fnuz>[value.bits];
}
inline double to_double(Float8E8M0 value) noexcept {
  if (value.bits == Float8E8M0::kNan) return kNan;
  return std::ldexp(1.0, value.bits - 127);
}
// By way of binary32, where it is exact as well, and without a branch: the compiler takes several at once.
inline double to_double(Float16 half) noexcept {
  constexpr std::uint32_t kRaise = std::uint32_t{127 - 15} << 23;  // of the exponent
  const std::uint32_t size = half.bits & 0x7fffu;
  const std::uint32_t normal = (size << 13) + kRaise + (size >= 0x7c00u ? kRaise : 0);
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24F;
  const std::uint32_t is_normal = 0u - static_cast<std::uint32_t>(size >= 0x400u);
  const std::uint32_t bits =
      (normal & is_normal) | (std::bit_cast<std::uint32_t>(subnormal) & ~is_normal);
  return std::bit_cast<float>(bits | (half.bits & 0x8000u) << 16);
}
inline double to_double(BFloat16 value) noexcept {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{value.bits} << 16));
}

// The nearest value, ties to even, in one rounding (not by way of binary32): infinity from 61440 on, or 65520, or 0x1.ffp127.
// E4M3 rounds as if 480 followed 448: above 464 it is NaN, with the sign of the value. Every NaN becomes kNan.
template <SmallFloat T>
T rounded_to(double value) noexcept {
  constexpr int kDropped = 52 - T::kMantissaBits;
  constexpr auto kMin = static_cast<std::uint64_t>(1023 + detail::kMinNormal<T>) << 52;
  constexpr auto kEnd =
      std::bit_cast<double>(kMin + (std::uint64_t{T::kBeyond} << kDropped) - (1ULL << 52));
  const double magnitude = std::min(std::fabs(value), kEnd);
  const auto exponent = std::max(std::bit_cast<std::uint64_t>(magnitude) >> 52 << 52, kMin);
  // A sum without bits below the last one of the result is rounded there by the hardware. Then its last bits are the
  // significand.
  const std::uint64_t aligner = exponent + (std::uint64_t{kDropped} << 52);
  const double sum = magnitude + std::bit_cast<double>(aligner);
  const std::uint64_t significand = std::bit_cast<std::uint64_t>(sum) - aligner;
  const std::uint64_t bits = ((exponent - kMin) >> kDropped) + significand;
  const std::uint64_t sign = std::bit_cast<std::uint64_t>(value) >> 63 << (8 * sizeof(T) - 1);
  if (T::kNan == 0x80 && bits == 0) return {0};  // it has no -0
  return {std::isnan(value) ? T::kNan : static_cast<decltype(T::bits)>(sign | bits)};
}

// To the nearest power of two, halves to the even exponent; 0 to the smallest. What has a sign, or is too large, is NaN.
template <>
inline Float8E8M0 rounded_to<Float8E8M0>(double value) noexcept {
  if (!(value >= 0 && value < 0x1.8p127)) return {Float8E8M0::kNan};
  const auto bits = std::bit_cast<std::uint64_t>(std::max(value, 0x1p-127)) - (896ULL << 52);
  const std::uint64_t is_odd = bits >> 52 & 1;
  return {static_cast<std::uint8_t>((bits + (1ULL << 51) - 1 + is_odd) >> 52)};
}

}  // namespace lnorm
