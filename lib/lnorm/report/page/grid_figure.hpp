#pragma once

#include <string>
#include <string_view>

#include "lnorm/measure/partition.hpp"
#include "lnorm/report/page/figure.hpp"

namespace lnorm::page {

// Rows by elements, in cells.
struct Grid {
  Partition rows;
  Partition columns;
  Json values;                 // of the cells, row by row; no_value() where there is none
  std::string_view value;      // what they are
  Json colors;                 // a scale called "color"
  std::int64_t first_row = 0;  // the number of the first
};
// Vega takes no null among numbers.
inline Json no_value() { return Json::object(); }

Figure grid_figure(std::string name, std::string title, std::string note,
                   const std::string& alternative, Grid grid);

}  // namespace lnorm::page
