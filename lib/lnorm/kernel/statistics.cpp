#include "lnorm/kernel/statistics.hpp"

#include <algorithm>
#include <bit>

#include "lnorm/kernel/bracket.hpp"

namespace lnorm {

namespace {

std::int64_t chunks(std::int64_t n) noexcept { return (n + kChunk - 1) / kChunk; }

DoubleDouble exact(std::int64_t count) noexcept { return {static_cast<double>(count)}; }

}  // namespace

std::int64_t chunk_growth(std::int64_t n, std::int64_t lanes) noexcept {
  const std::int64_t length = std::min(n, kChunk);
  const auto folds = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(lanes)));
  return (length + lanes - 1) / lanes + folds;
}

std::int64_t double_growth(std::int64_t n, std::int64_t lanes) noexcept {
  return chunk_growth(n, lanes) + 1;  // chunks are added in double-doubles
}

double double_double_growth(std::int64_t n, std::int64_t lanes) noexcept {
  const auto lane = static_cast<double>(chunk_growth(n, lanes) + 2);
  return lane * lane + 6 * static_cast<double>(chunks(n)) + 40;
}

DoubleBounds::DoubleBounds(std::int64_t n, std::int64_t lanes, bool are_relative) noexcept
    : offset_(are_relative ? 0
                           : (static_cast<double>(double_growth(n, lanes)) + bound::kOffset) *
                                 kUnit * kSlack),
      slope_((3 * static_cast<double>(double_growth(n, lanes)) + bound::kSlope) * kUnit * kSlack),
      reach_(std::sqrt(static_cast<double>(n)) * kSlack) {}

std::optional<DoubleStatistics> double_statistics(const Sums& sums, double center, std::int64_t n,
                                                  const Formula& formula,
                                                  const DoubleBounds& bounds) noexcept {
  const auto count = static_cast<double>(n);
  const double squares = sums.squares.high;
  const double shift = sums.sum.high / count;
  const double centered = squares_about_mean(squares, sums.sum.high, shift);
  const double s = Divisors(centered / static_cast<double>(formula.freedom(n)), formula).s;
  if (!(shift * sums.sum.high <= centered && s >= kMinDivisor && s <= kMaxDivisor)) {
    return std::nullopt;
  }
  const double rstd = 1 / s;
  const double spread = rstd * std::sqrt(squares / count);
  return DoubleStatistics{
      center, shift, rstd, bounds.offset(spread), bounds.slope(), bounds.reach(spread)};
}

DoubleStatistics double_statistics(const DoubleDoubleStatistics& better) noexcept {
  const double rstd = better.rstd.high;
  const double offset =
      (better.offset + bound::kRoundedMean * kUnit * std::fabs(better.mean.low) * rstd) * kSlack;
  const double slope = (better.slope + bound::kRoundedSlope * kUnit) * kSlack;
  return {better.mean.high, better.mean.low, rstd, offset, slope, better.reach};
}

std::optional<CenteredSums> centered_sums(const Sums& sums, double center, std::int64_t n,
                                          bool has_mean, double growth) noexcept {
  const DoubleDouble shift = sums.sum / exact(n);
  const DoubleDouble centered = squares_about_mean(sums.squares, sums.sum, shift);
  const double squares = sums.squares.high;
  // n center, too, is a product of double-doubles.
  const bool in_range = squares >= kMinDoubleDoubleSquares && squares <= kMaxDoubleDoubleSquares &&
                        std::fabs(center) <= kMaxDoubleDoubleSquares;
  const double squares_error = (3 * growth + bound::kCentered) * kUnit2 * squares * kSlack;
  const bool has_bits = squares_error <= kMaxSquaresError * centered.high;
  if (!in_range || !has_bits) return std::nullopt;
  const double mean_error = has_mean ? (growth + bound::kMean) * kUnit2 *
                                           std::sqrt(squares / static_cast<double>(n)) * kSlack
                                     : 0;
  CenteredSums result;
  result.mean = shift + center;
  result.mean_error = mean_error + bound::kShiftedMean * kUnit2 * std::fabs(result.mean.high);
  result.sum = two_product(static_cast<double>(n), center) + sums.sum;
  result.sum_error = mean_error * static_cast<double>(n) +
                     bound::kShiftedSum * kUnit2 * std::fabs(result.sum.high);
  result.squares = centered;
  result.squares_error = squares_error;
  return result;
}

std::optional<double> CenteredSums::rounded_variance(std::int64_t freedom) const noexcept {
  const DoubleDouble variance = squares / exact(freedom);
  const double error = squares_error / static_cast<double>(freedom) * kSlack +
                       bound::kVariance * kUnit2 * variance.high;
  return decided(variance, error);
}

CenteredSums constant_sums(double element, std::int64_t n) noexcept {
  const double sum = element * static_cast<double>(n);
  return {{sum}, 0, {element}, 0, {}, 0};
}

std::optional<DoubleDoubleStatistics> double_double_statistics(const CenteredSums& sums,
                                                               std::int64_t n,
                                                               const Formula& formula) noexcept {
  const DoubleDouble s = Divisors(sums.squares / exact(formula.freedom(n)), formula).s;
  if (!(s.high >= kMinDoubleDoubleS && s.high <= kMaxDoubleDoubleS)) return std::nullopt;
  DoubleDoubleStatistics result;
  result.mean = sums.mean;
  result.rstd = exact(1) / s;
  result.rstd_error = sums.reciprocal_error();
  result.offset = sums.mean_error * result.rstd.high * kSlack;
  result.slope = result.rstd_error + bound::kXhat * kUnit2;
  result.reach = result.rstd.high * std::sqrt(sums.squares.high) * kSlack;
  return result;
}

DoubleDoubleBounds::DoubleDoubleBounds(std::int64_t n, std::int64_t freedom,
                                       std::int64_t lanes) noexcept
    : squares((3 * double_double_growth(n, lanes) + bound::kShortCentered) * kUnit2 * kSlack),
      offset((double_double_growth(n, lanes) + bound::kShortMean) * kUnit2 * kSlack),
      slope(bound::kShortSlope * kUnit2 * kSlack),
      reach(std::sqrt(static_cast<double>(freedom)) * kSlack) {}

}  // namespace lnorm
