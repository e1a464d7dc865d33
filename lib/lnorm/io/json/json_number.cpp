#include "lnorm/io/json/json_number.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "lnorm/core/shortest_decimal.hpp"

namespace lnorm {

namespace {

constexpr auto kPowersOfTen = [] {
  std::array<std::uint64_t, 20> powers{};
  std::uint64_t power = 1;
  for (std::uint64_t& each : powers) {
    each = power;
    power *= 10;
  }
  return powers;
}();

constexpr auto kPairs = [] {  // 00 to 99
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i] = static_cast<char>('0' + (i % 2 == 0 ? i / 20 : i / 2 % 10));
  }
  return pairs;
}();

char* put(std::string_view text, char* to) { return std::copy(text.begin(), text.end(), to); }

void put_pair(std::uint64_t number, char* to) { std::memcpy(to, &kPairs[2 * number], 2); }

// So many digits, zeros at the front included. Eight at a time do not wait for each other.
char* put_digits(std::uint64_t number, int count, char* to) {
  char* const end = to + count;
  char* at = end;
  for (; count >= 8; count -= 8) {
    const std::uint64_t last = number % 100'000'000;
    number /= 100'000'000;
    at -= 8;
    put_pair(last / 1'000'000, at);
    put_pair(last / 10'000 % 100, at + 2);
    put_pair(last / 100 % 100, at + 4);
    put_pair(last % 100, at + 6);
  }
  for (; count >= 2; count -= 2) {
    at -= 2;
    put_pair(number % 100, at);
    number /= 100;
  }
  if (count == 1) *to = static_cast<char>('0' + number);
  return end;
}

// So many digits, of which the last stand behind the point.
char* put_with_point(std::uint64_t number, int digits, int behind_point, char* to) {
  const std::uint64_t one = kPowersOfTen[static_cast<std::size_t>(behind_point)];
  to = put_digits(number / one, digits - behind_point, to);
  *to++ = '.';
  return put_digits(number % one, behind_point, to);
}

int digits_of(std::uint64_t number) {
  const auto least =
      static_cast<std::size_t>((static_cast<int>(std::bit_width(number)) * 1233) >> 12);
  return static_cast<int>(least) + (number >= kPowersOfTen[least] ? 1 : 0);
}

// Python's repr writes exponents from -4 to 15 without an e, and marks a float without a fraction by ".0".
char* put_decimal(ShortestDecimal decimal, char* to) {
  while (decimal.digits % 10 == 0) {
    decimal.digits /= 10;
    ++decimal.exponent;
  }
  const int digits = digits_of(decimal.digits);
  const int exponent = decimal.exponent + digits - 1;  // of the first
  if (exponent >= 16 || exponent < -4) {
    to = digits == 1 ? put_digits(decimal.digits, 1, to)
                     : put_with_point(decimal.digits, digits, digits - 1, to);
    to = put(exponent < 0 ? "e-" : "e+", to);
    const int size = std::abs(exponent);
    return put_digits(static_cast<std::uint64_t>(size), size < 100 ? 2 : 3, to);
  }
  if (exponent < 0) {
    to = std::copy_n("0.000", 1 - exponent, to);
    return put_digits(decimal.digits, digits, to);
  }
  if (decimal.exponent < 0) return put_with_point(decimal.digits, digits, -decimal.exponent, to);
  to = put_digits(decimal.digits, digits, to);
  return put(".0", std::fill_n(to, decimal.exponent, '0'));
}

char* put_special(double value, char* to) {
  return put(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity", to);
}

template <class T>
char* put_shortest(T value, char* to) {
  if (!std::isfinite(value)) return put_special(static_cast<double>(value), to);
  if (std::signbit(value)) *to++ = '-';
  if (value == 0) return put("0.0", to);
  return put_decimal(shortest_decimal(std::abs(value)), to);
}

// Of the floats of 8 and 16 bits, which shortest_decimal does not have: tries one digit more until it reads back
// (five always do). A tie between two decimals may read back only if rounded away from zero.
template <class Small, class ToSmall>
char* put_shortest_small(Small value, ToSmall to_small, char* to) {
  const double exact = to_double(value);
  if (!std::isfinite(exact)) return put_special(exact, to);
  if (exact == 0) return put_shortest(exact, to);
  std::array<char, 32> text;
  for (int precision = 0;; ++precision) {
    for (const double rounded : {exact, std::nextafter(exact, 2 * exact)}) {
      const auto result = std::to_chars(text.data(), text.data() + text.size(), rounded,
                                        std::chars_format::scientific, precision);
      double back = 0;
      std::from_chars(text.data(), result.ptr, back);
      if (to_small(back).bits == value.bits) return put_shortest(back, to);
    }
  }
}

}  // namespace

char* put_json_number(double value, char* to) { return put_shortest(value, to); }

char* put_json_number(float value, char* to) { return put_shortest(value, to); }

char* put_json_number(Float8E4M3 value, char* to) {
  return put_shortest_small(value, to_float8_e4m3, to);
}

char* put_json_number(Float8E5M2 value, char* to) {
  return put_shortest_small(value, to_float8_e5m2, to);
}

char* put_json_number(Float16 value, char* to) { return put_shortest_small(value, to_float16, to); }

char* put_json_number(BFloat16 value, char* to) {
  return put_shortest_small(value, to_bfloat16, to);
}

}  // namespace lnorm
