#include "lnorm/diagnosis/row_formula.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "lnorm/core/formula.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/processors.hpp"
#include "lnorm/diagnosis/totals.hpp"

namespace lnorm {

namespace {

// The float64 numbers here are off as well, by a few units of their own.
constexpr double kOwnUnit = 0x1p-53;

}  // namespace

RowStatistics statistics_of(std::span<const double> x, const Formula& formula,
                            const std::optional<GivenNumbers>& given) {
  RowStatistics row;
  row.count = static_cast<double>(x.size());
  const auto [sum, sum_abs] = totals<2>(x.size(), [=](std::size_t i) -> std::array<double, 2> {
    return {x[i], std::fabs(x[i])};
  });
  if (formula.has_mean()) row.mean = sum / row.count;
  row.mean_abs = sum_abs / row.count;
  auto [squares, rest] =
      totals<2>(x.size(), [=, center = row.mean](std::size_t i) -> std::array<double, 2> {
        return {(x[i] - center) * (x[i] - center), x[i] - center};
      });
  // What the mean is off by, which matters where it is much larger than the deviations.
  if (formula.has_mean()) squares -= rest * (rest / row.count);
  row.variance = std::max(squares, 0.0) / formula.freedom(row.count);
  row.max_abs = greatest_of(x.size(), [=](std::size_t i) { return std::fabs(x[i]); });
  if (given) {
    row.mean = given->mean;
    row.variance = given->variance;
    row.is_given = true;
  }
  return row;
}

double divisor_of(double variance, const Formula& formula) { return Divisors(variance, formula).s; }

double variance_of(double divisor, const Formula& formula) {
  if (formula.eps_on == EpsOn::variance) return divisor * divisor - formula.eps;
  return formula.eps_on == EpsOn::std ? std::pow(divisor - formula.eps, 2) : divisor * divisor;
}

StatisticErrors errors_of(const RowStatistics& row, const Formula& formula,
                          const KernelModel& kernel, const SumLosses& losses) {
  const auto& [u, t, greatest, dtype] = kernel.arithmetic;
  const double n = row.count;
  const double g = summation_error(n, u, kernel.depth);
  const double var = row.variance;
  const double s = divisor_of(var, formula);
  const double reach = row.max_abs + std::fabs(row.mean);
  StatisticErrors errors;
  if (row.is_given) {
    // They are rounded to the arithmetic. A kernel may fold them into x * scale + shift, whose products are rounded.
    if (formula.has_mean()) errors.mean = (4 * u + kOwnUnit) * std::fabs(row.mean) + t;
    errors.variance = (u + kOwnUnit) * var + t;
    errors.is_in_range = var < greatest && reach < greatest && reach < greatest * s;
    carry_to_divisor(row, formula, kernel.arithmetic, errors);
    return errors;
  }
  if (formula.has_mean()) {
    errors.mean =
        (kernel.rounds_x ? g + u : g) * row.mean_abs + (2 * u + kOwnUnit) * std::fabs(row.mean) + t;
    errors.mean += kLossFactor * losses.mean;
  }
  // The third term: in Welford's updates the mean is off by another number each time, and the products do not cancel.
  errors.variance = (g + 4 * u) * var + errors.mean * errors.mean * n / formula.freedom(n) +
                    4 * u * std::fabs(row.mean) * std::sqrt(var) + t +
                    kLossFactor * losses.variance;
  errors.is_in_range = n < greatest && n * row.mean_abs < greatest &&
                       n * var + reach * reach < greatest && reach < greatest * s;
  carry_to_divisor(row, formula, kernel.arithmetic, errors);
  return errors;
}

void carry_to_divisor(const RowStatistics& row, const Formula& formula,
                      const Arithmetic& arithmetic, StatisticErrors& errors) {
  const double u = arithmetic.unit;
  const double var = row.variance;
  const double s = divisor_of(var, formula);
  if (formula.eps_on != EpsOn::std) {
    errors.s = errors.variance / (2 * s) + 4 * u * s;
  } else if (var == 0) {
    errors.s = std::sqrt(errors.variance) + 4 * u * s;
  } else {
    errors.s = errors.variance / (2 * std::sqrt(var)) + 4 * u * s;
  }
  errors.s_low = divisor_of(std::max(var - errors.variance, 0.0), formula) * (1 - 4 * u);
  // eps may be subnormal, as 1e-5 is in float16.
  errors.may_divide = formula.eps >= u * arithmetic.smallest_normal || errors.variance < var;
  errors.is_bounded = errors.is_in_range && errors.may_divide && s > 0 && errors.s_low >= s / 3;
}

bool keep_statistics_in(DType dtype, RowStatistics& row, double& s, StatisticErrors& errors) {
  const OutputFormat format(dtype);
  errors.mean = keep_in(format, row.mean, errors.mean);
  double inverse = 1 / s;
  const double error = 1 / errors.s_low - inverse;
  const double kept_error = keep_in(format, inverse, error);
  s = 1 / inverse;
  errors.s_low = 1 / (inverse + kept_error);
  return std::isfinite(inverse) && inverse > 0;
}

namespace {

// The largest |xhat| of a kernel, whose squares may lose t each where they underflow.
double most_of(const RowStatistics& row, double t) {
  if (row.variance > 0 && row.variance <= t) return kInfinity;
  const double kept = row.variance > 0 ? row.variance / (row.variance - t) : 1;
  return std::sqrt(row.count * kept);
}

}  // namespace

RowLine line_of(const RowStatistics& row, double s, const StatisticErrors& errors,
                const KernelModel& kernel) {
  const auto& [u, t, greatest, dtype] = kernel.arithmetic;
  const double g = summation_error(row.count, u, kernel.depth);
  return {.center = row.mean,
          .center_error = errors.mean,
          .inverse = 1 / s,
          .inverse_high = 1 / errors.s_low,
          .unit = u,
          .x_unit = kernel.rounds_x ? u : 0,
          .affine_unit = (kernel.adds_one ? 3 : 2) * u + 4 * kOwnUnit,
          .smallest = t,
          .weight_unit = kernel.rounds_weight ? u : 0,
          .most = row.is_given ? kInfinity : most_of(row, t) * (1 + g)};
}

LNORM_FOR_PROCESSORS
void fill_line(const RowLine& line, std::span<const double> x, const AffineNumbers& affine,
               std::vector<double>& y, std::vector<double>& error) {
  y.resize(x.size());
  error.resize(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const BoundedNumber one = y_of(line, x[i], affine.weight[i], affine.bias[i]);
    y[i] = one.value;
    error[i] = one.error;
  }
}

void fill_rounded_line(const RowLine& line, const Rounding& rounding, const OutputFormat& output,
                       std::span<const double> x, const AffineNumbers& affine,
                       std::vector<double>& y, std::vector<double>& error) {
  if (rounding == Rounding{}) return fill_line(line, x, affine, y, error);
  y.resize(x.size());
  error.resize(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double weight = affine.weight[i];
    const double bias = affine.bias[i];
    auto [xhat, own] = y_of(line, x[i], 1, 0);
    if (rounding.xhat) own += keep_in(output, xhat, own);
    double product = xhat * weight;
    own = std::fabs(weight) * own + line.affine_unit * std::fabs(product);
    if (rounding.product) own += keep_in(output, product, own);
    y[i] = product + bias;
    error[i] = own + line.affine_unit * std::fabs(bias) + line.smallest;
  }
}

}  // namespace lnorm
