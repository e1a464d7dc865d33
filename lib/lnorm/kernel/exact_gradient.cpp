#include "lnorm/kernel/exact_gradient.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/kernel/rounding.hpp"

namespace lnorm {

namespace {

// Bits of a root that is computed in integers: 160 of a term, and enough that one more or less is all it can be off.
constexpr std::int64_t kRootBits = 224;

Dyadic cube(const Dyadic& a) { return a * a * a; }

Dyadic power_of_two(std::int64_t exponent) { return {Integer(1), exponent}; }

// About log2 of the size of a number that is not 0.
double log2_of(const Dyadic& a) {
  const Leading leading(a);
  return std::log2(leading.significand.high) + static_cast<double>(leading.exponent);
}

// floor(a / b * 2^shift), both positive.
Integer floored(const Dyadic& a, const Dyadic& b, std::int64_t shift) {
  const std::int64_t exponent = a.exponent - b.exponent + shift;
  if (exponent >= 0) {
    return Integer(a.significand << static_cast<unsigned>(exponent)) / b.significand;
  }
  if (a.magnitude() - b.magnitude() + shift < -1) return 0;
  return a.significand / Integer(b.significand << static_cast<unsigned>(-exponent));
}

bool has_constants(const SavedStatistics* saved) {
  return saved != nullptr && saved->are_constants();
}

// Sums of a row that has the variance, and mean 0.
ExactSums sums_of(const SavedStatistics& saved, std::int64_t n, const Formula& formula) {
  return {true, Dyadic(), Dyadic(formula.freedom(n)) * Dyadic(*saved.variance)};
}

}  // namespace

void add_exact_sums(const GradientPart& part, const AffineTerm& weight, ExactGradientSums& sums) {
  sums.x += exact_sums(part.x);
  if (!sums.x.finite) return;  // nor is any gradient
  for_each_element(part, [&](std::int64_t i, Number x, Number dy) {
    const Number w = weight.number_or(1, part.offset + i);
    sums.is_g_finite = sums.is_g_finite && std::isfinite(dy.high) && std::isfinite(w.high);
    if (!sums.is_g_finite) return;
    const Dyadic g = Dyadic(dy) * Dyadic(w);
    if (g.sign() == 0) return;
    sums.g = sums.g + g;
    sums.gx = sums.gx + g * Dyadic(x);
  });
}

ExactGradient::ExactGradient(const ExactGradientSums& sums, std::int64_t n, const Formula& formula,
                             const SavedStatistics* saved)
    : row_(has_constants(saved) ? sums_of(*saved, n, formula) : sums.x, n, formula),
      has_mean_(saved != nullptr),
      are_constants_(has_constants(saved)),
      is_saved_(has_mean_ && !are_constants_),
      has_g_(sums.is_g_finite) {
  if (has_mean_) mean_ = Dyadic(saved->mean);
  if (are_constants_) return;
  if (has_g_ && formula.has_mean()) g_sum_ = sums.g;
  if (is_saved_) rstd_ = Dyadic(saved->rstd);
  if (has_g_)
    product_ = is_saved_ ? sums.gx - mean_ * sums.g : row_.n * sums.gx - row_.sum * g_sum_;
}

Dyadic ExactGradient::deviation(Number x) const {
  return has_mean_ ? row_.n * (Dyadic(x) - mean_) : row_.n * Dyadic(x) - row_.sum;
}

int ExactGradient::side(const Dyadic& d, const Dyadic& e, const Dyadic& m) const {
  if (is_saved_) {
    return compare(row_.freedom * e * rstd_ - d * cube(rstd_) * product_,
                   m * row_.n * row_.freedom);
  }
  if (is_s_constant()) return term_side(e, m);
  if (row_.eps_on_std.sign() == 0) {
    // dx = top / (n A s), and s^2 = A / (n f)
    const Dyadic top = e * row_.scaled - d * product_;
    return sign_of(top, row_.freedom, negated(m * row_.scaled), row_.n * row_.scaled);
  }
  const Dyadic n_eps = row_.n * row_.eps_on_std;
  const Dyadic p =
      e * row_.centered - d * product_ - Dyadic(std::int64_t{2}) * m * n_eps * row_.centered;
  const Dyadic r =
      row_.freedom * n_eps * e - m * (row_.n * row_.centered + square(n_eps) * row_.freedom);
  return sign_of(p, row_.n * row_.freedom, r, row_.centered);
}

double ExactGradient::log2_s() const {
  if (is_saved_) return -log2_of(rstd_);
  const double root = row_.scaled.sign() == 0
                          ? 0
                          : (log2_of(row_.scaled) - log2_of(row_.n) - log2_of(row_.freedom)) / 2;
  if (row_.eps_on_std.sign() == 0) return root;
  const double eps = log2_of(row_.eps_on_std);
  if (row_.scaled.sign() == 0) return eps;
  const double greater = std::max(root, eps);
  return greater + std::log2(std::exp2(root - greater) + std::exp2(eps - greater));
}

double ExactGradient::guess_log2(const Dyadic& d, const Dyadic& e) const {
  if (is_saved_) {
    const Dyadic top = row_.freedom * e * rstd_ - d * cube(rstd_) * product_;
    return log2_of(top) - log2_of(row_.n) - log2_of(row_.freedom);
  }
  if (row_.eps_on_std.sign() == 0) {
    return log2_of(e * row_.scaled - d * product_) - log2_of(row_.n) - log2_of(row_.scaled) -
           log2_s();
  }
  return e.sign() == 0 ? 0 : log2_of(e) - log2_of(row_.n) - log2_s();  // the first term alone
}

double ExactGradient::dx(Number x, const Dyadic& g, DType dtype, double least, double most) const {
  const Dyadic d = deviation(x);
  const Dyadic e = row_.n * g - g_sum_;
  const int sign = least > 0 ? 1 : most < 0 ? -1 : side(d, e, Dyadic());
  return nearest_between(
      dtype, least, most, sign,
      [&] { return std::exp2(std::clamp(guess_log2(d, e), -1080.0, 1030.0)); },
      [&](const Dyadic& m) { return side(d, e, m); });
}

Dyadic ExactGradient::scaled_term(Number x, Number dy) const {
  return abs(deviation(x) * Dyadic(dy));
}

int ExactGradient::term_side(const Dyadic& size, const Dyadic& m) const {
  if (is_saved_) return compare_positive(size * abs(rstd_), m * row_.n);
  // n sqrt(A / (n f)) = sqrt(n A / f)
  return sign_of(size - m * row_.n * row_.eps_on_std, row_.freedom, negated(m),
                 row_.n * row_.scaled);
}

std::optional<std::int64_t> ExactGradient::term_exponent(Number x, Number dy) const {
  const Dyadic size = scaled_term(x, dy);
  if (size.sign() == 0 || (is_saved_ && rstd_.sign() == 0)) return std::nullopt;
  auto exponent = static_cast<std::int64_t>(std::floor(log2_of(size) - log2_of(row_.n) - log2_s()));
  while (term_side(size, power_of_two(exponent)) < 0) --exponent;
  while (term_side(size, power_of_two(exponent + 1)) >= 0) ++exponent;
  return exponent;
}

Integer ExactGradient::truncated_term(Number x, Number dy, std::int64_t exponent) const {
  const Dyadic size = scaled_term(x, dy);
  const int sign = deviation(x).sign() * Dyadic(dy).sign() * (is_saved_ ? rstd_.sign() : 1);
  if (sign == 0) return 0;
  Integer result;
  if (is_saved_) {
    result = floored(size * abs(rstd_), row_.n, -exponent);
  } else if (row_.eps_on_std.sign() == 0) {
    result = boost::multiprecision::sqrt(
        floored(square(size) * row_.freedom, row_.n * row_.scaled, -2 * exponent));
  } else {
    // n q, q = sqrt(var), with bits after the point that are many beside n s
    const std::int64_t scale =
        kRootBits - static_cast<std::int64_t>(std::floor(log2_s() + log2_of(row_.n)));
    const Integer root =
        row_.scaled.sign() == 0
            ? Integer(0)
            : boost::multiprecision::sqrt(floored(row_.n * row_.scaled, row_.freedom, 2 * scale));
    const Dyadic divisor = Dyadic(root, -scale) + row_.n * row_.eps_on_std;
    result = floored(size, divisor, -exponent);
    while (result.sign() > 0 && term_side(size, {result, exponent}) < 0) --result;
    while (term_side(size, {Integer(result + 1), exponent}) >= 0) ++result;
  }
  return sign < 0 ? Integer(-result) : result;
}

}  // namespace lnorm
