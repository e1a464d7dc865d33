#include "lnorm/kernel/gradient_statistics.hpp"

#include <cmath>

namespace lnorm {

namespace {

constexpr double kUnit2 = kUnit * kUnit;

// For the terms of second order, and the rounding of the bounds themselves.
constexpr double kSlack = 1 + 0x1p-8;

// What is lost below the normal numbers on the way to a narrow result, of which the smallest is 2^-149.
constexpr double kNarrowLost = 0x1p-300;

// Sums of squares, and s, between which no low part of a double-double that counts is lost.
constexpr double kMinSquares = 0x1p-400;
constexpr double kMaxSquares = 0x1p400;
constexpr double kMinWideDivisor = 0x1p-200;
constexpr double kMaxWideDivisor = 0x1p200;

bool is_within(double value, double least, double greatest) noexcept {
  return value >= least && value <= greatest;
}

GradientBounds bounds_of_row(double g_error, double x_error, double offset, double g_squares,
                             double x_squares) noexcept {
  const double error = g_error * std::sqrt(g_squares) + x_error * std::sqrt(x_squares) + offset;
  return {g_error, x_error, offset, error * kSlack};
}

// 1 / s and 1 / t in double-doubles, with the relative error of both.
struct Divisors {
  DoubleDouble rstd;
  DoubleDouble root_reciprocal;  // 1 / t
  double error;
};

std::optional<Divisors> wide_divisors(const CenteredSums& sums, std::int64_t freedom,
                                      const Formula& formula) noexcept {
  const DoubleDouble variance = sums.squares / DoubleDouble{static_cast<double>(freedom)};
  const double squares_error = sums.squares.high == 0 ? 0 : sums.squares_error / sums.squares.high;
  const DoubleDouble one{1};
  Divisors result;
  result.error = (squares_error / 2 + 25 * kUnit2) * kSlack;
  if (formula.eps_on == EpsOn::variance) {
    const DoubleDouble s = sqrt(variance + formula.eps);
    if (!is_within(s.high, kMinWideDivisor, kMaxWideDivisor)) return std::nullopt;
    result.rstd = result.root_reciprocal = one / s;
    return result;
  }
  const DoubleDouble root = sqrt(variance);
  const DoubleDouble s = root + formula.eps;
  if (!is_within(root.high, kMinWideDivisor, kMaxWideDivisor)) return std::nullopt;
  if (s.high > kMaxWideDivisor) return std::nullopt;
  result.rstd = one / s;
  result.root_reciprocal = one / root;
  return result;
}

}  // namespace

bool is_plain(const SavedStatistics& saved) noexcept {
  const double size = std::fabs(saved.rstd.high);
  return saved.mean.low == 0 && saved.rstd.low == 0 && std::fabs(saved.mean.high) <= 0x1p200 &&
         is_within(size, kMinWideDivisor, kMaxWideDivisor);
}

std::optional<NarrowGradient> narrow_gradient(const GradientSums& sums, double center,
                                              std::int64_t n, const Formula& formula,
                                              const SavedStatistics* saved,
                                              std::int64_t growth) noexcept {
  const auto count = static_cast<double>(n);
  const auto h = static_cast<double>(growth);
  const bool has_mean = !formula.rms && saved == nullptr;
  const double sum = has_mean ? sums.x.sum.high : 0;
  const double g_sum = formula.rms ? 0 : sums.g.high;
  const double squares = sums.x.squares.high;
  const double shift = sum / count;
  const double correction = shift * sum;
  const double centered = squares - correction;
  // Elements go through two additions, squares through three roundings, before what is lost is kept; and about a center
  // d is rounded. In u.
  const double d_error = center == 0 ? 0 : 1;
  const double sum_error = 2 + d_error;
  const double x_root = std::sqrt(squares / count);
  double rstd = 0;
  double root_reciprocal = 0;
  double rho = 0;  // of rstd and of the reciprocal of the root, in u
  if (saved != nullptr) {
    if (!is_plain(*saved)) return std::nullopt;
    rstd = root_reciprocal = saved->rstd.high;
  } else {
    const double variance = centered / static_cast<double>(n - formula.ddof);
    const double root =
        std::sqrt(formula.eps_on == EpsOn::variance ? variance + formula.eps : variance);
    const double s = formula.eps_on == EpsOn::variance ? root : root + formula.eps;
    const bool usable = correction <= centered && is_within(s, kMinDivisor, kMaxDivisor) &&
                        is_within(root, kMinDivisor, kMaxDivisor);
    if (!usable) return std::nullopt;
    rstd = 1 / s;
    root_reciprocal = formula.eps_on == EpsOn::variance ? rstd : 1 / root;
    // The correction rounds three times. Each rounding from the difference to 1 / s counts 1, or 1/2 under the root.
    const double error = (3 + 2 * d_error) * squares +
                         2 * sum_error * std::sqrt(squares * correction) + 3 * correction;
    rho = (centered > 0 ? error / centered / 2 : 0) + 4;
  }
  const double product = sums.gx.high - shift * g_sum;
  const double scale = (rstd * rstd) * root_reciprocal / static_cast<double>(n - formula.ddof);
  const double slope = -(product * scale);
  const double mean_g = g_sum / count;
  const double constant = -(mean_g * rstd) - slope * shift;
  const double size = std::fabs(rstd);
  const double g_root = std::sqrt(sums.g_squares / count);
  const double greatest_slope = count * g_root * x_root * std::fabs(scale);
  if (!std::isfinite(greatest_slope) || !std::isfinite(constant)) return std::nullopt;

  NarrowGradient result;
  result.center = center;
  result.shift = shift;
  result.rstd = rstd;
  result.slope = slope;
  result.constant = constant;
  if (sums.g_squares > 0) {
    const double slope_size = std::fabs(slope);
    const double g_error = (rho + 9) * size;
    const double x_error = (3 * h + 24) * greatest_slope + (3 * rho + 17) * slope_size;
    const double offset = (h + 17) * slope_size * x_root + (h + 12) * size * g_root +
                          (rho + 9) * size * std::fabs(mean_g);
    result.dx = bounds_of_row(g_error * kUnit * kSlack, x_error * kUnit * kSlack,
                              offset * kUnit * kSlack + kNarrowLost, sums.g_squares * kSlack,
                              squares * kSlack);
  }
  // Of the mean, of its product with rstd, and of d. The rest of the error of d grows with x-hat: it is in the slope.
  const double mean_error = sum_error * x_root + (2 + d_error) * std::fabs(shift);
  result.xhat.offset = has_mean ? mean_error * kUnit * size * kSlack : 0;
  result.xhat.slope = (rho + 1 + d_error) * kUnit * kSlack;
  return result;
}

std::optional<WideGradient> wide_gradient(const GradientSums& sums, const CenteredSums* centered,
                                          std::int64_t n, const Formula& formula,
                                          const SavedStatistics* saved, double growth) noexcept {
  const DoubleDouble count{static_cast<double>(n)};
  const DoubleDouble freedom{static_cast<double>(n - formula.ddof)};
  const double squares = sums.x.squares.high;
  const bool has_g = sums.g_squares > 0;
  if (has_g && !is_within(sums.g_squares, kMinSquares, kMaxSquares)) return std::nullopt;
  if (squares != 0 && !is_within(squares, kMinSquares, kMaxSquares)) return std::nullopt;
  WideGradient result;
  DoubleDouble shift;
  DoubleDouble root_reciprocal;
  double rho = 0;  // relative, of rstd and of the reciprocal of the root
  double mean_error = 0;
  if (saved != nullptr) {
    if (!is_plain(*saved)) return std::nullopt;
    result.mean = {formula.rms ? 0 : saved->mean.high};
    result.rstd = root_reciprocal = {saved->rstd.high};
  } else {
    const auto divisors = wide_divisors(*centered, n - formula.ddof, formula);
    if (!divisors) return std::nullopt;
    result.mean = centered->mean;
    mean_error = centered->mean_error;
    result.rstd = divisors->rstd;
    root_reciprocal = divisors->root_reciprocal;
    rho = divisors->error;
    if (!formula.rms) shift = sums.x.sum / count;
  }
  const DoubleDouble g_sum = formula.rms ? DoubleDouble{} : sums.g;
  const DoubleDouble product = sums.gx - shift * g_sum;
  const DoubleDouble scale = result.rstd * result.rstd * root_reciprocal / freedom;
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
    const double g_error = (rho + 20 * kUnit2) * size;
    const double x_error =
        (3 * growth + 60) * kUnit2 * greatest_slope + (3 * rho + 60 * kUnit2) * slope_size;
    const double offset = mean_error * slope_size + (growth + 10) * kUnit2 * size * g_root +
                          (rho + 40 * kUnit2) * constant_size + kLostBits * (1 + size);
    result.dx = bounds_of_row(g_error * kSlack, x_error * kSlack, offset * kSlack,
                              sums.g_squares * kSlack, squares * kSlack);
  }
  result.xhat.offset = mean_error * size * kSlack;
  result.xhat.slope = rho + 20 * kUnit2;
  return result;
}

}  // namespace lnorm
