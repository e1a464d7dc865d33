#include "support/gradient_oracle.hpp"

#include <algorithm>
#include <limits>

namespace oracle {

namespace mp = boost::multiprecision;

namespace {

bool is_finite(const Number& number) { return number.is_integer || std::isfinite(number.value); }

bool are_finite(std::span<const Number> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), is_finite);
}

// In lowest terms: many results are made of it.
Fraction reduced(const Fraction& value) {
  const Integer divisor = mp::gcd(value.numerator, value.denominator);
  return {value.numerator / divisor, value.denominator / divisor, value.exponent};
}

// The root of a fraction that is one goes into the rational part.
Surd surd(const Fraction& rational, const Fraction& factor,
          const std::shared_ptr<const Root>& root) {
  if (root->exact()) return {reduced(rational + factor * *root->exact()), {}, nullptr};
  return {reduced(rational), reduced(factor), root};
}

bool is_zero(const Surd& value) {
  return value.rational.numerator == 0 && value.factor.numerator == 0;
}

Surd operator*(const Surd& a, const Fraction& b) { return {a.rational * b, a.factor * b, a.root}; }

Surd operator-(const Surd& a, const Surd& b) {
  return {a.rational - b.rational, a.factor - b.factor, a.root};
}

Fraction bound(const Surd& value, int which, std::int64_t bits) {
  if (value.factor.numerator == 0) return value.rational;
  return value.rational + value.factor * value.root->bound(which, bits);
}

// What both bounds of the value come to. It is decided in the end: a value with a root in it is irrational.
template <class Function>
auto decided(const Surd& value, Function function) {
  return oracle::decided(
      [&](int which, std::int64_t bits) { return function(bound(value, which, bits)); });
}

}  // namespace

double rounded(const Surd& value, lnorm::DType dtype) {
  return decided(value, [&](const Fraction& near) { return rounded(near, dtype); });
}

std::int64_t exponent_of(const Surd& value) {
  const auto of = [](const Fraction& near) {
    const Fraction size{mp::abs(near.numerator), near.denominator, near.exponent};
    // As long as the digits are few a bound may be 0, or of the other sign.
    return std::pair(near.numerator.sign(),
                     size.numerator == 0 ? std::int64_t{0} : exponent_of(size));
  };
  return decided(value, of).second;
}

Integer truncated(const Surd& value, std::int64_t exponent) {
  return decided(value, [&](const Fraction& near) {
    Integer numerator = near.numerator;
    Integer denominator = near.denominator;
    const std::int64_t shift = near.exponent - exponent;
    (shift >= 0 ? numerator : denominator) <<= static_cast<unsigned>(std::abs(shift));
    return Integer(numerator / denominator);  // toward zero
  });
}

GradientRow::GradientRow(std::span<const Number> x, std::span<const Number> dy,
                         std::span<const Number> weight, bool plus_one,
                         const lnorm::Formula& formula, const std::optional<Saved>& saved)
    : n_(x.size()), dy_(dy.begin(), dy.end()) {
  is_normal_ = are_finite(x) && (!saved || (is_finite(saved->mean) && is_finite(saved->rstd)));
  has_gradient_ = is_normal_ && are_finite(dy) && are_finite(weight);
  if (!is_normal_) return;
  x_ = integers(x);
  std::vector<Fraction> g(x.size());
  for (std::size_t i = 0; has_gradient_ && i < x.size(); ++i) {
    g[i] = fraction(dy[i]);
    if (weight.empty()) continue;
    const Fraction w = fraction(weight[weight.size() == 1 ? 0 : i]);
    g[i] = g[i] * (plus_one ? w + Fraction{1, 1, 0} : w);
  }
  g_ = integers(g);
  Integer x_squares = 0;
  Integer products = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x_squares += x_.numerators[i] * x_.numerators[i];
    products += g_.numerators[i] * x_.numerators[i];
  }
  if (!formula.rms) {
    mean_ = saved ? fraction(saved->mean) : Fraction{x_.sum, n_, x_.exponent};
    g_mean_ = {g_.sum, n_, g_.exponent};
  }
  const Integer freedom = n_ - formula.ddof;
  const Fraction over_freedom{1, freedom, 0};
  const Fraction g_sum{g_.sum, 1, g_.exponent};
  product_ =
      reduced((Fraction{products, 1, g_.exponent + x_.exponent} - mean_ * g_sum) * over_freedom);
  if (saved) {
    const Fraction rstd = fraction(saved->rstd);
    inverse_ = {rstd, {}, nullptr};
    slope_ = {product_ * rstd * rstd * rstd, {}, nullptr};
    return;
  }
  Fraction variance{x_squares, freedom, 2 * x_.exponent};
  if (!formula.rms) {
    variance = {n_ * x_squares - x_.sum * x_.sum, n_ * freedom, 2 * x_.exponent};
  }
  find_divisor(variance, formula);
}

