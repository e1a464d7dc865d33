#include "lnorm/measure/stats.hpp"

#include <array>
#include <cmath>

#include "lnorm/core/non_finite.hpp"

namespace lnorm {

namespace {

constexpr std::array kColumns{
    StatsColumn{"input.mean", &StatsRow::input, &StatsBlock::input, &Moments::mean},
    StatsColumn{"input.variance", &StatsRow::input, &StatsBlock::input, &Moments::variance},
    StatsColumn{"input.min", &StatsRow::input, &StatsBlock::input, &Moments::min},
    StatsColumn{"input.max", &StatsRow::input, &StatsBlock::input, &Moments::max},
    StatsColumn{"output.mean", &StatsRow::output, &StatsBlock::output, &Moments::mean},
    StatsColumn{"output.variance", &StatsRow::output, &StatsBlock::output, &Moments::variance},
    // Beside softmax only:
    StatsColumn{"output.sum", &StatsRow::output, &StatsBlock::output, &Moments::sum},
    StatsColumn{"softmax.sum", &StatsRow::softmax, &StatsBlock::softmax, &Moments::sum},
    StatsColumn{"softmax.mean", &StatsRow::softmax, &StatsBlock::softmax, &Moments::mean},
    StatsColumn{"softmax.variance", &StatsRow::softmax, &StatsBlock::softmax, &Moments::variance},
    // In no report of rows:
    StatsColumn{"softmax.max", &StatsRow::softmax, &StatsBlock::softmax, &Moments::max},
};
constexpr std::size_t kOfInput = 4;
constexpr std::size_t kWithoutSoftmax = 6;
constexpr std::size_t kWithSoftmax = 10;

}  // namespace

std::span<const StatsColumn> stats_columns(bool softmax) noexcept {
  return std::span(kColumns).first(softmax ? kWithSoftmax : kWithoutSoftmax);
}

std::span<const StatsColumn> input_columns() noexcept {
  return std::span(kColumns).first(kOfInput);
}

std::span<const StatsColumn> kept_columns(std::span<const StatsColumn> reported) noexcept {
  return reported.size() == kWithSoftmax ? std::span<const StatsColumn>(kColumns) : reported;
}

void StatsSummary::add(std::span<const StatsColumn> of, const StatsBlock& block) {
  for (std::size_t r = 0; r < block.rows(); ++r) {
    input.add(rows, block.input[r].non_finite);
    if (block.input[r].non_finite == 0) output.add(rows, block.output[r].non_finite);
    ++rows;
  }
  for (std::size_t i = 0; i < of.size(); ++i) {
    const std::vector<Moments>& values = block.*of[i].block;
    ColumnSummary column = columns[i];
    for (std::size_t r = 0; r < block.rows(); ++r) {
      if (block.input[r].non_finite == 0) column.add(values[r].*of[i].value);
    }
    columns[i] = column;
  }
}

void StatsSummary::append(const StatsSummary& next) {
  input.append(rows, next.input);
  output.append(rows, next.output);
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].append(next.columns[i]);
  rows += next.rows;
}

std::vector<NumberedRow> top_rows(const Stats& stats) {
  TopList<NumberedRow> list(stats.top->most);
  std::int64_t number = 0;
  stats.each_row(0, stats.summary.rows, [&](const StatsRow& row) {
    list.add(score_of_row(stats.top->by, row.input), {number++, row});
  });
  return list.items();
}

double score_of_tensor(TopBy by, const TensorStats& tensor) noexcept {
  const ColumnSummary& means = tensor.means;
  switch (by) {
    case TopBy::mean:
      return std::max(std::fabs(means.min), std::fabs(means.max));
    case TopBy::variance:
      return tensor.variances.max;
    case TopBy::variance_min:
      return -tensor.variances.min;
    case TopBy::non_finite:
      return static_cast<double>(tensor.non_finite.most);
    case TopBy::absmax:
    case TopBy::zeros:
      break;
  }
  return tensor.largest ? std::fabs(tensor.largest->value.high) : kNan;
}

}  // namespace lnorm
