#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/page/figures.hpp"
#include "lnorm/report/page/sections.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm::page {

namespace {

std::string formula_text(const Stats& stats) {
  const Formula& formula = stats.formula;
  const std::string eps = value_text(formula.eps);
  const bool is_given = stats.given == Stats::Given::variance;
  const std::string_view variance = is_given ? "var" : formula.norm().definition;
  std::string text = concat("y = ", formula.norm().deviation);
  if (stats.given == Stats::Given::rstd) {
    text += " * rstd";
  } else {
    const auto& [before, between, behind] = formula.eps_place().divisor;
    text += concat(" / ", before, variance, between, eps, behind);
  }
  if (stats.weight) text += stats.zero_centered_weight ? " * (1 + weight)" : " * weight";
  if (stats.bias) text += " + bias";
  if (stats.residual) text += ", x the sum with the residual";
  if (!stats.rounded.empty()) text += concat(", rounded: ", joined(stats.rounded, " and "));
  return text;
}

Facts facts_of(const Stats& stats) {
  const Formula& formula = stats.formula;
  const Shape rows = row_shape(stats.x.shape, stats.axes);
  const std::string length = counted(element_count(extents(stats.x.shape, stats.axes)), "element");
  const std::string count = stats.slice
                                ? concat(rows_text(*stats.slice), ", of ", length, " each")
                                : concat(counted(element_count(rows), "row"), " of ", length);
  Facts facts{
      {"Input", stats.x.name},
      {"Type", concat(name(stats.x.dtype), " in, ", name(stats.out), " out")},
      {"Shape", to_string(file_shape(stats.x))},
      {"Rows", concat(count, ", ", normalized_text(stats.x, stats.axes))},
      {"Variance", concat(formula.norm().squares, " / ",
                          formula.ddof == 0 ? "n" : concat("(n - ", formula.ddof, ")"))},
      {"eps", concat(value_text(formula.eps), ", ", formula.eps_place().prefix, "variance")}};
  const std::string mean = formula.has_mean() ? "mean and " : "";
  if (stats.given == Stats::Given::rstd) facts.back() = {"Given", mean + "rstd"};
  if (stats.given == Stats::Given::variance) facts.emplace_back("Given", mean + "variance");
  if (stats.mask) facts.emplace_back("Mask", "elements are left out");
  const auto found = [&](const char* what, const NonFinite& non_finite) {
    if (non_finite.rows == 0) return;
    facts.emplace_back(what, concat(counted(non_finite.elements, "element"), " in ",
                                    counted(non_finite.rows, "row"), ", first in row ",
                                    stats.row_number(non_finite.first_row)));
  };
  found("NaN or infinity", stats.summary.input);
  found("NaN or infinity in the output alone", stats.summary.output);
  return facts;
}

Table summary_table(const Stats& stats) {
  Table table{stats.summary.input.rows > 0 ? "Over the rows whose elements are all finite"
                                           : "Over the rows",
              {{"", true}, {"min"}, {"median"}, {"max"}},
              {}};
  for (std::size_t i = 0; i < stats.columns.size(); ++i) {
    const ColumnSummary& column = stats.summary.columns[i];
    table.rows.push_back({{concat(stats.columns[i].tensor(), " ", stats.columns[i].name())},
                          number_cell(column.min),
                          number_cell(column.median),
                          number_cell(column.max)});
  }
  return table;
}

std::string row_label(const Stats& stats, std::int64_t row) {
  return row_name(stats.row_number(row), row_shape(stats.x.shape, stats.axes));
}

Table outlier_table(const TensorReportData& report_data, const std::vector<OutlierRow>& rows) {
  Table table{"Rows that stand out; a click on one shows it below",
              {{"reason", true}, {"row"}, {"mean"}, {"variance"}, {"min"}, {"max"}, {"non-finite"}},
              {}};
  for (std::size_t list = 0; list < kOutlierRows.size(); ++list) {
    for (const OutlierRow& row : report_data.outlier_rows.of(list)) {
      const auto place = std::find_if(
          rows.begin(), rows.end(), [&](const OutlierRow& other) { return other.row == row.row; });
      const std::string label = row_label(report_data.stats, row.row);
      const std::string button =
          concat(R"(<button type="button" data-row=")", place - rows.begin(), R"(" data-label=")",
                 label, R"(" aria-pressed=")", place == rows.begin() ? "true" : "false", R"(">)",
                 label, "</button>");
      const Moments& x = row.found.input;
      table.rows.push_back({{std::string(top_words(kOutlierRows[list]))},
                            {label, std::to_string(report_data.stats.row_number(row.row)), button},
                            number_cell(x.mean),
                            number_cell(x.variance),
                            number_cell(x.min),
                            number_cell(x.max),
                            {std::to_string(x.non_finite)}});
    }
  }
  return table;
}

