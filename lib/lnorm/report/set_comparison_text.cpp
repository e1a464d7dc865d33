#include "lnorm/report/set_comparison_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/measure/ulp.hpp"
#include "lnorm/report/comparison_report.hpp"
#include "lnorm/report/criteria_text.hpp"
#include "lnorm/report/names.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/ulp_text.hpp"

namespace lnorm {

namespace {

// Names that one set alone has; more of them are counted.
constexpr std::size_t kMaxNames = 20;

std::string greatest_ulps_text(const Comparison& c) {
  constexpr std::uint64_t kMany = 1'000'000;
  if (!c.ulps) return "-";
  const Ulps ulps = c.ulps->value;
  if (ulps.is_real) return rounded_text(ulps.value(), 2);
  const bool is_beyond = is_floating(c.expected.dtype) && ulps.rank == kNoUlpDistance;
  return ulps.rank < kMany || is_beyond ? ulps_text(ulps, c.expected.dtype)
                                        : rounded_text(ulps.value(), 2);
}

std::string sqnr_text(const Comparison& c) {
  return c.errors.sqnr() ? rounded_text(*c.errors.sqnr(), 3) : "-";
}

// What fails, where the number of mismatches does not tell.
std::string failed_names(const Comparison& c) {
  std::string names;
  for (const Failure& failure : c.failures()) {
    if (failure.criterion < Criterion::max_mismatched) continue;
    names += concat(names.empty() ? "" : ", ", name(failure.criterion));
  }
  std::replace(names.begin(), names.end(), '_', ' ');
  return names;
}

std::string distance_text(const std::optional<Greatest<double>>& greatest) {
  return greatest ? rounded_text(greatest->value, 2) : "-";
}

class SetReport {
 public:
  SetReport(const SetComparison& set, const Style& style)
      : set_(set), style_(style), first_(set.first()), worst_(set.worst()) {}

  std::string str(const std::string& details) {
    add_head();
    add_table();
    add_names(set_.actual, set_.actual_only);
    add_names(set_.expected, set_.expected_only);
    add_summary();
    if (!details.empty()) add("details: ", details);
    return text_;
  }

 private:
  // A line of the table: text in the first columns, numbers or a remark in the others.
  struct Line {
    std::array<std::string, 3> words;  // name, dtype, shape
    std::vector<std::string> numbers;  // mismatched, abs, rel, ulp, sqnr
    std::string remark;
    bool agrees;
  };

  template <class... Parts>
  void add(const Parts&... parts) {
    text_ += concat(parts..., '\n');
  }

  // What is the same of all pairs; nothing if they have different ones, or there are none.
  template <class Of>
  std::optional<std::string> common(Of of) const {
    std::optional<std::string> result;
    for (const PairComparison& pair : set_.pairs) {
      if (!pair.comparison) continue;
      const std::string own = of(*pair.comparison);
      if (result && *result != own) return std::nullopt;
      result = own;
    }
    return result;
  }

  void add_head() {
    const auto dtype = common([](const Comparison& c) { return dtypes_text(c, " and "); });
    const auto rows =
        common([](const Comparison& c) { return c.slice ? ", " + rows_text(*c.slice) : ""; });
    const auto criteria = common([](const Comparison& c) { return criteria_text(c.criteria); });
    has_dtypes_ = !dtype;
    const std::string verdict = set_.differ()  ? style_.bad(" differ")
                                : set_.equal() ? style_.good(" agree")
                                               : " agree as far as they can be read";
    text_ += style_.folded(concat(printable(set_.actual), " and ", printable(set_.expected),
                                  verdict, dtype ? concat(" (", *dtype, ")") : "",
                                  rows.value_or(""), criteria ? concat(", ", *criteria) : ""));
  }

  Line line_of(std::size_t number) const {
    const PairComparison& pair = set_.pairs[number];
    Line line{{printable(pair.name), "", ""}, {}, "", pair.agrees()};
    if (!pair.comparison) {
      line.remark = "error";
      return line;
    }
    const Comparison& c = *pair.comparison;
    if (has_dtypes_) line.words[1] = dtypes_text(c, "/");
    line.words[2] = to_string(c.actual.shape);
    if (c.same_shape) {
      line.numbers = {std::to_string(c.mismatched), distance_text(c.absolute),
                      distance_text(c.relative), greatest_ulps_text(c), sqnr_text(c)};
    } else {
      line.remark = concat("expected ", to_string(c.expected.shape));
    }
    const std::string mark =
        concat(first_ == number ? "first" : "", first_ == number && worst_ == number ? ", " : "",
               worst_ == number ? "worst" : "");
    if (c.same_shape) line.remark = failed_names(c);
    if (!mark.empty()) line.remark += concat(line.remark.empty() ? "" : "  ", mark);
    return line;
  }

