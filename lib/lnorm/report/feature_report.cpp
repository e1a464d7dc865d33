#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/report/in_order.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/record.hpp"
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

// The values of a feature, by number; its figures follow.
enum FeatureValue : std::size_t { kTensor, kFeature, kFeatureIndex, kBad, kFirstFigure };

// An item of a feature; of_set: with the name of its tensor.
Record feature_form(bool of_set) {
  Record record{{"", Slot{kTensor}, "", of_set ? "tensor" : kNoColumn},
                {"", Slot{kFeature}, "", "feature"},
                {"index", Slot{kFeatureIndex}, "", kNoColumn},
                {"non_finite", Slot{kBad}, "", "", 1}};
  for (std::size_t f = 0; f < kFeatureFigures.size(); ++f) {
    record.insert(record.end() - 1, {kFeatureFigures[f].key, Slot{kFirstFigure + f}});
  }
  return record;
}

void write_features(const FeatureStats& stats, const FeatureReport& options,
                    ItemForm::Format format, const std::function<void(std::string_view)>& write) {
  const ItemForm form(format, feature_form(options.tensor.has_value()));
  const auto append = [&](std::int64_t number, std::string& text) {
    const Feature feature = stats.feature(number);
    form.append(text, [&](std::size_t value, const ItemForm::Place& place) {
      if (value >= kFirstFigure) {
        return place.put(feature.*kFeatureFigures[value - kFirstFigure].of);
      }
      if (value == kTensor) return place.put(if_any(options.tensor));
      if (value == kFeatureIndex) return place.put(stats.index(number));
      place.put(value == kFeature ? number : feature.non_finite);
    });
  };
  InOrder<std::int64_t> items(options.in_parallel, append, write);
  for (const std::int64_t number : reported(stats, options, 0)) items.add(number);
  items.flush();
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
  if (summary.largest && !std::isnan(summary.ratio())) {
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
              axes_text(file_axes(stats.x, stats.axes)), ", each over ",
              stats.slice ? rows_text(*stats.slice) : counted(stats.rows, "row"));
  text.folded(variances_text(stats.ddof), ", of finite elements",
              stats.residual ? ", with residual" : "",
              stats.mask ? ", without what the mask leaves out" : "");
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
  Record over_features{{"features", stats.count()},
                       {"dead", summary.dead},
                       {"first_dead", summary.first_dead},
                       {"non_finite_elements", summary.non_finite},
                       {"absmax_ratio", summary.largest ? Value(summary.ratio()) : Value()},
                       {"largest", summary.largest}};
  for (std::size_t f = 0; f < kFeatureFigures.size(); ++f) {
    over_features.push_back({kFeatureFigures[f].key, summary.figures[f]});
  }
  const Record report{{"input", stats.x},
                      {"axes", file_axes(stats.x, stats.axes)},
                      {"ddof", stats.ddof},
                      {"residual", stats.residual},
                      {"mask", stats.mask},
                      {"rows", stats.rows},
                      {"slice", if_any(stats.slice)},
                      {"summary", over_features},
                      {"first_non_finite_index", stats.first_non_finite_index()}};
  JsonList list("stats", report, "features", bytes, options.top);
  write_features(stats, options, ItemForm::Format::json,
                 [&](std::string_view text) { list.add_text(text); });
  list.finish();
}

void write_csv(const FeatureStats& stats, const FeatureReport& options, ByteSink& bytes) {
  if (options.has_names) bytes.write(csv_names(feature_form(options.tensor.has_value())));
  write_features(stats, options, ItemForm::Format::csv,
                 [&](std::string_view text) { bytes.write(text); });
}

void write_text(const SharedFeatures& features, const Style& style, ByteSink& bytes) {
  constexpr std::size_t kMost = 10;
  const auto found = features.found();
  if (found.empty()) return;
  TextWriter text(style, bytes);
  text.line();
  const Top& top = features.top();
  text.folded("features that stand out in several of ", counted(features.tensors(), "tensor"), " (",
              top_text(top, "feature", static_cast<std::int64_t>(top.most)), " of each):");
  for (const SharedFeatures::Feature& one : std::span(found).first(std::min(kMost, found.size()))) {
    text.folded("feature ",
                one.index.size() == 1 ? std::to_string(one.index[0]) : to_string(one.index), ": ",
                counted(std::ssize(one.tensors), "tensor"), ": ",
                short_list(one.tensors.size(), [&](std::size_t i) { return one.tensors[i]; }));
  }
  if (found.size() > kMost) text.folded(found.size() - kMost, " more stand out in two or more");
}

}  // namespace lnorm
