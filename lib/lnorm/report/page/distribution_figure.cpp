#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lnorm/core/text.hpp"
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
  const Histogram& before = histograms.input;
  std::string note;
  if (!scale.is_linear()) note = "The axis is linear about 0 and logarithmic far from it. ";
  const std::int64_t others = before.nans() + before.infinities() + before.minus_infinities();
  if (others > 0)
    note += concat("NaN and infinity, left out before: ", counted(others, "element"), ". ");
  if (beyond_x + beyond_y > 0) {
    note += concat("Outliers beyond the axis: ", counted(beyond_x, "element"), " before, ",
                   beyond_y, " after.");
  }
  return note;
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

}  // namespace lnorm::page
