#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/csv.hpp"
#include "lnorm/report/json_value.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/reports.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

// The numbers of the features that are reported. ends: so many at either end; 0: all.
std::vector<std::int64_t> reported(const FeatureStats& stats, const FeatureReport& options,
                                   std::int64_t ends) {
  if (options.top) return stats.top(*options.top);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < stats.count(); ++i) {
    if (ends == 0 || i < ends || i >= stats.count() - ends) numbers.push_back(i);
  }
  return numbers;
}

void write_feature_table(const FeatureStats& stats, const FeatureSummary& summary,
                         const FeatureReport& options, TextWriter& text) {
  constexpr std::int64_t kAtEnds = 5;
  constexpr std::int64_t kMost = 20;
  const bool all = options.text.all || stats.count() <= kMost || options.top;
  const Shape shape = extents(stats.x.shape, stats.axes);
  const auto cell = [&](double value) { return significant_text(value, options.text.digits); };
  std::vector<TableLine> lines;
  std::int64_t before = -1;
  for (const std::int64_t number : reported(stats, options, all ? 0 : kAtEnds)) {
    if (!all && number != before + 1) lines.push_back({"...", {}});
    before = number;
    const Feature feature = stats.feature(number);
    TableLine& line = lines.emplace_back(TableLine{index_text(number, shape), {}});
    for (const FeatureFigure& figure : kFeatureFigures)
      line.cells.push_back(cell(feature.*figure.of));
    if (summary.non_finite > 0) line.cells.push_back(std::to_string(feature.non_finite));
    line.is_bad = feature.non_finite > 0;
  }
  lines.push_back({});
  for (const auto& [label, part] :
       {std::pair("min", &ColumnSummary::min), std::pair("median", &ColumnSummary::median),
        std::pair("max", &ColumnSummary::max)}) {
    TableLine& line = lines.emplace_back(TableLine{label, {}});
    for (const ColumnSummary& column : summary.figures) line.cells.push_back(cell(column.*part));
  }
  std::vector<TableColumn> columns;
  columns.reserve(kFeatureFigures.size() + 1);
  for (const FeatureFigure& figure : kFeatureFigures) columns.push_back({"", figure.words});
  if (summary.non_finite > 0) columns.push_back({"", "non-finite"});
  Table({"", "feature"}, columns, each_of(lines)).write(text, text.style().width);
}

Json feature_json(const FeatureStats& stats, std::int64_t number) {
  const Feature feature = stats.feature(number);
  Json result{{"index", stats.index(number)}};
  for (const FeatureFigure& figure : kFeatureFigures) {
    result[std::string(figure.key)] = json_value(feature.*figure.of);
  }
  result["non_finite"] = feature.non_finite;
  return result;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> feature_words(const FeatureStats& stats,
                                                               const FeatureSummary& summary,
                                                               int digits) {
  const Shape shape = extents(stats.x.shape, stats.axes);
  std::vector<std::pair<std::string, std::string>> result;
  if (summary.dead > 0) {
    const std::string first = joined(
        summary.first_dead, ", ", [&](std::int64_t feature) { return index_text(feature, shape); });
    result.emplace_back("dead, all zeros",
                        concat(counted(summary.dead, "feature"), ": ", first,
                               std::ssize(summary.first_dead) < summary.dead ? " and others" : ""));
  }
  if (summary.largest) {
    const ColumnSummary& absmax = summary.absmax();
    result.emplace_back("largest |x|", concat(significant_text(absmax.max, digits), " in feature ",
                                              index_text(*summary.largest, shape), ", ",
                                              rounded_text(summary.ratio(), 3),
                                              " times the median of all features' largest |x|, ",
                                              significant_text(absmax.median, digits)));
  }
  return result;
}

void write_text(const FeatureStats& stats, const FeatureReport& options, const Style& style,
                ByteSink& bytes) {
  TextWriter text(style, bytes);
  const FeatureSummary summary(stats);
  text.folded(tensor_text(stats.x), ", ", counted(stats.count(), "feature"), " along ",
              axes_text(stats.axes), ", each over ",
              stats.slice ? rows_text(*stats.slice) : counted(stats.rows, "row"));
  text.folded(variances_text(stats.ddof), ", of finite elements");
  if (summary.non_finite > 0) {
    const std::optional<Shape> first = stats.first_non_finite_index();
    text.bad("NaN or infinity in ", counted(summary.non_finite, "element"), ", first at ",
             to_string(first.value_or(Shape{})), "; counted and left out");
  }
  for (const auto& [what, words] : feature_words(stats, summary, options.text.digits)) {
    text.folded(what, ": ", words);
  }
  if (options.top) text.folded(top_text(*options.top, "feature", stats.count()));
  text.line();
  write_feature_table(stats, summary, options, text);
}

void write_json(const FeatureStats& stats, const FeatureReport& options, ByteSink& bytes) {
  const FeatureSummary summary(stats);
  Json report{{"schema", 1},
              {"command", "stats"},
              {"input", json_value(stats.x)},
              {"axes", file_axes(stats.x, stats.axes)},
              {"ddof", stats.ddof},
              {"rows", stats.rows}};
  if (stats.slice) report["slice"] = json_value(*stats.slice);
  report["summary"] = {{"features", stats.count()},
                       {"dead", summary.dead},
                       {"non_finite_elements", summary.non_finite},
                       {"absmax_ratio", summary.largest ? json_value(summary.ratio()) : Json()}};
  for (std::size_t f = 0; f < kFeatureFigures.size(); ++f) {
    report["summary"][std::string(kFeatureFigures[f].key)] = json_value(summary.figures[f]);
  }
  report["first_non_finite_index"] = index_json(stats.first_non_finite_index());
  Json features = Json::array();
  for (const std::int64_t number : reported(stats, options, 0)) {
    features.push_back(feature_json(stats, number));
  }
  Json& list = options.top ? report["top"] : report;
  if (options.top) list["by"] = name(options.top->by);
  list["features"] = std::move(features);
  bytes.write(json_text(report) + '\n');
}

void write_csv(const FeatureStats& stats, const FeatureReport& options, ByteSink& bytes) {
  bytes.write("feature,mean,variance,absmax,zeros,non_finite\n");
  for (const std::int64_t number : reported(stats, options, 0)) {
    const Feature feature = stats.feature(number);
    std::string line = std::to_string(number);
    for (const FeatureFigure& figure : kFeatureFigures)
      line += ',' + value_text(feature.*figure.of);
    bytes.write(concat(line, ',', feature.non_finite, '\n'));
  }
}

}  // namespace lnorm
