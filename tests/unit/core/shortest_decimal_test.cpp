#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "lnorm/core/decimal.hpp"
#include "support/catch.hpp"

namespace lnorm {
namespace {

struct Digits {
  std::uint64_t digits = 0;
  int exponent = 0;
  bool operator==(const Digits&) const = default;
};

Digits without_zeros(std::uint64_t digits, int exponent) {
  for (; digits % 10 == 0; digits /= 10) ++exponent;
  return {digits, exponent};
}

// What std::to_chars says, which goes another way (Ryu).
template <class T>
Digits expected(T value) {
  std::array<char, 40> text;
  const char* const end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific)
          .ptr;
  Digits result;
  const char* at = text.data();
  bool behind_point = false;
  for (; *at != 'e'; ++at) {
    if (*at == '.') {
      behind_point = true;
      continue;
    }
    result.digits = 10 * result.digits + static_cast<std::uint64_t>(*at - '0');
    if (behind_point) --result.exponent;
  }
  int exponent = 0;
  std::from_chars(at + (at[1] == '+' ? 2 : 1), end, exponent);
  return without_zeros(result.digits, result.exponent + exponent);
}

template <class T>
void check_shortest(T value) {
  if (!(value > 0) || !std::isfinite(value)) return;
  const Decimal found = shortest_decimal(value);
  if (without_zeros(found.digits, found.exponent) == expected(value)) return;
  CAPTURE(value, found.digits, found.exponent);
  FAIL_CHECK("not the digits of std::to_chars");
}

// Numbers at which floats change: about every power of two, and the decimals of few digits.
template <class T, class Bits>
void check_all(int fraction_bits, int least, int most) {
  std::mt19937_64 random(2026);
  for (int i = 0; i < 300'000; ++i) {
    check_shortest(std::bit_cast<T>(static_cast<Bits>(random())));
    check_shortest(static_cast<T>(std::ldexp(static_cast<double>(random() >> 11), -50)));
  }
  const Bits binades = std::bit_cast<Bits>(std::numeric_limits<T>::infinity()) >> fraction_bits;
  for (Bits binade = 0; binade <= binades; ++binade) {
    for (Bits step = 0; step < 9; ++step) {
      check_shortest(std::bit_cast<T>(static_cast<Bits>((binade << fraction_bits) + step - 4)));
    }
  }
  for (int exponent = least; exponent <= most; ++exponent) {
    for (int digits = 1; digits < 200; ++digits) {
      check_shortest(static_cast<T>(digits * std::pow(10.0, exponent)));
    }
  }
}

TEST_CASE("shortest decimals are those of std::to_chars", "[shortest_decimal]") {
  check_all<float, std::uint32_t>(23, -46, 38);
  check_all<double, std::uint64_t>(52, -323, 308);
}

}  // namespace
}  // namespace lnorm
