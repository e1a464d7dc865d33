#include "lnorm/pipeline/judged_statistics.hpp"

#include <algorithm>
#include <any>
#include <cmath>
#include <cstddef>

#include "lnorm/pipeline/check_rows.hpp"

namespace lnorm {

StatisticObserver::StatisticObserver(Statistic of, const JudgeSetting& setting,
                                     TensorSource& actual, int threads)
    : of_(of),
      setting_(setting),
      actual_(actual.info()),
      numbers_(all_numbers(setting.backend, actual, threads)) {
  setting_.output = OutputFormat(actual_.dtype);
}

RowBounds StatisticObserver::bounds(const RowStatistics& row, double exact, Summation order,
                                    const std::optional<std::int64_t>& depth) const {
  KernelModel kernel = setting_.kernel;
  if (depth) kernel.depth = depth;
  const StatisticErrors errors = errors_of(row, setting_.formula, kernel, order);
  const double error = of_ == Statistic::mean
                           ? errors.mean
                           : std::max(1 / errors.s_low - exact, exact - 1 / (1 / exact + errors.s));
  const double roundings = setting_.output.dtype() == DType::float64 ? 2 : 1;
  return {{exact},
          {error + roundings * setting_.output.half_ulp(std::fabs(exact) + error)},
          of_ == Statistic::mean ? errors.is_in_range : errors.is_bounded};
}

BlockFindings StatisticObserver::examine(const RowBlock& block) const {
  JudgedRows found;
  RowJudge judge(setting_, 0);
  const std::span<const double> exact = of_ == Statistic::mean ? block.mean : block.rstd;
  for (std::int64_t r = 0; r < block.x.rows; ++r) {
    const double value = exact[static_cast<std::size_t>(r)];
    const double rounded = setting_.output.rounded(value);
    const double actual = numbers_[static_cast<std::size_t>(block.first_row + r)];
    if (actual == rounded) {
      RowJudge::count_exact(1, found);
      continue;
    }
    const std::vector<double> x = decoded(setting_.backend, row_of(block.x, r));
    RowStatistics row = statistics_of(x, setting_.formula);
    row.drift = drift_of(x, setting_.formula);
    judge.judge_by(
        {block.first_row + r, x, {&actual, 1}, {&rounded, 1}},
        [&](Summation order, const std::optional<std::int64_t>& depth) {
          return bounds(row, value, order, depth);
        },
        std::ssize(x), found);
  }
  return found;
}

void StatisticObserver::see(const RowBlock&, const BlockFindings& findings) {
  found_.merge(std::any_cast<const JudgedRows&>(findings));
}

Check StatisticObserver::check(const Check& like) const {
  Check result;
  result.x = like.x;
  result.actual = whole_of(actual_);
  result.part = of_ == Statistic::mean ? "mean" : "rstd";
  result.is_statistic = true;
  result.slice = like.slice;
  result.formula = like.formula;
  result.arithmetic = like.arithmetic;
  result.given_depth = like.given_depth;
  result.row_length = like.row_length;
  result.judged = found_;
  result.verdict = verdict_of(found_, false);
  describe_places(result, std::ssize(numbers_));
  return result;
}

}  // namespace lnorm
