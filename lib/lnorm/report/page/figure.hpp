#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/report/page/magnitude.hpp"

// A figure is a specification of Vega's. Its data set "table" holds the numbers, of which usermeta names the columns; its
// description is the text alternative. [https://vega.github.io/vega/docs/specification]
namespace lnorm::page {

using Json = nlohmann::ordered_json;

struct Figure {
  std::string name;   // in its section, fit for a file's name
  std::string title;  // says what is seen
  std::string note;   // what else there is to know; may be empty
  Json spec;
};

// A number of a figure: null where it is not finite.
Json figure_number(double value);
// The same with few digits, where there are many of them.
Json short_number(double value);
// As a word of a sentence.
std::string short_text(double value);
// The same of an element, in the shortest decimal of its dtype.
Json element_number(double value, DType dtype);

struct TableField {
  std::string_view field;
  std::string_view title;
};

// What all specifications have: no data, scales, axes and marks yet. alternative: the text alternative.
Json empty_spec(int height, const std::string& alternative, const std::vector<TableField>& fields);

// An axis along the bottom or at the left. format: of d3, or empty.
Json axis(std::string_view scale, std::string_view title, std::string_view format = {});

// The greatest absolute value of numbers from low to high; 0 if both are NaN, as there are none.
double greatest_of(double low, double high);

// How an axis over a domain writes its numbers.
std::string format_for(const Json& domain);
// The same as a signal has it: null for Vega's own.
Json format_setting(const Json& domain);

// What an axis goes over: numbers from low to high, both NaN if there are none, and 0 if that is wanted; as counted.
Json domain_of(double low, double high, const Magnitude& magnitude, bool with_zero = false);
// The upright scale. What is beyond the domain is drawn at its border.
Json scale_of_numbers(Json domain);
// The scale across, for so many rows or elements, from this number on.
Json scale_along(std::int64_t count, std::int64_t first = 0);
// A scale over a range; x is across, y upright.
Json scale_of_range(std::string_view name, double low, double high, bool nice = false);
// Colors of series, the same everywhere: before, after, softmax.
void add_colors(Json& spec);
// The names of two or three series, their colors, and a legend of them.
void add_series(Json& spec, const std::vector<std::string_view>& names);
// The color of the series of a number.
Json color(std::string_view series);

// A tooltip that shows expressions under names.
Json tooltip(const std::vector<std::pair<std::string_view, std::string_view>>& entries);

// For bands with the fields "row" and "rows": a field "middle", where a band is drawn.
Json middle_of_band();

// Marks along the fields x and y of the data set "table", in the color of a series; where a condition, an expression, does
// not hold there is none. times: of the magnitude of y.
struct MarkOf {
  std::string_view x;
  std::string y;
  std::string_view series;
  std::string condition;
  std::string times = {};
};
void add_area(Json& spec, const MarkOf& mark, const std::string& low, double opacity);
void add_line(Json& spec, const MarkOf& mark);
// Points of a size; hidden ones are there for their tooltips alone.
void add_points(Json& spec, std::string_view name, const MarkOf& mark, int size, bool hidden,
                Json tooltip);

// Where a scale has a field. times: of its magnitude.
Json field(std::string_view scale, std::string_view name, std::string_view times = {});

}  // namespace lnorm::page
