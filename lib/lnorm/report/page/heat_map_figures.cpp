#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/page/figures.hpp"
#include "lnorm/report/page/grid_figure.hpp"

namespace lnorm::page {

namespace {

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

}  // namespace lnorm::page
