#include "lnorm/diagnosis/judge.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/processors.hpp"
#include "lnorm/diagnosis/row_estimate.hpp"
#include "lnorm/diagnosis/totals.hpp"

namespace lnorm {

std::string_view name(Quantity quantity) noexcept {
  constexpr std::string_view kNames[] = {"y", "mean", "rstd", "dx", "dweight", "dbias"};
  return kNames[static_cast<std::size_t>(quantity)];
}

void JudgedRows::merge(const JudgedRows& other) {
  rows += other.rows;
  elements += other.elements;
  correctly_rounded += other.correctly_rounded;
  beyond += other.beyond;
  non_finite += other.non_finite;
  unjudged_rows += other.unjudged_rows;
  not_finite_rows += other.not_finite_rows;
  scaled_rows += other.scaled_rows;
  tree.take(other.tree);
  loop.take(other.loop);
  scale.take(other.scale);
  doubtful_rows.append(other.doubtful_rows);
  loop_rows += other.loop_rows;
  affected_rows.append(other.affected_rows);
  affected_elements.resize(std::max(affected_elements.size(), other.affected_elements.size()));
  for (std::size_t i = 0; i < other.affected_elements.size(); ++i) {
    affected_elements[i] += other.affected_elements[i];
  }
  whole_rows += other.whole_rows;
}

void JudgedRows::replace(const JudgedRows& before, const JudgedRows& after) {
  beyond -= before.beyond;
  non_finite -= before.non_finite;
  unjudged_rows -= before.unjudged_rows;
  scaled_rows -= before.scaled_rows;
  whole_rows -= before.whole_rows;
  affected_rows.remove(before.affected_rows);
  for (std::size_t i = 0; i < before.affected_elements.size(); ++i) {
    affected_elements[i] -= before.affected_elements[i];
  }
  merge(after);
}

void RowJudge::count_exact(std::int64_t elements, JudgedRows& found) {
  ++found.rows;
  found.elements += elements;
  found.correctly_rounded += elements;
}

bool RowJudge::judge(const JudgedRow& row, JudgedRows& found) {
  // Where rows are beyond their bounds one after another the glance is lost time: one of some takes it.
  constexpr std::int64_t kSome = 8;
  const bool glances = beyond_ < kSome || beyond_ % kSome == 0;
  if (row.kept.empty() && glances && passes(row, found)) {
    beyond_ = 0;
    return false;
  }
  const bool is_beyond = judge_by(
      row, are_finite(row.x), [&](bool, RowBounds& bounds) { find_bounds(row, nullptr, bounds); },
      found);
  beyond_ = is_beyond ? beyond_ + 1 : 0;
  return is_beyond;
}

bool RowJudge::judge_by(const JudgedRow& row, const FindBounds& bounds, JudgedRows& found) {
  const auto nans =
      std::count_if(row.exact.begin(), row.exact.end(), [](double e) { return std::isnan(e); });
  return judge_by(row, nans == 0, bounds, found);
}

bool RowJudge::judge_by(const JudgedRow& row, bool is_finite, const FindBounds& bounds,
                        JudgedRows& found) {
  const std::int64_t judged = row.judged();
  std::int64_t equal = 0;
  for (std::size_t i = 0; i < row.actual.size(); ++i) {
    const double a = row.actual[i];
    const double e = row.exact[i];
    equal += static_cast<std::int64_t>(row.is_kept(i) && (a == e || (a != a && e != e)));
  }
  ++found.rows;
  found.elements += judged;
  found.correctly_rounded += equal;
  if (!is_finite) {
    ++found.unjudged_rows;
    ++found.not_finite_rows;
  }
  if (!is_finite || equal == judged) return false;
  fill(row, bounds, false, tree_);
  return judge_bounds(row, nullptr, found);
}

bool RowJudge::passes(const JudgedRow& row, JudgedRows& found) const {
  if (setting_.rounding.xhat || setting_.rounding.product) return false;
  // Sums of another order than those that decide: what is this near to a limit does not pass.
  constexpr double kNear = 1 - 1e-6;
  const Formula& formula = setting_.formula;
  const KernelModel& kernel = setting_.kernel;
  const auto n = std::ssize(row.x);
  const RowSizes sizes = row_sizes(setting_.backend, row.x.data(), n, !formula.has_mean());
  const RowStatistics statistics{
      .mean = row.given ? row.given->mean : sizes.mean,
      .variance =
          row.given ? row.given->variance : sizes.squares / static_cast<double>(formula.freedom(n)),
      .mean_abs = sizes.mean_abs,
      .max_abs = sizes.max_abs,
      .count = static_cast<double>(n),
      .is_given = row.given.has_value()};
  if (!(statistics.variance >= 0)) return false;
  const StatisticErrors errors = errors_of(statistics, formula, kernel);
  if (!errors.is_bounded) return false;
  const double s = divisor_of(statistics.variance, formula);
  const RowLine line = line_of(statistics, s, errors, kernel);
  // Where |xhat| comes near to its most is looked at element by element.
  const bool is_far_below = 4 * line.center_error * line.inverse_high < line.most &&
                            line.inverse_high < 1.5 * line.inverse;
  if (!is_far_below) return false;
  const OutputFormat& output = setting_.output;
  const AffineNumbers& affine = affine_of(row);
  const RowScreen screen =
      screen_row(setting_.backend, line, kNear * std::min(1.0, found.tree.ratio),
                 {output.half_unit(), output.smallest_half(), output.dtype() == DType::float64},
                 {n, row.x.data(), row.actual.data(), row.exact.data(), affine.weight.data(),
                  affine.bias.data()});
  if (screen.exceeds || !screen.is_finite) return false;
  if (setting_.is_wide()) {
    const double determinant = screen.ww * screen.pp - screen.wp * screen.wp;
    const double b = screen.ww * screen.ep - screen.wp * screen.ew;
    if (std::fabs(b) > kNear * determinant * errors.s / s) return false;
  }
  ++found.rows;
  found.elements += n;
  found.correctly_rounded += screen.equal;
  return true;
}

bool RowJudge::is_line(const JudgedRow& row, const RowStatistics& statistics) const {
  constexpr double kOwnErrors = 2;  // right rows need 1.4
  RowEstimator estimator(setting_.kernel, setting_.output, setting_.rounding);
  const auto& [weight, bias] = affine_of(row);
  const double s = divisor_of(statistics.variance, setting_.formula);
  return estimator.fits({row.x, row.actual, weight, bias, row.kept, statistics.mean, s},
                        kOwnErrors);
}

void RowJudge::settle(const JudgedRow& row, const SumLosses& losses, JudgedRows& before,
                      JudgedRows& after) {
  settle_by(
      row,
      [&](bool is_measured, RowBounds& bounds) {
        find_bounds(row, is_measured ? &losses : nullptr, bounds);
      },
      before, after);
}

void RowJudge::settle_by(const JudgedRow& row, const FindBounds& bounds, JudgedRows& before,
                         JudgedRows& after) {
  fill(row, bounds, false, tree_);
  settle_bounds(row, bounds, before, after);
}

void RowJudge::settle_bounds(const JudgedRow& row, const FindBounds& bounds, JudgedRows& before,
                             JudgedRows& after) {
  fill(row, bounds, true, measured_);
  judge_bounds(row, nullptr, before);
  judge_bounds(row, &measured_, after);
}

void RowJudge::fill(const JudgedRow& row, const FindBounds& find, bool is_measured,
                    RowBounds& bounds) const {
  find(is_measured, bounds);
  // What was computed here is no better than the kernel's: take what is known to the last bit.
  if (setting_.output.dtype() == DType::float64) {
    bounds.y.assign(row.exact.begin(), row.exact.end());
  }
}

void RowJudge::judge_and_settle_by(const JudgedRow& row, const FindBounds& bounds,
                                   JudgedRows& found) {
  if (!judge_by(row, bounds, found) || setting_.kernel.depth) return;
  JudgedRows before;
  JudgedRows after;
  settle_bounds(row, bounds, before, after);
  found.replace(before, after);
}

// Counts what is beyond the bound, by ratios_; of rows without one, what is not finite.
void RowJudge::judge_elements(const JudgedRow& row, const RowBounds& bounds,
                              JudgedRows& found) const {
  const std::size_t n = row.actual.size();
  if (!bounds.is_bounded) {
    ratios_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const bool is_wrong = is_lost(row, i) && !may_overflow(bounds, i, row.actual[i]);
      ratios_[i] = is_wrong ? kInfinity : 0;
    }
  }
  std::int64_t affected = 0;
  for (const double ratio : ratios_) affected += ratio > 1 ? 1 : 0;
  if (affected == 0) return;
  found.affected_elements.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!(ratios_[i] > 1)) continue;
    ++found.affected_elements[i];
    found.non_finite += is_lost(row, i) ? 1 : 0;
  }
  found.beyond += affected;
  found.affected_rows.add(row.number);
  found.whole_rows += static_cast<std::int64_t>(affected == row.judged());
  if (!bounds.is_bounded) --found.unjudged_rows;
}

