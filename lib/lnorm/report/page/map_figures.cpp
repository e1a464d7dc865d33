#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/measure/grid.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/page/figures.hpp"

namespace lnorm::page {

namespace {

// ---- Rows by elements, in cells.

// What there is to see of the cells.
struct GridValue {
  std::string field;  // in the table
  std::string title;
  Json numbers;  // of the cells, row by row; null where there is none
};

struct Grid {
  Partition rows;
  Partition columns;
  std::vector<GridValue> values;  // the field that the reader chooses is the signal "shown"
  Json non_finite;                // elements of the cells: where there are such, a cell is gray
  Json colors;                    // a scale called "color"
  Json legend;                    // its title and numbers
  std::string times;              // of the magnitude of the colors
  std::int64_t first_row = 0;     // the number of the first
};

// The first thing of a part, as Partition::begin. part: an expression.
std::string begin_of(const Partition& partition, const std::string& part) {
  return concat("(", part, " * ", partition.all / partition.parts, " + floor(", part, " * ",
                partition.all % partition.parts, " / ", partition.parts, "))");
}

Json formula(const std::string& expression, const char* as) {
  return {{"type", "formula"}, {"expr", expression}, {"as", as}};
}

// Fields of a cell: what there is to see, where its rows begin and how many they are, the same of its elements.
Json cells_data(Grid& grid) {
  Json fields = Json::array({"non_finite"});
  for (const GridValue& value : grid.values) fields.push_back(value.field);
  // The keys come first, and long lists last: an object that grows copies what it has.
  Json cells = Json::object();
  for (const Json& name : fields) cells[name.get<std::string>()] = nullptr;
  cells["non_finite"] = std::move(grid.non_finite);
  for (GridValue& value : grid.values) cells[value.field] = std::move(value.numbers);
  const std::string r = concat("floor(datum.n / ", grid.columns.parts, ")");
  const std::string c = concat("(datum.n % ", grid.columns.parts, ")");
  const std::string first = grid.first_row == 0 ? "" : concat(" + ", grid.first_row);
  return {{"name", "table"},
          {"transform",
           {{{"type", "flatten"}, {"fields", fields}, {"index", "n"}},
            formula(begin_of(grid.rows, r) + first, "row"),
            formula(begin_of(grid.rows, "(" + r + " + 1)") + first + " - datum.row", "rows"),
            formula(begin_of(grid.columns, c), "element"),
            formula(begin_of(grid.columns, "(" + c + " + 1)") + " - datum.element", "elements")}},
          {"values", Json::array({std::move(cells)})}};
}

// Which of the values is shown. The reader chooses where there are several.
Json shown_signal(const std::vector<GridValue>& values) {
  Json signal{{"name", "shown"}, {"value", values.front().field}};
  if (values.size() == 1) return signal;
  Json options = Json::array();
  Json labels = Json::array();
  for (const GridValue& value : values) {
    options.push_back(value.field);
    labels.push_back(value.title);
  }
  signal["bind"] = {
      {"input", "radio"}, {"name", "Color: "}, {"options", options}, {"labels", labels}};
  return signal;
}

// Where a cell is.
std::vector<TableField> place_fields(bool is_coarse) {
  if (!is_coarse) return {{"row", "row"}, {"element", "element"}};
  return {{"row", "row"}, {"rows", "rows"}, {"element", "element"}, {"elements", "elements"}};
}

// Where a cell is, what is shown of it, and how many elements are not finite if some are.
Json tooltip_of(const Grid& grid, bool is_coarse) {
  const auto record = [](const std::vector<TableField>& fields) {
    return tooltip(fields)["signal"].get<std::string>();
  };
  std::string signal = "merge(" + record(place_fields(is_coarse));
  for (const auto& [field, title, numbers] : grid.values) {
    signal += concat(", shown === '", field, "' ? ", record({{field, title}}), " : {}");
  }
  if (is_coarse) {
    signal += concat(", datum.non_finite > 0 ? ", record({{"non_finite", "not finite"}}), " : {}");
  }
  return {{"signal", signal + ")"}};
}

Figure grid_figure(std::string name, std::string title, std::string note,
                   const std::string& alternative, Grid grid) {
  const bool is_coarse = grid.rows.is_coarse() || grid.columns.is_coarse();
  constexpr std::int64_t kAround = 75;  // axis, title and legend
  const auto height = std::clamp<std::int64_t>(grid.rows.parts * 14, 60, 320) + kAround;
  std::vector<TableField> fields = place_fields(is_coarse);
  for (const GridValue& value : grid.values) fields.push_back({value.field, value.title});
  if (is_coarse) fields.push_back({"non_finite", "not finite"});
  Json spec = empty_spec(static_cast<int>(height), alternative, fields);
  spec["usermeta"]["renderer"] = "canvas";  // so many cells are slow as elements of a document
  spec["signals"] = Json::array({shown_signal(grid.values)});
  spec["data"].push_back(cells_data(grid));
  Json y = scale_of_range("y", static_cast<double>(grid.first_row),
                          static_cast<double>(grid.first_row + grid.rows.all));
  y["reverse"] = true;  // the first row is at the top
  spec["scales"] = {scale_of_range("x", 0, static_cast<double>(grid.columns.all)), y, grid.colors};
  spec["axes"] = {axis("x", "element"), axis("y", "row")};
  for (Json& each : spec["axes"]) {
    each["grid"] = false;
    each["tickMinStep"] = 1;
  }
  spec["legends"].push_back({{"fill", "color"},
                             {"orient", "bottom"},
                             {"direction", "horizontal"},
                             {"gradientLength", 220},
                             {"labelOverlap", "greedy"},
                             {"titleLimit", 300}});
  spec["legends"][0].update(grid.legend);
  const auto edge = [](const char* scale, const char* expression) {
    // Cells are a bit wider, or the ground shows between them.
    return Json{{"scale", scale}, {"signal", expression}, {"offset", 0.4}};
  };
  const Json gray{{"test", "datum.non_finite > 0 || !isValid(datum[shown])"}, {"value", "#8a8a8a"}};
  const Json colored{{"scale", "color"}, {"signal", "datum[shown]" + grid.times}};
  add_mark(spec, "rect", "cells",
           {{"x", field("x", "element")},
            {"x2", edge("x", "datum.element + datum.elements")},
            {"y", field("y", "row")},
            {"y2", edge("y", "datum.row + datum.rows")},
            {"fill", {gray, colored}},
            {"tooltip", tooltip_of(grid, is_coarse)}});
  return {std::move(name), std::move(title), std::move(note), std::move(spec)};
}

// ---- Heat maps of a tensor.

// The greatest absolute values of the cells that have a color.
struct Greatest {
  double mean = 0;
  double element = 0;
};

Greatest greatest_in(const HeatMap& map) {
  Greatest result;
  for (std::int64_t r = 0; r < map.rows().parts; ++r) {
    for (std::int64_t c = 0; c < map.columns().parts; ++c) {
      if (map.non_finite(r, c) > 0) continue;
      result.mean = std::max(result.mean, std::fabs(*map.mean(r, c)));
      result.element = std::max(result.element, *map.greatest(r, c));
    }
  }
  return result;
}

// The colors of one kind of values before and after, in one scale about 0.
struct ColorRange {
  double least;  // of the greatest before and the greatest after
  double most;

