#include "lnorm/io/json/json_number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <type_traits>

#include "lnorm/core/decimal.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/io/json/json_text.hpp"

namespace lnorm {

namespace {

char* put(std::string_view text, char* to) { return std::copy(text.begin(), text.end(), to); }

// Python's repr writes exponents from -4 to 15 without an e, and marks a float without a fraction by ".0".
char* put_decimal(Decimal decimal, char* to) {
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

// For the floats of 8 and 16 bits, which shortest_decimal does not have: tries one digit more until it reads back
// (five always do). A tie between two decimals may read back only if rounded away from zero.
template <SmallFloat T>
char* put_shortest(T value, char* to) {
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
      if (rounded_to<T>(back).bits == value.bits) return put_shortest(back, to);
    }
  }
}

using Value = simdjson::ondemand::value;

bool read(Value& value, bool& element) {
  if (value.get_bool().get(element) == simdjson::SUCCESS) return true;
  std::uint64_t integer;
  if (value.get_uint64().get(integer) != simdjson::SUCCESS || integer > 1) return false;
  element = integer == 1;
  return true;
}

template <class T>
requires std::is_integral_v<T>
bool read(Value& value, T& element) {
  std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t> integer;
  if (value.get(integer) != simdjson::SUCCESS) return false;
  element = static_cast<T>(integer);
  return element == integer;
}

// The nearest double. Of numbers below 1 simdjson 3.0 counts digits from the wrong place, and takes more than it can.
bool read(Value& value, double& element) {
  constexpr std::size_t kSurelyRight = 20;
  const std::string_view token = value.raw_json_token();
  if (value.get_double().get(element) == simdjson::SUCCESS) {
    if (token.size() <= kSurelyRight || token[token[0] == '-' ? 1 : 0] != '0') return true;
    const double near = element;  // as far as its size goes
    const auto result = std::from_chars(token.data(), token.data() + token.size(), element);
    if (result.ec == std::errc()) return true;
    element = std::copysign(0.0, near);
    return std::fabs(near) < 1;
  }
  const std::string_view word = trimmed_json(token);
  element = word == "Infinity" ? kInfinity : word == "-Infinity" ? -kInfinity : kNan;
  return !std::isnan(element) || word == "NaN" || word == "null";
}

bool read(Value& value, float& element) {
  const std::string_view token = value.raw_json_token();
  double number;
  if (!read(value, number)) return false;
  element = static_cast<float>(number);
  if (!std::isfinite(number)) return true;
  // From the decimal, since by way of double it would be rounded twice. Where the decimal is out of
  // range this leaves element alone: 0 after an underflow, infinite after an overflow.
  (void)std::from_chars(token.data(), token.data() + token.size(), element);
  return std::isfinite(element);
}

// The size of a decimal: 0.digits * 10^exponent, without zeros at either end.
struct DecimalSize {
  std::string digits;
  std::int64_t exponent = 0;

  explicit DecimalSize(std::string_view token) {
    const std::size_t e = std::min(token.find_first_of("eE"), token.size());
    if (e < token.size()) {
      const std::size_t first = e + (token[e + 1] == '+' ? 2 : 1);
      (void)std::from_chars(token.data() + first, token.data() + token.size(), exponent);
    }
    bool has_point = false;
    for (const char c : token.substr(0, e)) {
      has_point = has_point || c == '.';
      if (c < '0' || c > '9') continue;
      if (c != '0' || !digits.empty()) digits += c;
      if (has_point ? digits.empty() : !digits.empty()) exponent += has_point ? -1 : 1;
    }
    digits.erase(digits.find_last_not_of('0') + 1);
  }

  int compare(const DecimalSize& other) const {
    if (exponent != other.exponent) return exponent < other.exponent ? -1 : 1;
    return digits.compare(other.digits);
  }
};

// Less than 0 if the decimal is below the double next to it, 0 if it is that.
int compare(std::string_view token, double nearest) {
  std::array<char, 800> exact;  // every double has fewer digits
  const auto end = std::to_chars(exact.data(), exact.data() + exact.size(), std::fabs(nearest),
                                 std::chars_format::scientific, 770)
                       .ptr;
  const int order = DecimalSize(token).compare(DecimalSize({exact.data(), end}));
  return nearest < 0 ? -order : order;
}

// A conversion through double would round a decimal twice, where the double is halfway between two results.
template <SmallFloat T>
bool read(Value& value, T& element) {
  const std::string_view token = value.raw_json_token();
  double number;
  if (!read(value, number)) return false;
  element = rounded_to<T>(number);
  const double back = to_double(element);
  const double low = to_double(rounded_to<T>(std::nextafter(number, -kInfinity)));
  const double high = to_double(rounded_to<T>(std::nextafter(number, kInfinity)));
  if (low < high && low / 2 + high / 2 == number) {
    const int order = compare(trimmed_json(token), number);
    if (order != 0) element = rounded_to<T>(order < 0 ? low : high);
  }
  return std::isfinite(back) || back == number || std::isnan(number);
}

template <class T>
std::optional<std::size_t> read_list(simdjson::ondemand::array& list, std::span<std::byte> to) {
  const std::size_t buffer = to.size() / sizeof(T);
  std::byte* at = to.data();
  std::size_t count = 0;
  for (auto result : list) {
    Value value;
    T element;
    if (result.get(value) != simdjson::SUCCESS || count == buffer || !read(value, element)) {
      return std::nullopt;
    }
    std::memcpy(at, &element, sizeof element);
    at += sizeof element;
    ++count;
  }
  return count;
}

}  // namespace

char* put_json_number(double value, char* to) { return put_shortest(value, to); }
char* put_json_number(float value, char* to) { return put_shortest(value, to); }
char* put_json_number(Float8E4M3 value, char* to) { return put_shortest(value, to); }
char* put_json_number(Float8E5M2 value, char* to) { return put_shortest(value, to); }
char* put_json_number(Float8E4M3Fnuz value, char* to) { return put_shortest(value, to); }
char* put_json_number(Float8E8M0 value, char* to) { return put_shortest(value, to); }
char* put_json_number(Float16 value, char* to) { return put_shortest(value, to); }
char* put_json_number(BFloat16 value, char* to) { return put_shortest(value, to); }

bool append_json_element(Value& value, DType dtype, RawBytes& elements) {
  const auto append = [&](auto element) {
    if (!read(value, element)) return false;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&element);
    elements.insert(elements.end(), bytes, bytes + sizeof element);
    return true;
  };
  return dtype == DType::float64 ? append(double{}) : visit(dtype, append);
}

std::optional<std::size_t> read_json_list(simdjson::ondemand::array& list, DType dtype,
                                          std::span<std::byte> to) {
  return visit(dtype, [&]<class T>(T) { return read_list<T>(list, to); });
}

}  // namespace lnorm
