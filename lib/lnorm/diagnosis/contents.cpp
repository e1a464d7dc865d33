#include "lnorm/diagnosis/contents.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kFits = 3;          // rows whose fit is told
constexpr std::int64_t kFewestOfFit = 8;  // elements
constexpr double kGoodFit = 0.01;         // of the sum of squares is left
constexpr double kNoOffset = 1e-8;        // of the exact squares: not worth a word

// What an element may hold that was never written.
struct Content {
  std::string_view words;
  bool (*holds)(double actual, double x);
};
constexpr Content kContents[] = {
    {"the affected elements are 0", [](double actual, double) { return actual == 0; }},
    {"the affected elements are NaN or infinity",
     [](double actual, double) { return !std::isfinite(actual); }},
    {"the affected elements are those of x", [](double actual, double x) { return actual == x; }},
};

// A row with elements that are off by more than rounding explains.
struct AffectedRow {
  const SampleRow* row;
  std::vector<std::size_t> elements;
  VariantRow exact;
};

std::vector<AffectedRow> affected_rows(const Sample& sample) {
  const Variant exact = asked_for(*sample.setting);
  std::vector<AffectedRow> result;
  for (const SampleRow& row : sample.rows) {
    AffectedRow affected{&row, {}, {}};
    if (!evaluate(exact, sample, row, affected.exact) || !affected.exact.is_bounded) continue;
    for (std::size_t i = 0; i < row.x.size(); ++i) {
      const double error = std::fabs(row.actual[i] - affected.exact.y[i]);
      if (row.is_kept(i) && !(error <= affected.exact.bound[i])) affected.elements.push_back(i);
    }
    if (!affected.elements.empty()) result.push_back(std::move(affected));
  }
  return result;
}

// From which element on the row holds nothing but that.
template <class Holds>
std::size_t begin_of(const SampleRow& row, Holds holds) {
  std::size_t begin = row.x.size();
  while (begin > 0 && (!row.is_kept(begin - 1) || holds(begin - 1))) --begin;
  return begin;
}

// actual = scale exact + offset, where that leaves next to nothing.
std::string fit_text(const AffectedRow& affected) {
  double n = 0;
  double e = 0;
  double a = 0;
  double ee = 0;
  double ea = 0;
  double squares = 0;
  for (std::size_t i = 0; i < affected.exact.y.size(); ++i) {
    if (!affected.row->is_kept(i)) continue;
    const double exact = affected.exact.y[i];
    const double actual = affected.row->actual[i];
    if (!std::isfinite(actual)) return "";
    n += 1;
    e += exact;
    a += actual;
    ee += exact * exact;
    ea += exact * actual;
    squares += (actual - exact) * (actual - exact);
  }
  const double determinant = n * ee - e * e;
  if (std::ssize(affected.elements) < kFewestOfFit || !(determinant > 0)) return "";
  const double scale = (n * ea - e * a) / determinant;
  const double offset = (a - scale * e) / n;
  double left = 0;
  for (std::size_t i = 0; i < affected.exact.y.size(); ++i) {
    if (!affected.row->is_kept(i)) continue;
    const double rest = affected.row->actual[i] - scale * affected.exact.y[i] - offset;
    left += rest * rest;
  }
  if (!(left <= kGoodFit * squares)) return "";
  std::ostringstream text;
  text.precision(4);
  text << "actual is " << factor_text(scale) << " times the exact value";
  if (n * offset * offset > kNoOffset * ee) {
    text << ", " << (offset < 0 ? "minus " : "plus ") << std::fabs(offset);
  }
  return std::move(text).str();
}

// A threshold of it may decide which elements are off.
struct Measure {
  std::string_view words;
  double (*of)(double x, double y);
};
constexpr Measure kMeasures[] = {{"x", [](double x, double) { return x; }},
                                 {"y", [](double, double y) { return y; }},
                                 {"|x|", [](double x, double) { return std::fabs(x); }},
                                 {"|y|", [](double, double y) { return std::fabs(y); }}};
constexpr std::size_t kFewestOfThreshold = 8;  // elements on either side, and columns

struct Span {
  double least = kInfinity;
  double most = -kInfinity;
  std::size_t count = 0;

  void take(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
    ++count;
  }
};

// The number of the fewest digits that is in [low, high).
std::string shortest_between(double low, double high) {
  std::ostringstream text;
  for (int digits = 1; digits <= 17; ++digits) {
    text.str("");
    text.precision(digits);
    text << low / 2 + high / 2;
    const double value = std::stod(text.str());
    if (value >= low && value < high) break;
  }
  return std::move(text).str();
}

