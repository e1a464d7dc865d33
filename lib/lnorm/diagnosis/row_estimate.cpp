#include "lnorm/diagnosis/row_estimate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/processors.hpp"
#include "lnorm/diagnosis/totals.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kFewValues = 32;
constexpr double kSingular = 1e-9;  // a determinant, in parts of its first product

// How many elements share a rounding, on average over the first ones of the row; three times all of them where few differ. Without a
// bias, elements share it that differ by sign or a power of two.
double repeats_of(const EstimatedRow& row, double half_ulp_of_1) {
  constexpr std::size_t kLooked = 4096;
  const std::size_t n = std::min(row.x.size(), kLooked);
  const bool has_bias =
      std::any_of(row.bias.begin(), row.bias.begin() + static_cast<std::ptrdiff_t>(n),
                  [](double bias) { return bias != 0; });
  const double mean = std::fabs(row.mean) > half_ulp_of_1 / 4 * row.s ? row.mean : 0;
  // A table that is half full at most, where NaN marks what is free.
  std::vector<double> seen(std::bit_ceil(2 * n + 1), kNan);
  std::size_t distinct = 0;
  for (std::size_t i = 0; i < n; ++i) {
    int exponent = 0;
    const double value =
        has_bias ? row.x[i] : std::fabs(std::frexp(row.weight[i] * (row.x[i] - mean), &exponent));
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
    const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);  // -0 is 0
    std::size_t at = (bits * kGolden >> 40) % seen.size();
    while (!std::isnan(seen[at]) && seen[at] != value) at = (at + 1) % seen.size();
    distinct += std::isnan(seen[at]) ? 1 : 0;
    seen[at] = value;
  }
  return distinct < kFewValues ? 3 * static_cast<double>(row.x.size())
                               : static_cast<double>(n) / static_cast<double>(distinct);
}

}  // namespace

std::optional<ThinRow> thinned(const EstimatedRow& row) {
  constexpr std::size_t kSome = ThinRow::kSome;
  const std::size_t n = row.x.size();
  if (n < 4 * kSome) return {};
  ThinRow thin;
  thin.mean = row.mean;
  thin.s = row.s;
  for (std::size_t k = 0; k < kSome; ++k) {
    const std::size_t i = ThinRow::place(k, n);
    thin.x[k] = row.x[i];
    thin.actual[k] = row.actual[i];
    thin.weight[k] = row.weight[i];
    thin.bias[k] = row.bias[i];
    thin.kept[k] = row.kept.empty() ? char{1} : row.kept[i];
  }
  return thin;
}

double RowEstimator::own_error(const EstimatedRow& row, std::size_t i, double scale,
                               double offset) const {
  const auto& [u, t, greatest, dtype] = kernel_.arithmetic;
  const double x_roundings = kernel_.rounds_x ? 2 : 1;
  const double affine_roundings = kernel_.adds_one ? 3 : 2;
  const double w = std::fabs(row.weight[i]);
  const double s = row.s / scale;
  const double xhat = std::fabs(row.x[i] - row.mean) / s + std::fabs(offset);
  const double size = (x_roundings * std::fabs(row.x[i]) + std::fabs(row.mean)) / s;
  double error = output_.half_ulp(row.actual[i]) * (1 + 2 * u) + u * w * (3 * xhat + size) +
                 affine_roundings * u * (w * xhat + std::fabs(row.bias[i])) + t * (1 + w / s);
  if (rounding_.xhat) error += w * output_.half_ulp(xhat);
  if (rounding_.product) error += output_.half_ulp(w * xhat);
  return output_.dtype() == DType::float64 ? 2 * error : error;
}

void RowEstimator::fill(const EstimatedRow& row, double scale, double offset) {
  const std::size_t n = row.x.size();
  for (std::vector<double>* const terms : {&of_alpha_, &of_gamma_, &right_}) terms->assign(n, 0);
  parts_.assign(n, 1);
  roundings_.assign(n, 0);
  double most = 0;
  std::vector<double>& errors = right_;
  for (std::size_t i = 0; i < n; ++i) {
    if ((!row.kept.empty() && row.kept[i] == 0) || !std::isfinite(row.actual[i])) continue;
    errors[i] = own_error(row, i, scale, offset);
    if (std::isfinite(errors[i])) most = std::max(most, errors[i]);
  }
  // The error of a zero of RMS norm is next to none: its part would leave the range.
  const double least = 0x1p-200 * most;
  for (std::size_t i = 0; i < n; ++i) {
    const double part = 1 / std::max(errors[i], least);
    const bool counts = errors[i] > 0 && std::isfinite(part);
    right_[i] = counts ? (row.actual[i] - row.bias[i]) * part : 0;
    if (!counts) continue;
    roundings_[i] = output_.half_ulp(row.actual[i]) * part;
    of_alpha_[i] = row.weight[i] * ((row.x[i] - row.mean) / row.s) * part;
    of_gamma_[i] = row.weight[i] * part;
  }
}

RowEstimator::Solution RowEstimator::solve() const {
  Solution found = solve(right_);
  // Sums in float64 lose as much here as in a kernel: what is left is solved again.
  if (kernel_.arithmetic.dtype != DType::float64) return found;
  std::vector<double> left(right_);
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] -= found.alpha * of_alpha_[i] + found.gamma * of_gamma_[i];
  }
  const Solution more = solve(left);
  found.alpha += more.alpha;
  found.gamma += more.gamma;
  return found;
}

