#pragma once

#include <cstdint>

namespace lnorm {

// IEEE 754 binary16, as its bits.
struct Float16 {
  std::uint16_t bits;
};

// Exact: every binary16 value is a binary64 value.
double to_double(Float16 half) noexcept;

// The nearest binary16, ties to even, in one rounding (not by way of binary32); beyond 65520
// infinity. Every NaN becomes the quiet NaN 0x7e00.
Float16 to_float16(double value) noexcept;

}  // namespace lnorm
