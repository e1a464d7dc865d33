#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lnorm/measure/heat_map.hpp"
#include "lnorm/measure/outlier_rows.hpp"
#include "lnorm/measure/row_bands.hpp"
#include "lnorm/measure/stats.hpp"

// What there is to look at in a tensor, and in what normalization makes of it.
namespace lnorm {

// How much of it a page has room for.
struct ReportDataSize {
  std::int64_t grid_rows = 96;  // of heat maps
  std::int64_t grid_columns = 128;
  std::int64_t bands = 600;      // along the rows
  std::int64_t points = 384;     // along a row
  std::size_t outlier_rows = 5;  // of each kind
};

struct TensorReportData {
  Stats stats;
  bool softmax = false;  // whether the stats have it
  HeatMap x;
  HeatMap y;
  // Along the rows. The standard deviation is the root of the variance.
  RowBands x_mean;
  RowBands x_std;
  RowBands y_mean;
  RowBands y_std;
  RowBands softmax_max;  // with softmax alone
  OutlierRows outlier_rows;
};

}  // namespace lnorm
