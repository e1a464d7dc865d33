#include <algorithm>
#include <cstdint>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/measure/ulp.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/reports.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

// Each has a line; of more those that differ.
constexpr std::size_t kFewPairs = 20;

// Names that one set alone has; more of them are counted.
constexpr std::size_t kMaxNames = 20;

std::string greatest_ulps_text(const Comparison& c) {
  constexpr std::uint64_t kMany = 1'000'000;
  if (c.fails_by_nan_alone()) return "nan";
  if (!c.ulps) return "-";
  const Ulps ulps = c.ulps->value;
  if (ulps.is_real) return rounded_text(ulps.value(), 2);
  const bool is_beyond = is_floating(c.expected.dtype) && ulps.rank == kNoUlpDistance;
  return ulps.rank < kMany || is_beyond ? ulps_text(ulps, c.expected.dtype)
                                        : rounded_text(ulps.value(), 2);
}

// What fails, where the number of mismatches does not tell.
std::string failed_names(const Comparison& c) {
  return joined(c.failures(), ", ", [](const Failure& failure) {
    const bool tells = failure.criterion >= Criterion::max_mismatched;
    return tells ? words_of(row_of(failure.criterion)) : "";
  });
}

std::string number_or_dash(const std::optional<double>& number, int digits) {
  return number ? rounded_text(*number, digits) : "-";
}

std::string greatest_text(const Comparison& c, WorstBy by) {
  return c.fails_by_nan_alone() ? "nan" : number_or_dash(c.greatest(by), 2);
}

class SetReport {
 public:
  SetReport(const SetComparison& set, bool all, TextWriter& text)
      : set_(set),
        all_(all || set.pairs.size() <= kFewPairs),
        text_(text),
        style_(text.style()),
        first_(set.first()),
        worst_(set.worst()) {}

  void write() {
    write_head();
    write_table();
    write_names(set_.actual, set_.actual_only);
    write_names(set_.expected, set_.expected_only);
    write_fits();
    write_summary();
  }

 private:
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

  void write_head() {
    const auto dtype = common([](const Comparison& c) { return dtypes_text(c, " and "); });
    const auto rows =
        common([](const Comparison& c) { return c.slice ? ", " + rows_text(*c.slice) : ""; });
    const auto criteria = common([](const Comparison& c) { return criteria_text(c.criteria); });
    has_dtypes_ = !dtype;
    const std::string verdict = set_.differ()  ? style_.bad(" differ")
                                : set_.equal() ? style_.good(" agree")
                                               : " agree as far as they can be read";
    text_.folded(printable(set_.actual), " and ", printable(set_.expected), verdict,
                 dtype ? concat(" (", *dtype, ")") : "", rows.value_or(""),
                 criteria ? concat(", ", *criteria) : "");
  }

  TableLine line_of(std::size_t number) const {
    const PairComparison& pair = set_.pairs[number];
    TableLine line{printable(pair.name), {}};
    line.is_bad = !pair.agrees();
    if (has_dtypes_) line.cells.emplace_back();
    if (!pair.comparison) {
      line.cells.emplace_back();
      line.remark = "error";
      return line;
    }
    const Comparison& c = *pair.comparison;
    if (has_dtypes_) line.cells[0] = dtypes_text(c, "/");
    line.cells.push_back(to_string(file_shape(c.actual)));
    if (c.same_shape) {
      line.cells.insert(line.cells.end(),
                        {std::to_string(c.mismatched), greatest_text(c, WorstBy::abs),
                         greatest_text(c, WorstBy::rel), greatest_ulps_text(c),
                         c.fails_by_nan_alone() ? "nan" : number_or_dash(c.errors.sqnr(), 3)});
      line.remark = failed_names(c);
    } else {
      line.remark = concat("expected ", to_string(file_shape(c.expected)));
    }
    const std::string mark =
        joined({first_ == number ? "first" : "", worst_ == number ? "worst" : ""}, ", ");
    line.remark = joined({line.remark, c.fit ? fit_text(*c.fit) : "", mark}, "  ");
    return line;
  }