RowEstimator::Solution RowEstimator::solve(const std::vector<double>& right) const {
  const auto [aa, ag, gg, ar, gr] =
      totals<5>(right_.size(), [&](std::size_t i) -> std::array<double, 5> {
        const double a = of_alpha_[i] * parts_[i];
        const double g = of_gamma_[i] * parts_[i];
        return {a * of_alpha_[i], a * of_gamma_[i], g * of_gamma_[i], a * right[i], g * right[i]};
      });
  const double determinant = aa * gg - ag * ag;
  if (!(determinant > kSingular * aa * gg)) {
    // Under RMS norm, elements of one size tell the divisor alone.
    if (aa > 0) return {ar / aa, 0, aa, ag, gg, true};
    return {0, gg > 0 ? gr / gg : 0, aa, ag, gg, false};
  }
  return {(ar * gg - gr * ag) / determinant, (gr * aa - ar * ag) / determinant, aa, ag, gg, true};
}

double RowEstimator::residual(const Solution& solution, std::size_t i) const {
  return std::fabs(right_[i] - solution.alpha * of_alpha_[i] - solution.gamma * of_gamma_[i]);
}

LNORM_FOR_PROCESSORS
RowEstimate RowEstimator::estimate(const EstimatedRow& row) {
  fill(row);
  Solution found = solve();
  // A kernel whose xhat is larger, or has another mean, rounds larger numbers.
  if (std::fabs(found.alpha) > 2 || std::fabs(found.gamma) > 0x1p-10) {
    fill(row, std::fabs(found.alpha) > 2 ? std::fabs(found.alpha) : 1, found.gamma);
    found = solve();
  }
  RowEstimate result{.alpha = found.alpha, .gamma = found.gamma, .is_known = found.is_known};
  result.residual = greatest_of(right_.size(), [&](std::size_t i) { return residual(found, i); });
  if (!found.is_known) return result;
  const double determinant = found.aa * found.gg - found.ag * found.ag;
  const auto n = static_cast<double>(row.x.size());
  result.signal = std::sqrt(found.aa / n);
  const double repeated = repeats_of(row, output_.half_ulp(1));
  if (!(determinant > kSingular * found.aa * found.gg)) {
    constexpr double kUnknown = 1e6;
    result.alpha_error = std::max(std::sqrt(repeated / 3 / found.aa), room(found, of_alpha_));
    result.gamma_error = kUnknown;
    return result;
  }
  // The mean square of an error that may be anywhere within its bound is a third of the bound's square. Where results are the elements
  // themselves, other lines give the same results: they may be farther away than that.
  result.alpha_error =
      std::max(std::sqrt(found.gg / determinant / 3 * repeated), room(found, of_alpha_));
  result.gamma_error =
      std::max(std::sqrt(found.aa / determinant / 3 * repeated), room(found, of_gamma_));
  return result;
}

double RowEstimator::room(const Solution& solution, const std::vector<double>& terms) const {
  const auto to = [&](double sign) {
    return 1 / greatest_of(right_.size(), [&](std::size_t i) {
             const double left =
                 right_[i] - solution.alpha * of_alpha_[i] - solution.gamma * of_gamma_[i];
             return std::fabs(terms[i]) /
                    std::max(roundings_[i] - std::copysign(sign, terms[i]) * left, 1e-300);
           });
  };
  return std::max(to(1), to(-1));
}

std::optional<RowEstimate> RowEstimator::line(const EstimatedRow& row) {
  const auto some = thinned(row);
  if (some && is_bent(*some)) return {};
  const RowEstimate found = estimate(row);
  return found.is_known && found.residual <= kLine ? std::optional(found) : std::nullopt;
}

bool RowEstimator::is_bent(const ThinRow& row) {
  fill({row.x, row.actual, row.weight, row.bias, row.kept, row.mean, row.s});
  const Solution found = solve();
  double squares = 0;
  for (std::size_t k = 0; k < row.x.size(); ++k) squares += std::pow(residual(found, k), 2);
  // An xhat that is larger has larger errors.
  const double most = kLine * std::max(1.0, 2 * std::fabs(found.alpha));
  return found.is_known && squares > most * most * static_cast<double>(row.x.size());
}

LNORM_FOR_PROCESSORS
bool RowEstimator::fits(const EstimatedRow& row, double most) {
  constexpr int kIterations = 60;
  fill(row);
  for (int k = 0; k < kIterations; ++k) {
    const Solution found = solve();
    double worst = 0;
    double sum = 0;
    double squares = 0;
    double all = 0;
    for (std::size_t i = 0; i < right_.size(); ++i) {
      const double one = residual(found, i);
      worst = std::max(worst, one);
      all += parts_[i];
      squares += parts_[i] * one * one;
      parts_[i] *= one + 1e-12;
      sum += parts_[i];
    }
    if (worst <= most) return true;
    // No line leaves less than the least mean square.
    const bool is_far = found.is_known && squares > 1.0001 * most * most * all;
    if (is_far || !(sum > 0)) return false;
    const double scale = static_cast<double>(parts_.size()) / sum;
    for (double& part : parts_) part *= scale;
  }
  return false;
}

}  // namespace lnorm
