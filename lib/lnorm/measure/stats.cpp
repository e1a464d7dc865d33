#include "lnorm/measure/stats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lnorm/measure/medians.hpp"

namespace lnorm {

namespace {

constexpr std::array kColumns{
    StatsColumn{"input", "mean", &StatsRow::input, &Moments::mean},
    StatsColumn{"input", "variance", &StatsRow::input, &Moments::variance},
    StatsColumn{"input", "min", &StatsRow::input, &Moments::min},
    StatsColumn{"input", "max", &StatsRow::input, &Moments::max},
    StatsColumn{"output", "mean", &StatsRow::output, &Moments::mean},
    StatsColumn{"output", "variance", &StatsRow::output, &Moments::variance},
    // Beside softmax only:
    StatsColumn{"output", "sum", &StatsRow::output, &Moments::sum},
    StatsColumn{"softmax", "sum", &StatsRow::softmax, &Moments::sum},
    StatsColumn{"softmax", "mean", &StatsRow::softmax, &Moments::mean},
    StatsColumn{"softmax", "variance", &StatsRow::softmax, &Moments::variance},
};
constexpr std::size_t kWithoutSoftmax = 6;

}  // namespace

std::span<const StatsColumn> stats_columns(bool softmax) noexcept {
  return std::span(kColumns).first(softmax ? kColumns.size() : kWithoutSoftmax);
}

StatsSummary summarize(std::span<const StatsColumn> columns, const EachStatsRow& each_row) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  StatsSummary summary;
  summary.columns.assign(columns.size(), {0, kNan, kNan, kNan});
  each_row([&](const StatsRow& row) {
    summary.input.add(summary.rows, row.input.non_finite);
    if (row.input.non_finite == 0) summary.output.add(summary.rows, row.output.non_finite);
    ++summary.rows;
  });
  // Calls see(column, value) for all that counts.
  const EachValue each_value = [&](const std::function<void(std::size_t, double)>& see) {
    each_row([&](const StatsRow& row) {
      if (row.input.non_finite > 0) return;
      for (std::size_t column = 0; column < columns.size(); ++column) {
        const double value = columns[column].of(row);
        if (!std::isnan(value)) see(column, value);
      }
    });
  };
  each_value([&](std::size_t column, double value) {
    ColumnSummary& result = summary.columns[column];
    result.min = result.count == 0 ? value : std::min(result.min, value);
    result.max = result.count == 0 ? value : std::max(result.max, value);
    ++result.count;
  });
  std::vector<std::int64_t> counts;
  for (const ColumnSummary& column : summary.columns) counts.push_back(column.count);
  const std::vector<double> found = medians(counts, each_value);
  for (std::size_t i = 0; i < columns.size(); ++i) summary.columns[i].median = found[i];
  return summary;
}

}  // namespace lnorm
