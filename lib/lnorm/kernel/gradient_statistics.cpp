#include "lnorm/kernel/gradient_statistics.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/kernel/kernel_table.hpp"

namespace lnorm {

namespace {

// Sums of squares, and s, between which no low part of a double-double that counts is lost.
constexpr double kMinSquares = 0x1p-400;
constexpr double kMaxSquares = 0x1p400;
constexpr double kMinDoubleDoubleDivisor = 0x1p-200;
constexpr double kMaxDoubleDoubleDivisor = 0x1p200;

// The mean of so few is often far from the center.
constexpr std::int64_t kFewElements = 16;

bool is_within(double value, double least, double greatest) noexcept {
  return value >= least && value <= greatest;
}

GradientBounds bounds_of_row(double g_error, double x_error, double offset, double g_squares,
                             double x_squares) noexcept {
  const double error = g_error * std::sqrt(g_squares) + x_error * std::sqrt(x_squares) + offset;
  return {g_error, x_error, offset, error * kSlack};
}

}  // namespace

GradientRule::GradientRule(const GradientSetting& setting)
    : n(setting.row_length),
      formula(setting.formula),
      per_root(1 / std::sqrt(static_cast<double>(n))),
      growth(static_cast<double>(double_growth(n, setting.backend.table->gradient_lanes))),
      share(std::ldexp(1, -2 * (float_format(setting.dx).precision + 5))),
      most_correction(n <= kFewElements ? 16 : 1),
      nearness(0.7 * std::sqrt(most_correction)) {}

std::optional<DoubleDouble> plain_rstd(const SavedStatistics& saved,
                                       const Formula& formula) noexcept {
  const Number spread = saved.variance.value_or(Number{});
  if (spread.high != 0 && !is_within(spread.high, kMinSquares, kMaxSquares)) return std::nullopt;
  const DoubleDouble rstd = saved.reciprocal(formula);
  // A mean below that is all of x - mean where x is 0, and its products are below the doubles.
  const double mean = std::fabs(saved.mean.high);
  const bool is_plain =
      saved.mean.low == 0 && saved.rstd.low == 0 && spread.low == 0 &&
      (mean == 0 || is_within(mean, 0x1p-400, 0x1p200)) &&
      is_within(std::fabs(rstd.high), kMinDoubleDoubleDivisor, kMaxDoubleDoubleDivisor);
  return is_plain ? std::optional(rstd) : std::nullopt;
}

std::optional<DoubleDoubleGradient> double_double_gradient(const GradientSums& sums,
                                                           const CenteredSums* centered,
                                                           std::int64_t n, const Formula& formula,
                                                           const SavedStatistics* saved,
                                                           double growth) noexcept {
  const DoubleDouble count{static_cast<double>(n)};
  const DoubleDouble freedom{static_cast<double>(formula.freedom(n))};
  const double squares = sums.x.squares.high;
  const bool has_g = sums.g_squares > 0;
  const bool are_constants = saved != nullptr && saved->are_constants();
  if (has_g && !is_within(sums.g_squares, kMinSquares, kMaxSquares)) return std::nullopt;
  if (squares != 0 && !is_within(squares, kMinSquares, kMaxSquares)) return std::nullopt;
  DoubleDoubleGradient result;
  DoubleDouble shift;
  DoubleDouble per_t;  // of constants 0
  double rho = 0;      // relative, of rstd and of 1/t
  double mean_error = 0;
  if (saved != nullptr) {
    const std::optional<DoubleDouble> known = plain_rstd(*saved, formula);
    if (!known) return std::nullopt;
    result.mean = {saved->mean.high};
    result.rstd = *known;
    if (!are_constants) per_t = *known;
    rho = are_constants ? bound::kRstd * kUnit2 * kSlack : 0;
  } else {
    const Divisors divisors(centered->squares / freedom, formula);
    rho = centered->reciprocal_error();
    const double t = divisors.t.high;
    const double near = t * (2 * rho + kNearEps);
    const bool is_max = formula.eps_on == EpsOn::max;
    const bool is_eps = is_max && t + near < formula.eps;
    if (is_max && !is_eps && !(t - near > formula.eps)) return std::nullopt;
    if (!is_within(is_eps ? formula.eps : t, kMinDoubleDoubleDivisor, kMaxDoubleDoubleDivisor))
      return std::nullopt;
    if (!(divisors.s.high <= kMaxDoubleDoubleDivisor)) return std::nullopt;
    result.mean = centered->mean;
    mean_error = centered->mean_error;
    result.rstd = DoubleDouble{1} / divisors.s;
    if (!is_eps) per_t = divisors.are_same ? result.rstd : DoubleDouble{1} / divisors.t;
    shift = sums.x.sum / count;
  }
  const GradientTerms terms(are_constants ? DoubleDouble{} : sums.g, sums.gx, shift, result.rstd,
                            per_t, count, freedom);
  result.slope = terms.slope;
  result.constant = terms.constant;

  const double size = std::fabs(result.rstd.high);
  const double slope_size = std::fabs(result.slope.high);
  const double constant_size = std::fabs(result.constant.high);
  const double n_real = count.high;
  const double g_root = std::sqrt(sums.g_squares / n_real);
  const double x_root = std::sqrt(squares / n_real);
  const double greatest_slope = n_real * g_root * x_root * std::fabs(terms.scale.high);
  if (has_g) {
    const double g_error = (rho + kDxTerms2.g * kUnit2) * size;
    const double x_error = (3 * growth + kDxTerms2.product) * kUnit2 * greatest_slope +
                           (3 * rho + kDxTerms2.slope * kUnit2) * slope_size;
    const double of_means =
        are_constants ? 0 : (growth + kDxTerms2.constant) * kUnit2 * size * g_root;
    const double offset = mean_error * slope_size + of_means +
                          (rho + kDxTerms2.mean * kUnit2) * constant_size + kLostBits * (1 + size);
    result.dx = bounds_of_row(g_error * kSlack, x_error * kSlack, offset * kSlack,
                              sums.g_squares * kSlack, squares * kSlack);
  }
  result.xhat.offset = mean_error * size * kSlack;
  result.xhat.slope = rho + bound::kXhat * kUnit2;
  return result;
}

}  // namespace lnorm
