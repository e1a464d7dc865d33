#include "lnorm/core/decimal.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "lnorm/core/number.hpp"

namespace lnorm {

namespace {

constexpr auto kPairs = [] {  // 00 to 99
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i] = static_cast<char>('0' + (i % 2 == 0 ? i / 20 : i / 2 % 10));
  }
  return pairs;
}();

void put_pair(std::uint64_t number, char* to) noexcept { std::memcpy(to, &kPairs[2 * number], 2); }

// Eight digits, in lanes of one word: of 4, of 2, of 1. The factors are 1/100 and 1/10 for lanes of that size.
void put_eight(std::uint64_t number, char* to) noexcept {
  const std::uint64_t fours = number / 10'000 | number % 10'000 << 32;
  const std::uint64_t high_pairs = (fours * 10'486 >> 20) & 0x7f'0000'007f;
  const std::uint64_t pairs = high_pairs | (fours - 100 * high_pairs) << 16;
  const std::uint64_t tens = (pairs * 103 >> 10) & 0x000f'000f'000f'000f;
  const std::uint64_t digits = (tens | (pairs - 10 * tens) << 8) + 0x3030'3030'3030'3030;
  for (int i = 0; i < 8; ++i) to[i] = static_cast<char>(digits >> 8 * i);
}

// 10^k, scaled by a power of two to 128 bits, of which the first is set, and rounded up.
struct PowerOfTen {
  std::uint64_t high;
  std::uint64_t low;
};

constexpr int kMinPower = -292;
constexpr int kMaxPower = 324;
using PowersOfTen = std::array<PowerOfTen, kMaxPower - kMinPower + 1>;

// A number scaled to 192 bits, of which the first is set: the lowest limb first. Steps drop what is below.
class Scaled {
 public:
  constexpr void times_ten() {
    std::uint64_t carry = 0;
    for (std::uint64_t& limb : limbs_) {
      const UInt128 product = UInt128{limb} * 10 + carry;
      limb = static_cast<std::uint64_t>(product);
      carry = static_cast<std::uint64_t>(product >> 64);
    }
    const int shift = carry < 8 ? 3 : 4;  // carry: 5 to 9
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint64_t above = i < 2 ? limbs_[i + 1] : carry;
      limbs_[i] = limbs_[i] >> shift | above << (64 - shift);
    }
  }

  constexpr void over_ten() {
    std::uint64_t remainder = 0;
    std::array<std::uint64_t, 4> quotient{};
    for (std::size_t i = 4; i-- > 0;) {
      const UInt128 part = UInt128{remainder} << 64 | (i > 0 ? limbs_[i - 1] : 0);
      quotient[i] = static_cast<std::uint64_t>(part / 10);
      remainder = static_cast<std::uint64_t>(part % 10);
    }
    const int shift = std::countl_zero(quotient[3]);
    for (std::size_t i = 0; i < 3; ++i) {
      limbs_[i] = quotient[i + 1] << shift | quotient[i] >> (64 - shift);
    }
  }

  constexpr PowerOfTen rounded_up(bool is_exact) const {
    const UInt128 top = UInt128{limbs_[2]} << 64 | limbs_[1];
    const UInt128 rounded = top + (is_exact && limbs_[0] == 0 ? 0 : 1);
    return {static_cast<std::uint64_t>(rounded >> 64), static_cast<std::uint64_t>(rounded)};
  }

 private:
  std::array<std::uint64_t, 3> limbs_{0, 0, std::uint64_t{1} << 63};
};

constexpr PowersOfTen make_powers() {
  PowersOfTen powers{};
  Scaled power;
  for (int k = 0; k <= kMaxPower; ++k, power.times_ten()) {
    powers[static_cast<std::size_t>(k - kMinPower)] = power.rounded_up(true);
  }
  power = {};
  for (int k = -1; k >= kMinPower; --k) {
    power.over_ten();
    powers[static_cast<std::size_t>(k - kMinPower)] = power.rounded_up(false);
  }
  return powers;
}

constexpr PowersOfTen kPowers = make_powers();

// What the algorithm needs of a type: its bits, and a product with a power of ten, rounded to odd: all bits below the
// last are one bit, which is set if any of them is.
struct DoubleBits {
  using Bits = std::uint64_t;
  static Bits product(const PowerOfTen& power, Bits factor) noexcept {
    const auto low = static_cast<std::uint64_t>(UInt128{power.low} * factor >> 64);
    const UInt128 sum = UInt128{power.high} * factor + low;
    return static_cast<Bits>(sum >> 64) | (static_cast<std::uint64_t>(sum) > 1 ? 1 : 0);
  }
};

struct FloatBits {
  using Bits = std::uint32_t;
  static Bits product(const PowerOfTen& power, Bits factor) noexcept {
    const std::uint64_t rounded_up = power.high + (power.low != 0 ? 1 : 0);
    const UInt128 product = UInt128{rounded_up} * factor;
    const auto below = static_cast<std::uint32_t>(product >> 32);
    return static_cast<Bits>(product >> 64) | (below > 1 ? 1 : 0);
  }
};