Table feature_table(const FeatureStats& features, std::size_t most) {
  Table table{"Features that stand out", {{"reason", true}, {"feature"}}, {}};
  for (const FeatureFigure& figure : kFeatureFigures) {
    table.columns.push_back({std::string(figure.words)});
  }
  table.columns.push_back({"non-finite"});
  const Shape shape = extents(features.x.shape, features.axes);
  for (const TopBy by : {TopBy::absmax, TopBy::mean, TopBy::variance, TopBy::variance_min,
                         TopBy::zeros, TopBy::non_finite}) {
    for (const std::int64_t number : features.top({most, by})) {
      const Feature feature = features.feature(number);
      if (!stands_out(by, feature.score(by))) continue;
      auto& row = table.rows.emplace_back();
      row = {{std::string(top_words(by))}, {index_text(number, shape), std::to_string(number)}};
      for (const FeatureFigure& figure : kFeatureFigures) {
        row.push_back(number_cell(feature.*figure.of));
      }
      row.push_back({std::to_string(feature.non_finite)});
    }
  }
  return table;
}

void add_features(const TensorReportData& report_data, Section& section) {
  section.heading("Features");
  const FeatureStats& features = report_data.features;
  if (features.count() == 0) {
    section.paragraph(concat("Rows have more than ", kMostFeatures,
                             " elements: the statistics of features have a line for each."));
    return;
  }
  Facts facts;
  for (const auto& [what, words] : feature_words(features, FeatureSummary(features), 3)) {
    facts.emplace_back(capitalized(what), words);
  }
  section.facts(facts, feature_table(features, report_data.outlier_features));
  section.figures(figures_of(features_figure(report_data.feature_bands)));
}

// Finds a column of a summary.
const ColumnSummary& column_of(const StatsSummary& summary, std::string_view key) {
  const auto columns = stats_columns(false);
  const auto found = std::ranges::find(columns, key, &StatsColumn::key);
  return summary.columns[static_cast<std::size_t>(found - columns.begin())];
}

// ---- Sets.

// Turns variances into standard deviations.
ColumnSummary roots(const ColumnSummary& column) {
  return {column.count, std::sqrt(column.min), std::sqrt(column.median), std::sqrt(column.max)};
}

// A tensor of a set as layers_figure has it.
Json layer_of(const std::string& name, const ColumnSummary& before, const ColumnSummary& after) {
  return {{"name", name},
          {"before_min", figure_number(before.min)},
          {"before", figure_number(before.median)},
          {"before_max", figure_number(before.max)},
          {"after_min", figure_number(after.min)},
          {"after", figure_number(after.median)},
          {"after_max", figure_number(after.max)}};
}

double largest_of(const Histogram& histogram) {
  if (histogram.count() == 0) return kNan;
  return std::max(std::fabs(histogram.min()), std::fabs(histogram.max()));
}

}  // namespace

