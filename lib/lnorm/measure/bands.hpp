#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lnorm/measure/grid.hpp"
#include "lnorm/measure/medians.hpp"

namespace lnorm {

// The least, the median and the greatest of a number over neighboring items: rows, or features.
struct Bands {
  Partition items;
  std::vector<ColumnSummary> bands;  // one a part
};

// The median of a band of more items is that of items at equal distances, at most so many.
inline constexpr std::int64_t kMaxOfMedian = 1 << 17;

// There is one result for each of the values: functions of an item, NaN where it has no such number. each calls what it is
// given with every item, in order. Memory does not grow with the items.
template <class Values, class Each>
std::vector<Bands> bands_of(const Values& values, Partition items, Each each) {
  std::vector<Bands> result(values.size(), {items, {}});
  std::vector<std::vector<double>> kept(values.size());  // of the band under way
  std::vector<ColumnSummary> band(values.size());
  std::int64_t number = 0;
  std::int64_t begin = 0;
  std::int64_t end = items.all > 0 ? items.begin(1) : 0;
  each([&](const auto& item) {
    const std::int64_t step = (end - begin - 1) / kMaxOfMedian + 1;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i](item);
      band[i].add(value);
      if ((number - begin) % step == 0 && !std::isnan(value)) kept[i].push_back(value);
    }
    if (++number < end) return;
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
    if (number < items.all) end = items.begin(items.of(number) + 1);
  });
  return result;
}

}  // namespace lnorm