bool RowJudge::is_lost(const JudgedRow& row, std::size_t i) {
  return row.is_kept(i) && !std::isfinite(row.actual[i]) && std::isfinite(row.exact[i]);
}

bool RowJudge::judge_bounds(const JudgedRow& row, const RowBounds* measured,
                            JudgedRows& found) const {
  const auto is_within = [](const WorstRatio& element, const RowBounds& bounds) {
    return element.ratio <= 1 && bounds.scale.ratio <= 1;
  };
  const auto count_unjudged = [&](const RowBounds& bounds) {
    ++found.unjudged_rows;
    if (bounds.is_in_range) judge_elements(row, bounds, found);
  };
  if (!tree_.is_bounded) {
    count_unjudged(tree_);
    return false;
  }
  const WorstRatio of_tree = worst_of(row, tree_);
  found.tree.take(of_tree);
  if (is_within(of_tree, tree_)) return false;
  if (measured == nullptr) {
    found.doubtful_rows.add(row.number);
  } else if (!measured->is_bounded) {
    count_unjudged(*measured);
    return true;
  }
  const bool is_held = measured != nullptr && (of_tree.ratio <= 1 || measured->is_line);
  const RowBounds& bounds = is_held ? *measured : tree_;
  if (is_held) {
    const WorstRatio of_sums = worst_of(row, bounds);
    found.loop.take(of_sums);
    if (is_within(of_sums, bounds)) {
      ++found.loop_rows;
      return true;
    }
  }
  judge_elements(row, bounds, found);
  if (bounds.scale.ratio <= 1) return true;
  ++found.scaled_rows;
  found.scale.take(bounds.scale);
  return true;
}

