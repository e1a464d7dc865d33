#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/page/figures.hpp"
#include "lnorm/report/page/grid_figure.hpp"

namespace lnorm::page {

namespace {

std::string class_text(std::size_t number) {
  const double bound = UlpCounts::bound(number);
  if (number == 0) return "0";
  if (std::isinf(bound)) return "beyond";
  return "<= " + (bound < 100000 ? value_text(bound) : rounded_text(bound, 2));
}

// Errors that are not 0.
struct PositiveRange {
  double least = kInfinity;
  double greatest = 0;

  void add(double error) {
    if (error == 0 || std::isinf(error)) return;
    least = std::min(least, error);
    greatest = std::max(greatest, error);
  }

  Magnitude magnitude() const { return Magnitude(greatest); }

  // The range of a logarithmic scale, which has a decade at least.
  Json domain() const {
    if (greatest == 0) return {1, 10};
    const double low = magnitude().count(least);
    const double high = magnitude().count(greatest);
    if (high < 10 * low) return {low / 3, high * 4};
    return {std::max(low, kMinDrawn), high};
  }

 private:
  static constexpr double kMinDrawn = 1e-300;  // below which Vega finds no ticks
};

std::string greatest_text(const PositiveRange& errors) {
  if (errors.greatest == 0) return ", all of them 0.";
  return concat(", the greatest ", significant_text(errors.greatest, 3), ".");
}

// Marks the worst element and the first mismatch, in rows and elements.
Json places_of(const Comparison& comparison) {
  const std::int64_t length = comparison.error_map->columns().all;
  Json places = Json::array();
  const auto add = [&](const char* what, const ElementPair& pair) {
    places.push_back({{"what", what},
                      {"row", comparison.first_row() + pair.position / length},
                      {"element", pair.position % length}});
  };
  const std::vector<WorstElement>& worst = comparison.worst.elements();
  if (!worst.empty()) add("worst element", worst.front().pair);
  if (!comparison.first_mismatches.empty()) {
    add("first mismatch", comparison.first_mismatches.front());
  }
  return places;
}

void add_places(Json& spec, const Json& places) {
  spec["data"].push_back({{"name", "places"}, {"values", places}});
  const auto middle = [](const char* scale, const char* expression) {
    return Json{{"scale", scale}, {"signal", expression}};
  };
  add_mark(spec, "symbol", "circles",
           {{"x", middle("x", "datum.element + 0.5")},
            {"y", middle("y", "datum.row + 0.5")},
            {"size", {{"value", 160}}},
            {"stroke", {{"value", "#e0003c"}}},
            {"strokeWidth", {{"value", 2}}},
            {"fill", {{"value", "transparent"}}},
            {"tooltip", tooltip({{"what", "what"}, {"row", "row"}, {"element", "element"}})}},
           "places");
}

}  // namespace

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

Figure error_figure(const Comparison& comparison) {
  const ErrorMap& map = *comparison.error_map;
  const std::int64_t first = comparison.first_row();
  const Partition& rows = map.band_rows();
  const bool is_coarse = rows.is_coarse();
  Json values = Json::array();
  PositiveRange range;
  bool has_gap = false;
  for (std::int64_t i = 0; i < rows.parts; ++i) {
    const ErrorMap::Cell& errors = map.band(i);
    const auto mean = map.mean_of_band(i);
    has_gap = has_gap || errors.non_finite > 0;
    if (mean) {
      range.add(errors.greatest);
      range.add(*mean);
    }
    values.push_back({{"row", first + rows.begin(i)},
                      {"rows", rows.size(i)},
                      {"greatest", mean ? figure_number(errors.greatest) : Json()},
                      {"mean", mean ? figure_number(*mean) : Json()},
                      {"non_finite", errors.non_finite}});
  }
  const std::string row = is_coarse ? "from row" : "row";
  Json spec =
      empty_spec(230, concat("Absolute errors of ", counted(rows.all, "row"), greatest_text(range)),
                 {{"row", row},
                  {"rows", "rows"},
                  {"greatest", "greatest"},
                  {"mean", "mean"},
                  {"non_finite", "not finite"}});
  add_table(spec, std::move(values), Json::array({middle_of_band()}));
  const Magnitude magnitude = range.magnitude();
  Json y = scale_of_numbers(range.domain());
  y["type"] = "log";
  spec["scales"] = {scale_along(rows.all, first), y};
  spec["axes"] = {axis("x", "row"), axis("y", magnitude.title("|actual - expected|"), ".0~e")};
  spec["axes"][0]["tickMinStep"] = 1;
  add_series(spec, {"greatest", "mean"});
  for (const char* const series : {"greatest", "mean"}) {
    const MarkOf mark{"middle", series, series, concat("datum.", series, " > 0"),
                      magnitude.times()};
    add_line(spec, mark);
    add_points(spec, series, mark, rows.parts <= 64 ? 30 : 10, false,
               tooltip({{"row", row}, {"greatest", "greatest"}, {"mean", "mean"}}));
  }
  std::string note;
  if (is_coarse) {
    note = concat("Of up to ", rows.greatest_size(), " neighboring rows each. ");
  }
  if (range.greatest > 0) note += "Rows without an error have no mark. ";
  if (has_gap) note += "Pairs of which one is NaN or infinity are left out.";
  return {"errors", "Absolute error along the rows", note, std::move(spec)};
}

Figure error_map_figure(const Comparison& comparison) {
  const ErrorMap& map = *comparison.error_map;
  const Partition& rows = map.rows();
  const Partition& columns = map.columns();
  const std::string what = "greatest |actual - expected|";
  Json greatest = Json::array();
  Json non_finite = Json::array();
  PositiveRange range;
  bool has_gap = false;
  for (std::int64_t r = 0; r < rows.parts; ++r) {
    for (std::int64_t c = 0; c < columns.parts; ++c) {
      const ErrorMap::Cell& errors = map.cell(r, c);
      has_gap = has_gap || errors.non_finite > 0;
      if (errors.non_finite == 0) range.add(errors.greatest);
      const bool has_none = errors.non_finite == rows.size(r) * columns.size(c);
      greatest.push_back(has_none ? Json() : short_number(errors.greatest));
      non_finite.push_back(errors.non_finite);
    }
  }
  const Magnitude magnitude = range.magnitude();
  Grid grid{rows,
            columns,
            {GridValue{"greatest", what, std::move(greatest)}},
            std::move(non_finite),
            // 0 has no logarithm: it has no color.
            {{"name", "color"},
             {"type", "log"},
             {"domain", range.domain()},
             {"range", "heatmap"},
             {"clamp", true}},
            {{"title", magnitude.title(what)}, {"format", ".1~e"}},
            magnitude.times(),
            comparison.first_row()};
  const bool is_coarse = rows.is_coarse() || columns.is_coarse();
  const Json places = places_of(comparison);
  const std::string note = concat(
      is_coarse ? concat("Each cell is the greatest of up to ", rows.greatest_size(), " x ",
                         columns.greatest_size(), " elements. ")
                : "",
      "Blank: no error. ", has_gap ? "Gray: NaN or infinity, not the same on both sides. " : "",
      places.empty() ? "" : "Circles: the worst element and the first mismatch.");
  Figure figure =
      grid_figure("error-map", "Where the errors are", note,
                  concat("Heat map of the absolute errors of ", counted(rows.all, "row"), " by ",
                         counted(columns.all, "element"), greatest_text(range)),
                  std::move(grid));
  Json& fill = figure.spec["marks"][0]["encode"]["update"]["fill"];
  fill.insert(fill.end() - 1, Json{{"test", "datum.greatest === 0"}, {"value", "transparent"}});
  if (!places.empty()) add_places(figure.spec, places);
  return figure;
}

}  // namespace lnorm::page
