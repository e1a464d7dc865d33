#include "lnorm/report/page/figure.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm::page {

namespace {

double number_of(const std::string& text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Magnitude::Magnitude(double greatest) {
  constexpr double kMin = 1e-290;  // of which steps that are 1e-16 times as long have ticks
  constexpr double kMax = 1e300;   // a scale of which is no wider than numbers are
  if (greatest == 0 || (greatest >= kMin && greatest <= kMax) || !std::isfinite(greatest)) return;
  exponent_ = static_cast<int>(std::floor(std::log10(greatest)));
  const int first = std::clamp(-exponent_, -300, 300);
  factors_[0] = std::pow(10.0, first);
  factors_[1] = std::pow(10.0, -exponent_ - first);
}

std::string Magnitude::times() const {
  if (exponent_ == 0) return "";
  return concat(" * ", value_text(factors_[0]), " * ", value_text(factors_[1]));
}

std::string Magnitude::title(std::string_view what) const {
  return exponent_ == 0 ? std::string(what) : concat(what, " in 1e", exponent_);
}

Json figure_number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

Json short_number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return number_of(rounded_text(value, 5));
}

std::string short_text(double value) { return significant_text(value, 3); }

Json element_number(double value, DType dtype) {
  if (!std::isfinite(value) || !is_floating(dtype)) return figure_number(value);
  return number_of(value_text({value}, dtype));
}

Json empty_spec(int height, const std::string& alternative, const std::vector<TableField>& fields) {
  Json columns = Json::array();
  for (const TableField& field : fields) {
    columns.push_back({{"field", field.field}, {"title", field.title}});
  }
  return {{"$schema", "https://vega.github.io/schema/vega/v5.json"},
          {"description", alternative},
          {"width", 560},
          {"height", height},
          {"autosize", {{"type", "fit"}, {"contains", "padding"}}},
          {"usermeta", {{"renderer", "svg"}, {"columns", columns}}},
          {"data", Json::array()},
          {"scales", Json::array()},
          {"axes", Json::array()},
          {"marks", Json::array()}};
}

Json axis(std::string_view scale, std::string_view title, const Json& format) {
  const bool across = scale == "x";
  Json result{{"scale", scale},      {"orient", across ? "bottom" : "left"}, {"title", title},
              {"grid", !across},     {"tickCount", across ? 6 : 5},          {"labelOverlap", true},
              {"labelFlush", across}};
  if (!format.is_null()) result["format"] = format;
  return result;
}

double greatest_of(double low, double high) {
  return std::isnan(low) ? 0 : std::max(std::fabs(low), std::fabs(high));
}

Json format_for(const Json& domain) {
  const double low = domain[0];
  const double high = domain[1];
  const double greatest = greatest_of(low, high);
  const bool is_long = greatest > 0 && (greatest < 1e-3 || greatest >= 1e6);
  if (!is_long) return nullptr;
  // Labels have as many digits as tell ticks from each other.
  const double digits = std::ceil(std::log10(greatest / (high - low))) + 2;
  return concat('.', std::clamp(digits, 2.0, 16.0), "~e");
}

Json domain_of(double low, double high, const Magnitude& magnitude, bool with_zero) {
  if (std::isnan(low) || std::isnan(high)) return {0, 1};
  low = magnitude.count(low);
  high = magnitude.count(high);
  if (with_zero) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  if (low == high) {  // of which Vega would make an axis with rounded labels
    const double margin = low == 0 ? 1 : std::fabs(low) / 2;
    low -= margin;
    high += margin;
  }
  return {low, high};
}

Json scale_of_numbers(Json domain) {
  return {{"name", "y"},       {"domain", std::move(domain)},
          {"range", "height"}, {"nice", true},
          {"zero", false},     {"clamp", true}};
}

Json scale_along(std::int64_t count, std::int64_t first) {
  const std::int64_t last = first + std::max<std::int64_t>(1, count - 1);
  return scale_of_range("x", static_cast<double>(first), static_cast<double>(last));
}

Json scale_of_range(std::string_view name, double low, double high, bool nice) {
  return {{"name", name},
          {"domain", {low, high}},
          {"range", name == "x" ? "width" : "height"},
          {"nice", nice},
          {"zero", false}};
}

void add_colors(Json& spec, const std::vector<std::string_view>& names) {
  spec["scales"].push_back(
      {{"name", "series"}, {"type", "ordinal"}, {"domain", names}, {"range", "category"}});
}

void add_series(Json& spec, const std::vector<std::string_view>& names) {
  add_colors(spec, names);
  spec["legends"].push_back({{"fill", "series"},
                             {"orient", "top"},
                             {"direction", "horizontal"},
                             {"symbolType", "square"}});
}

Json color(std::string_view series) { return {{"scale", "series"}, {"value", series}}; }

void add_table(Json& spec, Json values, Json transform) {
  Json table{{"name", "table"}, {"values", std::move(values)}};
  if (!transform.is_null()) table["transform"] = std::move(transform);
  spec["data"].push_back(std::move(table));
}

Json tooltip(const std::vector<TableField>& fields) {
  std::string signal;
  for (const auto& [field, title] : fields) {
    signal += concat(signal.empty() ? "{" : ", ", Json(title).dump(), ": datum.", field);
  }
  return {{"signal", signal + "}"}};
}

void add_mark(Json& spec, std::string_view type, std::string_view name, Json update,
              std::string_view data) {
  Json mark{{"type", type}};
  if (!name.empty()) mark["name"] = name;
  mark["from"] = {{"data", data}};
  mark["encode"] = {{"update", std::move(update)}};
  spec["marks"].push_back(std::move(mark));
}

Json middle_of_band(std::string_view item) {
  return {{"type", "formula"},
          {"expr", concat("datum.", item, " + (datum.", item, "s - 1) / 2")},
          {"as", "middle"}};
}

void add_area(Json& spec, const MarkOf& mark, const std::string& low, const std::string& high,
              double opacity) {
  add_mark(spec, "area", "",
           {{"x", field("x", mark.x)},
            {"y", field("y", low, mark.times)},
            {"y2", field("y", high, mark.times)},
            {"defined", {{"signal", mark.condition}}},
            {"fill", color(mark.series)},
            {"fillOpacity", {{"value", opacity}}}});
}

void add_line(Json& spec, const MarkOf& mark) {
  add_mark(spec, "line", "",
           {{"x", field("x", mark.x)},
            {"y", field("y", mark.y, mark.times)},
            {"defined", {{"signal", mark.condition}}},
            {"stroke", color(mark.series)},
            {"strokeWidth", {{"value", 1.3}}}});
}

void add_points(Json& spec, std::string_view name, const MarkOf& mark, int size, bool hidden,
                Json tooltip) {
  const Json nowhere{{"test", concat("!(", mark.condition, ")")}, {"value", 0}};
  add_mark(spec, "symbol", name,
           {{"x", field("x", mark.x)},
            {"y", field("y", mark.y, mark.times)},
            {"size", {{"value", size}}},
            {"fill", color(mark.series)},
            {"opacity", {nowhere, {{"value", hidden ? 0 : 1}}}},
            {"tooltip", std::move(tooltip)}});
}

Json field(std::string_view scale, std::string_view name, std::string_view times) {
  if (times.empty()) return {{"scale", scale}, {"field", name}};
  return {{"scale", scale}, {"signal", concat("datum.", name, times)}};
}

}  // namespace lnorm::page
