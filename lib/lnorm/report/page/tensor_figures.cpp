#include "lnorm/report/page/tensor_figures.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm::page {

namespace {

Json ends_of(const RowSeries& series, DType dtype) {
  Json low = Json::array();
  Json high = Json::array();
  for (const RowSeries::Point& point : series.points()) {
    low.push_back(element_number(point.low, dtype));
    high.push_back(element_number(point.high, dtype));
  }
  return {{"low", std::move(low)}, {"high", std::move(high)}};
}

ColumnSummary range_of(const RowSeries& series) {
  ColumnSummary range;
  for (const RowSeries::Point& point : series.points()) {
    range.add(point.low);
    range.add(point.high);
  }
  return range;
}

Figure row_figure(std::string name, std::string title, std::string_view color_of,
                  std::string_view unit, const std::vector<OutlierRow>& rows,
                  RowSeries RowDetail::*series, DType dtype, std::int64_t first_row) {
  const Partition elements = (rows.front().detail.get()->*series).elements();
  const bool is_coarse = elements.is_coarse();
  Json spec =
      empty_spec(215, concat(title, " of the selected row, along its ", elements.all, " elements."),
                 is_coarse ? std::vector<TableField>{{"element", "from element"},
                                                     {"low", "least"},
                                                     {"high", "greatest"}}
                           : std::vector<TableField>{{"element", "element"}, {"low", "value"}});
  Json values = Json::array();
  Json begins = Json::array();
  for (std::int64_t i = 0; i < elements.parts; ++i) begins.push_back(elements.begin(i));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Json row{{"number", i}, {"row", first_row + rows[i].row}};
    row.update(ends_of(rows[i].detail.get()->*series, dtype));
    values.push_back(std::move(row));
  }
  spec["signals"] = {{{"name", "selected"}, {"value", 0}},
                     {{"name", "elements"}, {"value", std::move(begins)}}};
  spec["data"].push_back({{"name", "table"},
                          {"values", std::move(values)},
                          {"transform",
                           {{{"type", "filter"}, {"expr", "datum.number === selected"}},
                            {{"type", "formula"}, {"expr", "elements"}, {"as", "element"}},
                            {{"type", "flatten"}, {"fields", {"element", "low", "high"}}}}}});
  Json scales = Json::array();  // of the rows
  for (const OutlierRow& row : rows) {
    const ColumnSummary range = range_of(row.detail.get()->*series);
    const Magnitude magnitude(greatest_of(range.min, range.max));
    const Json domain = domain_of(range.min, range.max, magnitude,
                                  color_of == "softmax");  // which is never negative
    scales.push_back({{"domain", domain},
                      {"title", magnitude.title(unit)},
                      {"format", format_setting(domain)},
                      {"factors", magnitude.factors()}});
  }
  spec["signals"].push_back({{"name", "scales"}, {"value", std::move(scales)}});
  const Json y = scale_of_numbers({{"signal", "scales[selected].domain"}});
  spec["scales"] = {scale_along(elements.all), y};
  spec["axes"] = {axis("x", "element"), axis("y", unit)};
  spec["axes"][1]["title"] = {{"signal", "scales[selected].title"}};
  spec["axes"][1]["format"] = {{"signal", "scales[selected].format"}};
  spec["axes"][0]["tickMinStep"] = 1;
  add_colors(spec);
  const MarkOf mark{"element", "high", color_of, "isValid(datum.high)",
                    " * scales[selected].factors[0] * scales[selected].factors[1]"};
  add_area(spec, mark, "low", 0.6);
  MarkOf ends = mark;
  add_line(spec, ends);
  ends.y = "low";
  if (is_coarse) add_line(spec, ends);
  add_points(spec, "points", mark, 30, elements.parts > 48,
             is_coarse ? tooltip({{"from element", "datum.element"},
                                  {"least", "datum.low"},
                                  {"greatest", "datum.high"}})
                       : tooltip({{"element", "datum.element"}, {"value", "datum.low"}}));
  return {std::move(name), std::move(title),
          is_coarse
              ? concat("Least and greatest of up to ", elements.greatest_size(), " neighbors.")
              : "",
          std::move(spec)};
}

}  // namespace

