#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
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

// A figure of every feature; JSON and CSV call it by its key.
struct FeatureFigure {
  std::string_view key;
  std::string_view words;
  double Feature::*of;
};
constexpr std::array kFigures{FeatureFigure{"mean", "mean", &Feature::mean},
                              FeatureFigure{"variance", "variance", &Feature::variance},
                              FeatureFigure{"absmax", "largest |x|", &Feature::absmax},
                              FeatureFigure{"zeros", "zeros", &Feature::zeros}};
using FigureSummaries = std::array<ColumnSummary, kFigures.size()>;

// What is said of all features together.
struct FeatureSummary {
  FigureSummaries figures;
  std::int64_t dead = 0;  // features of which every finite element is 0
  std::vector<std::int64_t> first_dead;
  std::int64_t non_finite = 0;          // elements
  std::optional<std::int64_t> largest;  // the feature of the greatest |x|

  explicit FeatureSummary(const FeatureStats& stats) {
    constexpr std::size_t kShown = 5;
    for (std::int64_t i = 0; i < stats.count(); ++i) {
      const Feature feature = stats.feature(i);
      non_finite += feature.non_finite;
      for (std::size_t f = 0; f < kFigures.size(); ++f) figures[f].add(feature.*kFigures[f].of);
      if (feature.absmax == 0) {
        ++dead;
        if (first_dead.size() < kShown) first_dead.push_back(i);
      }
      if (!std::isnan(feature.absmax) &&
          (!largest || feature.absmax > stats.feature(*largest).absmax)) {
        largest = i;
      }
    }
    const EachValue each_value = [&](std::int64_t step, const SeeValues& see) {
      for (std::int64_t i = 0; i < stats.count(); i += step) {
        const Feature feature = stats.feature(i);
        for (std::size_t f = 0; f < kFigures.size(); ++f) {
          const double value = feature.*kFigures[f].of;
          if (!std::isnan(value)) see(f, std::span(&value, 1));
        }
      }
    };
    find_medians(figures, each_value);
  }

  // The greatest |x| beside the median of all features'; infinite where that is 0.
  double ratio() const { return figures[2].max / figures[2].median; }
};

std::vector<std::int64_t> top_features(const FeatureStats& stats, const Top& top) {
  TopList<std::int64_t> list(top.most);
  for (std::int64_t i = 0; i < stats.count(); ++i) list.add(stats.feature(i).score(top.by), i);
  return list.items();
}

// The numbers of the features that are reported. ends: so many at either end; 0: all.
std::vector<std::int64_t> reported(const FeatureStats& stats, const FeatureReport& options,
                                   std::int64_t ends) {
  if (options.top) return top_features(stats, *options.top);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < stats.count(); ++i) {
    if (ends == 0 || i < ends || i >= stats.count() - ends) numbers.push_back(i);
  }
  return numbers;
}

class FeatureText {
 public:
  FeatureText(const FeatureStats& stats, const FeatureReport& options, TextWriter text)
      : stats_(stats),
        options_(options),
        text_(std::move(text)),
        shape_(extents(stats.x.shape, stats.axes)),
        summary_(stats) {}

  void write() {
    text_.folded(printable(stats_.x.name), ": ", name(stats_.x.dtype), ", shape ",
                 to_string(stats_.x.shape), ", ", counted(stats_.count(), "feature"), " along ",
                 axes_text(stats_.axes), ", each over ",
                 stats_.slice ? rows_text(*stats_.slice) : counted(stats_.rows, "row"));
    text_.folded(variances_text(stats_.ddof), ", of finite elements");
    if (summary_.non_finite > 0) {
      const std::optional<Shape> first = stats_.first_non_finite_index();
      text_.bad("NaN or infinity in ", counted(summary_.non_finite, "element"), ", first at ",
                to_string(first.value_or(Shape{})), "; counted and left out");
    }
    write_what_stands_out();
    if (options_.top) text_.folded(top_text(*options_.top, "feature", stats_.count()));
    text_.line();
    write_table();
  }

 private:
  std::string index(std::int64_t feature) const { return index_text(feature, shape_); }
  std::string cell(double value) const { return significant_text(value, options_.text.digits); }

