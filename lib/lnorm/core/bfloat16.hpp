#pragma once

#include <bit>
#include <cstdint>

namespace lnorm {

// The upper half of an IEEE 754 binary32, as its bits.
struct BFloat16 {
  std::uint16_t bits;
};

// Exact: every bfloat16 value is a binary32 value.
inline double to_double(BFloat16 value) noexcept {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{value.bits} << 16));
}

// The nearest bfloat16, ties to even, in one rounding (not by way of binary32); infinity from
// 0x1.ffp127 on. Every NaN becomes the quiet NaN 0x7fc0.
BFloat16 to_bfloat16(double value) noexcept;

}  // namespace lnorm
