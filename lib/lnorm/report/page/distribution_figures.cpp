#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/page/figures.hpp"

namespace lnorm::page {

namespace {

// A scale along which bars of one width are drawn: linear, or linear about 0 and logarithmic far from it.
struct BarScale {
  double low;
  double high;
  double constant;  // of the logarithm; 0: there is none

  bool is_linear() const { return constant == 0; }

  // Vega's symlog.
  double place(double value) const {
    return is_linear() ? value : std::copysign(std::log1p(std::fabs(value / constant)), value);
  }
  double value(double place) const {
    return is_linear() ? place : std::copysign(constant * std::expm1(std::fabs(place)), place);
  }

  std::vector<double> borders(std::size_t bars) const {
    std::vector<double> result(bars + 1);
    const double first = place(low);
    const double last = place(high);
    for (std::size_t i = 0; i <= bars; ++i) {
      const double part = static_cast<double>(i) / static_cast<double>(bars);
      result[i] = value(first * (1 - part) + last * part);
    }
    result.front() = low;
    result.back() = high;
    return result;
  }
};

// For both histograms, neither of which is empty.
BarScale scale_for(const Histogram& before, const Histogram& after) {
  // One bar goes over all that is no outlier.
  const Histogram::Bars x = before.bars(1);
  const Histogram::Bars y = after.bars(1);
  double low = std::min(x.low, y.low);
  double high = std::max(x.high, y.high);
  if (low == high) {
    constexpr double kMinMargin = std::numeric_limits<double>::denorm_min();
    const double margin = low == 0 ? 1 : std::max(std::fabs(low) / 2, kMinMargin);
    low -= margin;
    high += margin;
  }
  // Where one would be a line beside the other.
  constexpr double kMaxTimes = 12;
  const auto [least, most] = std::minmax({greatest_of(x.low, x.high), greatest_of(y.low, y.high)});
  const double narrowest = std::min(x.high - x.low, y.high - y.low);
  const bool is_linear =
      high / 2 - low / 2 <= kMaxTimes / 2 * narrowest || least == 0 || most <= 2 * least;
  constexpr double kMinPart = 1e-9;  // of which a logarithm still makes an axis
  return {low, high, is_linear ? 0 : std::max(least / 4, kMinPart * most)};
}

// Few elements make few bars.
std::size_t bars_for(std::int64_t elements) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(elements / 8, 10, 80));
}

double share_of(std::int64_t count, const Histogram& histogram) {
  if (count == 0) return 0;
  return static_cast<double>(count) / static_cast<double>(histogram.count());
}

// beyond_x, beyond_y: how many elements the bars leave out.
std::string note_of(const StatsHistograms& histograms, const BarScale& scale, std::int64_t beyond_x,
                    std::int64_t beyond_y) {
  const auto others_of = [](const Histogram& of) {
    return of.nans() + of.infinities() + of.minus_infinities();
  };
  std::string note;
  if (!scale.is_linear()) note = "The axis is linear about 0 and logarithmic far from it. ";
  const std::int64_t before = others_of(histograms.input);
  const std::int64_t after = others_of(histograms.output);
  if (before + after > 0) {
    note += concat("NaN and infinity, left out: ", counted(before, "element"), " before, ", after,
                   " after. ");
  }
  if (beyond_x + beyond_y > 0) {
    note += concat("Outliers beyond the axis: ", counted(beyond_x, "element"), " before, ",
                   beyond_y, " after.");
  }
  return note;
}

std::string class_text(std::size_t number) {
  const double bound = UlpCounts::bound(number);
  if (number == 0) return "0";
  if (std::isinf(bound)) return "beyond";
  return "<= " + (bound < 100000 ? value_text(bound) : rounded_text(bound, 2));
}

}  // namespace