// Returns "elements with |y| above 3: ..." if exactly these elements are off; empty if no threshold divides them so.
std::string threshold_text(const Sample& sample) {
  const Variant exact = asked_for(*sample.setting);
  Span off[std::size(kMeasures)];
  Span right[std::size(kMeasures)];
  std::set<std::size_t> columns;
  VariantRow row;
  for (const SampleRow& sampled : sample.rows) {
    if (!evaluate(exact, sample, sampled, row) || !row.is_bounded) continue;
    for (std::size_t i = 0; i < sampled.x.size(); ++i) {
      if (!sampled.is_kept(i)) continue;
      const bool is_off = !(std::fabs(sampled.actual[i] - row.y[i]) <= row.bound[i]);
      if (is_off && columns.size() < kFewestOfThreshold) columns.insert(i);
      for (std::size_t q = 0; q < std::size(kMeasures); ++q) {
        (is_off ? off : right)[q].take(kMeasures[q].of(sampled.x[i], row.y[i]));
      }
    }
  }
  if (std::min({off[0].count, right[0].count, columns.size()}) < kFewestOfThreshold) return "";
  for (std::size_t q = 0; q < std::size(kMeasures); ++q) {
    const bool is_above = right[q].most < off[q].least;
    if (!is_above && !(off[q].most < right[q].least)) continue;
    const std::string bound = is_above ? shortest_between(right[q].most, off[q].least)
                                       : shortest_between(off[q].most, right[q].least);
    return concat("elements with ", kMeasures[q].words, is_above ? " above " : " up to ", bound,
                  ": all ", off[q].count, " of them, and none of the ", right[q].count,
                  " others of the rows that were looked at");
  }
  return "";
}

// Which rows are lost, where it is those that leave float16.
std::string overflow_text(const Sample& sample) {
  struct Overflow {
    Variant::Overflow what;
    std::string_view words;
  };
  constexpr Overflow kOverflows[] = {{Variant::Overflow::mean_square, "mean square"},
                                     {Variant::Overflow::sum_of_squares, "sum of squares"},
                                     {Variant::Overflow::square, "largest square"},
                                     {Variant::Overflow::sum, "sum"}};
  for (const Overflow& overflow : kOverflows) {
    std::size_t lost = 0;
    const bool are_those = std::ranges::all_of(sample.rows, [&](const SampleRow& row) {
      const bool is_lost_row = is_lost(row, *sample.setting);
      lost += is_lost_row ? 1 : 0;
      return is_lost_row ==
             overflows(overflow.what, statistics_of(row.x, sample.setting->formula), row.x);
    });
    if (are_those && lost > 0 && lost < sample.rows.size()) {
      return concat("rows whose ", overflow.words,
                    " is beyond 65504 are lost: overflow of float16");
    }
  }
  return "";
}

}  // namespace

FormulaFit unwritten(bool are_whole, const SampleRow& first, std::size_t count,
                     const Sample& sample) {
  if (!are_whole) return cause("unwritten-tail", "the last elements are not written", kInfinity);
  FormulaFit rows = cause("unwritten-rows", "rows are not written", kInfinity);
  // All rows from one on are the end of the tensor.
  if (&first == &sample.rows[sample.rows.size() - count])
    rows.same_as.emplace_back("unwritten-tail");
  return rows;
}

Contents contents_of(const Sample& sample,
                     const std::function<std::string(std::int64_t row)>& row_name) {
  const OutputFormat& output = sample.setting->output;
  const std::vector<AffectedRow> affected = affected_rows(sample);
  Contents result;
  if (affected.empty()) return result;
  for (const Content& content : kContents) {
    bool all = true;
    bool is_whole = true;
    bool is_tail = true;
    for (const AffectedRow& row : affected) {
      const auto holds = [&](std::size_t i) {
        return content.holds(row.row->actual[i], output.rounded(row.row->x[i]));
      };
      all = all && std::ranges::all_of(row.elements, holds);
      const std::size_t begin = begin_of(*row.row, holds);
      is_whole = is_whole && begin == 0;
      is_tail = is_tail && begin <= row.elements.front();
    }
    if (!all) continue;
    result.lines.emplace_back(content.words);
    const bool are_all = affected.size() == sample.rows.size();
    // One element of one row of many is no tail.
    is_tail = is_tail && (affected.size() > 1 || affected.front().elements.size() > 1 ||
                          sample.rows.size() == 1);
    if ((is_whole && !are_all) || (is_tail && !is_whole)) {
      result.unwritten = unwritten(is_whole, *affected.front().row, affected.size(), sample);
    }
    return result;
  }
  if (std::string overflow = overflow_text(sample); !overflow.empty()) {
    result.lines.push_back(std::move(overflow));
  }
  if (std::string threshold = threshold_text(sample); !threshold.empty()) {
    result.lines.push_back(std::move(threshold));
    return result;
  }
  std::vector<std::string> fits;
  fits.reserve(affected.size());
  for (const AffectedRow& row : affected) fits.push_back(fit_text(row));
  if (fits.size() > 1 && !fits.front().empty() &&
      std::ranges::count(fits, fits.front()) == std::ssize(fits)) {
    result.lines.push_back(concat("every affected row that was looked at: ", fits.front()));
    return result;
  }
  for (std::size_t i = 0; i < fits.size() && result.lines.size() < kFits; ++i) {
    if (fits[i].empty()) continue;
    result.lines.push_back(concat("row ", row_name(affected[i].row->number), ": ", fits[i]));
  }
  return result;
}

}  // namespace lnorm
