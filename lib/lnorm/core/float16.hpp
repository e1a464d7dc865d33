#pragma once

#include <bit>
#include <cstdint>

// The 16-bit floats, as their bits.
namespace lnorm {

// IEEE 754 binary16.
struct Float16 {
  std::uint16_t bits;
};

// The upper half of an IEEE 754 binary32.
struct BFloat16 {
  std::uint16_t bits;
};

// Exact: every value of theirs is a binary64 value.
double to_double(Float16 half) noexcept;
inline double to_double(BFloat16 value) noexcept {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{value.bits} << 16));
}

// The nearest value, ties to even, in one rounding (not by way of binary32); infinity from 65520, or
// 0x1.ffp127, on. Every NaN becomes the quiet NaN 0x7e00, or 0x7fc0.
Float16 to_float16(double value) noexcept;
BFloat16 to_bfloat16(double value) noexcept;

}  // namespace lnorm
