#include "lnorm/kernel/exact_row.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/exact_sums.hpp"
#include "lnorm/kernel/rounding.hpp"

namespace lnorm {

namespace {

const Dyadic kOne(std::int64_t{1});

// The float64 nearest to numerator / denominator, the latter positive.
double quotient(const Dyadic& numerator, const Dyadic& denominator) {
  return nearest_between(
      DType::float64, -kInfinity, kInfinity, numerator.sign(),
      [&] { return std::fabs(numerator.approximate()) / denominator.approximate(); },
      [&](const Dyadic& m) { return compare(numerator, denominator * m); });
}

// The float64 nearest to a positive number of which compare_to(m) tells on which side of m it is.
template <class Compare>
double nearest_positive(double guess, Compare compare_to) {
  return nearest_between(
      DType::float64, 0, kInfinity, 1, [=] { return guess; }, compare_to);
}

}  // namespace

struct ExactRow::Integers : ExactMoments {
  Dyadic plain_sum;                         // S1
  Dyadic n_eps_on_std;                      // n eps_s
  Dyadic n_scaled;                          // n A
  std::optional<Leading> leading_n_scaled;  // where that is not 0
  std::optional<Dyadic> rstd;               // that multiplies, if it is saved

  Integers(const ExactSums& sums, std::int64_t length, const Formula& formula)
      : ExactMoments(sums, length, formula),
        plain_sum(sums.sum),
        n_eps_on_std(n * eps_on_std),
        n_scaled(n * scaled) {
    if (n_scaled.sign() != 0) leading_n_scaled.emplace(n_scaled);
  }

  // s, in parts that do not overflow: significand * 2^exponent.
  struct Root {
    double significand;
    std::int64_t exponent;

    double value() const { return std::ldexp(significand, static_cast<int>(exponent)); }
    double reciprocal() const { return std::ldexp(1 / significand, -static_cast<int>(exponent)); }
  };
  Root approximate_s() const {
    if (!leading_n_scaled) return {eps_on_std.approximate(), 0};
    const double count = n.approximate();
    double square = leading_n_scaled->significand.high / (count * count * freedom.approximate());
    std::int64_t exponent = leading_n_scaled->exponent;
    if (exponent % 2 != 0) {
      square *= 2;
      --exponent;
    }
    const double root = std::sqrt(square);
    if (eps_on_std.sign() == 0) return {root, exponent / 2};
    return {std::ldexp(root, static_cast<int>(exponent / 2)) + eps_on_std.approximate(), 0};
  }

  double approximate_y(const Dyadic& scaled_deviation, const Dyadic& b) const {
    if (scaled_deviation.sign() == 0) return b.approximate();
    const Root s = approximate_s();
    const Leading deviation(scaled_deviation);
    const double xhat = deviation.significand.high / n.approximate() / s.significand;
    const auto exponent = static_cast<int>(deviation.exponent - s.exponent);
    return scaled_deviation.sign() * std::ldexp(xhat, exponent) + b.approximate();
  }