void RowJudge::find_bounds(const JudgedRow& row, const SumLosses* losses, RowBounds& bounds) const {
  const Formula& formula = setting_.formula;
  const RowStatistics statistics = statistics_of(row.x, formula, row.given);
  const StatisticErrors errors =
      errors_of(statistics, formula, setting_.kernel, losses != nullptr ? *losses : SumLosses{});
  bounds.is_bounded = errors.is_bounded;
  bounds.is_in_range = errors.is_in_range && errors.may_divide;
  if (!bounds.is_in_range) return;
  const RowLine line =
      line_of(statistics, divisor_of(statistics.variance, formula), errors, setting_.kernel);
  fill_rounded_line(line, setting_.rounding, setting_.output, row.x, affine_of(row), bounds.y,
                    bounds.bound);
  const bool is_float64 = setting_.output.dtype() == DType::float64;
  if (is_float64) bounds.y.assign(row.exact.begin(), row.exact.end());
  const double roundings = is_float64 ? 2 : 1;
  for (std::size_t i = 0; i < bounds.y.size(); ++i) {
    bounds.bound[i] += roundings * last_rounding(bounds, i);
  }
  // Of a row with an element that is beyond its bound the scale is not asked.
  bool has_scale = setting_.is_wide() && errors.is_bounded;
  for (std::size_t i = 0; has_scale && i < bounds.y.size(); ++i) {
    has_scale = !row.is_kept(i) || !(std::fabs(row.actual[i] - bounds.y[i]) > bounds.bound[i]);
  }
  bounds.scale = has_scale ? scale_of(row, statistics, errors, bounds) : WorstRatio{};
  bounds.is_line = losses == nullptr || !errors.is_bounded || is_line(row, statistics);
}

double RowJudge::ratio_of(const JudgedRow& row, const RowBounds& bounds, std::size_t i) const {
  const double actual = row.actual[i];
  if (actual == row.exact[i] || !row.is_kept(i)) return 0;
  if (std::isfinite(actual) && std::isfinite(row.exact[i])) {
    return std::fabs(actual - bounds.y[i]) / bounds.bound[i];
  }
  if (std::isnan(actual) && std::isnan(row.exact[i])) return 0;
  if (!std::isfinite(actual)) return may_overflow(bounds, i, actual) ? 0 : kInfinity;
  if (std::isnan(bounds.y[i]) || (std::isnan(row.exact[i]) && setting_.output.has_infinity())) {
    return kInfinity;
  }
  // A finite output where the exact one is infinite is right if it is near y. In float64 nothing holds such a y.
  if (std::isinf(bounds.y[i]))
    return std::fabs(actual) >= setting_.output.greatest() / 2 ? 0 : kInfinity;
  return std::fabs(actual - bounds.y[i]) / bounds.bound[i];
}

