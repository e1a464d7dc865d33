#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/formula.hpp"
#include "lnorm/core/number.hpp"

// Sums become the numbers that results are made of, with bounds of their errors. There are two precisions:
//
//   doubles          for elements and results narrower than float64
//   double-doubles   for all else
//
// docs/numbers.md derives the bounds. u is 2^-53, n the length of the row, xhat = (x - mean) / s. A result
// y = xhat * weight + bias is computed as y' with
//
//   |y - y'| <= (offset + slope |xhat|) |weight| + 4 u |bias|      (double-doubles: 8 u^2 |bias|, and kLostBits (1 + |weight|)
//                                                                 unless x - mean is 0)
// and |xhat| <= reach, so that (offset + slope * reach) |weight| bounds the first term for the whole row.
namespace lnorm {

inline constexpr double kUnit = 0x1p-53;  // u
inline constexpr double kUnit2 = kUnit * kUnit;

// A bound is multiplied by this for its terms of second order, and for its own roundings.
inline constexpr double kSlack = 1 + 0x1p-8;

// What the terms of the bounds add up to, in u of doubles and u^2 of double-doubles. The numbers in brackets are those of
// their equations in docs/numbers.md.
namespace bound {
// The sums' growth is g, or G.
inline constexpr double kOffset = 10;  // (7): g + this, of spread
inline constexpr double kSlope = 30;   // (8): 3 g + this, of |xhat|
inline constexpr double kBias = 8;     // (8), (15): of |bias|
// These are for double-doubles.
inline constexpr double kMean = 10;        // (11): G + this, of sqrt(Q / n)
inline constexpr double kShiftedMean = 3;  // (11): of |mean|
inline constexpr double kShiftedSum = 4;   // (11), n times: of |sum|
inline constexpr double kCentered = 25;    // (12): 3 G + this, of Q
inline constexpr double kVariance = 10;    // a quotient, of the variance
inline constexpr double kRstd = 25;        // (13): of rstd, beside half of the error of C
inline constexpr double kXhat = 20;        // (15): of |xhat|, beside the error of rstd
inline constexpr double kRounding =
    4;  // what a bound and its sum with a value are off by, of the value
inline constexpr double kShortMean = 15;      // (16), as kMean
inline constexpr double kShortCentered = 30;  // (16), as kCentered
inline constexpr double kShortSlope = 48;     // (16): kXhat, and 28 of rstd
// Bounds the error of statistics in doubles that are rounded from those in double-doubles.
inline constexpr double kRoundedMean = 4;    // (17): of |mean.low| rstd
inline constexpr double kRoundedSlope = 10;  // (17): of |xhat|
}  // namespace bound

// What double-doubles lose where their low parts, or they themselves, are below the normal doubles.
inline constexpr double kLostBits = 0x1p-1060;

// A product of double-doubles loses at most so many times the smallest subnormal double there.
inline constexpr double kLosses = 16;

// What a sum of two double-doubles is off by, relative to it.
inline constexpr double kPairSumError = 4 * kUnit2;

// Statistics of a row that are not computed of it: the mean, 0 if the norm has none, and rstd for 1/s, as a forward pass has saved
// them. Or constants, whose derivatives are 0: the mean, and the variance, which s comes of.
struct SavedStatistics {
  Number mean{};
  Number rstd{};
  std::optional<Number> variance{};

  bool are_constants() const noexcept { return variance.has_value(); }

  // 1/s: infinity where s is 0.
  DoubleDouble reciprocal(const Formula& formula) const noexcept {
    if (!variance) return {rstd.high, rstd.low};
    const DoubleDouble s = Divisors(DoubleDouble{variance->high, variance->low}, formula).s;
    return s.high == 0 ? DoubleDouble{HUGE_VAL} : DoubleDouble{1} / s;
  }
};

// Over a row or a part of it, d = x - center.
struct Sums {
  DoubleDouble sum{};      // of d
  DoubleDouble squares{};  // of d^2

  Sums& operator+=(const Sums& other) noexcept {
    sum = sum + other.sum;
    squares = squares + other.squares;
    return *this;
  }

  // Of norms without a mean.
  void drop_means() noexcept { sum = {}; }
};

// How many additions an element of a row of n goes through until the sum of its chunk, in which there are lanes
// of sums.
std::int64_t chunk_growth(std::int64_t n, std::int64_t lanes) noexcept;

// Sums are within this many u (doubles) or u^2 (double-doubles) of exact, relative to sum(|d|) and sum(d^2).
std::int64_t double_growth(std::int64_t n, std::int64_t lanes) noexcept;
double double_double_growth(std::int64_t n, std::int64_t lanes) noexcept;

// y' = ((x - center) * rstd - shift * rstd) * weight + bias      mean = center + shift
struct DoubleStatistics {
  double center;
  double shift;
  double rstd;
  double offset;
  double slope;
  double reach;

  // The error of xhat is relative, unless a bias is added.
  double relative(bool has_bias) const noexcept { return offset == 0 && !has_bias ? slope : 0; }
  double error() const noexcept { return offset + slope * reach; }
};

// y' = (x - mean) * rstd * weight + bias
struct DoubleDoubleStatistics {
  DoubleDouble mean;
  DoubleDouble rstd;
  double rstd_error;  // relative
  double offset;
  double slope;
  double reach;

  double error() const noexcept { return offset + slope * reach; }
};

// What bounds the errors of statistics in doubles, for many rows of one length by one formula. Without a mean they are relative.
class DoubleBounds {
 public:
  DoubleBounds(std::int64_t n, std::int64_t lanes, bool are_relative) noexcept;

