#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lnorm/measure/bands.hpp"
#include "lnorm/measure/features.hpp"
#include "lnorm/measure/heat_map.hpp"
#include "lnorm/measure/outlier_rows.hpp"
#include "lnorm/measure/stats.hpp"

// What there is to look at in a tensor, and in what normalization makes of it.
namespace lnorm {

// How much of it a page has room for.
struct ReportDataSize {
  std::int64_t grid_rows = 96;  // of heat maps
  std::int64_t grid_columns = 128;
  std::int64_t bands = 600;   // along the rows, or the features
  std::int64_t points = 384;  // along a row
  std::size_t outliers = 5;   // in each list of rows or features
};

// Rows that are longer have no features: each takes 80 bytes for every block under way.
inline constexpr std::int64_t kMostFeatures = 65536;

// So many are in a list. Of few rows or features lists are shorter, or each would have all of them.
inline std::size_t most_outliers(std::size_t wanted, std::int64_t of) {
  return std::min(wanted, static_cast<std::size_t>(std::max<std::int64_t>(1, of / 4)));
}

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
  std::vector<Bands> profiles;  // as kRowProfiles
  OutlierRows outlier_rows;
  FeatureStats features;  // none of rows that are longer than kMostFeatures
  Bands feature_bands;
  std::size_t outlier_features = 0;  // in a list
};

}  // namespace lnorm
