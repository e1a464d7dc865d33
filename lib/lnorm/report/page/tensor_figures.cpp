#include <cmath>
#include <string>
#include <utility>

#include "lnorm/core/text.hpp"
#include "lnorm/report/page/figures.hpp"

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
  std::vector<TableField> fields{{"element", "element"}, {"low", "value"}};
  if (is_coarse) fields = {{"element", "from element"}, {"low", "least"}, {"high", "greatest"}};
  Json spec = empty_spec(
      215, concat(title, " of the selected row, along its ", elements.all, " elements."), fields);
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
  add_table(spec, std::move(values),
            {{{"type", "filter"}, {"expr", "datum.number === selected"}},
             {{"type", "formula"}, {"expr", "elements"}, {"as", "element"}},
             {{"type", "flatten"}, {"fields", {"element", "low", "high"}}}});
  Json scales = Json::array();  // of the rows
  for (const OutlierRow& row : rows) {
    const ColumnSummary range = range_of(row.detail.get()->*series);
    const Magnitude magnitude(greatest_of(range.min, range.max));
    const Json domain = domain_of(range.min, range.max, magnitude,
                                  color_of == "softmax");  // which is never negative
    scales.push_back({{"domain", domain},
                      {"title", magnitude.title(unit)},
                      {"format", format_for(domain)},
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
  add_area(spec, mark, "low", "high", 0.6);
  add_line(spec, mark);
  MarkOf least = mark;
  least.y = "low";
  if (is_coarse) add_line(spec, least);
  add_points(spec, "points", mark, 30, elements.parts > 48, tooltip(fields));
  return {std::move(name), std::move(title),
          is_coarse
              ? concat("Least and greatest of up to ", elements.greatest_size(), " neighbors.")
              : "",
          std::move(spec)};
}

// The range of the numbers that are drawn.
ColumnSummary drawn_range(const Json& values) {
  ColumnSummary range;
  for (const Json& value : values) {
    for (const auto& [name, number] : value.items()) {
      if (number.is_number()) range.add(number.get<double>());
    }
  }
  return range;
}

// A number of every item ("row"), of which the first has this number, in bands along them.
Figure bands_figure(const RowProfile& of, const std::string& item, std::int64_t first,
                    bool with_zero, const Bands& all_bands) {
  const auto& [items, bands] = all_bands;
  const bool is_coarse = items.is_coarse();
  const std::string count = item + "s";
  const std::string from = "from " + item;
  ColumnSummary all;
  ColumnSummary drawn;
  Json values = Json::array();
  for (std::int64_t i = 0; i < items.parts; ++i) {
    const ColumnSummary& band = bands[static_cast<std::size_t>(i)];
    all.add(band.min);
    all.add(band.max);
    for (const double value : {band.min, band.max}) {
      if (std::isfinite(value)) drawn.add(value);
    }
    values.push_back({{item, first + items.begin(i)},
                      {count, items.size(i)},
                      {"min", figure_number(band.min)},
                      {"median", figure_number(band.median)},
                      {"max", figure_number(band.max)}});
  }
  std::string alternative = concat(of.title, ", along ", counted(items.all, item));
  if (all.count > 0) {
    alternative += concat(": from ", short_text(all.min), " to ", short_text(all.max));
  }
  std::vector<TableField> fields{{item, item}, {"median", "value"}};
  if (is_coarse) {
    fields = {{item, from}, {count, count}, {"min", "min"}, {"median", "median"}, {"max", "max"}};
  }
  Json spec = empty_spec(215, alternative + ".", fields);
  add_table(spec, std::move(values), Json::array({middle_of_band(item)}));
  const Magnitude magnitude(greatest_of(drawn.min, drawn.max));
  const Json domain = domain_of(drawn.min, drawn.max, magnitude, with_zero);
  spec["scales"] = {scale_along(items.all, first), scale_of_numbers(domain)};
  spec["axes"] = {axis("x", item), axis("y", magnitude.title(of.unit), format_for(domain))};
  spec["axes"][0]["tickMinStep"] = 1;
  add_colors(spec);
  const MarkOf mark{"middle", "median", of.series, "isValid(datum.median)", magnitude.times()};
  if (is_coarse) add_area(spec, mark, "min", "max", 0.3);
  add_line(spec, mark);
  add_points(spec, "points", mark, 30, items.parts > 48, tooltip(fields));
  std::string note;
  if (is_coarse) {
    note = concat(
        "Line: median of up to ", items.greatest_size(), " neighboring ", count,
        items.greatest_size() > kMaxOfMedian ? concat(" (of ", kMaxOfMedian, " of them)") : "",
        "; band: least to greatest.");
  }
  return {std::string(of.name), std::string(of.title), note, std::move(spec)};
}

}  // namespace

Figure profile_figure(const RowProfile& profile, const Bands& bands, std::int64_t first_row) {
  return bands_figure(profile, "row", first_row, false, bands);
}

Figure features_figure(const Bands& bands) {
  constexpr RowProfile kLargest{"features", "Largest |x| of every feature", "before", "largest |x|",
                                nullptr};
  return bands_figure(kLargest, "feature", 0, true, bands);
}

std::vector<Figure> row_figures(const std::vector<OutlierRow>& rows, const Stats& stats) {
  const std::int64_t first = stats.row_number(0);
  return figures_of(
      row_figure("row-x", "Before: x", "before", "x", rows, &RowDetail::x, stats.x.dtype, first),
      row_figure("row-y", "After: y", "after", "y", rows, &RowDetail::y, stats.out, first),
      row_figure("row-softmax", "Softmax of x", "softmax", "softmax", rows, &RowDetail::softmax,
                 stats.out, first));
}

Figure layers_figure(std::string name, std::string title, std::string_view unit,
                     std::string_view over, Json values) {
  const std::size_t tensors = values.size();
  const bool has_bands = !over.empty();
  std::vector<const char*> all_series{"before"};
  if (values.front().contains("after")) all_series.push_back("after");
  std::vector<TableField> fields{{"name", "tensor"}};
  for (const std::string series : all_series) {
    if (has_bands) fields.push_back({series + "_min", series + ", min"});
    fields.push_back({series, has_bands ? series + ", median" : series});
    if (has_bands) fields.push_back({series + "_max", series + ", max"});
  }
  const ColumnSummary range = drawn_range(values);
  const Magnitude magnitude(greatest_of(range.min, range.max));
  const Json domain = domain_of(range.min, range.max, magnitude, !has_bands);
  Json spec = empty_spec(
      250, concat(title, ", of ", counted(static_cast<long long>(tensors), "tensor"), " in order."),
      fields);
  add_table(spec, std::move(values));
  spec["scales"] = {{{"name", "x"},
                     {"type", "point"},
                     {"padding", 0.5},
                     {"domain", {{"data", "table"}, {"field", "name"}}},
                     {"range", "width"}},
                    scale_of_numbers(domain)};
  spec["axes"] = {axis("x", ""), axis("y", magnitude.title(unit), format_for(domain))};
  spec["axes"][0].update(Json{{"labelAngle", -40},
                              {"labelAlign", "right"},
                              {"labelBaseline", "top"},
                              {"labelLimit", 120},
                              {"labelFlush", false},
                              {"labelOverlap", "greedy"}});
  add_series(spec, {all_series.begin(), all_series.end()});
  for (const char* const series : all_series) {
    const std::string least = concat(series, "_min");
    const std::string most = concat(series, "_max");
    const MarkOf mark{"name", series, series, concat("isValid(datum.", series, ")"),
                      magnitude.times()};
    std::vector<TableField> shown{{"name", "tensor"}};
    if (has_bands) {
      add_area(spec, mark, least, most, 0.18);
      shown.insert(shown.end(), {{least, "min"}, {series, "median"}, {most, "max"}});
    } else {
      shown.push_back({series, series});
    }
    add_line(spec, mark);
    add_points(spec, series, mark, tensors <= 60 ? 30 : 8, false, tooltip(shown));
  }
  return {std::move(name), std::move(title),
          has_bands
              ? concat("Line: median over the ", over, " of a tensor; band: least to greatest.")
              : "",
          std::move(spec)};
}

}  // namespace lnorm::page
