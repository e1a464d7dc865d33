#include "lnorm/kernel/exact_row.hpp"

#include <cmath>
#include <limits>

namespace lnorm {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// value * weight + bias, rounded once.
double apply_affine(Scaled value, const Affine& affine, std::int64_t i) noexcept {
  const double weight = affine.weight.empty() ? 1 : *affine.weight.high(i);
  const double bias = affine.bias.empty() ? 0 : *affine.bias.high(i);
  if (!std::isfinite(weight) || !std::isfinite(bias)) return to_double(value) * weight + bias;
  if (!affine.weight.empty()) value = value * scaled(weight, *affine.weight.low(i));
  if (!affine.bias.empty()) value = value + scaled(bias, *affine.bias.low(i));
  return to_double(value);
}

}  // namespace

ExactRow::ExactRow(const ExactSums& sums, std::int64_t n, const Formula& formula) noexcept
    : n_(n), finite_(sums.finite) {
  if (!finite_) return;
  ExactSums about_center = sums;
  if (formula.rms) about_center.sum = {};
  minus_sum_ = -about_center.sum;
  mean_ = exact_mean(about_center, n);
  const Scaled variance = exact_variance(about_center, n, formula.ddof);
  const Scaled eps = scaled(formula.eps);
  denominator_ = formula.eps_on == EpsOn::variance ? sqrt(variance + eps) : sqrt(variance) + eps;
  defined_ = denominator_.m.high != 0;
}

double ExactRow::mean() const noexcept { return finite_ ? to_double(mean_) : kNan; }

double ExactRow::rstd() const noexcept {
  return defined_ ? to_double(scaled(1) / denominator_) : kNan;
}

void ExactRow::write(const RowsIn& part, const Affine& affine, std::int64_t offset,
                     const RowsOut& y) const noexcept {
  const auto n = static_cast<std::uint64_t>(n_);
  const Scaled divisor = scaled(static_cast<double>(n_)) * denominator_;
  const auto out_size = static_cast<std::int64_t>(item_size(y.dtype));
  for_each_element(part, [&](std::int64_t i, double high, double low) {
    double result = kNan;
    if (defined_) {
      const ExactElement e = exact_element(high, low);
      ExactInteger scaled_deviation = minus_sum_;  // n x - sum(x)
      scaled_deviation.add(static_cast<UInt128>(e.magnitude) * n, e.shift, e.negative);
      result = apply_affine(scaled_deviation.scaled(-kExactUnit) / divisor, affine, offset + i);
    }
    store(&result, 1, y.dtype, y.data + i * out_size);
  });
}

}  // namespace lnorm
