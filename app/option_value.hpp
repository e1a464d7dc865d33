#pragma once

#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/measure/criteria.hpp"
#include "lnorm/pipeline/pairs.hpp"

namespace lnorm::app {

// The words between separators.
std::vector<std::string_view> split(std::string_view text, char separator);

// What stands behind an option. Its readers throw Error, which names the option, if the text is anything else. CLI11's
// own conversion of numbers goes by way of long double, which would round eps twice.
struct OptionValue {
  std::string option;
  std::string choices;  // "npy|json", if it takes one of them
  std::string text;

  std::int64_t integer() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  std::uint64_t count(std::uint64_t least = 0, std::uint64_t most = UINT64_MAX) const;

  // The float64 nearest to the decimal, which must not be beyond the largest.
  double real() const;
  double real_not_negative() const;
  double positive_quotient() const;  // or a number: 1/448
  double cosine() const;

  // Integers with commas between them, as 3,4 or [3,4] or (3, 4).
  std::vector<std::int64_t> list() const;
  // Integers that are a shape: none is below least, which is 0, or -1 where one size may be so.
  Shape shape(std::int64_t least = 0) const;
  // A:B
  RowRange rows() const;

  // One of the choices in any case: its value of these, one for each choice.
  template <class Enum>
  Enum one_of(std::initializer_list<Enum> values) const {
    assert(values.size() == split(choices, '|').size());
    return values.begin()[choice()];
  }
  // Some of these words, with commas between them. The message calls them `expected`.
  std::vector<std::string> words_of(const std::vector<std::string>& words,
                                    std::string_view expected) const;
  // One of the choices in any case, also as f32, <f4 or torch.float32.
  DType dtype(std::string_view among) const;
  // One of the choices in any case, which are names of formats.
  Format format() const;

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
  MismatchLimit mismatch_limit() const;
  // PATTERN=NEW: up to the first '='.
  Renaming renaming() const;
  // PATTERN=RTOL,ATOL: up to the last '='.
  ToleranceOfNames tolerance() const;

 private:
  std::size_t choice() const;
  std::int64_t integer_of(std::string_view part, std::string_view expected) const;
  [[noreturn]] void fail(std::string_view found, std::string_view expected) const;
};

// Whether the text is a decimal. Beyond the largest float64 the value is infinity.
bool parse_real(std::string_view text, double& value);

// A:B again, as "5:8" or ":-1".
std::string range_text(const RowRange& range);

}  // namespace lnorm::app