  ColorRange(double before, double after)
      : least(std::min(before, after)), most(std::max(before, after)) {}

  bool is_linear() const { return least == 0 || most <= 6 * least; }
  // The constant of the logarithm.
  double constant() const {
    if (least == 0) return most == 0 ? 1 : most;
    return std::max(least / 4, 1e-9 * most);
  }

  // What the scale and its legend take of one kind. has_signs: of the values.
  Json settings(bool is_log, bool has_signs) const {
    const double reach = most == 0 ? 1 : most;
    const Json domain{has_signs ? -reach : 0, reach};
    if (!is_log) return {{"domain", domain}, {"format", format_for(domain)}};
    const double middle = std::sqrt(reach) * std::sqrt(constant());
    return {{"domain", domain},
            {"constant", constant()},
            {"ticks", has_signs ? Json{-reach, -middle, 0, middle, reach} : Json{0, middle, reach}},
            {"format", ".3~g"}};
  }
};

// The colors of both heat maps.
struct Colors {
  Magnitude magnitude;
  bool is_log;
  Json mean;
  Json max;
};

Colors colors_of(const Greatest& before, const Greatest& after) {
  const Magnitude magnitude(std::max(before.element, after.element));
  const ColorRange mean(magnitude.count(before.mean), magnitude.count(after.mean));
  const ColorRange max(magnitude.count(before.element), magnitude.count(after.element));
  const bool is_log = !mean.is_linear() || !max.is_linear();
  return {magnitude, is_log, mean.settings(is_log, true), max.settings(is_log, false)};
}

Json color_scale(const Colors& colors) {
  Json scale{{"name", "color"},
             {"type", colors.is_log ? "symlog" : "linear"},
             {"domain", {{"signal", "colors[shown].domain"}}},
             {"domainMid", 0},
             {"clamp", true},
             {"range", "diverging"}};
  if (colors.is_log) scale["constant"] = {{"signal", "colors[shown].constant"}};
  return scale;
}

// What there is of the cells.
struct Cells {
  Json means = Json::array();
  Json greatest = Json::array();
  Json non_finite = Json::array();
  bool has_gray = false;
};

Cells cells_of(const HeatMap& map, DType dtype) {
  Cells cells;
  for (std::int64_t r = 0; r < map.rows().parts; ++r) {
    for (std::int64_t c = 0; c < map.columns().parts; ++c) {
      const double mean = map.mean(r, c).value_or(kNan);
      cells.means.push_back(map.is_coarse() ? short_number(mean) : element_number(mean, dtype));
      cells.greatest.push_back(element_number(map.greatest(r, c).value_or(kNan), dtype));
      cells.non_finite.push_back(map.non_finite(r, c));
      cells.has_gray = cells.has_gray || map.non_finite(r, c) > 0;
    }
  }
  return cells;
}

// when: before or after; size: |x| or |y|; greatest: in the map.
std::string alternative_of(const std::string& when, const std::string& size, const HeatMap& map,
                           const Greatest& greatest, bool has_gray) {
  std::string text = concat("Heat map of ", counted(map.rows().all, "row"), " by ",
                            counted(map.columns().all, "element"), ", ", when, ". ");
  if (map.is_coarse()) {
    text += concat("The greatest |mean| of a cell is ", short_text(greatest.mean), ". ");
  }
  return text + concat("The greatest ", size, " is ", short_text(greatest.element),
                       has_gray ? " where no cell is gray." : ".");
}

std::string note_of(const std::string& size, const HeatMap& map, bool has_gray, bool is_log) {
  std::string note;
  if (map.is_coarse()) {
    note = concat("Each cell is the mean, or the greatest ", size, ", of up to ",
                  map.rows().greatest_size(), " x ", map.columns().greatest_size(), " elements. ");
  }
  if (has_gray) {
    note += map.is_coarse() ? "Gray: NaN or infinity among them. " : "Gray: NaN or infinity. ";
  }
  note += "For one choice the colors mean the same before and after";
  return note + (is_log ? ", linear about 0 and logarithmic far from it." : ".");
}

// when: before or after; letter: of an element; greatest: in the map.
Figure heat_map_figure(const std::string& when, std::string_view letter, const HeatMap& map,
                       const Greatest& greatest, DType dtype, const Colors& colors,
                       std::int64_t first_row) {
  Cells cells = cells_of(map, dtype);
  const std::string size = concat('|', letter, '|');
  const std::string mean_title = map.is_coarse() ? "mean" : "value";
  const std::string max_title = map.is_coarse() ? "max " + size : size;
  std::vector<GridValue> values;
  values.push_back({"mean", mean_title, std::move(cells.means)});
  values.push_back({"max", max_title, std::move(cells.greatest)});
  Figure figure = grid_figure(concat(letter, "-map"), concat("Elements ", when),
                              note_of(size, map, cells.has_gray, colors.is_log),
                              alternative_of(when, size, map, greatest, cells.has_gray),
                              {map.rows(),
                               map.columns(),
                               std::move(values),
                               std::move(cells.non_finite),
                               color_scale(colors),
                               {{"title", {{"signal", "colors[shown].title"}}},
                                {"format", {{"signal", "colors[shown].format"}}},
                                {"values", {{"signal", "colors[shown].ticks"}}}},
                               colors.magnitude.times(),
                               first_row});
  Json settings{{"mean", colors.mean}, {"max", colors.max}};
  settings["mean"]["title"] = colors.magnitude.title(mean_title);
  settings["max"]["title"] = colors.magnitude.title(max_title);
  figure.spec["signals"].push_back({{"name", "colors"}, {"value", std::move(settings)}});
  return figure;
}

// ---- Errors.

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

std::vector<Figure> heat_map_figures(const TensorReportData& report_data) {
  const std::int64_t first = report_data.stats.row_number(0);
  const Greatest before = greatest_in(report_data.x);
  const Greatest after = greatest_in(report_data.y);
  const Colors colors = colors_of(before, after);
  const Stats& stats = report_data.stats;
  return figures_of(
      heat_map_figure("before", "x", report_data.x, before, stats.x.dtype, colors, first),
      heat_map_figure("after", "y", report_data.y, after, stats.out, colors, first));
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
