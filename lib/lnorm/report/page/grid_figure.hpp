#pragma once

#include <string>
#include <vector>

#include "lnorm/measure/grid.hpp"
#include "lnorm/report/page/figure.hpp"

namespace lnorm::page {

// What there is to see of the cells.
struct GridValue {
  std::string field;  // in the table
  std::string title;
  Json numbers;  // of the cells, row by row; null where there is none
};

// Rows by elements, in cells.
struct Grid {
  Partition rows;
  Partition columns;
  std::vector<GridValue> values;  // the field that the reader chooses is the signal "shown"
  Json non_finite;                // elements of the cells: where there are such, a cell is gray
  Json colors;                    // a scale called "color"
  Json legend;                    // its title and numbers
  std::string times;              // of the magnitude of the colors
  std::int64_t first_row = 0;     // the number of the first
};

Figure grid_figure(std::string name, std::string title, std::string note,
                   const std::string& alternative, Grid grid);

}  // namespace lnorm::page