  void write_what_stands_out() {
    if (summary_.dead > 0) {
      const std::string first =
          joined(summary_.first_dead, ", ", [&](std::int64_t feature) { return index(feature); });
      text_.folded("dead, all zeros: ", counted(summary_.dead, "feature"), ": ", first,
                   std::ssize(summary_.first_dead) < summary_.dead ? " and others" : "");
    }
    if (!summary_.largest) return;
    text_.folded("largest |x|: ", cell(summary_.figures[2].max), " in feature ",
                 index(*summary_.largest), ", ", rounded_text(summary_.ratio(), 3),
                 " times the median of all features' largest |x|, ",
                 cell(summary_.figures[2].median));
  }

  TableLine line_of(std::int64_t number) const {
    const Feature feature = stats_.feature(number);
    TableLine line{index(number), {}};
    for (const FeatureFigure& figure : kFigures) line.cells.push_back(cell(feature.*figure.of));
    if (summary_.non_finite > 0) line.cells.push_back(std::to_string(feature.non_finite));
    line.is_bad = feature.non_finite > 0;
    return line;
  }

  void write_table() {
    constexpr std::int64_t kAtEnds = 5;
    constexpr std::int64_t kMost = 20;
    const bool all = options_.text.all || stats_.count() <= kMost || options_.top;
    std::vector<TableLine> lines;
    std::int64_t before = -1;
    for (const std::int64_t number : reported(stats_, options_, all ? 0 : kAtEnds)) {
      if (!all && number != before + 1) lines.push_back({"...", {}});
      before = number;
      lines.push_back(line_of(number));
    }
    lines.push_back({});
    for (const auto& [label, part] :
         {std::pair("min", &ColumnSummary::min), std::pair("median", &ColumnSummary::median),
          std::pair("max", &ColumnSummary::max)}) {
      TableLine& line = lines.emplace_back(TableLine{label, {}});
      for (const ColumnSummary& column : summary_.figures) line.cells.push_back(cell(column.*part));
    }
    std::vector<TableColumn> columns;
    columns.reserve(kFigures.size() + 1);
    for (const FeatureFigure& figure : kFigures) columns.push_back({"", figure.words});
    if (summary_.non_finite > 0) columns.push_back({"", "non-finite"});
    Table({"", "feature"}, columns, each_of(lines)).write(text_, text_.style().width);
  }

  const FeatureStats& stats_;
  const FeatureReport& options_;
  TextWriter text_;
  Shape shape_;
  FeatureSummary summary_;
};

Json feature_json(const FeatureStats& stats, std::int64_t number) {
  const Feature feature = stats.feature(number);
  Json result{{"index", stats.index(number)}};
  for (const FeatureFigure& figure : kFigures) {
    result[std::string(figure.key)] = json_value(feature.*figure.of);
  }
  result["non_finite"] = feature.non_finite;
  return result;
}

}  // namespace

void write_text(const FeatureStats& stats, const FeatureReport& options, const Style& style,
                ByteSink& bytes) {
  FeatureText(stats, options, {style, bytes}).write();
}

void write_json(const FeatureStats& stats, const FeatureReport& options, ByteSink& bytes) {
  const FeatureSummary summary(stats);
  Json report{{"schema", 1},        {"command", "stats"}, {"input", json_value(stats.x)},
              {"axes", stats.axes}, {"ddof", stats.ddof}, {"rows", stats.rows}};
  if (stats.slice) report["slice"] = json_value(*stats.slice);
  report["summary"] = {{"features", stats.count()},
                       {"dead", summary.dead},
                       {"non_finite_elements", summary.non_finite},
                       {"absmax_ratio", summary.largest ? json_value(summary.ratio()) : Json()}};
  for (std::size_t f = 0; f < kFigures.size(); ++f) {
    report["summary"][std::string(kFigures[f].key)] = json_value(summary.figures[f]);
  }
  report["first_non_finite_index"] = index_json(stats.first_non_finite_index());
  Json features = Json::array();
  for (const std::int64_t number : reported(stats, options, 0)) {
    features.push_back(feature_json(stats, number));
  }
  if (options.top) {
    report["top"] = {{"by", name(options.top->by)}, {"features", std::move(features)}};
  } else {
    report["features"] = std::move(features);
  }
  bytes.write(json_text(report) + '\n');
}

void write_csv(const FeatureStats& stats, const FeatureReport& options, ByteSink& bytes) {
  bytes.write("feature,mean,variance,absmax,zeros,non_finite\n");
  for (const std::int64_t number : reported(stats, options, 0)) {
    const Feature feature = stats.feature(number);
    std::string line = std::to_string(number);
    for (const FeatureFigure& figure : kFigures) line += ',' + value_text(feature.*figure.of);
    bytes.write(concat(line, ',', feature.non_finite, '\n'));
  }
}

}  // namespace lnorm