  // The sign of y - m, from L = (n x - S1) w and b - m.
  int side(const Dyadic& scaled_deviation, const Dyadic& rest) const {
    return sign_of(scaled_deviation + rest * n_eps_on_std, freedom, rest, n_scaled);
  }
};

ExactRow::ExactRow(const ExactSums& sums, std::int64_t n, const Formula& formula)
    : integers_(std::make_shared<const Integers>(sums, n, formula)) {}

// The one element of this row is the mean, but its mean square is larger by the variance.
ExactRow::ExactRow(const SavedStatistics& saved, const Formula& formula) {
  const Formula of_one{saved.variance ? formula.eps : 0, formula.eps_on};
  const Dyadic mean(saved.mean);
  const ExactSums sums{true, mean, square(mean) + Dyadic(saved.variance.value_or(Number{1}))};
  Integers integers(sums, 1, of_one);
  if (!saved.variance) integers.rstd = Dyadic(saved.rstd);
  integers_ = std::make_shared<const Integers>(std::move(integers));
}

bool ExactRow::is_defined() const noexcept { return integers_->is_defined(); }

double ExactRow::sum() const { return quotient(integers_->plain_sum, kOne); }
double ExactRow::mean() const { return quotient(integers_->sum, integers_->n); }
double ExactRow::variance() const {
  return quotient(integers_->centered, integers_->n * integers_->freedom);
}

double ExactRow::rstd() const {
  const Integers& i = *integers_;
  // 1/s > m  <=>  1 - eps_s m > m sqrt(A / (n f))
  return nearest_positive(i.approximate_s().reciprocal(), [&](const Dyadic& m) {
    return sign_of(kOne - i.eps_on_std * m, i.n * i.freedom, negated(m), i.scaled);
  });
}

double ExactRow::squares() const { return quotient(integers_->centered, integers_->n); }

double ExactRow::divisor() const {
  if (!is_defined()) return 0;
  const Integers& i = *integers_;
  // s > m  <=>  sqrt(A / (n f)) > m - eps_s
  return nearest_positive(i.approximate_s().value(), [&](const Dyadic& m) {
    return sign_of(kOne, i.scaled, i.eps_on_std - m, i.n * i.freedom);
  });
}

double ExactRow::deviation(Number x) const {
  return quotient(integers_->n * Dyadic(x) - integers_->sum, integers_->n);
}

double ExactRow::squared_deviation(Number x) const {
  return quotient(square(integers_->n * Dyadic(x) - integers_->sum), square(integers_->n));
}

double ExactRow::mean_square() const {
  const Integers& i = *integers_;
  if (i.eps_on_std.sign() == 0) return quotient(i.centered * i.freedom, i.n * i.scaled);
  if (i.centered.sign() == 0) return 0;
  // With r = sqrt(V / (n f)):  V / (n (r + eps_s))^2 > m  <=>  V - n^2 m (r^2 + eps_s^2) > 2 n^2 m eps_s r; both sides
  // times n f have no quotients left.
  const Dyadic both = i.n * i.freedom;
  const double size = i.approximate_s().value() * i.n.approximate();
  return nearest_positive(i.centered.approximate() / size / size, [&](const Dyadic& m) {
    const Dyadic share = square(i.n) * m;
    const Dyadic rest = i.centered * both - share * (i.scaled + both * square(i.eps_on_std));
    return sign_of(rest, kOne, Dyadic(std::int64_t{-2}) * share * i.eps_on_std, both * i.scaled);
  });
}

int ExactRow::deviation_sign(Number x) const {
  return compare(integers_->n * Dyadic(x), integers_->sum);
}

double ExactRow::element(Number x, const ExactTerms& terms, DType dtype, double least,
                         double most) const {
  const Integers& i = *integers_;
  const Dyadic scale(terms.scale);
  const Dyadic b = Dyadic(terms.bias) * scale;
  const Dyadic scaled_deviation =
      (i.n * Dyadic(x) - i.sum) * (Dyadic(terms.weight) * (i.rstd ? *i.rstd * scale : scale));
  const Dyadic divisor(terms.divisor);
  const int sign = least > 0 ? 1 : most < 0 ? -1 : i.side(scaled_deviation, b);
  return nearest_between(
      dtype, least, most, sign,
      [&] { return std::fabs(i.approximate_y(scaled_deviation, b)) / terms.divisor; },
      [&](const Dyadic& m) { return i.side(scaled_deviation, b - m * divisor); });
}

bool ExactRow::is_zero(Number x, const ExactTerms& terms) const {
  const Integers& i = *integers_;
  const Dyadic weight(terms.weight);
  const Dyadic deviation = (i.n * Dyadic(x) - i.sum) * (i.rstd ? *i.rstd * weight : weight);
  return i.side(deviation, Dyadic(terms.bias)) == 0;
}

SummedRow::SummedRow(const ReadRow& read_row, std::int64_t n) : n_(n) {
  const auto sums = std::make_shared<ExactSums>();
  read_row([&](const RowsIn& part) { *sums += exact_sums(part); });
  sums_ = sums;
}

bool SummedRow::is_finite() const noexcept { return sums_->finite; }

ExactRow SummedRow::by(const Formula& formula) const { return {*sums_, n_, formula}; }

}  // namespace lnorm
