#include "lnorm/report/page/layers_figure.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/measure/column_summary.hpp"

namespace lnorm::page {

Figure layers_figure(std::string name, std::string title, std::string_view unit, bool has_bands,
                     Json values) {
  const std::size_t tensors = values.size();
  std::vector<TableField> fields{{"name", "tensor"}};
  if (has_bands) {
    fields.insert(fields.end(), {{"before_min", "before, min"},
                                 {"before", "before, median"},
                                 {"before_max", "before, max"},
                                 {"after_min", "after, min"},
                                 {"after", "after, median"},
                                 {"after_max", "after, max"}});
  } else {
    fields.insert(fields.end(), {{"before", "before"}, {"after", "after"}});
  }
  ColumnSummary range;  // of what is drawn
  for (const Json& value : values) {
    for (const auto& [name_of_field, number] : value.items()) {
      if (number.is_number()) range.add(number.get<double>());
    }
  }
  const Magnitude magnitude(greatest_of(range.min, range.max));
  const Json domain = domain_of(range.min, range.max, magnitude, !has_bands);
  Json spec = empty_spec(
      250, concat(title, ", of ", counted(static_cast<long long>(tensors), "tensor"), " in order."),
      fields);
  spec["data"].push_back({{"name", "table"}, {"values", std::move(values)}});
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
  add_series(spec, {"before", "after"});
  for (const char* const series : {"before", "after"}) {
    const std::string value = concat("datum.", series);
    const std::string least = value + "_min";
    const std::string most = value + "_max";
    const MarkOf mark{"name", series, series, concat("isValid(", value, ")"), magnitude.times()};
    std::vector<std::pair<std::string_view, std::string_view>> entries{{"tensor", "datum.name"}};
    if (has_bands) {
      MarkOf band = mark;
      band.y += "_max";
      add_area(spec, band, concat(series, "_min"), 0.18);
      entries.insert(entries.end(), {{"min", least}, {"median", value}, {"max", most}});
    } else {
      entries.emplace_back(series, value);
    }
    add_line(spec, mark);
    add_points(spec, series, mark, tensors <= 60 ? 30 : 8, false, tooltip(entries));
  }
  return {std::move(name), std::move(title),
          has_bands ? "Line: median over the rows of a tensor; band: least to greatest." : "",
          std::move(spec)};
}

}  // namespace lnorm::page
