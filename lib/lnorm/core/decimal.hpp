#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace lnorm {

// 10^0 and so on.
template <class T, std::size_t count>
constexpr std::array<T, count> powers_of_ten() {
  std::array<T, count> powers{1};
  for (std::size_t i = 1; i < count; ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}
inline constexpr auto kPowersOfTen = powers_of_ten<std::uint64_t, 20>();

// How many digits a number has; 0 has none.
int digits_of(std::uint64_t number) noexcept;

// Writes so many digits of a number that has no more, zeros at the front included. Returns the end.
char* put_digits(std::uint64_t number, int count, char* to) noexcept;

// Writes the digits with a point before the last of them; without a point, if none is behind it.
char* put_with_point(std::uint64_t number, int count, int behind_point, char* to) noexcept;

// "e+05", at least two digits.
char* put_exponent(int exponent, char* to) noexcept;

// digits * 10^exponent
struct Decimal {
  std::uint64_t digits;
  int exponent;
};

// The decimal with the fewest digits, apart from zeros at its end, that reads back as the same value; of several the
// closest, of two equally close ones the even one. These are the digits of std::to_chars, at a third of the time.
// value: positive and finite. [Giulietti 2020, The Schubfach way to render doubles]
Decimal shortest_decimal(double value) noexcept;
Decimal shortest_decimal(float value) noexcept;

// value * 10^power, rounded to the nearest integer, of two equally near ones to the even one: what printf prints of an exact
// value. Nothing where the fast way does not reach: powers beyond 22, results beyond 2^52. value: not negative.
std::optional<std::uint64_t> rounded_multiple(double value, int power) noexcept;

// Rounds a positive value to its first so many digits, 15 at most.
std::optional<Decimal> rounded_decimal(double value, int digits) noexcept;

}  // namespace lnorm
