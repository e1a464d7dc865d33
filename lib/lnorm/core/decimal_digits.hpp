#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lnorm {

inline constexpr auto kPowersOfTen = [] {
  std::array<std::uint64_t, 20> powers{};
  std::uint64_t power = 1;
  for (std::uint64_t& each : powers) {
    each = power;
    power *= 10;
  }
  return powers;
}();

// How many digits a number has; 0 has none.
int digits_of(std::uint64_t number) noexcept;

// Writes so many digits of a number that has no more, zeros at the front included. Returns the end.
char* put_digits(std::uint64_t number, int count, char* to) noexcept;

// The same with a point before the last of them; without, if none is behind it.
char* put_with_point(std::uint64_t number, int count, int behind_point, char* to) noexcept;

// "e+05", at least two digits.
char* put_exponent(int exponent, char* to) noexcept;

}  // namespace lnorm
