#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
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

// A profile is a number of every row that a page shows along the rows.
struct RowProfile {
  std::string_view name;  // of its figure
  std::string_view title;
  std::string_view series;
  std::string_view unit;
  double (*of)(const StatsRow& row);
};
// The last one with softmax alone. The standard deviation is the root of the variance.
inline constexpr RowProfile kRowProfiles[] = {
    {"x-mean", "Mean of every row, before", "before", "mean",
     [](const StatsRow& row) { return row.input.mean; }},
    {"y-mean", "Mean of every row, after", "after", "mean",
     [](const StatsRow& row) { return row.output.mean; }},
    {"x-std", "Standard deviation of every row, before", "before", "std",
     [](const StatsRow& row) { return std::sqrt(row.input.variance); }},
    {"y-std", "Standard deviation of every row, after", "after", "std",
     [](const StatsRow& row) { return std::sqrt(row.output.variance); }},
    {"softmax", "Largest softmax of every row", "softmax", "softmax",
     [](const StatsRow& row) { return row.softmax.max; }},
};

struct TensorReportData {
  Stats stats;
  bool softmax = false;  // whether the stats have it
  HeatMap x;
  HeatMap y;
  std::vector<RowBands> profiles;  // as kRowProfiles
  OutlierRows outlier_rows;
};

}  // namespace lnorm
