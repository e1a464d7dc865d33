#include "lnorm/measure/column_summary.hpp"

#include <vector>

namespace lnorm {

void find_medians(std::span<ColumnSummary> columns, const EachValue& each_value,
                  const AddUp& add_up) {
  std::vector<std::int64_t> counts;
  for (const ColumnSummary& column : columns) counts.push_back(column.count);
  const std::vector<double> found = medians(counts, each_value, kHeldValues, add_up);
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].median = found[i];
}

}  // namespace lnorm
