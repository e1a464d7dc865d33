#include "lnorm/kernel/exact_row.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lnorm/kernel/exact_sums.hpp"
#include "lnorm/kernel/rounding.hpp"

namespace lnorm {

namespace {

// The float64 nearest to numerator / denominator, the latter positive.
double quotient(const Dyadic& numerator, const Dyadic& denominator) {
  if (numerator.sign() == 0) return 0;
  const Dyadic magnitude = numerator.sign() < 0 ? negated(numerator) : numerator;
  const FloatOrder order(DType::float64);
  const std::int64_t guess = order.index(magnitude.approximate() / denominator.approximate());
  const double result = nearest(order, 0, order.infinity(), guess, [&](const Dyadic& m) {
    return compare_positive(magnitude, denominator * m);
  });
  return numerator.sign() < 0 ? -result : result;
}

}  // namespace

struct ExactRow::Integers {
  Dyadic n;
  Dyadic freedom;                           // f
  Dyadic sum;                               // S1; 0 for RMS
  Dyadic plain_sum;                         // S1
  Dyadic centered;                          // V
  Dyadic scaled;                            // G
  Dyadic eps_on_std;                        // eps_s
  Dyadic n_eps_on_std;                      // n eps_s
  Dyadic n_scaled;                          // n G
  std::optional<Leading> leading_n_scaled;  // where that is not 0

  // s, in parts that do not overflow: significand * 2^exponent.
  struct Root {
    double significand;
    std::int64_t exponent;
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

  // The sign of y - m, from L = (n x - S1) w and M = m - b.
  int side(const Dyadic& scaled_deviation, const Dyadic& distance) const {
    const Dyadic rest = scaled_deviation - distance * n_eps_on_std;
    if (distance.sign() == 0 || n_scaled.sign() == 0) return rest.sign();
    if (rest.sign() != distance.sign()) return rest.sign() == 0 ? -distance.sign() : rest.sign();
    if (n_scaled.is_long()) {
      const Leading a(rest);
      const Leading b(distance);
      const int leading = compare(a * a * Leading(freedom), b * b * *leading_n_scaled);
      if (leading != 0) return rest.sign() * leading;
    }
    return rest.sign() * compare_positive(square(rest) * freedom, square(distance) * n_scaled);
  }
};

ExactRow::ExactRow(const ExactSums& sums, std::int64_t n, const Formula& formula) {
  auto integers = std::make_unique<Integers>();
  Integers& i = *integers;
  const bool on_variance = formula.eps_on == EpsOn::variance;
  i.n = Dyadic(n);
  i.freedom = Dyadic(n - formula.ddof);
  i.plain_sum = sums.sum;
  i.sum = formula.rms ? Dyadic() : i.plain_sum;
  i.centered = i.n * sums.squares - square(i.sum);
  i.scaled = on_variance ? i.centered + i.n * i.freedom * Dyadic(formula.eps) : i.centered;
  i.eps_on_std = on_variance ? Dyadic() : Dyadic(formula.eps);
  i.n_eps_on_std = i.n * i.eps_on_std;
  i.n_scaled = i.n * i.scaled;
  if (i.n_scaled.sign() != 0) i.leading_n_scaled.emplace(i.n_scaled);
  integers_ = std::move(integers);
}

ExactRow::ExactRow(ExactRow&& other) noexcept = default;
ExactRow::~ExactRow() = default;

bool ExactRow::is_defined() const noexcept {
  return integers_->scaled.sign() != 0 || integers_->eps_on_std.sign() != 0;
}

double ExactRow::sum() const { return quotient(integers_->plain_sum, Dyadic(std::int64_t{1})); }
double ExactRow::mean() const { return quotient(integers_->sum, integers_->n); }
double ExactRow::variance() const {
  return quotient(integers_->centered, integers_->n * integers_->freedom);
}

double ExactRow::rstd() const {
  const Integers& i = *integers_;
  const FloatOrder order(DType::float64);
  const Integers::Root s = i.approximate_s();
  const std::int64_t guess =
      order.index(std::ldexp(1 / s.significand, -static_cast<int>(s.exponent)));
  // 1/s > m  <=>  1 - eps_s m > m sqrt(G / (n f))
  return nearest(order, 0, order.infinity(), guess, [&](const Dyadic& m) {
    const Dyadic rest = Dyadic(std::int64_t{1}) - i.eps_on_std * m;
    if (rest.sign() <= 0 || i.scaled.sign() == 0) return rest.sign();
    return compare_positive(square(rest) * i.n * i.freedom, square(m) * i.scaled);
  });
}

double ExactRow::squares() const { return quotient(integers_->centered, integers_->n); }

double ExactRow::divisor() const {
  if (!is_defined()) return 0;
  const Integers& i = *integers_;
  const FloatOrder order(DType::float64);
  const Integers::Root s = i.approximate_s();
  const std::int64_t guess = order.index(std::ldexp(s.significand, static_cast<int>(s.exponent)));
  // s > m  <=>  sqrt(G / (n f)) > m - eps_s
  return nearest(order, 0, order.infinity(), guess, [&](const Dyadic& m) {
    const Dyadic rest = m - i.eps_on_std;
    if (rest.sign() <= 0 || i.scaled.sign() == 0) return i.scaled.sign() - rest.sign();
    return compare_positive(i.scaled, square(rest) * i.n * i.freedom);
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
  // times n f have no quotients left but that of r, which is squared.
  const FloatOrder order(DType::float64);
  const Dyadic both = i.n * i.freedom;
  const Integers::Root s = i.approximate_s();
  const double n = i.n.approximate();
  const double size = std::ldexp(s.significand, static_cast<int>(s.exponent)) * n;
  const std::int64_t guess = order.index(i.centered.approximate() / size / size);
  return nearest(order, 0, order.infinity(), guess, [&](const Dyadic& m) {
    const Dyadic share = square(i.n) * m;
    const Dyadic rest = i.centered * both - share * (i.centered + both * square(i.eps_on_std));
    if (rest.sign() <= 0) return -1;
    const Dyadic other = share * i.eps_on_std;
    return compare_positive(square(rest),
                            Dyadic(std::int64_t{4}) * square(other) * both * i.centered);
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
  const Dyadic scaled_deviation = (i.n * Dyadic(x) - i.sum) * (Dyadic(terms.weight) * scale);
  const int sign = least > 0 ? 1 : most < 0 ? -1 : i.side(scaled_deviation, negated(b));
  return nearest_between(
      dtype, least, most, sign, [&] { return std::fabs(i.approximate_y(scaled_deviation, b)); },
      [&](const Dyadic& m) { return i.side(scaled_deviation, m - b); });
}

SummedRow::SummedRow(const ReadRow& read_row, std::int64_t n) : n_(n) {
  auto sums = std::make_unique<ExactSums>();
  read_row([&](const RowsIn& part) { *sums += exact_sums(part); });
  sums_ = std::move(sums);
}

SummedRow::~SummedRow() = default;

bool SummedRow::is_finite() const noexcept { return sums_->finite; }

ExactRow SummedRow::by(const Formula& formula) const { return {*sums_, n_, formula}; }

}  // namespace lnorm
