#include "lnorm/report/page/grid_figure.hpp"

#include <algorithm>
#include <utility>

#include "lnorm/core/text.hpp"

namespace lnorm::page {

namespace {

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

}  // namespace

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

}  // namespace lnorm::page