  void write_table() {
    if (set_.pairs.empty()) return;
    std::vector<TableColumn> columns;
    if (has_dtypes_) columns.push_back({"", "dtype", Align::left});
    columns.push_back({"", "shape", Align::left});
    for (const std::string_view name : {"mismatched", "abs", "rel", "ulp", "sqnr"}) {
      columns.push_back({"", name, Align::right});
    }
    std::vector<TableLine> lines;
    const auto agrees = [](const PairComparison& pair) { return pair.agrees(); };
    const auto& pairs = set_.pairs;
    const auto first = std::find_if(pairs.begin(), pairs.end(), agrees) - pairs.begin();
    const auto last = std::find_if(pairs.rbegin(), pairs.rend(), agrees).base() - pairs.begin() - 1;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto number = static_cast<std::ptrdiff_t>(i);
      const bool is_shown =
          all_ || !agrees(pairs[i]) || number == first || number == last || worst_ == i;
      if (is_shown) lines.push_back(line_of(i));
    }
    Table table({"", "name", Align::left}, columns, each_of(lines));
    constexpr std::size_t kMinRoom = 24;  // shorter names say too little
    const std::size_t others = table.width() - table.label_width();
    const auto all = static_cast<std::size_t>(std::max(style_.width, 0));
    table.shorten_labels(std::max(kMinRoom, all - std::min(all, others)));
    table.write(text_, Style::kAnyWidth);
    if (lines.size() < pairs.size()) {
      text_.folded("left out: ", pairs.size() - lines.size(), " others that agree");
    }
  }

  void write_names(const std::string& file, const std::vector<std::string>& names) {
    if (names.empty() || set_.common) return;
    const std::span shown = std::span(names).first(std::min(names.size(), kMaxNames));
    std::string list = joined(shown, ", ", printable);
    if (shown.size() < names.size()) list += concat(" and ", names.size() - shown.size(), " more");
    text_.folded("only in ", printable(file), ": ", list);
  }

  // Once for all tensors that share it.
  void write_fits() {
    std::vector<std::pair<std::string, std::vector<std::string>>> fits;
    for (const PairComparison& pair : set_.pairs) {
      if (!pair.comparison || !pair.comparison->fit) continue;
      const std::string text = fit_text(*pair.comparison->fit);
      auto found = std::ranges::find_if(fits, [&](const auto& fit) { return fit.first == text; });
      if (found == fits.end()) found = fits.insert(fits.end(), {text, {}});
      found->second.push_back(printable(pair.name));
    }
    for (const auto& [text, names] : fits) {
      if (names.size() == 1) continue;  // its line says so
      text_.folded(text, " in ", names.size() == set_.pairs.size() ? "all " : "", names.size(),
                   names.size() == set_.pairs.size() ? "" : ": " + listed(names, " and "));
    }
  }

  std::string worst_text(const PairComparison& pair) const {
    const Comparison& c = *pair.comparison;
    const std::string distance =
        set_.by == WorstBy::ulp ? greatest_ulps_text(c) : number_or_dash(c.greatest(set_.by), 2);
    return concat(printable(pair.name), " (",
                  c.not_finite() == 0 ? concat(distance, ' ', name(set_.by)) : "NaN or infinity",
                  ")");
  }

  void write_summary() {
    const std::size_t agree = set_.agreeing();
    const std::size_t differ = set_.differing();
    const std::size_t errors = set_.unreadable();
    std::string text = set_.pairs.empty() ? "no name in common"
                                          : concat(counted(std::ssize(set_.pairs), "tensor"), ": ",
                                                   agree, agree == 1 ? " agrees" : " agree");
    if (differ > 0) text += concat(", ", differ, differ == 1 ? " differs" : " differ");
    if (errors > 0) text += concat(", ", counted(static_cast<long long>(errors), "error"));
    const auto add_only = [&](const std::string& file, const std::vector<std::string>& names) {
      if (!names.empty()) text += concat("; ", names.size(), " only in ", printable(file));
    };
    add_only(set_.actual, set_.actual_only);
    add_only(set_.expected, set_.expected_only);
    if (first_) text += concat("; first: ", printable(set_.pairs[*first_].name));
    if (worst_) text += concat("; worst: ", worst_text(set_.pairs[*worst_]));
    text_.folded(text);
  }

  const SetComparison& set_;
  bool all_;  // a line for each
  TextWriter& text_;
  const Style& style_;
  std::optional<std::size_t> first_;
  std::optional<std::size_t> worst_;
  bool has_dtypes_ = false;
};

}  // namespace

void write_text(const SetComparison& set, const std::string& advice, bool all, bool histogram,
                const Style& style, ByteSink& bytes) {
  TextWriter text(style, bytes);
  SetReport(set, all, text).write();
  if (!advice.empty()) text.line(advice);
  for (const PairComparison& pair : set.pairs) {
    if (!histogram || !pair.comparison || !pair.comparison->same_shape) continue;
    text.line();
    write_ulp_histogram(printable(pair.name), *pair.comparison, text);
  }
}

}  // namespace lnorm
