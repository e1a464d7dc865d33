#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/number.hpp"

namespace lnorm {

// How far two numbers are apart in units in the last place of the expected one's dtype: the number of
// steps from one representable value to the next that lead from actual, rounded to one of them
// (nearest, ties to even), to expected. Of integers |actual - expected|, rounded up, so that only
// equal numbers have no distance. kNoUlpDistance if actual is beyond the dtype's finite range, or the
// distance beyond that. Zeros of both signs are the same. Both are finite.
template <class T>
std::uint64_t ulp_distance(Number actual, Number expected) noexcept;
inline std::uint64_t ulp_distance(Number actual, Number expected, DType dtype) noexcept {
  return visit(dtype, [&]<class T>(T) { return ulp_distance<T>(actual, expected); });
}
inline constexpr std::uint64_t kNoUlpDistance = std::numeric_limits<std::uint64_t>::max();

// A distance in ulp: steps, or a real number.
struct Ulps {
  std::uint64_t rank =
      0;  // the number of steps, or the bits of the real number: in the order of distances
  bool is_real = false;

  double value() const noexcept {
    return is_real ? std::bit_cast<double>(rank) : static_cast<double>(rank);
  }

  // The greatest distance of at most so many ulp.
  static Ulps greatest(double most, bool is_real) noexcept {
    if (is_real) return {std::bit_cast<std::uint64_t>(most), true};
    return {most < 0x1p64 ? static_cast<std::uint64_t>(most) : kNoUlpDistance, false};
  }

  friend bool operator==(const Ulps& a, const Ulps& b) noexcept { return a.rank == b.rank; }
  // By operator<=>, as g++ 12 compiles it, compare takes 3 % longer.
  friend bool operator<(const Ulps& a, const Ulps& b) noexcept { return a.rank < b.rank; }
  friend bool operator<=(const Ulps& a, const Ulps& b) noexcept { return a.rank <= b.rank; }
  friend bool operator>(const Ulps& a, const Ulps& b) noexcept { return a.rank > b.rank; }
};

// Whether a float dtype has more precision and a wider range than another one: then distances are real, in ulp of
// the other.
inline bool is_wider(DType dtype, DType than) {
  if (!is_floating(dtype) || !is_floating(than)) return false;
  const FloatFormat wide = float_format(dtype);
  const FloatFormat narrow = float_format(than);
  return wide.precision > narrow.precision && wide.least_exponent < narrow.least_exponent &&
         wide.greatest > narrow.greatest;
}

// The unit in the last place of a dtype at a finite number, which may be beyond its range; of integers 1.
inline double ulp_at(double number, DType dtype) noexcept {
  if (!is_floating(dtype)) return 1;
  const FloatFormat format = float_format(dtype);
  const int exponent =
      number == 0 ? format.least_exponent : std::ilogb(number) - format.precision + 1;
  return std::ldexp(1.0, std::max(exponent, format.least_exponent));
}

namespace detail {

// Integers that count the representable values from zero on, negative below it.
template <class Bits>
std::int64_t ordinal(Bits bits) noexcept {
  constexpr int kSign = 8 * sizeof(Bits) - 1;
  constexpr Bits kMagnitude = static_cast<Bits>(~(Bits{1} << kSign));
  const auto magnitude = static_cast<std::int64_t>(bits & kMagnitude);
  const std::int64_t minus = -static_cast<std::int64_t>(bits >> kSign);
  return (magnitude ^ minus) - minus;  // without a branch, which signs would mislead
}

// The number in a float dtype, rounded once: where there is a low part it is an integer.
inline float rounded(Number value, float) noexcept {
  return value.low == 0 ? static_cast<float>(value.high) : static_cast<float>(integer_of(value));
}
inline double rounded(Number value, double) noexcept { return value.high; }
template <SmallFloat T>
T rounded(Number value, T) noexcept {
  return rounded_to<T>(value.high);
}

template <class T>
std::int64_t ordinal_of(T value) noexcept {
  const auto bits = std::bit_cast<UnsignedOfSize<sizeof(T)>>(value);
  if constexpr (std::is_same_v<T, Float8E8M0>) return bits;  // it has no sign
  if constexpr (std::is_same_v<T, Float8E4M3Fnuz>) {
    if (bits == T::kNan) return T::kBeyond;
  }
  return ordinal(bits);
}

// The ordinal of infinity, or of the NaN in its place.
template <class T>
constexpr std::int64_t kInfinityBits = T::kBeyond;
template <>
inline constexpr std::int64_t kInfinityBits<float> = 0x7f80'0000;
template <>
inline constexpr std::int64_t kInfinityBits<double> = 0x7ff0'0000'0000'0000;

inline std::uint64_t integer_distance(Number actual, Int128 expected) noexcept {
  if (std::fabs(actual.high) > 0x1p65) return kNoUlpDistance;
  const double whole = std::floor(actual.high);
  const Int128 below = integer_of({whole, actual.low});
  const Int128 above = below + (whole == actual.high ? 0 : 1);
  const Int128 distance = below < expected ? expected - below : above - expected;
  return static_cast<std::uint64_t>(std::min<Int128>(distance, kNoUlpDistance));
}

}  // namespace detail

template <class T>
std::uint64_t ulp_distance(Number actual, Number expected) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return detail::integer_distance(actual, integer_of(expected));
  } else {
    const auto a = detail::ordinal_of(detail::rounded(actual, T{}));
    if (a == detail::kInfinityBits<T> || a == -detail::kInfinityBits<T>) return kNoUlpDistance;
    const auto e = detail::ordinal_of(detail::rounded(expected, T{}));
    return static_cast<std::uint64_t>(std::max(a, e)) - static_cast<std::uint64_t>(std::min(a, e));
  }
}

}  // namespace lnorm
