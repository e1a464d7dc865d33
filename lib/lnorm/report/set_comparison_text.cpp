#include "lnorm/report/set_comparison_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/measure/ulp.hpp"
#include "lnorm/report/abbreviated.hpp"
#include "lnorm/report/comparison_report.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

namespace {

// Names that one set alone has; more of them are counted.
constexpr std::size_t kMostNames = 20;

std::string ulps_text(const Comparison& c) {
  constexpr std::uint64_t kMany = 1'000'000;
  if (!c.ulps) return "-";
  const std::uint64_t ulps = c.ulps->value;
  if (is_floating(c.expected.dtype) && ulps == kNoUlpDistance) return "beyond";
  return ulps < kMany ? std::to_string(ulps) : rounded_text(static_cast<double>(ulps), 2);
}

// Followed by blanks up to a width, in characters.
std::string padded(std::string text, std::size_t width) {
  text.append(width - std::min(width, character_count(text)), ' ');
  return text;
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
    std::vector<std::string> numbers;  // mismatched, abs, rel, ulp
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
    const auto tolerance = common([](const Comparison& c) { return tolerance_text(c.tolerance); });
    has_dtypes_ = !dtype;
    const std::string verdict = set_.differ()  ? style_.bad(" differ")
                                : set_.equal() ? style_.good(" agree")
                                               : " agree as far as they can be read";
    add(printable(set_.actual), " and ", printable(set_.expected), verdict,
        dtype ? concat(" (", *dtype, ")") : "",
        tolerance ? concat(", tolerance ", *tolerance) : "");
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
                      distance_text(c.relative), ulps_text(c)};
    } else {
      line.remark = concat("expected ", to_string(c.expected.shape));
    }
    const std::string mark =
        concat(first_ == number ? "first" : "", first_ == number && worst_ == number ? ", " : "",
               worst_ == number ? "worst" : "");
    if (!mark.empty()) line.remark += concat(line.remark.empty() ? "" : "  ", mark);
    return line;
  }

  void add_table() {
    if (set_.pairs.empty()) return;
    std::vector<Line> lines{{{"name", has_dtypes_ ? "dtype" : "", "shape"},
                             {"mismatched", "abs", "rel", "ulp"},
                             "",
                             true}};
    for (std::size_t i = 0; i < set_.pairs.size(); ++i) lines.push_back(line_of(i));
    std::array<std::size_t, 3> word_widths{};
    std::array<std::size_t, 4> number_widths{};
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
                        const std::array<std::size_t, 4>& numbers, std::size_t remark) const {
    constexpr std::size_t kLeast = 24;
    std::size_t others = remark == 0 ? 0 : remark + 2;
    for (const std::size_t width : {words[1], words[2]}) others += width == 0 ? 0 : width + 2;
    for (const std::size_t width : numbers) others += width + 2;
    const auto all = static_cast<std::size_t>(std::max(style_.width, 0));
    return std::max(kLeast, all - std::min(all, others));
  }

  void add_line(const Line& line, const std::array<std::size_t, 3>& word_widths,
                const std::array<std::size_t, 4>& number_widths, bool is_head) {
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
    const std::size_t listed = std::min(names.size(), kMostNames);
    for (std::size_t i = 0; i < listed; ++i) {
      list += concat(i == 0 ? "" : ", ", printable(names[i]));
    }
    if (listed < names.size()) list += concat(" and ", names.size() - listed, " more");
    text_ += style_.folded(concat("only in ", printable(file), ": ", list));
  }

  std::string worst_text(const PairComparison& pair) const {
    const Comparison& c = *pair.comparison;
    const std::string distance = set_.by == WorstBy::ulp   ? ulps_text(c)
                                 : set_.by == WorstBy::abs ? distance_text(c.absolute)
                                                           : distance_text(c.relative);
    const bool is_finite = c.non_finite_one_side + c.non_finite_differing == 0;
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
                                const Style& style) {
  return SetReport(set, style).str(details);
}

}  // namespace lnorm