Section tensor_section(std::string id, std::string_view title,
                       const TensorReportData& report_data) {
  Section section(std::move(id), title);
  const Stats& stats = report_data.stats;
  section.paragraph(formula_text(stats), "formula");
  if (stats.summary.rows == 0) {
    section.facts(facts_of(stats));
    section.paragraph("There are no elements to look at.");
    return section;
  }
  section.facts(facts_of(stats), summary_table(stats));
  if (stats.histograms->input.count() == 0) {
    section.paragraph("No element is finite: there is nothing to draw.");
    return section;
  }
  section.figures(figures_of(distribution_figure(*stats.histograms)));
  section.heading("Along the rows");
  std::vector<Figure> profiles;
  for (const Bands& bands : report_data.profiles) {
    profiles.push_back(profile_figure(kRowProfiles[profiles.size()], bands, stats.row_number(0)));
  }
  section.figures(profiles);
  section.heading("Rows by elements");
  section.figures(heat_map_figures(report_data));
  const std::vector<OutlierRow> rows = report_data.outlier_rows.once_each();
  section.heading("Rows that stand out");
  section.table(outlier_table(report_data, rows));
  section.html(concat("<h3>Row <span class=\"selected\">",
                      escaped(row_label(stats, rows.front().row)), "</span></h3>\n"));
  section.figures(row_figures(rows, stats), Section::Layout::three);
  add_features(report_data, section);
  return section;
}

TensorLine line_of(std::string title, const TensorReportData& report_data) {
  const Stats& stats = report_data.stats;
  return {.name = std::move(title),
          .dtype = std::string(name(stats.x.dtype)),
          .shape = to_string(file_shape(stats.x)),
          .summary = stats.summary,
          .largest_x = largest_of(stats.histograms->input),
          .largest_y = largest_of(stats.histograms->output),
          .features = FeatureSummary(report_data.features)};
}

Section set_section(const std::vector<TensorLine>& lines) {
  Section section("tensors", "");
  if (lines.empty()) {
    section.paragraph("There are no tensors.");
    return section;
  }
  std::map<std::string, int> times;
  Json means = Json::array();
  Json spreads = Json::array();
  Json largest = Json::array();
  Json features = Json::array();
  Table table{"All tensors; those that stand out most are linked to their sections",
              {{"tensor", true},
               {"dtype", true},
               {"shape", true},
               {"rows"},
               {"non-finite"},
               {"median mean"},
               {"median variance"},
               {"largest |x|"},
               {"largest |y|"},
               {"dead features"},
               {"largest |x| beside the features' median"}},
              {},
              true};
  for (const TensorLine& line : lines) {
    const StatsSummary& summary = line.summary;
    // Names are places along the axis.
    std::string shown = printable(line.name);
    if (const int more = ++times[shown]; more > 1) shown += concat(" (", more, ")");
    const ColumnSummary& mean = column_of(summary, "input.mean");
    const ColumnSummary& variance = column_of(summary, "input.variance");
    means.push_back(layer_of(shown, mean, column_of(summary, "output.mean")));
    spreads.push_back(
        layer_of(shown, roots(variance), roots(column_of(summary, "output.variance"))));
    largest.push_back({{"name", shown},
                       {"before", figure_number(line.largest_x)},
                       {"after", figure_number(line.largest_y)}});
    const ColumnSummary& absmax = line.features.absmax();
    features.push_back({{"name", shown},
                        {"before_min", figure_number(absmax.min)},
                        {"before", figure_number(absmax.median)},
                        {"before_max", figure_number(absmax.max)}});
    table.rows.push_back({link_cell(line.name, line.section),
                          {line.dtype},
                          {line.shape},
                          {std::to_string(summary.rows)},
                          {std::to_string(summary.input.elements)},
                          number_cell(mean.median),
                          number_cell(variance.median),
                          number_cell(line.largest_x),
                          number_cell(line.largest_y),
                          {absmax.count > 0 ? std::to_string(line.features.dead) : "-"},
                          number_cell(line.features.ratio())});
  }
  section.figures(figures_of(
      layers_figure("mean", "Mean of the rows of every tensor", "mean", "rows", std::move(means)),
      layers_figure("std", "Standard deviation of the rows of every tensor", "std", "rows",
                    std::move(spreads)),
      layers_figure("largest", "Largest |x| and |y| of every tensor", "largest", "",
                    std::move(largest)),
      layers_figure("features", "Largest |x| of the features of every tensor", "largest |x|",
                    "features", std::move(features))));
  section.table(table);
  return section;
}

}  // namespace lnorm::page