Figure profile_figure(std::string name, std::string what, std::string_view series,
                      std::string_view unit, const RowBands& bands, std::int64_t first_row) {
  const bool is_coarse = bands.rows.is_coarse();
  ColumnSummary all;
  ColumnSummary drawn;
  Json values = Json::array();
  for (std::int64_t i = 0; i < bands.rows.parts; ++i) {
    const ColumnSummary& band = bands.bands[static_cast<std::size_t>(i)];
    all.add(band.min);
    all.add(band.max);
    for (const double value : {band.min, band.max}) {
      if (std::isfinite(value)) drawn.add(value);
    }
    values.push_back({{"row", first_row + bands.rows.begin(i)},
                      {"rows", bands.rows.size(i)},
                      {"min", figure_number(band.min)},
                      {"median", figure_number(band.median)},
                      {"max", figure_number(band.max)}});
  }
  std::string alternative = concat(what, ", along ", counted(bands.rows.all, "row"));
  if (all.count > 0) {
    alternative += concat(": from ", short_text(all.min), " to ", short_text(all.max));
  }
  Json spec = empty_spec(215, alternative + ".",
                         is_coarse ? std::vector<TableField>{{"row", "from row"},
                                                             {"rows", "rows"},
                                                             {"min", "min"},
                                                             {"median", "median"},
                                                             {"max", "max"}}
                                   : std::vector<TableField>{{"row", "row"}, {"median", "value"}});
  spec["data"].push_back({{"name", "table"},
                          {"values", std::move(values)},
                          {"transform", Json::array({middle_of_band()})}});
  const Magnitude magnitude(greatest_of(drawn.min, drawn.max));
  const Json domain = domain_of(drawn.min, drawn.max, magnitude);
  spec["scales"] = {scale_along(bands.rows.all, first_row), scale_of_numbers(domain)};
  spec["axes"] = {axis("x", "row"), axis("y", magnitude.title(unit), format_for(domain))};
  spec["axes"][0]["tickMinStep"] = 1;
  add_colors(spec);
  const MarkOf mark{"middle", "median", series, "isValid(datum.median)", magnitude.times()};
  MarkOf band = mark;
  band.y = "max";
  if (is_coarse) add_area(spec, band, "min", 0.3);
  add_line(spec, mark);
  add_points(spec, "points", mark, 30, bands.rows.parts > 48,
             is_coarse ? tooltip({{"from row", "datum.row"},
                                  {"rows", "datum.rows"},
                                  {"min", "datum.min"},
                                  {"median", "datum.median"},
                                  {"max", "datum.max"}})
                       : tooltip({{"row", "datum.row"}, {"value", "datum.median"}}));
  std::string note;
  if (is_coarse) {
    note = concat(
        "Line: median of up to ", bands.rows.greatest_size(), " neighboring rows",
        bands.rows.greatest_size() > kMaxOfMedian ? concat(" (of ", kMaxOfMedian, " of them)") : "",
        "; band: least to greatest.");
  }
  return {std::move(name), std::move(what), note, std::move(spec)};
}

std::vector<Figure> row_figures(const std::vector<OutlierRow>& rows, const Stats& stats) {
  const std::int64_t first = stats.row_number(0);
  std::vector<Figure> figures;
  figures.push_back(
      row_figure("row-x", "Before: x", "before", "x", rows, &RowDetail::x, stats.x.dtype, first));
  figures.push_back(
      row_figure("row-y", "After: y", "after", "y", rows, &RowDetail::y, stats.out, first));
  figures.push_back(row_figure("row-softmax", "Softmax of x", "softmax", "softmax", rows,
                               &RowDetail::softmax, stats.out, first));
  return figures;
}

}  // namespace lnorm::page
