#include "lnorm/kernel/statistics.hpp"

#include <algorithm>
#include <bit>

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/bracket.hpp"

namespace lnorm {

namespace {

constexpr double kUnit2 = kUnit * kUnit;

// For the terms of second order, and the rounding of the bounds themselves.
constexpr double kSlack = 1 + 0x1p-8;

std::int64_t chunks(std::int64_t n) noexcept { return (n + kChunk - 1) / kChunk; }

DoubleDouble exact(std::int64_t count) noexcept { return {static_cast<double>(count)}; }

}  // namespace

std::int64_t chunk_growth(std::int64_t n, std::int64_t lanes) noexcept {
  const std::int64_t length = std::min(n, kChunk);
  const auto folds = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(lanes)));
  return (length + lanes - 1) / lanes + folds;
}

std::int64_t narrow_growth(std::int64_t n, std::int64_t lanes) noexcept {
  return chunk_growth(n, lanes) + 1;  // chunks are added in double-doubles
}

double wide_growth(std::int64_t n, std::int64_t lanes) noexcept {
  const auto lane = static_cast<double>(chunk_growth(n, lanes) + 2);
  return lane * lane + 6 * static_cast<double>(chunks(n)) + 40;
}

NarrowBounds::NarrowBounds(std::int64_t n, std::int64_t lanes) noexcept
    : offset_(static_cast<double>(narrow_growth(n, lanes) + 10) * kUnit * kSlack),
      slope_(static_cast<double>(3 * narrow_growth(n, lanes) + 30) * kUnit * kSlack),
      reach_(std::sqrt(static_cast<double>(n)) * kSlack) {}

std::optional<NarrowStatistics> narrow_statistics(const Sums& sums, double center, std::int64_t n,
                                                  const Formula& formula,
                                                  const NarrowBounds& bounds) noexcept {
  const auto count = static_cast<double>(n);
  const double sum = formula.rms ? 0 : sums.sum.high;
  const double squares = sums.squares.high;
  const double shift = sum / count;
  const double correction = shift * sum;
  const double centered = squares - correction;
  const double variance = centered / static_cast<double>(n - formula.ddof);
  const double s = formula.eps_on == EpsOn::variance ? std::sqrt(variance + formula.eps)
                                                     : std::sqrt(variance) + formula.eps;
  const bool usable = correction <= centered && s >= kMinDivisor && s <= kMaxDivisor;
  if (!usable) return std::nullopt;
  const double rstd = 1 / s;
  const double spread = rstd * std::sqrt(squares / count);
  return NarrowStatistics{
      center, shift, rstd, bounds.offset(spread), bounds.slope(), bounds.reach(spread)};
}

NarrowStatistics narrow_statistics(const WideStatistics& wide) noexcept {
  const double rstd = wide.rstd.high;
  const double offset = (wide.offset + 4 * kUnit * std::fabs(wide.mean.low) * rstd) * kSlack;
  const double slope = (wide.slope + 10 * kUnit) * kSlack;
  return {wide.mean.high, wide.mean.low, rstd, offset, slope, wide.reach};
}

std::optional<CenteredSums> centered_sums(const Sums& sums, double center, std::int64_t n, bool rms,
                                          double growth) noexcept {
  const DoubleDouble shift = sums.sum / exact(n);
  const DoubleDouble mean_shift = rms ? DoubleDouble{} : shift;
  const DoubleDouble centered = sums.squares - mean_shift * sums.sum;
  const double squares = sums.squares.high;
  const bool in_range = squares >= kMinWideSquares && squares <= kMaxWideSquares;
  const double squares_error = (3 * growth + 25) * kUnit2 * squares * kSlack;
  const bool has_bits = squares_error <= kMaxSquaresError * centered.high;
  if (!in_range || !has_bits) return std::nullopt;
  const double mean_error =
      (growth + 10) * kUnit2 * std::sqrt(squares / static_cast<double>(n)) * kSlack;
  CenteredSums result;
  result.mean = shift + center;
  result.mean_error = mean_error + 3 * kUnit2 * std::fabs(result.mean.high);
  result.sum = two_product(static_cast<double>(n), center) + sums.sum;
  result.sum_error = mean_error * static_cast<double>(n) + 4 * kUnit2 * std::fabs(result.sum.high);
  if (rms) {
    result.mean = {};
    result.mean_error = 0;
  }
  result.squares = centered;
  result.squares_error = squares_error;
  return result;
}

std::optional<double> CenteredSums::rounded_sum() const noexcept { return decided(sum, sum_error); }

std::optional<double> CenteredSums::rounded_mean() const noexcept {
  return decided(mean, mean_error);
}

std::optional<double> CenteredSums::rounded_variance(std::int64_t freedom) const noexcept {
  const DoubleDouble variance = squares / exact(freedom);
  const double error =
      squares_error / static_cast<double>(freedom) * kSlack + 10 * kUnit2 * variance.high;
  return decided(variance, error);
}

CenteredSums constant_sums(double element, std::int64_t n) noexcept {
  const double sum = element * static_cast<double>(n);
  return {{sum}, 0, {element}, 0, {}, 0};
}

std::optional<WideStatistics> wide_statistics(const CenteredSums& sums, std::int64_t n,
                                              const Formula& formula) noexcept {
  const DoubleDouble variance = sums.squares / exact(n - formula.ddof);
  const DoubleDouble s = formula.eps_on == EpsOn::variance ? sqrt(variance + formula.eps)
                                                           : sqrt(variance) + formula.eps;
  if (!(s.high >= kMinWideS && s.high <= kMaxWideS)) return std::nullopt;
  const bool is_constant = sums.squares.high == 0;
  const double squares_error = is_constant ? 0 : sums.squares_error / sums.squares.high;
  WideStatistics result;
  result.mean = sums.mean;
  result.rstd = exact(1) / s;
  result.rstd_error = (squares_error / 2 + 25 * kUnit2) * kSlack;
  result.offset = sums.mean_error * result.rstd.high * kSlack;
  result.slope = result.rstd_error + 20 * kUnit2;
  result.reach = result.rstd.high * std::sqrt(sums.squares.high) * kSlack;
  return result;
}

WideBounds::WideBounds(std::int64_t n, std::int64_t freedom, std::int64_t lanes) noexcept
    : squares((3 * wide_growth(n, lanes) + 30) * kUnit2 * kSlack),
      offset((wide_growth(n, lanes) + 15) * kUnit2 * kSlack),
      slope(48 * kUnit2 * kSlack),
      reach(std::sqrt(static_cast<double>(freedom)) * kSlack) {}

}  // namespace lnorm
