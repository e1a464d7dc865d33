#include "lnorm/report/comparison_words.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

// "max ulp 1", "rtol 0 + atol 1e-05"; empty if it was not given.
std::string text_of(const Criteria& criteria, const CriterionRow& row) {
  if (row.criterion == Criterion::tolerance && criteria.tolerance) {
    return concat("rtol ", value_text(criteria.tolerance->rtol), " + atol ",
                  value_text(criteria.tolerance->atol));
  }
  const std::string bound = bound_text(criteria, row);
  return bound.empty() ? "" : concat(words_of(row), ' ', bound, row.unit);
}

// Three digits, or as many as it takes to be on the same side of the bound.
std::string found_text(double found, double bound) {
  if (std::isnan(found)) return "none";
  const std::string text = rounded_text(found, 3);
  const double rounded = std::strtod(text.c_str(), nullptr);
  return (rounded > bound) == (found > bound) && rounded != bound ? text : value_text(found);
}

std::string label_of(std::size_t number) {
  if (number == 0) return "0";
  if (number + 1 == UlpCounts::kClasses) return "beyond";
  constexpr std::size_t kMany = 22;  // from here on powers are easier to read
  if (number > kMany) return concat("<= 2^", number - 2);
  return "<= " + value_text(UlpCounts::bound(number));
}

// The classes up to the last one that is not empty. Of steps none is at most half an ulp.
std::vector<std::size_t> classes_of(const Comparison& comparison) {
  const bool has_fractions = comparison.ulps && comparison.ulps->value.is_real;
  std::vector<std::size_t> classes;
  for (std::size_t i = 0; i < comparison.ulp_counts.size(); ++i) {
    if (i != 1 || has_fractions) classes.push_back(i);
  }
  return classes;
}

// A bar of a part of the width; what is there shows.
std::string bar(double share, std::size_t width, bool utf8) {
  constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (share == 0) return "";
  const double length = share * static_cast<double>(width);
  const auto bytes = static_cast<std::size_t>(std::max(1.0, std::round(length)));
  std::string text;
  if (!utf8) return text.append(bytes, '#');
  const auto eighths = static_cast<std::size_t>(std::max(1.0, std::round(8 * length)));
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  return text.append(kEighths[eighths % 8]);
}

}  // namespace

std::string dtypes_text(const Comparison& comparison, std::string_view between) {
  const auto actual = name(comparison.actual.dtype);
  const auto expected = name(comparison.expected.dtype);
  return actual == expected ? std::string(actual) : concat(actual, between, expected);
}

std::string words_of(const CriterionRow& row) {
  std::string words(row.name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string bound_text(const Criteria& criteria, const CriterionRow& row) {
  if (row.criterion == Criterion::max_mismatched && criteria.max_mismatched) {
    const auto& [limit, is_percentage] = *criteria.max_mismatched;
    return concat(value_text(limit), is_percentage ? "%" : "");
  }
  if (row.counts() || !(criteria.*row.bound)) return "";
  return value_text(*(criteria.*row.bound));
}

std::string criteria_text(const Criteria& criteria) {
  std::string text;
  for (const CriterionRow& row : criterion_rows()) {
    const std::string own = row.criterion == Criterion::max_ulp && criteria.max_ulp
                                ? value_text(*criteria.max_ulp) + " ulp"
                            : row.criterion == Criterion::max_row_ulp && criteria.max_row_ulp
                                ? value_text(*criteria.max_row_ulp) + " row-ulp"
                            : row.criterion == Criterion::max_abs && criteria.max_abs
                                ? "abs " + value_text(*criteria.max_abs)
                                : text_of(criteria, row);
    if (own.empty()) continue;
    text += concat(text.empty()                             ? ""
                   : row.kind == CriterionRow::each_element ? " and "
                                                            : ", ",
                   own);
  }
  return concat(criteria.bounds_elements() ? "tolerance " : "criteria ", text,
                criteria.equal_nan ? "" : ", NaN equals nothing");
}

std::string failures_text(const Criteria& criteria, const std::vector<Failure>& failures) {
  return joined(failures, ", ", [&](const Failure& failure) {
    const CriterionRow& row = row_of(failure.criterion);
    const std::string what = failure.criterion == Criterion::finite      ? "NaN or infinity"
                             : failure.criterion == Criterion::tolerance ? "tolerance"
                                                                         : text_of(criteria, row);
    return concat(what, " (",
                  row.counts() ? counted(static_cast<long long>(failure.found), "element")
                               : found_text(failure.found, *(criteria.*row.bound)),
                  ")");
  });
}

std::string fit_text(const Fit& fit) {
  const std::string scaled =
      fit.scale == 1 ? "expected" : concat(value_text(fit.scale), " expected");
  if (fit.offset == 0) return "actual = " + scaled;
  return concat("actual = ", scaled, fit.offset < 0 ? " - " : " + ",
                value_text(std::fabs(fit.offset)));
}

std::string ulps_text(Ulps ulps, DType dtype) {
  if (ulps.is_real) return rounded_text(ulps.value(), 3);
  if (is_floating(dtype) && ulps.rank == kNoUlpDistance) return "beyond";
  return std::to_string(ulps.rank);
}

std::string exact_text(Ulps ulps) {
  return ulps.is_real ? value_text(ulps.value()) : std::to_string(ulps.rank);
}

std::string ulp_shares_text(const Comparison& comparison) {
  constexpr std::size_t kNear = 5;  // classes, up to 4 ulp
  const UlpCounts& counts = comparison.ulp_counts;
  const std::int64_t all = comparison.judged();
  std::string text;
  std::int64_t within = 0;
  for (const std::size_t i : classes_of(comparison)) {
    within += counts.count(i);
    if (i >= kNear && i + 1 < counts.size()) continue;
    if (i + 1 == UlpCounts::kClasses) {
      return concat(text, ", ", percentage_text(counts.count(i), all), " beyond");
    }
    text += concat(text.empty() ? "" : ", ", label_of(i), " in ",
                   within == all ? "all" : percentage_text(within, all));
  }
  return text;
}

void write_ulp_histogram(std::string_view title, const Comparison& comparison, TextWriter& text) {
  const UlpCounts& counts = comparison.ulp_counts;
  const std::int64_t all = comparison.errors.pairs();
  text.line(text.style().heading(title), ": ", counted(all, "pair"));
  std::vector<TableLine> lines;
  std::vector<std::int64_t> elements;  // of the lines
  std::size_t empty = 0;               // classes without an element, one after another
  for (const std::size_t i : classes_of(comparison)) {
    constexpr std::size_t kShown = 3;
    const std::int64_t count = counts.count(i);
    empty = count == 0 ? empty + 1 : 0;
    if (empty > kShown) {
      lines.back() = {"...", {}};
      continue;
    }
    lines.push_back({label_of(i), {std::to_string(count), percentage_text(count, all)}});
    elements.push_back(count);
  }
  if (lines.empty()) return;
  Table table({}, std::vector<TableColumn>(2), each_of(lines));
  constexpr std::size_t kMinBar = 10;
  const std::size_t taken = table.width() + 2;
  const auto columns = static_cast<std::size_t>(std::max(text.style().filled_width(), 0));
  const std::size_t width = columns > taken + kMinBar ? columns - taken : kMinBar;
  const std::int64_t most =
      std::max<std::int64_t>(1, *std::max_element(elements.begin(), elements.end()));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double share = static_cast<double>(elements[i]) / static_cast<double>(most);
    lines[i].remark = bar(share, width, text.style().utf8);
  }
  table.write(text, Style::kAnyWidth);
}

}  // namespace lnorm
