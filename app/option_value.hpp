#pragma once

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/nearest.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/measure/criteria.hpp"
#include "lnorm/pipeline/pairs.hpp"
#include "options.hpp"

namespace lnorm::app {

// What stands behind an option, for its row of the table. Its readers throw Error, which names the option, if the text is
// anything else. CLI11's own conversion of numbers goes by way of long double, which would round eps twice.
struct OptionValue {
  std::string option;
  std::string choices;  // "npy|json", if it takes one of them
  std::string text;

  std::int64_t integer() const { return integer_of(text, "an integer"); }

  std::int64_t integer(std::int64_t least, std::int64_t most) const {
    const std::int64_t value = integer();
    if (value >= least && value <= most) return value;
    throw Error(concat(option, ": ", value, " is out of range, expected ", least, " to ", most));
  }

  std::uint64_t count(std::uint64_t least = 0, std::uint64_t most = UINT64_MAX) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
      fail(text, concat("an integer from ", least, " to ", most));
    }
    return value;
  }

  // The float64 nearest to the decimal, which must not be beyond the largest.
  double real() const {
    double value = 0;
    if (!parse_real(text, value)) fail(text, "a finite number");
    if (std::isinf(value)) fail(text, "in the range of float64");
    return value;
  }

  double real_not_negative() const {
    const double value = real();
    if (value < 0) throw Error(concat(option, ": ", text, " is negative, expected 0 or more"));
    return value;
  }

  // Or a number: 1/448
  double positive_quotient() const {
    const std::size_t slash = std::min(text.find('/'), text.size());
    double above = 0;
    double below = 1;
    const bool is_read = parse_real(text.substr(0, slash), above) &&
                         (slash == text.size() || parse_real(text.substr(slash + 1), below));
    const double value = above / below;
    if (is_read && value > 0 && std::isfinite(value)) return value;
    fail(text, "a positive number, or a quotient such as 1/448");
  }

  double cosine() const {
    const double value = real();
    if (value >= -1 && value <= 1) return value;
    throw Error(concat(option, ": ", text, " is out of range, expected -1 to 1"));
  }

  // Integers with commas between them, as 3,4 or [3,4] or (3, 4).
  std::vector<std::int64_t> list() const {
    const auto trim = [](std::string_view part) {
      part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
      return part.substr(0, part.find_last_not_of(' ') + 1);  // npos + 1 is 0
    };
    std::string_view rest = trim(text);
    for (const std::string_view brackets : {"[]", "()"}) {
      if (rest.size() < 2 || rest.front() != brackets[0] || rest.back() != brackets[1]) continue;
      rest = trim(rest.substr(1, rest.size() - 2));
      if (rest.ends_with(',')) rest.remove_suffix(1);  // as Python writes (3,)
      break;
    }
    if (rest.empty()) fail(text, "a list of integers: it is empty");
    std::vector<std::int64_t> values;
    for (const std::string_view part : split(rest, ',')) {
      values.push_back(integer_of(trim(part), "an integer (a list is written 1,2)"));
    }
    return values;
  }

  // Integers that are a shape: none is below least, which is 0, or -1 where one size may be so.
  Shape shape(std::int64_t least = 0) const {
    Shape shape = list();
    for (const std::int64_t extent : shape) {
      if (extent < least) throw Error(concat(option, ": size ", extent, " is negative"));
    }
    if (std::count(shape.begin(), shape.end(), -1) > 1) {
      throw Error(concat(option, ": '", printable(text), "' has -1 more than once"));
    }
    if (shape.size() <= kMaxDims) return shape;
    throw Error(
        concat(option, ": found ", shape.size(), " dimensions, expected at most ", kMaxDims));
  }

  // A:B
  RowRange rows() const {
    const auto row = [&](std::string_view part) -> std::optional<std::int64_t> {
      if (part.empty()) return {};
      return integer_of(part, "an integer (rows 5 to 7 are written 5:8)");
    };
    const std::size_t colon = text.find(':');
    if (colon != text.npos) {
      return {row(std::string_view(text).substr(0, colon)),
              row(std::string_view(text).substr(colon + 1))};
    }
    const std::optional<std::int64_t> only = row(text);
    std::string hint;
    if (only && *only < INT64_MAX) {
      hint = concat("one row is ", option, ' ', range_text(RowRange{only, *only + 1}));
      if (*only == -1) hint.pop_back();  // 0 would be the first row
    }
    throw Error(concat(option, ": '", printable(text), "' is not A:B, which is rows A up to B"),
                hint);
  }

  // One of the choices in any case: its value of these, one for each choice.
  template <class Enum>
  Enum one_of(std::initializer_list<Enum> values) const {
    assert(values.size() == split(choices, '|').size());
    return values.begin()[choice()];
  }

  // Some of these words, with commas between them. The message calls them `expected`.
  std::vector<std::string> words_of(const std::vector<std::string>& words,
                                    std::string_view expected) const {
    std::vector<std::string> found;
    for (const std::string_view part : split(text, ',')) {
      const std::string word = lower_case(part);
      if (std::find(words.begin(), words.end(), word) == words.end()) {
        const std::string near = nearest(word, words);
        throw Error(concat(option, ": '", printable(word), "' is not one of ", expected),
                    near.empty() ? "" : concat(option, ' ', near));
      }
      if (std::find(found.begin(), found.end(), word) != found.end()) {
        throw Error(concat(option, ": ", word, " is given twice, expected once"));
      }
      found.push_back(word);
    }
    return found;
  }

  // One of the choices in any case, also as f32, <f4 or torch.float32.
  DType dtype(std::string_view among) const {
    std::string given = lower_case(text);
    for (const std::string_view prefix : {"torch.", "numpy.", "np.", "<", "="}) {
      if (given.starts_with(prefix)) given.erase(0, prefix.size());
    }
    const auto dtype = parse_dtype(given);
    const auto names = split(among, '|');
    if (!dtype || std::find(names.begin(), names.end(), name(*dtype)) == names.end()) {
      fail(text, concat("one of ", among));
    }
    return *dtype;
  }

  // One of the choices in any case, which are names of formats.
  Format format() const {
    const std::string_view word = split(choices, '|')[choice()];
    return std::find_if(
               formats().begin(), formats().end(),
               [&](const FormatRow& row) { return row.name == word || row.other_name == word; })
        ->format;
  }

  // What read makes of each of several values with commas between them.
  template <class Read>
  auto each(Read read) const {
    std::vector<decltype(read(*this))> values;
    for (const std::string_view part : split(text, ',')) {
      values.push_back(read(OptionValue{option, choices, std::string(part)}));
    }
    return values;
  }

  // N or P%
  MismatchLimit mismatch_limit() const {
    if (!text.ends_with('%')) {
      if (text.find('.') != text.npos) {
        throw Error(concat(option, ": '", printable(text),
                           "' is neither a number of elements nor a part of them, as 1%"));
      }
      return {static_cast<double>(count(0, INT64_MAX)), false};
    }
    const OptionValue percentage{option, "", text.substr(0, text.size() - 1)};
    const double value = percentage.real_not_negative();
    if (value <= 100) return {value, true};
    throw Error(concat(option, ": ", text, " is out of range, expected 0% to 100%"));
  }

  // PATTERN=NEW: up to the first '='.
  Renaming renaming() const {
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
      throw Error(concat(option, ": '", printable(text), "' is not PATTERN=NEW"),
                  concat(option, " 'model.*={1}' takes model. away"));
    }
    return {text.substr(0, equals), text.substr(equals + 1)};
  }

  // PATTERN=RTOL,ATOL: up to the last '='.
  ToleranceOfNames tolerance() const {
    const std::size_t equals = text.rfind('=');
    const std::size_t comma = text.find(',', equals == text.npos ? 0 : equals);
    if (equals == text.npos || equals == 0 || comma == text.npos) {
      throw Error(concat(option, ": '", printable(text), "' is not PATTERN=RTOL,ATOL"),
                  "for all tensors it is --rtol and --atol");
    }
    const auto number = [&](std::size_t from, std::size_t to) {
      return OptionValue{option, "", text.substr(from, to - from)}.real_not_negative();
    };
    return {text.substr(0, equals), number(equals + 1, comma), number(comma + 1, text.size())};
  }

 private:
  std::size_t choice() const {
    const std::string given = lower_case(text);
    std::vector<std::string> words;
    for (const std::string_view word : split(choices, '|')) {
      if (word == given) return words.size();
      words.emplace_back(word);
    }
    const std::string near = nearest(given, words);
    throw Error(concat(option, ": '", printable(text), "' is not one of ", choices),
                near.empty() ? "" : concat(option, ' ', near));
  }

  std::int64_t integer_of(std::string_view part, std::string_view expected) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    const bool is_whole = end == part.data() + part.size();
    if (is_whole && error == std::errc::result_out_of_range) fail(part, "within 64 bits");
    if (error != std::errc{} || !is_whole) fail(part, expected);
    return value;
  }

  [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
    throw Error(concat(option, ": '", short_name(found), "' is not ", expected));
  }
};

}  // namespace lnorm::app
