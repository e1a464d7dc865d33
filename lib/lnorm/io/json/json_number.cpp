#include "lnorm/io/json/json_number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "lnorm/core/decimal_digits.hpp"
#include "lnorm/core/shortest_decimal.hpp"

namespace lnorm {

namespace {

char* put(std::string_view text, char* to) { return std::copy(text.begin(), text.end(), to); }

// Python's repr writes exponents from -4 to 15 without an e, and marks a float without a fraction by ".0".
char* put_decimal(ShortestDecimal decimal, char* to) {
  while (decimal.digits % 10 == 0) {
    decimal.digits /= 10;
    ++decimal.exponent;
  }
  const int digits = digits_of(decimal.digits);
  const int exponent = decimal.exponent + digits - 1;  // of the first
  if (exponent >= 16 || exponent < -4) {
    return put_exponent(exponent, put_with_point(decimal.digits, digits, digits - 1, to));
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
