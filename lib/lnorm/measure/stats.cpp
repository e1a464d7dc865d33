#include "lnorm/measure/stats.hpp"

#include <array>
#include <cmath>

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
  StatsSummary summary;
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
  summary.columns.resize(columns.size());
  each_value([&](std::size_t column, double value) { summary.columns[column].add(value); });
  find_medians(summary.columns, each_value);
  return summary;
}

}  // namespace lnorm
