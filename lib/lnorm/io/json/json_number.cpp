#include "lnorm/io/json/json_number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace lnorm {

namespace {

// scientific: "-d.ddde+xx", as std::to_chars writes it. Python's repr writes exponents from -4 to
// 15 without an e, and marks a float without a fraction by ".0".
std::string_view lay_out(std::string_view scientific, JsonNumberBuffer buffer) {
  char* out = buffer.data();
  const auto put = [&](std::string_view text) { out = std::copy(text.begin(), text.end(), out); };
  const std::size_t e = scientific.find('e');
  int exponent = 0;
  const char* const exponent_start = scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_start, scientific.data() + scientific.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    put(scientific);
  } else {
    if (scientific[0] == '-') put("-");
    if (exponent < 0) out = std::copy_n("0.000", 1 - exponent, out);
    const char* const first = scientific.data() + (scientific[0] == '-' ? 1 : 0);
    // With a point after the first.
    const int digits = std::max(1, static_cast<int>(scientific.data() + e - first) - 1);
    for (int i = 0; i < std::max(digits, exponent + 2); ++i) {
      if (i == exponent + 1 && i > 0) *out++ = '.';
      *out++ = i < digits ? first[i + (i > 0 ? 1 : 0)] : '0';
    }
  }
  return {buffer.data(), static_cast<std::size_t>(out - buffer.data())};
}

std::string_view special(double value) {
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

template <class T>
std::string_view shortest(T value, JsonNumberBuffer buffer) {
  if (!std::isfinite(value)) return special(static_cast<double>(value));
  std::array<char, 32> scientific;
  const auto result = std::to_chars(scientific.data(), scientific.data() + scientific.size(), value,
                                    std::chars_format::scientific);
  return lay_out({scientific.data(), static_cast<std::size_t>(result.ptr - scientific.data())},
                 buffer);
}

// Of the floats of 8 and 16 bits, which std::to_chars does not have: tries one digit more until it reads back
// (five always do). A tie between two decimals may read back only if rounded away from zero.
template <class Small, class ToSmall>
std::string_view shortest_small(Small value, ToSmall to_small, JsonNumberBuffer buffer) {
  const double exact = to_double(value);
  if (!std::isfinite(exact)) return special(exact);
  std::array<char, 32> scientific;
  for (int precision = 0;; ++precision) {
    for (const double rounded : {exact, std::nextafter(exact, 2 * exact)}) {
      const auto result = std::to_chars(scientific.data(), scientific.data() + scientific.size(),
                                        rounded, std::chars_format::scientific, precision);
      double back = 0;
      std::from_chars(scientific.data(), result.ptr, back);
      if (to_small(back).bits != value.bits) continue;
      return lay_out({scientific.data(), static_cast<std::size_t>(result.ptr - scientific.data())},
                     buffer);
    }
  }
}

}  // namespace

std::string_view json_number(double value, JsonNumberBuffer buffer) {
  return shortest(value, buffer);
}

std::string_view json_number(float value, JsonNumberBuffer buffer) {
  return shortest(value, buffer);
}

std::string_view json_number(Float8E4M3 value, JsonNumberBuffer buffer) {
  return shortest_small(value, to_float8_e4m3, buffer);
}

std::string_view json_number(Float8E5M2 value, JsonNumberBuffer buffer) {
  return shortest_small(value, to_float8_e5m2, buffer);
}

std::string_view json_number(Float16 value, JsonNumberBuffer buffer) {
  return shortest_small(value, to_float16, buffer);
}

std::string_view json_number(BFloat16 value, JsonNumberBuffer buffer) {
  return shortest_small(value, to_bfloat16, buffer);
}

}  // namespace lnorm
