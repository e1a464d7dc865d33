#include "parse_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

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
  const std::string_view given = text;
  const auto trim = [](std::string_view part) {
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    return part.substr(0, part.find_last_not_of(' ') + 1);  // npos + 1 is 0
  };
  text = trim(text);
  for (const std::string_view brackets : {"[]", "()"}) {
    if (text.size() < 2 || text.front() != brackets[0] || text.back() != brackets[1]) continue;
    text = trim(text.substr(1, text.size() - 2));
    if (text.ends_with(',')) text.remove_suffix(1);  // as Python writes (3,)
    if (text.empty()) fail(option, given, "a list of integers: it is empty");
    break;
  }
  std::vector<std::int64_t> values;
  for (;;) {
    const std::size_t comma = text.find(',');
    values.push_back(parse_integer_as(option, trim(text.substr(0, comma)),
                                      "an integer (a list is written 1,2)"));
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

DType parse_float_dtype(const std::string& option, const std::string& text) {
  // As PyTorch, C and people call them.
  constexpr std::array<std::pair<std::string_view, DType>, 10> kSynonyms{
      {{"f16", DType::float16},
       {"fp16", DType::float16},
       {"half", DType::float16},
       {"bf16", DType::bfloat16},
       {"f32", DType::float32},
       {"fp32", DType::float32},
       {"float", DType::float32},
       {"f64", DType::float64},
       {"fp64", DType::float64},
       {"double", DType::float64}}};
  for (const auto& [synonym, dtype] : kSynonyms) {
    if (text == synonym) return dtype;
  }
  const auto dtype = parse_dtype(text);
  if (!dtype || !is_floating(*dtype)) fail(option, text, "float16, bfloat16, float32 or float64");
  return *dtype;
}

}  // namespace lnorm::app
