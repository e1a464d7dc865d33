#include "parse_values.hpp"

#include <algorithm>
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

std::uint64_t parse_count(const std::string& option, std::string_view text, std::uint64_t least,
                          std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    fail(option, text, concat("an integer from ", least, " to ", most));
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

double parse_not_negative(const std::string& option, const std::string& text) {
  const double value = parse_real(option, text);
  if (value < 0) throw Error(concat(option, ": ", text, " is negative, expected 0 or more"));
  return value;
}

double parse_cosine(const std::string& option, const std::string& text) {
  const double value = parse_real(option, text);
  if (value < -1 || value > 1) {
    throw Error(concat(option, ": ", text, " is out of range, expected -1 to 1"));
  }
  return value;
}

MismatchLimit parse_mismatch_limit(const std::string& text) {
  const std::string option = "--max-mismatched";
  if (!text.ends_with('%')) {
    const std::uint64_t count = parse_count(option, text, 0, INT64_MAX);
    return {static_cast<double>(count), false};
  }
  const std::string percentage = text.substr(0, text.size() - 1);
  const double value = parse_not_negative(option, percentage);
  if (value > 100) {
    throw Error(concat(option, ": ", text, " is out of range, expected 0% to 100%"));
  }
  return {value, true};
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

std::string range_text(const RowRange& range) {
  const auto text = [](const std::optional<std::int64_t>& row) {
    return row ? std::to_string(*row) : "";
  };
  return concat(text(range.first), ':', text(range.end));
}

RowRange parse_rows(const std::string& text) {
  const auto row = [&](std::string_view part) -> std::optional<std::int64_t> {
    if (part.empty()) return {};
    return parse_integer_as("--rows", part, "an integer (rows 5 to 7 are written 5:8)");
  };
  const std::size_t colon = text.find(':');
  if (colon != text.npos) {
    return {row(std::string_view(text).substr(0, colon)),
            row(std::string_view(text).substr(colon + 1))};
  }
  const std::optional<std::int64_t> only = row(text);
  std::string hint;
  if (only && *only < INT64_MAX) {
    hint = concat("one row is --rows ", range_text(RowRange{only, *only + 1}));
    if (*only == -1) hint.pop_back();  // 0 would be the first row
  }
  throw Error(concat("--rows: '", printable(text), "' is not A:B, which is rows A up to B"), hint);
}

DType parse_dtype(const std::string& option, const std::string& text, std::string_view choices) {
  std::string given = lower_case(text);
  for (const std::string_view prefix : {"torch.", "numpy.", "np.", "<", "="}) {
    if (given.starts_with(prefix)) given.erase(0, prefix.size());
  }
  const auto dtype = lnorm::parse_dtype(given);
  const std::string all = concat('|', choices, '|');
  if (!dtype || all.find(concat('|', name(*dtype), '|')) == all.npos) {
    fail(option, text, concat("one of ", choices));
  }
  return *dtype;
}

Renaming parse_renaming(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(concat("--rename: '", printable(text), "' is not PATTERN=NEW"),
                "--rename 'model.*={1}' takes model. away");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

ToleranceOfNames parse_tolerance(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::size_t comma = text.find(',', equals == text.npos ? 0 : equals);
  if (equals == text.npos || equals == 0 || comma == text.npos) {
    throw Error(concat("--tolerance: '", printable(text), "' is not PATTERN=RTOL,ATOL"),
                "for all tensors it is --rtol and --atol");
  }
  const auto number = [&](std::size_t from, std::size_t to) {
    return parse_not_negative("--tolerance", text.substr(from, to - from));
  };
  return {text.substr(0, equals), number(equals + 1, comma), number(comma + 1, text.size())};
}

}  // namespace lnorm::app