void GradientRow::find_divisor(const Fraction& variance, const lnorm::Formula& formula) {
  const Fraction eps = fraction({formula.eps});
  const Fraction one{1, 1, 0};
  const bool is_max = formula.eps_on == lnorm::EpsOn::max;
  if (is_max && (variance - eps * eps).numerator < 0) {
    inverse_ = {one / eps, {}, nullptr};
    slope_ = {};
    return;
  }
  if (is_max || formula.eps_on == lnorm::EpsOn::variance || eps.numerator == 0) {
    const Fraction square = is_max ? variance : variance + eps;
    is_normal_ = square.numerator != 0;
    has_gradient_ = has_gradient_ && is_normal_;
    if (!is_normal_) return;
    // 1/s = s / s^2, 1/s^3 = s / s^4
    const auto root = std::make_shared<const Root>(square);
    inverse_ = surd({}, one / square, root);
    slope_ = surd({}, product_ / (square * square), root);
    return;
  }
  const auto root = std::make_shared<const Root>(variance);
  if (root->exact()) {
    const Fraction s = *root->exact() + eps;
    inverse_ = {one / s, {}, nullptr};
    has_gradient_ = has_gradient_ && variance.numerator != 0;
    if (has_gradient_) slope_ = {product_ / (s * s * *root->exact()), {}, nullptr};
    return;
  }
  // With r the root: 1 / (r + eps) = (r - eps) / w, w = r^2 - eps^2, of which 1 / ((r + eps)^2 r) is made, too.
  const Fraction w = variance - eps * eps;
  inverse_ = surd(Fraction{} - eps / w, one / w, root);
  slope_ = surd(product_ * Fraction{-2, 1, 0} * eps / (w * w),
                product_ * (variance + eps * eps) / (w * w * variance), root);
}

Fraction GradientRow::deviation(std::size_t i) const {
  return Fraction{x_.numerators[i], 1, x_.exponent} - mean_;
}

Surd GradientRow::dx(std::size_t i) const {
  const Fraction g{g_.numerators[i], 1, g_.exponent};
  return inverse_ * (g - g_mean_) - slope_ * deviation(i);
}

Surd GradientRow::xhat(std::size_t i) const { return inverse_ * deviation(i); }

Columns::Columns(std::size_t columns, bool is_uniform)
    : is_uniform_(is_uniform), columns_(is_uniform ? 1 : columns) {}

void Columns::add(const GradientRow& row, int times) {
  for (std::size_t i = 0; i < row.dy().size(); ++i) {
    Column& column = columns_[is_uniform_ ? 0 : i];
    const Number& dy = row.dy()[i];
    column.has_dbias = column.has_dbias && is_finite(dy);
    column.has_dweight = column.has_dweight && is_finite(dy) && row.is_normal();
    if (column.has_dbias) column.dbias = column.dbias + fraction(dy) * Fraction{times, 1, 0};
    if (!column.has_dweight) continue;
    const Surd term = row.xhat(i) * fraction(dy);
    if (!is_zero(term)) column.terms.push_back({term, times});
  }
}

double Columns::dweight(std::size_t column, lnorm::DType dtype) const {
  const Column& of = columns_[column];
  if (!of.has_dweight) return std::nan("");
  if (of.terms.empty()) return 0;
  std::int64_t exponent = std::numeric_limits<std::int64_t>::min();
  for (const Term& term : of.terms) exponent = std::max(exponent, exponent_of(term.value));
  constexpr std::int64_t kBits = 160;
  Fraction sum{0, 1, exponent - kBits};
  for (const Term& term : of.terms) {
    sum.numerator += truncated(term.value, sum.exponent) * term.times;
  }
  return rounded(sum, dtype);
}

double Columns::dbias(std::size_t column, lnorm::DType dtype) const {
  const Column& of = columns_[column];
  return of.has_dbias ? rounded(of.dbias, dtype) : std::nan("");
}

}  // namespace oracle
