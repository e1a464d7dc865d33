// The formula by another route: sum(x) and sum(x^2) as integers, without rounding, and from them
//
//   x - mean = (n x - sum(x)) / n
//
// and the variance. What is left (a division, a root, the affine parameters) is done in
// double-doubles with an exponent of their own, and rounded once.

#include <cmath>
#include <limits>

#include "lnorm/kernel/each_row.hpp"
#include "lnorm/kernel/exact_statistics.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

namespace {

// value * weight + bias, rounded once.
double apply_affine(Scaled value, const Affine& affine, std::int64_t i) noexcept {
  const double weight = affine.weight.empty() ? 1 : *affine.weight.high(i);
  const double bias = affine.bias.empty() ? 0 : *affine.bias.high(i);
  if (!std::isfinite(weight) || !std::isfinite(bias)) return to_double(value) * weight + bias;
  if (!affine.weight.empty()) value = value * scaled(weight, *affine.weight.low(i));
  if (!affine.bias.empty()) value = value + scaled(bias, *affine.bias.low(i));
  return to_double(value);
}

void reference_row(const RowsIn& x, const RowsOut& y, const Affine& affine, const Formula& formula,
                   const RowStats& stats) noexcept {
  ExactSums sums = exact_sums(x);
  if (formula.rms) sums.sum = {};
  Scaled denominator;  // sqrt(var + eps), or the like
  if (sums.finite) {
    const Scaled variance = exact_variance(sums, x.row_length, formula.ddof);
    const Scaled eps = scaled(formula.eps);
    denominator = formula.eps_on == EpsOn::variance ? sqrt(variance + eps) : sqrt(variance) + eps;
  }
  const bool defined = sums.finite && denominator.m.high != 0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (stats.mean) *stats.mean = sums.finite ? to_double(exact_mean(sums, x.row_length)) : nan;
  if (stats.rstd) *stats.rstd = defined ? to_double(scaled(1) / denominator) : nan;

  const ExactInteger minus_sum = -sums.sum;
  const auto n = static_cast<std::uint64_t>(x.row_length);
  const Scaled divisor = scaled(static_cast<double>(x.row_length)) * denominator;
  const auto out_size = static_cast<std::int64_t>(item_size(y.dtype));
  for_each_element(x, [&](std::int64_t i, double high, double low) {
    double result = nan;
    if (defined) {
      const ExactElement e = exact_element(high, low);
      ExactInteger scaled_deviation = minus_sum;  // n x - sum(x)
      scaled_deviation.add(static_cast<UInt128>(e.magnitude) * n, e.shift, e.negative);
      result = apply_affine(scaled_deviation.scaled(-kExactUnit) / divisor, affine, i);
    }
    store(&result, 1, y.dtype, y.data + i * out_size);
  });
}

}  // namespace

void layer_norm_reference(const RowsIn& x, const RowsOut& y, const Affine& affine,
                          const Formula& formula, const RowStats& stats) noexcept {
  each_row(x, y, stats, [&](const RowsIn& row, const RowsOut& out, const RowStats& row_stats) {
    reference_row(row, out, affine, formula, row_stats);
  });
}

}  // namespace lnorm
