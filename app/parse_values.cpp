#include "parse_values.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

[[noreturn]] void fail(const std::string& option, std::string_view text,
                       std::string_view expected) {
  throw Error(concat(option, ": '", printable(text), "' is not ", expected));
}

std::int64_t parse_integer_as(const std::string& option, std::string_view text,
                              std::string_view expected) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) fail(option, text, expected);
  return value;
}

}  // namespace

std::int64_t parse_integer(const std::string& option, std::string_view text) {
  return parse_integer_as(option, text, "an integer");
}

std::uint64_t parse_count(const std::string& option, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(option, text, "an integer from 0 to 18446744073709551615");
  }
  return value;
}

bool parse_real(std::string_view text, double& value) {
  const std::string digits(text.substr(text.starts_with('+') ? 1 : 0));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.empty() || digits[0] == '+') return false;
  if (error == std::errc::result_out_of_range) value = std::strtod(digits.c_str(), nullptr);
  return digits.find_first_of("nN") == std::string::npos;  // inf and nan are no numbers
}

double parse_real(const std::string& option, const std::string& text) {
  double value = 0;
  if (!parse_real(text, value)) fail(option, text, "a finite number");
  if (std::isinf(value)) fail(option, text, "in the range of float64");
  return value;
}

std::vector<std::int64_t> parse_list(const std::string& option, std::string_view text) {
  std::vector<std::int64_t> values;
  for (;;) {
    const std::size_t comma = text.find(',');
    values.push_back(
        parse_integer_as(option, text.substr(0, comma), "an integer (a list is written 1,2)"));
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

DType parse_float_dtype(const std::string& option, const std::string& text) {
  const auto dtype = parse_dtype(text);
  if (!dtype || !is_floating(*dtype)) fail(option, text, "float16, bfloat16, float32 or float64");
  return *dtype;
}

}  // namespace lnorm::app
