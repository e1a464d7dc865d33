#include "lnorm/kernel/exact_gradient.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/kernel/rounding.hpp"

namespace lnorm {

namespace {

// Bits of a root that is computed in integers: 160 of a term, and enough that one more or less is all it can be off.
constexpr std::int64_t kRootBits = 224;

Dyadic cube(const Dyadic& a) { return a * a * a; }

Dyadic magnitude_of(const Dyadic& a) { return a.sign() < 0 ? negated(a) : a; }

Dyadic power_of_two(std::int64_t exponent) { return {Integer(1), exponent}; }

// About log2 of a number that is not 0.
double log2_of(const Dyadic& a) {
  const Integer size = boost::multiprecision::abs(a.significand);
  const auto below = static_cast<std::int64_t>(boost::multiprecision::msb(size)) - 60;
  const Integer top = below > 0 ? Integer(size >> static_cast<unsigned>(below)) : size;
  return std::log2(static_cast<double>(static_cast<std::uint64_t>(top))) +
         static_cast<double>(a.exponent + std::max<std::int64_t>(0, below));
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

}  // namespace

void add_exact_sums(const GradientPart& part, const AffineTerm& weight, ExactGradientSums& sums) {
  sums.x += exact_sums(part.x);
  Chunk x;
  for_each_element(part.dy, [&](std::int64_t i, Number dy) {
    if (i % kChunk == 0) {
      std::fill_n(x.low, kChunk, 0.0);
      load_chunk(part.x, i, x);
    }
    const Number w = weight.empty() ? Number{1} : weight.number(part.offset + i);
    sums.is_g_finite = sums.is_g_finite && std::isfinite(dy.high) && std::isfinite(w.high);
    if (!sums.is_g_finite) return;
    const Dyadic g = Dyadic(dy) * Dyadic(w);
    if (g.sign() == 0) return;
    sums.g = sums.g + g;
    const Number element{x.high[i % kChunk], x.low[i % kChunk]};
    if (sums.x.finite) sums.gx = sums.gx + g * Dyadic(element);
  });
}

ExactGradient::ExactGradient(const ExactGradientSums& sums, std::int64_t n, const Formula& formula,
                             const SavedStatistics* saved)
    : is_saved_(saved != nullptr), n_(n), freedom_(n - formula.ddof) {
  if (!formula.rms) {
    sum_ = sums.x.sum;
    if (sums.is_g_finite) g_sum_ = sums.g;
  }
  if (saved != nullptr) {
    mean_ = formula.rms ? Dyadic() : Dyadic(saved->mean);
    rstd_ = Dyadic(saved->rstd);
    if (sums.is_g_finite) product_ = sums.gx - mean_ * sums.g;
    return;
  }
  const bool on_variance = formula.eps_on == EpsOn::variance;
  centered_ = n_ * sums.x.squares - square(sum_);
  scaled_ = on_variance ? centered_ + n_ * freedom_ * Dyadic(formula.eps) : centered_;
  eps_on_std_ = on_variance ? Dyadic() : Dyadic(formula.eps);
  if (sums.is_g_finite) product_ = n_ * sums.gx - sum_ * g_sum_;
}

bool ExactGradient::is_defined() const noexcept {
  return is_saved_ || scaled_.sign() != 0 || eps_on_std_.sign() != 0;
}

bool ExactGradient::has_derivative() const noexcept { return is_saved_ || scaled_.sign() != 0; }

Dyadic ExactGradient::deviation(Number x) const {
  return is_saved_ ? n_ * (Dyadic(x) - mean_) : n_ * Dyadic(x) - sum_;
}

int ExactGradient::side(const Dyadic& d, const Dyadic& e, const Dyadic& m) const {
  if (is_saved_) {
    return compare(freedom_ * e * rstd_ - d * cube(rstd_) * product_, m * n_ * freedom_);
  }
  if (eps_on_std_.sign() == 0) {
    const Dyadic top = e * scaled_ - d * product_;
    if (top.sign() != m.sign() || m.sign() == 0) return top.sign() - m.sign();
    // |dx| = |top| / (n A s), and s^2 = A / (n f)
    return m.sign() * compare_positive(square(top) * freedom_, square(m) * n_ * cube(scaled_));
  }
  const Dyadic n_eps = n_ * eps_on_std_;
  const Dyadic p = e * centered_ - d * product_ - Dyadic(std::int64_t{2}) * m * n_eps * centered_;
  const Dyadic r = freedom_ * n_eps * e - m * (n_ * centered_ + square(n_eps) * freedom_);
  if (p.sign() == 0 || p.sign() == r.sign()) return r.sign();
  if (r.sign() == 0) return p.sign();
  return p.sign() * compare_positive(square(p) * n_ * freedom_, square(r) * centered_);
}

double ExactGradient::log2_s() const {
  if (is_saved_) return -log2_of(rstd_);
  const double root =
      scaled_.sign() == 0 ? 0 : (log2_of(scaled_) - log2_of(n_) - log2_of(freedom_)) / 2;
  if (eps_on_std_.sign() == 0) return root;
  const double eps = log2_of(eps_on_std_);
  if (scaled_.sign() == 0) return eps;
  const double greater = std::max(root, eps);
  return greater + std::log2(std::exp2(root - greater) + std::exp2(eps - greater));
}

double ExactGradient::guess_log2(const Dyadic& d, const Dyadic& e) const {
  if (is_saved_) {
    const Dyadic top = freedom_ * e * rstd_ - d * cube(rstd_) * product_;
    return log2_of(top) - log2_of(n_) - log2_of(freedom_);
  }
  if (eps_on_std_.sign() == 0) {
    return log2_of(e * scaled_ - d * product_) - log2_of(n_) - log2_of(scaled_) - log2_s();
  }
  return e.sign() == 0 ? 0 : log2_of(e) - log2_of(n_) - log2_s();  // the first term alone
}

double ExactGradient::dx(Number x, const Dyadic& g, DType dtype, double least, double most) const {
  const Dyadic d = deviation(x);
  const Dyadic e = n_ * g - g_sum_;
  const int sign = least > 0 ? 1 : most < 0 ? -1 : side(d, e, Dyadic());
  return nearest_between(
      dtype, least, most, sign,
      [&] { return std::exp2(std::clamp(guess_log2(d, e), -1080.0, 1030.0)); },
      [&](const Dyadic& m) { return side(d, e, m); });
}

Dyadic ExactGradient::scaled_term(Number x, Number dy) const {
  return magnitude_of(deviation(x) * Dyadic(dy));
}

int ExactGradient::term_side(const Dyadic& size, const Dyadic& m) const {
  if (is_saved_) return compare_positive(size * magnitude_of(rstd_), m * n_);
  const Dyadic rest = size - m * n_ * eps_on_std_;
  if (rest.sign() <= 0 || scaled_.sign() == 0)
    return rest.sign() == 0 ? -scaled_.sign() : rest.sign();
  // n sqrt(A / (n f)) = sqrt(n A / f)
  return compare_positive(square(rest) * freedom_, square(m) * n_ * scaled_);
}

std::optional<std::int64_t> ExactGradient::term_exponent(Number x, Number dy) const {
  const Dyadic size = scaled_term(x, dy);
  if (size.sign() == 0 || (is_saved_ && rstd_.sign() == 0)) return std::nullopt;
  auto exponent = static_cast<std::int64_t>(std::floor(log2_of(size) - log2_of(n_) - log2_s()));
  while (term_side(size, power_of_two(exponent)) < 0) --exponent;
  while (term_side(size, power_of_two(exponent + 1)) >= 0) ++exponent;
  return exponent;
}

Integer ExactGradient::truncated_term(Number x, Number dy, std::int64_t exponent) const {
  const Dyadic size = scaled_term(x, dy);
  int sign = deviation(x).sign() * Dyadic(dy).sign();
  if (sign == 0) return 0;
  Integer result;
  if (is_saved_) {
    sign *= rstd_.sign();
    if (sign == 0) return 0;
    result = floored(size * magnitude_of(rstd_), n_, -exponent);
  } else if (eps_on_std_.sign() == 0) {
    result =
        boost::multiprecision::sqrt(floored(square(size) * freedom_, n_ * scaled_, -2 * exponent));
  } else {
    // n q, q = sqrt(var), with bits after the point that are many beside n s
    const Dyadic square_of_root = n_ * scaled_;
    const std::int64_t scale =
        kRootBits - static_cast<std::int64_t>(std::floor(log2_s() + log2_of(n_)));
    const Integer root =
        scaled_.sign() == 0
            ? Integer(0)
            : boost::multiprecision::sqrt(floored(square_of_root, freedom_, 2 * scale));
    const Dyadic divisor = Dyadic(root, -scale) + n_ * eps_on_std_;
    result = floored(size, divisor, -exponent);
    while (result.sign() > 0 && term_side(size, {result, exponent}) < 0) --result;
    while (term_side(size, {Integer(result + 1), exponent}) >= 0) ++result;
  }
  return sign < 0 ? Integer(-result) : result;
}

}  // namespace lnorm
