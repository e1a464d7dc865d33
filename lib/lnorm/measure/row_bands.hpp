#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lnorm/measure/grid.hpp"
#include "lnorm/measure/medians.hpp"
#include "lnorm/measure/stats.hpp"

namespace lnorm {

// A number of every row; NaN where it has none.
using RowValue = std::function<double(const StatsRow&)>;

// The least, the median and the greatest of a number over neighboring rows.
struct RowBands {
  Partition rows;
  std::vector<ColumnSummary> bands;  // one a part
};

// The median of a band of more rows is that of rows at equal distances, at most so many.
inline constexpr std::int64_t kMaxOfMedian = 1 << 17;

// There is one result for each of the values. Memory does not grow with the rows.
std::vector<RowBands> row_bands(std::span<const RowValue> values, Partition rows,
                                const EachStatsRow& each_row);

}  // namespace lnorm