  void add_table() {
    if (set_.pairs.empty()) return;
    std::vector<Line> lines{{{"name", has_dtypes_ ? "dtype" : "", "shape"},
                             {"mismatched", "abs", "rel", "ulp", "sqnr"},
                             "",
                             true}};
    for (std::size_t i = 0; i < set_.pairs.size(); ++i) lines.push_back(line_of(i));
    std::array<std::size_t, 3> word_widths{};
    std::array<std::size_t, 5> number_widths{};
    std::size_t remark_width = 0;
    for (const Line& line : lines) {
      for (std::size_t i = 0; i < line.words.size(); ++i) {
        word_widths[i] = std::max(word_widths[i], character_count(line.words[i]));
      }
      for (std::size_t i = 0; i < line.numbers.size(); ++i) {
        number_widths[i] = std::max(number_widths[i], line.numbers[i].size());
      }
      if (!line.numbers.empty()) remark_width = std::max(remark_width, line.remark.size());
    }
    word_widths[0] = std::min(word_widths[0], name_room(word_widths, number_widths, remark_width));
    for (const Line& line : lines) add_line(line, word_widths, number_widths, &line == &lines[0]);
  }

  // How wide names may be, so that the lines fit; names that are shorter say too little.
  std::size_t name_room(const std::array<std::size_t, 3>& words,
                        const std::array<std::size_t, 5>& numbers, std::size_t remark) const {
    constexpr std::size_t kMinRoom = 24;
    std::size_t others = remark == 0 ? 0 : remark + 2;
    for (const std::size_t width : {words[1], words[2]}) others += width == 0 ? 0 : width + 2;
    for (const std::size_t width : numbers) others += width + 2;
    const auto all = static_cast<std::size_t>(std::max(style_.width, 0));
    return std::max(kMinRoom, all - std::min(all, others));
  }

  void add_line(const Line& line, const std::array<std::size_t, 3>& word_widths,
                const std::array<std::size_t, 5>& number_widths, bool is_head) {
    std::string text = padded(abbreviated(line.words[0], word_widths[0]), word_widths[0]);
    for (std::size_t i = 1; i < line.words.size(); ++i) {
      if (word_widths[i] > 0) text += "  " + padded(line.words[i], word_widths[i]);
    }
    for (std::size_t i = 0; i < line.numbers.size(); ++i) {
      text.append(2 + number_widths[i] - line.numbers[i].size(), ' ').append(line.numbers[i]);
    }
    if (!line.remark.empty()) text += "  " + line.remark;
    text.erase(text.find_last_not_of(' ') + 1);
    add(is_head ? style_.heading(text) : line.agrees ? text : style_.bad(text));
  }

  void add_names(const std::string& file, const std::vector<std::string>& names) {
    if (names.empty() || set_.common) return;
    std::string list;
    const std::size_t listed = std::min(names.size(), kMaxNames);
    for (std::size_t i = 0; i < listed; ++i) {
      list += concat(i == 0 ? "" : ", ", printable(names[i]));
    }
    if (listed < names.size()) list += concat(" and ", names.size() - listed, " more");
    text_ += style_.folded(concat("only in ", printable(file), ": ", list));
  }

  std::string worst_text(const PairComparison& pair) const {
    const Comparison& c = *pair.comparison;
    const std::string distance = set_.by == WorstBy::ulp   ? greatest_ulps_text(c)
                                 : set_.by == WorstBy::abs ? distance_text(c.absolute)
                                                           : distance_text(c.relative);
    const std::vector<Failure> failures = c.failures();
    const bool is_finite = failures.empty() || failures.front().criterion != Criterion::finite;
    return concat(printable(pair.name), " (",
                  is_finite ? concat(distance, ' ', name(set_.by)) : "NaN or infinity", ")");
  }

  void add_summary() {
    const std::size_t agree = set_.agreeing();
    const std::size_t differ = set_.differing();
    const std::size_t errors = set_.unreadable();
    std::string text = set_.pairs.empty()
                           ? "no name in common"
                           : concat(counted(static_cast<long long>(set_.pairs.size()), "tensor"),
                                    ": ", agree, agree == 1 ? " agrees" : " agree");
    if (differ > 0) text += concat(", ", differ, differ == 1 ? " differs" : " differ");
    if (errors > 0) text += concat(", ", counted(static_cast<long long>(errors), "error"));
    const auto add_only = [&](const std::string& file, const std::vector<std::string>& names) {
      if (!names.empty()) text += concat("; ", names.size(), " only in ", printable(file));
    };
    add_only(set_.actual, set_.actual_only);
    add_only(set_.expected, set_.expected_only);
    if (first_) text += concat("; first: ", printable(set_.pairs[*first_].name));
    if (worst_) text += concat("; worst: ", worst_text(set_.pairs[*worst_]));
    text_ += style_.folded(text);
  }

  const SetComparison& set_;
  const Style& style_;
  std::optional<std::size_t> first_;
  std::optional<std::size_t> worst_;
  bool has_dtypes_ = false;
  std::string text_;
};

}  // namespace

std::string set_comparison_text(const SetComparison& set, const std::string& details,
                                bool histogram, const Style& style) {
  std::string text = SetReport(set, style).str(details);
  for (const PairComparison& pair : set.pairs) {
    if (!histogram || !pair.comparison || !pair.comparison->same_shape) continue;
    text += '\n' + ulp_histogram_text(printable(pair.name), *pair.comparison, style);
  }
  return text;
}

}  // namespace lnorm
