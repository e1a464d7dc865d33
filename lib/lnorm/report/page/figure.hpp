#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/report/record.hpp"

// A figure is a specification of Vega's. Its data set "table" holds the numbers, of which usermeta names the columns; its
// description is the text alternative. [https://vega.github.io/vega/docs/specification]
namespace lnorm::page {

// What a scale counts in: 1, or a power of ten where numbers are so small or so great that Vega finds no ticks for them.
class Magnitude {
 public:
  Magnitude() = default;
  // greatest: in absolute value, of the numbers.
  explicit Magnitude(double greatest);

  double count(double value) const { return value * factors_[0] * factors_[1]; }

  // What stands after an expression that is multiplied so.
  std::string times() const;
  // The two that a number is multiplied with.
  const std::array<double, 2>& factors() const { return factors_; }

  // "mean", or "mean in 1e-310".
  std::string title(std::string_view what) const;

 private:
  int exponent_ = 0;
  std::array<double, 2> factors_ = {1, 1};  // as 1e324 is no number
};

struct Figure {
  std::string name;   // in its section, fit for a file's name
  std::string title;  // says what is seen
  std::string note;   // what else there is to know; may be empty
  Json spec;
};

// Makes a list of figures without copying them.
template <class... Figures>
std::vector<Figure> figures_of(Figures... figures) {
  std::vector<Figure> list;
  (list.push_back(std::move(figures)), ...);
  return list;
}

// A number of a figure: null where it is not finite.
Json figure_number(double value);
// A number with few digits, where there are many.
Json short_number(double value);
// A number as a word of a sentence.
std::string short_text(double value);
// An element as the shortest decimal of its dtype.
Json element_number(double value, DType dtype);

// A column of a figure's numbers.
struct TableField {
  std::string field;
  std::string title;
};

// What all specifications have: no data, scales, axes and marks yet. alternative: the text alternative.
Json empty_spec(int height, const std::string& alternative, const std::vector<TableField>& fields);

// An axis along the bottom or at the left. format: of d3, or null for Vega's own.
Json axis(std::string_view scale, std::string_view title, const Json& format = {});

// The greatest absolute value of numbers from low to high; 0 if both are NaN, as there are none.
double greatest_of(double low, double high);

// How an axis over a domain writes its numbers: null for Vega's own.
Json format_for(const Json& domain);

// What an axis goes over: numbers from low to high, both NaN if there are none, and 0 if that is wanted; as counted.
Json domain_of(double low, double high, const Magnitude& magnitude, bool with_zero = false);
// The upright scale. What is beyond the domain is drawn at its border.
Json scale_of_numbers(Json domain);
// The scale across, for so many rows or elements, from this number on.
Json scale_along(std::int64_t count, std::int64_t first = 0);
// A scale over a range; x is across, y upright.
Json scale_of_range(std::string_view name, double low, double high, bool nice = false);
// Colors of series, the same everywhere.
void add_colors(Json& spec,
                const std::vector<std::string_view>& names = {"before", "after", "softmax"});
// The names of two or three series, their colors, and a legend of them.
void add_series(Json& spec, const std::vector<std::string_view>& names);
// The color of the series of a number.
Json color(std::string_view series);

// Adds the data set "table".
void add_table(Json& spec, Json values, Json transform = {});

// A tooltip that shows the fields under their titles.
Json tooltip(const std::vector<TableField>& fields);

// Adds a mark of a data set. name: may be empty. update: how the mark is encoded.
void add_mark(Json& spec, std::string_view type, std::string_view name, Json update,
              std::string_view data = "table");

// Gives bands with the fields "row" and "rows", or of another item, a field "middle", where a band is drawn.
Json middle_of_band(std::string_view item = "row");

// Marks along the fields x and y of the data set "table", in the color of a series; where a condition, an expression, does
// not hold there is none. times: of the magnitude of y.
struct MarkOf {
  std::string_view x;
  std::string y;
  std::string_view series;
  std::string condition;
  std::string times = {};
};
// Between two fields. The mark's y is not looked at.
void add_area(Json& spec, const MarkOf& mark, const std::string& low, const std::string& high,
              double opacity);
void add_line(Json& spec, const MarkOf& mark);
// Points of a size; hidden ones are there for their tooltips alone.
void add_points(Json& spec, std::string_view name, const MarkOf& mark, int size, bool hidden,
                Json tooltip);

// Where a scale has a field. times: of its magnitude.
Json field(std::string_view scale, std::string_view name, std::string_view times = {});

}  // namespace lnorm::page