  // spread = rstd * sqrt(sum(d^2) / n), where rows are usable. The offset is 0 where they are relative.
  double offset(double spread) const noexcept { return offset_ * spread; }
  double slope() const noexcept { return slope_; }
  double reach(double spread) const noexcept { return reach_ * spread; }

 private:
  double offset_;
  double slope_;
  double reach_;
};
inline constexpr double kMinDivisor = 0x1p-400;
inline constexpr double kMaxDivisor = 0x1p400;

// There are none where the row is not usable: sum(d^2) > 2 sum((x - mean)^2), or s is not from kMinDivisor to
// kMaxDivisor. sums are finite.
std::optional<DoubleStatistics> double_statistics(const Sums& sums, double center, std::int64_t n,
                                                  const Formula& formula,
                                                  const DoubleBounds& bounds) noexcept;

// Better numbers, where those in double-doubles are known.
DoubleStatistics double_statistics(const DoubleDoubleStatistics& better) noexcept;

// Sums about a center, taken to the mean (without one to 0), each with the bound of its error.
struct CenteredSums {
  DoubleDouble sum;  // of x
  double sum_error;
  DoubleDouble mean;
  double mean_error;
  DoubleDouble squares;  // sum((x - mean)^2)
  double squares_error;

  bool is_constant() const noexcept { return squares.high == 0; }

  // Of 1/s and 1/t, relative.
  double reciprocal_error() const noexcept {
    const double of_squares = is_constant() ? 0 : squares_error / squares.high;
    return (of_squares / 2 + bound::kRstd * kUnit2) * kSlack;
  }

  // Rounded once to float64, where its error leaves no choice. freedom: what the squares are
  // divided by.
  std::optional<double> rounded_variance(std::int64_t freedom) const noexcept;
};

// There are none where bits are lost: the center is too far from the mean, or squares are not from kMinDoubleDoubleSquares to
// kMaxDoubleDoubleSquares. growth: of the sums, in u^2.
std::optional<CenteredSums> centered_sums(const Sums& sums, double center, std::int64_t n,
                                          bool has_mean, double growth) noexcept;

// The row's elements are all this one.
CenteredSums constant_sums(double element, std::int64_t n) noexcept;

// There are none where s is not from kMinDoubleDoubleS to kMaxDoubleDoubleS.
std::optional<DoubleDoubleStatistics> double_double_statistics(const CenteredSums& sums,
                                                               std::int64_t n,
                                                               const Formula& formula) noexcept;

// Sums of squares between these have all their bits, low parts included.
inline constexpr double kMinDoubleDoubleSquares = 0x1p-800;
inline constexpr double kMaxDoubleDoubleSquares = 0x1p900;

inline constexpr double kMinDoubleDoubleS = 0x1p-450;
inline constexpr double kMaxDoubleDoubleS = 0x1p450;

// C is known to this part of itself, if a row is usable: a result would keep its 53 bits, and more than ten for the
// rounding test.
inline constexpr double kMaxSquaresError = 0x1p-64;

// Finds them in double-doubles, for rows that are summed about 0; 1/n and 1/(n - ddof) are multiplied by.
// most is the largest |x| of a row.
struct DoubleDoubleBounds {
  double squares;  // error of sum((x - mean)^2), relative to sum(x^2)
  double offset;   // relative to most * rstd
  double slope;    // but for half of the relative error of sum((x - mean)^2)
  double reach;    // or 2 most * rstd, if that is less

  DoubleDoubleBounds(std::int64_t n, std::int64_t freedom, std::int64_t lanes) noexcept;
};

// Whether both are narrower than float64, so that statistics in doubles may do.
inline bool fits_doubles(DType in, DType out) noexcept {
  return !has_low(in) && in != DType::float64 && out != DType::float64;
}

// Weight and bias between which and their reciprocals neither precision loses bits to the ends of the range.
inline constexpr double kMaxDoubleAffine = 0x1p60;
inline constexpr double kMaxDoubleDoubleAffine = 0x1p300;

// A sum in three doubles. Of a sum that cancels, double-doubles keep too few digits.
// [Ogita, Rump, Oishi 2005, "Accurate sum and dot product", SumK with K = 3]
struct TripleSum {
  double high = 0;
  double middle = 0;
  double low = 0;
  std::int64_t additions = 0;  // that an element goes through, at most
  bool is_exact = true;        // nothing has gone into low

  TripleSum& operator+=(const TripleSum& other) noexcept {
    const DoubleDouble first = two_sum(high, other.high);
    const DoubleDouble second = two_sum(middle, other.middle);
    const DoubleDouble third = two_sum(second.high, first.low);
    high = first.high;
    middle = third.high;
    low += other.low + (second.low + third.low);
    additions = std::max(additions, other.additions) + 1;
    is_exact = is_exact && other.is_exact && second.low == 0 && third.low == 0;
    return *this;
  }

  // Off by 2 u^2 of itself; if the sum is exact, so is this, and its high part is the rounded sum.
  DoubleDouble rounded() const noexcept {
    const DoubleDouble sum = two_sum(high, middle);
    return sum + low;
  }

  // The error, where the sum of the elements' sizes is at most S. With k additions, what goes into middle has at most the size
  // k u S, and what goes into low 2 k^2 u^2 S. Only the additions to low are rounded, up to three times each.
  double error(double sizes) const noexcept {
    const double ku = 2 * static_cast<double>(additions) * kUnit;
    return ku * ku * ku * sizes * kSlack;
  }
};

}  // namespace lnorm
