#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/options.hpp"

// From sums to the numbers that results are made of, with bounds of their errors. There are two precisions:
//
//   narrow   doubles, for elements and results narrower than float64
//   wide     double-doubles
//
// docs/numbers.md derives the bounds. u is 2^-53, n the length of the row, xhat = (x - mean) / s. A result
// y = xhat * weight + bias is computed as y' with
//
//   |y - y'| <= (offset + slope |xhat|) |weight| + 4 u |bias|      (wide: 8 u^2 |bias|, and kLostBits (1 + |weight|)
//                                                                 unless x - mean is 0)
// and |xhat| <= reach, so that (offset + slope * reach) |weight| bounds the first term for the whole row.
namespace lnorm {

inline constexpr double kUnit = 0x1p-53;  // u

// What double-doubles lose where their low parts, or they themselves, are below the normal doubles.
inline constexpr double kLostBits = 0x1p-1060;

// Over a row or a part of it, d = x - center.
struct Sums {
  DoubleDouble sum{};      // of d
  DoubleDouble squares{};  // of d^2

  Sums& operator+=(const Sums& other) noexcept {
    sum = sum + other.sum;
    squares = squares + other.squares;
    return *this;
  }
};

// How many additions an element of a row of n goes through until the sum of its chunk, in which there are lanes
// of sums.
std::int64_t chunk_growth(std::int64_t n, std::int64_t lanes) noexcept;

// Sums are within this many u (narrow) or u^2 (wide) of exact, relative to sum(|d|) and sum(d^2).
std::int64_t narrow_growth(std::int64_t n, std::int64_t lanes) noexcept;
double wide_growth(std::int64_t n, std::int64_t lanes) noexcept;

// y' = ((x - center) * rstd - shift * rstd) * weight + bias      mean = center + shift
struct NarrowStatistics {
  double center;
  double shift;
  double rstd;
  double offset;
  double slope;
  double reach;

  double error() const noexcept { return offset + slope * reach; }
};

// y' = (x - mean) * rstd * weight + bias
struct WideStatistics {
  DoubleDouble mean;
  DoubleDouble rstd;
  double rstd_error;  // relative
  double offset;
  double slope;
  double reach;

  double error() const noexcept { return offset + slope * reach; }
};

// Narrow statistics of many rows of one length by one formula.
class NarrowBounds {
 public:
  NarrowBounds(std::int64_t n, std::int64_t lanes) noexcept;

  // spread = rstd * sqrt(sum(d^2) / n), where rows are usable:
  // sum(d^2) <= 2 sum((x - mean)^2), and s from kMinDivisor to kMaxDivisor.
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

// Nothing where the row is not usable. sums are finite.
std::optional<NarrowStatistics> narrow_statistics(const Sums& sums, double center, std::int64_t n,
                                                  const Formula& formula,
                                                  const NarrowBounds& bounds) noexcept;

// The same numbers, better, where wide ones are known.
NarrowStatistics narrow_statistics(const WideStatistics& wide) noexcept;

// Sums about a center, taken to the mean (RMS: to 0), each with the bound of its error.
struct CenteredSums {
  DoubleDouble sum;  // of x
  double sum_error;
  DoubleDouble mean;
  double mean_error;
  DoubleDouble squares;  // sum((x - mean)^2)
  double squares_error;

  // Each rounded once to float64, where its error does not leave that open. freedom: what the squares are
  // divided by.
  std::optional<double> rounded_sum() const noexcept;
  std::optional<double> rounded_mean() const noexcept;
  std::optional<double> rounded_variance(std::int64_t freedom) const noexcept;
};

// Nothing where bits are lost: the center is too far from the mean, or squares are not from kMinWideSquares to
// kMaxWideSquares. growth: of the sums, in u^2.
std::optional<CenteredSums> centered_sums(const Sums& sums, double center, std::int64_t n, bool rms,
                                          double growth) noexcept;

// Of a row whose elements are all this one.
CenteredSums constant_sums(double element, std::int64_t n) noexcept;

// Nothing where s is not from kMinWideS to kMaxWideS.
std::optional<WideStatistics> wide_statistics(const CenteredSums& sums, std::int64_t n,
                                              const Formula& formula) noexcept;

// Sums of squares between these have all their bits, low parts included.
inline constexpr double kMinWideSquares = 0x1p-800;
inline constexpr double kMaxWideSquares = 0x1p900;

inline constexpr double kMinWideS = 0x1p-450;
inline constexpr double kMaxWideS = 0x1p450;

// C is known to this part of itself, if a row is usable: a result would keep its 53 bits, and more than ten for the
// rounding test.
inline constexpr double kMaxSquaresError = 0x1p-64;

// Wide statistics of many rows of one length by one formula, summed about 0; 1/n and 1/(n - ddof) are multiplied by.
// most is the largest |x| of a row.
struct WideBounds {
  double squares;  // error of sum((x - mean)^2), relative to sum(x^2)
  double offset;   // relative to most * rstd
  double slope;    // but for half of the relative error of sum((x - mean)^2)
  double reach;    // or 2 most * rstd, if that is less

  WideBounds(std::int64_t n, std::int64_t freedom, std::int64_t lanes) noexcept;
};

// Narrower than float64, so that narrow statistics may do.
inline bool is_narrow(DType in, DType out) noexcept {
  return !has_low(in) && in != DType::float64 && out != DType::float64;
}

// Weight and bias between which and their reciprocals neither precision loses bits to the ends of the range.
inline constexpr double kMaxNarrowAffine = 0x1p60;
inline constexpr double kMaxWideAffine = 0x1p300;

}  // namespace lnorm
