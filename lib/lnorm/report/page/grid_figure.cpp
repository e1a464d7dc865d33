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

// Fields of a cell: where its rows begin and how many they are, the same of its elements, and its value.
Json cells_data(const Grid& grid, Json values) {
  const std::string r = concat("floor((datum.n - 1) / ", grid.columns.parts, ")");
  const std::string c = concat("((datum.n - 1) % ", grid.columns.parts, ")");
  const std::string first = grid.first_row == 0 ? "" : concat(" + ", grid.first_row);
  return {{"name", "table"},
          {"values", std::move(values)},
          {"transform",
           {{{"type", "window"}, {"ops", {"row_number"}}, {"as", {"n"}}},
            formula("datum.data", "value"),
            formula(begin_of(grid.rows, r) + first, "row"),
            formula(begin_of(grid.rows, "(" + r + " + 1)") + first + " - datum.row", "rows"),
            formula(begin_of(grid.columns, c), "element"),
            formula(begin_of(grid.columns, "(" + c + " + 1)") + " - datum.element", "elements")}}};
}

}  // namespace

Figure grid_figure(std::string name, std::string title, std::string note,
                   const std::string& alternative, Grid grid) {
  const bool is_coarse = grid.rows.is_coarse() || grid.columns.is_coarse();
  constexpr std::int64_t kAround = 75;  // axis, title and legend
  const auto height = std::clamp<std::int64_t>(grid.rows.parts * 14, 60, 320) + kAround;
  std::vector<TableField> fields{{"row", "row"},
                                 {"rows", "rows"},
                                 {"element", "element"},
                                 {"elements", "elements"},
                                 {"value", grid.value}};
  if (!is_coarse) fields = {{"row", "row"}, {"element", "element"}, {"value", grid.value}};
  Json spec = empty_spec(static_cast<int>(height), alternative, fields);
  spec["usermeta"]["renderer"] = "canvas";  // so many cells are slow as elements of a document
  spec["data"].push_back(cells_data(grid, std::move(grid.values)));
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
                             {"title", grid.value}});
  const auto edge = [](const char* scale, const char* expression) {
    // By a bit more, or the ground shows between cells.
    return Json{{"scale", scale}, {"signal", expression}, {"offset", 0.4}};
  };
  std::vector<std::pair<std::string_view, std::string_view>> entries;
  entries.reserve(fields.size());
  for (const TableField& each : fields) {
    entries.emplace_back(each.title, each.field == "value"     ? "datum.value"
                                     : each.field == "row"     ? "datum.row"
                                     : each.field == "rows"    ? "datum.rows"
                                     : each.field == "element" ? "datum.element"
                                                               : "datum.elements");
  }
  const Json gray{{"test", "!isValid(datum.value)"}, {"value", "#8a8a8a"}};
  spec["marks"].push_back({{"type", "rect"},
                           {"name", "cells"},
                           {"from", {{"data", "table"}}},
                           {"encode",
                            {{"update",
                              {{"x", field("x", "element")},
                               {"x2", edge("x", "datum.element + datum.elements")},
                               {"y", field("y", "row")},
                               {"y2", edge("y", "datum.row + datum.rows")},
                               {"fill", {gray, field("color", "value")}},
                               {"tooltip", tooltip(entries)}}}}}});
  return {std::move(name), std::move(title), std::move(note), std::move(spec)};
}

}  // namespace lnorm::page