// Whether rounding alone may make of an element what is not finite.
bool RowJudge::may_overflow(const RowBounds& bounds, std::size_t i, double actual) const {
  const OutputFormat& output = setting_.output;
  if (setting_.saturates || (std::isnan(actual) && output.has_infinity())) return false;
  const double y = bounds.y[i];
  return output.overflows((std::isnan(actual) ? std::fabs(y) : std::copysign(1, actual) * y) +
                          bounds.bound[i]);
}

LNORM_FOR_PROCESSORS
WorstRatio RowJudge::worst_of(const JudgedRow& row, const RowBounds& bounds) const {
  const std::size_t n = row.actual.size();
  ratios_.resize(n);
  const auto [not_finite] = totals<1>(n, [&](std::size_t i) -> std::array<double, 1> {
    return {(row.actual[i] - row.actual[i]) + (row.exact[i] - row.exact[i])};
  });
  if (not_finite == 0 && row.kept.empty()) {
    for (std::size_t i = 0; i < n; ++i) {
      const double ratio = std::fabs(row.actual[i] - bounds.y[i]) / bounds.bound[i];
      ratios_[i] = row.actual[i] == row.exact[i] ? 0 : ratio;
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) ratios_[i] = ratio_of(row, bounds, i);
  }
  const double most = greatest_of(n, [&](std::size_t i) { return ratios_[i]; });
  if (most == 0) return {0, row.number, 0, 0, 0};
  const auto i = static_cast<std::size_t>(std::ranges::find(ratios_, most) - ratios_.begin());
  return {most, row.number, static_cast<std::int64_t>(i), row.actual[i], bounds.y[i]};
}

WorstRatio RowJudge::scale_of(const JudgedRow& row, const RowStatistics& statistics,
                              const StatisticErrors& errors, const RowBounds& bounds) const {
  const double s = divisor_of(statistics.variance, setting_.formula);
  const AffineNumbers& affine = affine_of(row);
  // The least squares fit of the row's errors to weight_i (shift + scale xhat_i), of which the scale is kept.
  const auto [ww, wp, pp, ew, ep, not_finite] =
      totals<6>(row.x.size(), [&](std::size_t i) -> std::array<double, 6> {
        if (!row.is_kept(i)) return {};
        const double w = affine.weight[i];
        const double p = w * (row.x[i] - statistics.mean) / s;
        const double error = row.actual[i] - bounds.y[i];
        return {w * w, w * p, p * p, error * w, error * p, error - error};  // NaN or 0
      });
  if (not_finite != 0) return {};
  const double determinant = ww * pp - wp * wp;
  if (!(determinant > 1e-6 * ww * pp)) return {};  // the row has no deviations
  const double scale = (ww * ep - wp * ew) / determinant;
  // What is left of an element's bound where mean and s are right goes into b by the element's part in the fit. A kernel
  // may compute x (w / s) + (bias - mean w / s), so that products of the size of x and of the mean are rounded.
  const double unit = setting_.kernel.arithmetic.unit;
  const double smallest = setting_.kernel.arithmetic.smallest_normal;
  const double x_roundings = setting_.kernel.rounds_x ? 3 : 2;
  const auto own = [&](double w, double d, std::size_t i) {
    return std::fabs(w) * (unit *
                               (x_roundings * std::fabs(row.x[i]) + 3 * std::fabs(statistics.mean) +
                                std::fabs(d)) /
                               errors.s_low +
                           smallest) +
           4 * unit * std::fabs(w * d / s) + 3 * unit * std::fabs(affine.bias[i]) + smallest +
           last_rounding(bounds, i);
  };
  const double of_w = wp / determinant;
  const double of_p = ww / determinant;
  const auto [noise] = totals<1>(row.x.size(), [&](std::size_t i) -> std::array<double, 1> {
    if (!row.is_kept(i)) return {};
    const double w = affine.weight[i];
    const double d = row.x[i] - statistics.mean;
    return {std::fabs(of_p * (w * d / s) - of_w * w) * own(w, d, i)};
  });
  const double bound = std::max(errors.s / s, s / errors.s_low - 1) + noise;
  return {std::fabs(scale) / bound, row.number, 0, 1 + scale, 1};
}

}  // namespace lnorm