Figure distribution_figure(const StatsHistograms& histograms) {
  const Histogram& before = histograms.input;
  const Histogram& after = histograms.output.count() > 0 ? histograms.output : histograms.input;
  const BarScale scale = scale_for(before, after);
  const std::vector<double> borders = scale.borders(bars_for(before.count()));
  const std::vector<std::int64_t> x = before.counts(borders);
  std::vector<std::int64_t> y(x.size());
  if (histograms.output.count() > 0) y = after.counts(borders);
  const std::vector<TableField> fields{
      {"from", "from"}, {"to", "to"}, {"before", "before"}, {"after", "after"}};
  Json spec =
      empty_spec(230,
                 concat("Distribution of the finite elements. Before they go from ",
                        short_text(before.min()), " to ", short_text(before.max()), ", after from ",
                        short_text(after.min()), " to ", short_text(after.max()), "."),
                 fields);
  Json values = Json::array();
  for (std::size_t i = 0; i < x.size(); ++i) {
    values.push_back(
        {{"from", borders[i]}, {"to", borders[i + 1]}, {"before", x[i]}, {"after", y[i]}});
  }
  const auto share = [](const char* series, std::int64_t count) {
    return Json{{"type", "formula"},
                {"expr", concat("datum.", series, " / ", std::max<std::int64_t>(1, count))},
                {"as", concat(series, "_share")}};
  };
  add_table(spec, std::move(values),
            {share("before", before.count()), share("after", histograms.output.count())});
  const Magnitude magnitude(greatest_of(borders.front(), borders.back()));
  Json across =
      scale_of_range("x", magnitude.count(borders.front()), magnitude.count(borders.back()));
  if (!scale.is_linear()) {
    across["type"] = "symlog";
    across["constant"] = magnitude.count(scale.constant);
  }
  double greatest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    greatest = std::max({greatest, share_of(x[i], before), share_of(y[i], histograms.output)});
  }
  const Json up = scale_of_range("y", 0, greatest > 0 ? greatest : 1, true);
  spec["scales"] = {across, up};
  spec["axes"] = {axis("x", magnitude.title("value of an element"), format_for(across["domain"])),
                  axis("y", "share of elements", "~%")};
  add_series(spec, {"before", "after"});
  for (const char* const series : {"before", "after"}) {
    add_mark(spec, "rect", series,
             {{"x", field("x", "from", magnitude.times())},
              {"x2", field("x", "to", magnitude.times())},
              {"y", field("y", concat(series, "_share"))},
              {"y2", {{"scale", "y"}, {"value", 0}}},
              {"fill", color(series)},
              {"fillOpacity", {{"value", 0.55}}},
              {"tooltip", tooltip(fields)}});
  }
  return {"distribution", "How the elements are distributed, before and after",
          note_of(histograms, scale, before.count() - std::reduce(x.begin(), x.end()),
                  histograms.output.count() - std::reduce(y.begin(), y.end())),
          std::move(spec)};
}

Figure ulp_figure(const Comparison& comparison) {
  const UlpCounts& counts = comparison.ulp_counts;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) all += counts.count(i);
  const bool has_halves = counts.count(1) > 0;
  double greatest = 0;  // share
  Json values = Json::array();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i == 1 && !has_halves) continue;  // steps are whole
    const double share = static_cast<double>(counts.count(i)) / static_cast<double>(all);
    greatest = std::max(greatest, share);
    values.push_back(
        {{"distance", class_text(i)}, {"elements", counts.count(i)}, {"share", share}});
  }
  const std::string ulp = concat("ulp of ", name(comparison.ulp_dtype()));
  const std::vector<TableField> fields{
      {"distance", "ulp"}, {"elements", "elements"}, {"share", "share"}};
  Json spec =
      empty_spec(230,
                 concat("How far ", counted(all, "element"), " are from the expected ones, in ",
                        ulp, ". ", percentage_text(counts.count(0), all), " are equal."),
                 fields);
  add_table(spec, std::move(values));
  spec["scales"] = {{{"name", "x"},
                     {"type", "band"},
                     {"domain", {{"data", "table"}, {"field", "distance"}}},
                     {"range", "width"},
                     {"padding", 0.15}},
                    scale_of_numbers(domain_of(0, greatest, {}, true))};
  spec["axes"] = {axis("x", "distance in " + ulp), axis("y", "share of elements", "~%")};
  spec["axes"][0]["labelBound"] = true;
  add_colors(spec);
  add_mark(spec, "rect", "bars",
           {{"x", field("x", "distance")},
            {"width", {{"scale", "x"}, {"band", 1}}},
            {"y", field("y", "share")},
            {"y2", {{"scale", "y"}, {"value", 0}}},
            {"fill", color("before")},
            {"tooltip", tooltip(fields)}});
  return {"ulp", "How far elements are from the expected ones",
          "Each bar has what is farther than the bar before it.", std::move(spec)};
}

}  // namespace lnorm::page
