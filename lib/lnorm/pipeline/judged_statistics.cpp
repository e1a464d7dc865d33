#include "lnorm/pipeline/judged_statistics.hpp"

#include <algorithm>
#include <any>
#include <cmath>
#include <cstddef>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/pipeline/check_rows.hpp"

namespace lnorm {

namespace {

// What a kernel may save in place of a statistic. s: by the formula; n: of the row.
struct SavedCause {
  std::string_view id;
  std::string_view words;
  bool is_of_mean;
  bool is_of_rstd;
  double (*value)(const RowStatistics& row, double s, const Formula& formula);
};
constexpr SavedCause kSavedCauses[] = {
    {"saved-std", "it is the standard deviation s, not 1 / s", false, true,
     [](const RowStatistics&, double s, const Formula&) { return s; }},
    {"saved-std", "it is the standard deviation, without eps, not 1 / s", false, true,
     [](const RowStatistics& row, double, const Formula&) { return std::sqrt(row.variance); }},
    {"saved-variance", "it is the variance, not 1 / s", false, true,
     [](const RowStatistics& row, double, const Formula&) { return row.variance; }},
    {"saved-variance", "it is the variance plus eps, not 1 / s", false, true,
     [](const RowStatistics&, double s, const Formula&) { return s * s; }},
    {"saved-reciprocal-variance", "it is 1 / (var + eps), without the root", false, true,
     [](const RowStatistics&, double s, const Formula&) { return 1 / (s * s); }},
    {"saved-no-eps", "it is 1 / s without eps", false, true,
     [](const RowStatistics& row, double, const Formula&) { return 1 / std::sqrt(row.variance); }},
    {"saved-ddof-1", "it is 1 / s by the variance divided by n - 1", false, true,
     [](const RowStatistics& row, double, const Formula& formula) {
       const auto ddof = static_cast<double>(formula.ddof);
       return 1 / divisor_of(row.variance * (row.count - ddof) / (row.count - 1), formula);
     }},
    {"saved-exchanged", "mean and rstd are exchanged", false, true,
     [](const RowStatistics& row, double, const Formula&) { return row.mean; }},
    {"saved-exchanged", "mean and rstd are exchanged", true, false,
     [](const RowStatistics&, double s, const Formula&) { return 1 / s; }},
    {"saved-float16", "it is rounded to float16", true, false,
     [](const RowStatistics& row, double, const Formula&) {
       return OutputFormat(DType::float16).rounded(row.mean);
     }},
    {"saved-float16", "it is rounded to float16", false, true,
     [](const RowStatistics&, double s, const Formula&) {
       return OutputFormat(DType::float16).rounded(1 / s);
     }},
    {"saved-bfloat16", "it is rounded to bfloat16", true, false,
     [](const RowStatistics& row, double, const Formula&) {
       return OutputFormat(DType::bfloat16).rounded(row.mean);
     }},
    {"saved-bfloat16", "it is rounded to bfloat16", false, true,
     [](const RowStatistics&, double s, const Formula&) {
       return OutputFormat(DType::bfloat16).rounded(1 / s);
     }},
};

}  // namespace

StatisticObserver::StatisticObserver(Quantity of, const JudgeSetting& setting, TensorSource& actual,
                                     ChooseKernel choose, int threads)
    : of_(of),
      setting_(setting),
      actual_(actual.info()),
      choose_(std::move(choose)),
      numbers_(all_numbers(setting.backend, actual, threads)) {
  setting_.output = OutputFormat(actual_.dtype);
}

RowBounds StatisticObserver::bounds(const RowStatistics& row, double exact,
                                    const SumLosses& losses) const {
  const StatisticErrors errors = errors_of(row, setting_.formula, setting_.kernel, losses);
  const double error = of_ == Quantity::mean
                           ? errors.mean
                           : std::max(1 / errors.s_low - exact, exact - 1 / (1 / exact + errors.s));
  const double roundings = setting_.output.dtype() == DType::float64 ? 2 : 1;
  return {{exact},
          {error + roundings * setting_.output.half_ulp(std::fabs(exact) + error)},
          of_ == Quantity::mean ? errors.is_in_range : errors.is_bounded};
}

// relative: how far off the statistic may be, in parts of itself.
void StatisticObserver::try_causes(const RowStatistics& row, double actual, double relative,
                                   CauseCounts& counts) const {
  ++counts.wrong;
  counts.explained.resize(std::size(kSavedCauses));
  const double s = divisor_of(row.variance, setting_.formula);
  for (std::size_t k = 0; k < std::size(kSavedCauses); ++k) {
    const SavedCause& cause = kSavedCauses[k];
    if (!(of_ == Quantity::mean ? cause.is_of_mean : cause.is_of_rstd)) continue;
    const double value = cause.value(row, s, setting_.formula);
    // Of a square twice as far off.
    const double bound = 2 * relative * std::fabs(value) +
                         2 * setting_.kernel.arithmetic.smallest_normal +
                         setting_.output.half_ulp(value);
    counts.explained[k] += std::fabs(actual - value) <= bound ? 1 : 0;
  }
}

BlockFindings StatisticObserver::examine(const RowBlock& block) const {
  Found all;
  JudgedRows& found = all.judged;
  RowJudge judge(setting_);
  const std::span<const double> exact = of_ == Quantity::mean ? block.mean : block.rstd;
  for (std::int64_t r = 0; r < block.x.rows; ++r) {
    const double value = exact[static_cast<std::size_t>(r)];
    const double rounded = setting_.output.rounded(value);
    const double actual = numbers_[static_cast<std::size_t>(block.first_row + r)];
    if (actual == rounded) {
      RowJudge::count_exact(1, found);
      continue;
    }
    const std::vector<double> x = decoded(setting_.backend, row_of(block.x, r));
    const RowStatistics row = statistics_of(x, setting_.formula);
    const JudgedRow judged{block.first_row + r, x, {&actual, 1}, {&rounded, 1}};
    const auto find_bounds = [&](bool is_measured, RowBounds& of_row) {
      SumLosses losses;
      if (is_measured) {
        losses = losses_of({x, row}, setting_.formula, setting_.kernel.arithmetic,
                           setting_.normalized_shape);
      }
      of_row = bounds(row, value, losses);
    };
    judge.judge_and_settle_by(judged, find_bounds, found);
    if (choose_ && std::isfinite(actual)) {
      const RowBounds own = bounds(row, value, {});
      try_causes(row, actual, own.bound.front() / std::fabs(value), all.causes);
    }
  }
  return all;
}

void StatisticObserver::see(const RowBlock&, const BlockFindings& findings) {
  const auto& found = std::any_cast<const Found&>(findings);
  found_.judged.merge(found.judged);
  found_.causes.merge(found.causes);
}

Check StatisticObserver::check(const TensorInfo& x, const Plan& plan) const {
  Check result = begin_check(x, actual_, plan, setting_);
  const Shape shape = row_shape(result.x.shape, result.axes);
  result.axes = {};  // of a number a row none is normalized
  result.part = name(of_);
  result.is_statistic = true;
  result.judged = found_.judged;
  result.verdict = verdict_of(found_.judged);
  for (std::size_t k = 0; k < found_.causes.explained.size(); ++k) {
    const SavedCause& found = kSavedCauses[k];
    const bool is_cause = result.verdict == Verdict::differs && found_.causes.is_cause(k);
    if (!is_cause || !choose_(found.id)) continue;
    result.diagnosis.explanations.push_back(
        cause(std::string(found.id), std::string(found.words), kInfinity));
    break;
  }
  describe_places(result, std::ssize(numbers_), shape);
  return result;
}

}  // namespace lnorm
