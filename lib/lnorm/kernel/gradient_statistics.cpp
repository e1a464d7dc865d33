#include "lnorm/kernel/gradient_statistics.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/dtype_table.hpp"

namespace lnorm {

namespace {

// What is lost below the normal numbers on the way to a result in doubles, of which the smallest is 2^-149.
constexpr double kLostInDoubles = 0x1p-300;

// What the terms of the bounds of dx add up to: (18) of docs/numbers.md, in u and beside rho and h, and (19), in u^2 and
// beside rho and G.
struct DxTerms {
  double g;         // rho + this, of a |g|
  double product;   // 3 h + this, of n w q a^2 / (f t) |x - mean|
  double slope;     // 3 rho + this, of |b| |x - mean|
  double shift;     // h + this, of |b| q
  double constant;  // h + this, of a w
  double mean;      // rho + this, of a |G| / n
};
constexpr DxTerms kTerms{9, 24, 17, 17, 12, 9};
constexpr DxTerms kTerms2{20, 60, 60, 0, 10, 40};  // the error of the mean stands for shift

// Sums of squares, and s, between which no low part of a double-double that counts is lost.
constexpr double kMinSquares = 0x1p-400;
constexpr double kMaxSquares = 0x1p400;
constexpr double kMinDoubleDoubleDivisor = 0x1p-200;
constexpr double kMaxDoubleDoubleDivisor = 0x1p200;

bool is_within(double value, double least, double greatest) noexcept {
  return value >= least && value <= greatest;
}

GradientBounds bounds_of_row(double g_error, double x_error, double offset, double g_squares,
                             double x_squares) noexcept {
  const double error = g_error * std::sqrt(g_squares) + x_error * std::sqrt(x_squares) + offset;
  return {g_error, x_error, offset, error * kSlack};
}

}  // namespace

std::optional<DoubleDouble> plain_rstd(const SavedStatistics& saved,
                                       const Formula& formula) noexcept {
  DoubleDouble rstd{saved.rstd.high};
  if (saved.is_constant) {
    const double variance = rstd.high;
    if (variance != 0 && !is_within(variance, kMinSquares, kMaxSquares)) return std::nullopt;
    const DoubleDouble root =
        formula.eps_on == EpsOn::variance ? sqrt(rstd + formula.eps) : sqrt(rstd) + formula.eps;
    if (!(root.high > 0)) return std::nullopt;
    rstd = DoubleDouble{1} / root;
  }
  const bool is_plain =
      saved.mean.low == 0 && saved.rstd.low == 0 && std::fabs(saved.mean.high) <= 0x1p200 &&
      is_within(std::fabs(rstd.high), kMinDoubleDoubleDivisor, kMaxDoubleDoubleDivisor);
  return is_plain ? std::optional(rstd) : std::nullopt;
}

std::optional<DoubleGradient> double_gradient(const GradientSums& sums, double center,
                                              std::int64_t n, const Formula& formula,
                                              const SavedStatistics* saved,
                                              std::int64_t growth) noexcept {
  const auto count = static_cast<double>(n);
  const auto h = static_cast<double>(growth);
  const bool has_mean = !formula.rms && saved == nullptr;
  const bool are_constants = saved != nullptr && saved->is_constant;
  const double g_sum = formula.rms || are_constants ? 0 : sums.g.high;
  const double squares = sums.x.squares.high;
  const DoubleMoments row(has_mean ? sums.x.sum.high : 0, squares, n, formula);
  const double shift = row.shift;
  // Elements go through two additions, squares through three roundings, before what is lost is kept; and about a center
  // d is rounded. In u.
  const double d_error = center == 0 ? 0 : 1;
  const double sum_error = 2 + d_error;
  const double x_root = std::sqrt(squares / count);
  double rstd = 0;
  double root_reciprocal = 0;
  double rho = 0;  // of rstd and of the reciprocal of the root, in u
  if (saved != nullptr) {
    const std::optional<DoubleDouble> known = plain_rstd(*saved, formula);
    if (!known) return std::nullopt;
    rstd = root_reciprocal = known->high;
    rho = are_constants ? 1 : 0;
  } else {
    if (!row.is_usable() || !is_within(row.t, kMinDivisor, kMaxDivisor)) return std::nullopt;
    rstd = 1 / row.s;
    root_reciprocal = row.t == row.s ? rstd : 1 / row.t;
    // The correction rounds three times. Each rounding from the difference to 1 / s counts 1, or 1/2 under the root.
    const double error = (3 + 2 * d_error) * squares +
                         2 * sum_error * std::sqrt(squares * row.correction) + 3 * row.correction;
    rho = (row.centered > 0 ? error / row.centered / 2 : 0) + 4;
  }
  const double product = are_constants ? 0 : sums.gx.high - shift * g_sum;
  const double scale =
      are_constants ? 0 : (rstd * rstd) * root_reciprocal / static_cast<double>(n - formula.ddof);
  const double slope = -(product * scale);
  const double mean_g = g_sum / count;
  const double constant = -(mean_g * rstd) - slope * shift;
  const double size = std::fabs(rstd);
  const double g_root = std::sqrt(sums.g_squares / count);
  const double greatest_slope = count * g_root * x_root * std::fabs(scale);
  if (!std::isfinite(greatest_slope) || !std::isfinite(constant)) return std::nullopt;

  DoubleGradient result;
  result.center = center;
  result.shift = shift;
  result.rstd = rstd;
  result.slope = slope;
  result.constant = constant;
  if (sums.g_squares > 0) {
    const double slope_size = std::fabs(slope);
    const double g_error = (rho + kTerms.g) * size;
    const double x_error =
        (3 * h + kTerms.product) * greatest_slope + (3 * rho + kTerms.slope) * slope_size;
    const double offset = are_constants ? 0
                                        : (h + kTerms.shift) * slope_size * x_root +
                                              (h + kTerms.constant) * size * g_root +
                                              (rho + kTerms.mean) * size * std::fabs(mean_g);
    result.dx = bounds_of_row(g_error * kUnit * kSlack, x_error * kUnit * kSlack,
                              offset * kUnit * kSlack + kLostInDoubles, sums.g_squares * kSlack,
                              squares * kSlack);
  }
  // (20) The errors of the mean, of its product with rstd, and of d. The rest of the error of d grows with x-hat: it is in the
  // slope.
  const double mean_error = sum_error * x_root + (2 + d_error) * std::fabs(shift);
  result.xhat.offset = has_mean ? mean_error * kUnit * size * kSlack : 0;
  result.xhat.slope = (rho + 1 + d_error) * kUnit * kSlack;
  return result;
}

bool cancels(const GradientSums& sums, const DoubleGradient& gradient, std::int64_t n,
             DType dtype) noexcept {
  // The sum of dx^2. One element of 32 is undecided where the error is 2^-5 of half an ulp of the root of its mean.
  const double a = gradient.rstd;
  const double b = gradient.slope;
  const double c = gradient.constant;
  const auto count = static_cast<double>(n);
  const double squares = a * a * sums.g_squares + b * b * sums.x.squares.high + count * c * c +
                         2 * (a * b * sums.gx.high + a * c * sums.g.high + b * c * sums.x.sum.high);
  const double size = std::sqrt(std::max(squares, 0.0) / count);
  return gradient.dx.error > std::ldexp(size, -(float_format(dtype).precision + 5));
}

bool may_be_line(const GradientSums& sums, std::int64_t n, const Formula& formula) noexcept {
  if (formula.eps != 0) return false;
  const auto count = static_cast<double>(n);
  const double x = formula.rms ? 0 : sums.x.sum.high;
  const double g = formula.rms ? 0 : sums.g.high;
  const double product = sums.gx.high - x * g / count;
  const double x_squares = sums.x.squares.high - x * x / count;
  const double g_squares = sums.g_squares - g * g / count;
  return product * product >= x_squares * g_squares * (1 - 0x1p-20);
}

std::optional<DoubleDoubleGradient> double_double_gradient(const GradientSums& sums,
                                                           const CenteredSums* centered,
                                                           std::int64_t n, const Formula& formula,
                                                           const SavedStatistics* saved,
                                                           double growth) noexcept {
  const DoubleDouble count{static_cast<double>(n)};
  const DoubleDouble freedom{static_cast<double>(n - formula.ddof)};
  const double squares = sums.x.squares.high;
  const bool has_g = sums.g_squares > 0;
  const bool are_constants = saved != nullptr && saved->is_constant;
  if (has_g && !is_within(sums.g_squares, kMinSquares, kMaxSquares)) return std::nullopt;
  if (squares != 0 && !is_within(squares, kMinSquares, kMaxSquares)) return std::nullopt;
  DoubleDoubleGradient result;
  DoubleDouble shift;
  DoubleDouble root_reciprocal;
  double rho = 0;  // relative, of rstd and of the reciprocal of the root
  double mean_error = 0;
  if (saved != nullptr) {
    const std::optional<DoubleDouble> known = plain_rstd(*saved, formula);
    if (!known) return std::nullopt;
    result.mean = {formula.rms ? 0 : saved->mean.high};
    result.rstd = root_reciprocal = *known;
    rho = are_constants ? bound::kRstd * kUnit2 * kSlack : 0;
  } else {
    const DoubleDoubleDivisors divisors(*centered, n, formula);
    if (!is_within(divisors.t.high, kMinDoubleDoubleDivisor, kMaxDoubleDoubleDivisor))
      return std::nullopt;
    if (!(divisors.s.high <= kMaxDoubleDoubleDivisor)) return std::nullopt;
    result.mean = centered->mean;
    mean_error = centered->mean_error;
    result.rstd = DoubleDouble{1} / divisors.s;
    const bool are_same = formula.eps_on == EpsOn::variance;
    root_reciprocal = are_same ? result.rstd : DoubleDouble{1} / divisors.t;
    rho = divisors.error;
    if (!formula.rms) shift = sums.x.sum / count;
  }
  const DoubleDouble g_sum = formula.rms || are_constants ? DoubleDouble{} : sums.g;
  const DoubleDouble product = are_constants ? DoubleDouble{} : sums.gx - shift * g_sum;
  const DoubleDouble scale =
      are_constants ? DoubleDouble{} : result.rstd * result.rstd * root_reciprocal / freedom;
  result.slope = -(product * scale);
  result.constant = -(g_sum * result.rstd / count);

  const double size = std::fabs(result.rstd.high);
  const double slope_size = std::fabs(result.slope.high);
  const double constant_size = std::fabs(result.constant.high);
  const double n_real = count.high;
  const double g_root = std::sqrt(sums.g_squares / n_real);
  const double x_root = std::sqrt(squares / n_real);
  const double greatest_slope = n_real * g_root * x_root * std::fabs(scale.high);
  if (has_g) {
    const double g_error = (rho + kTerms2.g * kUnit2) * size;
    const double x_error = (3 * growth + kTerms2.product) * kUnit2 * greatest_slope +
                           (3 * rho + kTerms2.slope * kUnit2) * slope_size;
    const double of_means =
        are_constants ? 0 : (growth + kTerms2.constant) * kUnit2 * size * g_root;
    const double offset = mean_error * slope_size + of_means +
                          (rho + kTerms2.mean * kUnit2) * constant_size + kLostBits * (1 + size);
    result.dx = bounds_of_row(g_error * kSlack, x_error * kSlack, offset * kSlack,
                              sums.g_squares * kSlack, squares * kSlack);
  }
  result.xhat.offset = mean_error * size * kSlack;
  result.xhat.slope = rho + bound::kXhat * kUnit2;
  return result;
}

}  // namespace lnorm
