#include "lnorm/measure/ulp.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "lnorm/core/byte_order.hpp"

namespace lnorm {

namespace {

// Integers that count the representable values from zero on, negative below it.
template <class Bits>
std::int64_t ordinal(Bits bits) noexcept {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const auto magnitude = static_cast<std::int64_t>(bits & static_cast<Bits>(~kSign));
  return (bits & kSign) != 0 ? -magnitude : magnitude;
}

std::uint64_t steps(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::uint64_t>(a < b ? Int128{b} - a : Int128{a} - b);
}

// The number in a float dtype, rounded once: where there is a low part it is an integer.
float rounded(Number value, float) noexcept {
  return value.low == 0 ? static_cast<float>(value.high) : static_cast<float>(integer_of(value));
}
double rounded(Number value, double) noexcept { return value.high; }
Float16 rounded(Number value, Float16) noexcept { return to_float16(value.high); }

template <class T>
std::uint64_t float_distance(T actual, T expected) noexcept {
  using Bits = UnsignedOfSize<sizeof(T)>;
  const auto infinity =
      std::bit_cast<Bits>(rounded({std::numeric_limits<double>::infinity()}, T{}));
  const std::int64_t a = ordinal(std::bit_cast<Bits>(actual));
  if (a == ordinal(infinity) || a == -ordinal(infinity)) return kNoUlpDistance;
  return steps(a, ordinal(std::bit_cast<Bits>(expected)));
}

std::uint64_t integer_distance(Number actual, Int128 expected) noexcept {
  if (std::fabs(actual.high) > 0x1p65) return kNoUlpDistance;
  const double whole = std::floor(actual.high);
  const Int128 below = integer_of({whole, actual.low});
  const Int128 above = below + (whole == actual.high ? 0 : 1);
  const Int128 distance = below < expected ? expected - below : above - expected;
  return static_cast<std::uint64_t>(std::min<Int128>(distance, kNoUlpDistance));
}

template <class T>
std::uint64_t distance(Number actual, Number expected) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return integer_distance(actual, integer_of(expected));
  } else {
    return float_distance(rounded(actual, T{}), rounded(expected, T{}));
  }
}

}  // namespace

std::uint64_t ulp_distance(Number actual, Number expected, DType dtype) noexcept {
  return visit(dtype, [&]<class T>(T) { return distance<T>(actual, expected); });
}

UlpDistance greatest_ulp_distance(const Chunk& actual, const Chunk& expected, std::int64_t count,
                                  DType dtype) noexcept {
  UlpDistance greatest;
  visit(dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (actual.high[i] == expected.high[i] && actual.low[i] == expected.low[i]) continue;
      const std::uint64_t found =
          distance<T>({actual.high[i], actual.low[i]}, {expected.high[i], expected.low[i]});
      if (found > greatest.distance) greatest = {found, i};
    }
  });
  return greatest;
}

}  // namespace lnorm
