#include "lnorm/measure/row_bands.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

namespace lnorm {

std::vector<RowBands> row_bands(std::span<const RowValue> values, Partition rows,
                                const EachStatsRow& each_row) {
  std::vector<RowBands> result(values.size(), {rows, {}});
  std::vector<std::vector<double>> kept(values.size());  // of the band under way
  std::vector<ColumnSummary> band(values.size());
  std::int64_t row = 0;
  std::int64_t begin = 0;
  std::int64_t end = rows.all > 0 ? rows.begin(1) : 0;
  each_row(0, rows.all, [&](const StatsRow& found) {
    const std::int64_t step = (end - begin + kMaxOfMedian - 1) / kMaxOfMedian;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i](found);
      band[i].add(value);
      if ((row - begin) % step == 0 && !std::isnan(value)) kept[i].push_back(value);
    }
    if (++row < end) return;
    std::vector<std::int64_t> counts;
    counts.reserve(kept.size());
    for (const std::vector<double>& column : kept) counts.push_back(std::ssize(column));
    const std::vector<double> middles = medians(counts, [&](std::int64_t, const auto& see) {
      for (std::size_t i = 0; i < kept.size(); ++i) see(i, kept[i]);
    });
    for (std::size_t i = 0; i < values.size(); ++i) {
      band[i].median = middles[i];
      result[i].bands.push_back(std::exchange(band[i], {}));
      kept[i].clear();
    }
    begin = end;
    if (row < rows.all) end = rows.begin(rows.of(row) + 1);
  });
  return result;
}

}  // namespace lnorm