// The names are the paper's: the value is c * 2^q, v, and what rounds to it lies from vl to vr, all times 4 * 10^-k.
template <class Type, class T>
Decimal schubfach(T value) noexcept {
  using Bits = typename Type::Bits;
  constexpr int kFraction = std::numeric_limits<T>::digits - 1;
  constexpr int kBias = std::numeric_limits<T>::max_exponent - 1 + kFraction;
  const auto bits = std::bit_cast<Bits>(value);
  const Bits fraction = bits & ((Bits{1} << kFraction) - 1);
  const auto exponent = static_cast<int>(bits >> kFraction);
  const Bits c = exponent == 0 ? fraction : fraction | Bits{1} << kFraction;
  const int q = (exponent == 0 ? 1 : exponent) - kBias;
  if (q <= 0 && -q <= kFraction && (c & ((Bits{1} << -q) - 1)) == 0)
    return {c >> -q, 0};  // an integer

  const bool closer_below = fraction == 0 && exponent > 1;
  const Bits odd = c & 1;  // an odd value does not own the ends of its interval
  const int k =
      (q * 1262611 - (closer_below ? 524031 : 0)) >> 22;  // floor(log10 of the interval's length)
  const int h = q + (-k * 1741647 >> 19) + 1;
  const PowerOfTen& power = kPowers[static_cast<std::size_t>(-k - kMinPower)];
  const Bits lower = Type::product(power, (4 * c - (closer_below ? 1 : 2)) << h) + odd;
  const Bits v = Type::product(power, (4 * c) << h);
  const Bits upper = Type::product(power, (4 * c + 2) << h) - odd;

  // Which way it goes is as good as random: there are no branches.
  const Bits s = v / 4;
  const Bits tens = s / 10;
  const bool tens_below = lower <= 40 * tens;
  const bool tens_above = 40 * tens + 40 <= upper;
  const bool below = lower <= 4 * s;
  const bool above = 4 * s + 4 <= upper;
  const Bits middle = 4 * s + 2;
  const bool closer_above = (v > middle) | ((v == middle) & ((s & 1) != 0));
  const bool ends_in_zero = (tens > 0) & (tens_below != tens_above);
  const bool rounds_up = below != above ? above : closer_above;
  const Bits digits = ends_in_zero ? tens + (tens_above ? 1 : 0) : s + (rounds_up ? 1 : 0);
  return {digits, k + (ends_in_zero ? 1 : 0)};
}

constexpr auto kExactPowers = powers_of_ten<double, 23>();  // those that a double holds

// The power of ten of the first digit, or one less.
int least_exponent(double value) noexcept {
  const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(value) >> 52) - 1023;
  return static_cast<int>((bits * 1233) >> 12);  // log10(2) is 1233 / 4096
}

}  // namespace

int digits_of(std::uint64_t number) noexcept {
  const int bits = static_cast<int>(std::bit_width(number));
  const auto least = static_cast<std::size_t>((bits * 1233) >> 12);  // log10(2) is 1233 / 4096
  return static_cast<int>(least) + (number >= kPowersOfTen[least] ? 1 : 0);
}

char* put_digits(std::uint64_t number, int count, char* to) noexcept {
  char* const end = to + count;
  char* at = end;
  for (; count >= 8; count -= 8) {
    at -= 8;
    put_eight(number % 100'000'000, at);
    number /= 100'000'000;
  }
  for (; count >= 2; count -= 2) {
    at -= 2;
    put_pair(number % 100, at);
    number /= 100;
  }
  if (count == 1) *to = static_cast<char>('0' + number);
  return end;
}

char* put_with_point(std::uint64_t number, int count, int behind_point, char* to) noexcept {
  if (behind_point == 0) return put_digits(number, count, to);
  char* const end = put_digits(number, count, to + 1);
  to = std::copy_n(to + 1, count - behind_point, to);  // faster than the quotient by a power of ten
  *to = '.';
  return end;
}

char* put_exponent(int exponent, char* to) noexcept {
  const int size = std::abs(exponent);
  *to++ = 'e';
  *to++ = exponent < 0 ? '-' : '+';
  return put_digits(static_cast<std::uint64_t>(size), size < 100 ? 2 : 3, to);
}

Decimal shortest_decimal(double value) noexcept { return schubfach<DoubleBits>(value); }

Decimal shortest_decimal(float value) noexcept { return schubfach<FloatBits>(value); }

std::optional<std::uint64_t> rounded_multiple(double value, int power) noexcept {
  constexpr double kMax = 4503599627370496;  // 2^52
  const auto size = static_cast<std::size_t>(std::abs(power));
  if (size >= kExactPowers.size()) return std::nullopt;
  const double ten = kExactPowers[size];
  const double result = power < 0 ? value / ten : value * ten;
  if (!(result < kMax)) return std::nullopt;
  const auto below = static_cast<std::int64_t>(result);
  const double fraction = result - static_cast<double>(below);
  // The result is off by half a unit of its last place at most: it lies on the right side of the middle, unless it is the
  // middle. Then what it lacks decides, which fma gives exactly.
  bool up = fraction > 0.5;
  if (fraction == 0.5) {
    const double lacks = power < 0 ? std::fma(-result, ten, value) : std::fma(value, ten, -result);
    up = lacks > 0 || (lacks == 0 && below % 2 != 0);
  }
  return static_cast<std::uint64_t>(below) + (up ? 1 : 0);
}

std::optional<Decimal> rounded_decimal(double value, int digits) noexcept {
  if (digits > 15) return std::nullopt;
  const std::uint64_t end = kPowersOfTen[static_cast<std::size_t>(digits)];
  int exponent = least_exponent(value) - digits + 1;
  auto found = rounded_multiple(value, -exponent);
  if (found && *found >= end) found = rounded_multiple(value, -++exponent);
  if (!found || 10 * *found < end || *found >= end) return std::nullopt;
  return Decimal{*found, exponent};
}

}  // namespace lnorm
