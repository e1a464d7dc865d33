#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/plain_sums.hpp"
#include "lnorm/kernel/rows.hpp"

// Layer normalisation by the corrected two-pass algorithm: what its implementations share, so that
// all of them, portable or SIMD, give the same bits.
//
//   first pass    d = x - center        sum(d), sum(d^2)      center: near the mean
//                 mean = center + shift                        shift = sum(d) / n
//                 sum((x - mean)^2) = sum(d^2) - shift sum(d)
//   second pass   y = ((x - center) - shift) * rstd * weight + bias
//
// in two precisions:
//
//   narrow  doubles. For elements and results narrower than float64: each element is exact in a
//           double, no square can overflow, and the sums end some 20 bits better than float32 needs.
//   wide    double-doubles, good to about 2^-96. For float64 and 64-bit integers.
//
// The centre is the mean of a sample. Where it turns out to lie further from the mean than a standard
// deviation, which would cost bits, the first pass is done again about a better one.
// [Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance: analysis and
// recommendations"]
namespace lnorm {

// The order of summation: element i of a chunk is summed in lane i % kLanes; the lanes are added in
// halves; chunks are added in double-doubles, segment by segment, and then the segments, each time
// from the first to the last. It does not depend on the width of the machine's vectors, nor on who
// sums which segment.
inline constexpr std::int64_t kLanes = 16;
inline constexpr std::int64_t kSegment = 64 * kChunk;
static_assert(kChunk % kLanes == 0);

inline std::int64_t chunk_length(const RowsIn& row, std::int64_t start) noexcept {
  return std::min(kChunk, row.row_length - start);
}

// Elements first to first + count of the one row of x.
inline RowsIn part_of(const RowsIn& row, std::int64_t first, std::int64_t count) noexcept {
  return {row.data + first * static_cast<std::int64_t>(item_size(row.dtype)), row.dtype,
          row.byte_order, 1, count};
}

// Loads the chunk of the row that begins at start, and fills it up to whole lanes with elements that
// add nothing: x = pad. Returns the filled length.
std::int64_t load_padded(const RowsIn& row, std::int64_t start, double pad, Chunk& chunk) noexcept;

// Adds the lanes in halves; the lanes that n elements do not reach hold zeros and are left out.
template <class T>
T fold(T (&lanes)[kLanes], std::int64_t n) noexcept {
  const auto used = std::bit_ceil(static_cast<std::uint64_t>(std::min(n, kLanes)));
  for (auto half = static_cast<std::int64_t>(used) / 2; half > 0; half /= 2) {
    for (std::int64_t j = 0; j < half; ++j) lanes[j] = lanes[j] + lanes[j + half];
  }
  return lanes[0];
}

// x - center, exactly.
inline DoubleDouble deviation(const Chunk& chunk, std::int64_t i, double center) noexcept {
  const DoubleDouble d = two_sum(chunk.high[i], -center);
  return fast_two_sum(d.high, d.low + chunk.low[i]);
}

// The sample: as many elements as there are lanes, from the middle of the row.
inline std::int64_t sample_start(std::int64_t row_length) noexcept {
  return std::max<std::int64_t>(0, row_length - kLanes) / 2;
}
inline std::int64_t sample_length(std::int64_t row_length) noexcept {
  return std::min(row_length, kLanes);
}

// What is subtracted is not +0 but -0, since x - -0.0 is +0 for zeros x of either sign.
inline double as_center(double mean) noexcept { return mean == 0 ? -0.0 : mean; }

struct Sums {
  DoubleDouble sum;      // of d
  DoubleDouble squares;  // of d^2
  double largest = 0;    // |d|; kept by wide sums
};

// a, then b.
inline Sums operator+(const Sums& a, const Sums& b) noexcept {
  return {a.sum + b.sum, a.squares + b.squares, std::max(a.largest, b.largest)};
}

// mean = center + shift
template <class T>  // double, DoubleDouble
struct Statistics {
  double center;
  T shift;
  T rstd;
};

// The mean of a sample, and the two passes over one segment of a row, or less at its end. offset:
// where in the row it begins. For measuring moments: the range of a row, and its plain sums.
struct Passes {
  double (*mean)(const RowsIn& sample) noexcept;
  Sums (*narrow_sums)(const RowsIn& part, double center) noexcept;
  Sums (*wide_sums)(const RowsIn& part, double center) noexcept;
  // Returns the largest |y| if there is a bias, otherwise 0.
  double (*narrow_write)(const RowsIn& part, const Statistics<double>& statistics,
                         const Affine& affine, std::int64_t offset, const RowsOut& y) noexcept;
  void (*wide_write)(const RowsIn& part, const Statistics<DoubleDouble>& statistics,
                     const Affine& affine, std::int64_t offset, const RowsOut& y) noexcept;
  Range (*range)(const RowsIn& row) noexcept;
  PlainSums (*plain_sums)(const RowsIn& row, int exponent) noexcept;
};
extern const Passes portable_passes;

// Those of the preferred kernel.
const Passes& best_passes();

inline bool is_narrow(DType in, DType out) noexcept {
  return in != DType::float64 && !has_low(in) && out != DType::float64;
}

// Beyond these a denominator, or the sums behind it, may have lost bits to the ends of the range.
inline constexpr double kLeastDenominator = 0x1p-400;
inline constexpr double kLargestDenominator = 0x1p400;

// Leads from sums to statistics:
//
//   Centering<T> centering(center, n, formula);
//   while (centering.wants_sums()) centering.take(sums about centering.center());
//   centering.statistics()
template <class T>
class Centering {
 public:
  Centering(double center, std::int64_t n, const Formula& formula) noexcept
      : center_(formula.rms ? 0 : as_center(center)), n_(n), formula_(formula) {
    wants_sums_ = std::isfinite(center_);
  }

  bool wants_sums() const noexcept { return wants_sums_; }
  double center() const noexcept { return center_; }

  void take(const Sums& sums) noexcept {
    const T sum = rounded(sums.sum);
    const T squares = rounded(sums.squares);
    const T correction = formula_.rms ? T{} : sum / count(n_) * sum;
    shift_ = formula_.rms ? T{} : sum / count(n_);
    centered_ = squares - correction;
    wants_sums_ = high(correction) > high(centered_) && !recentered_;
    if (wants_sums_) {
      center_ = as_center(center_ + high(shift_));
      recentered_ = true;
    } else if (high(centered_) < 0) {
      centered_ = T{};
    }
    largest_ = sums.largest;
    usable_ = std::isfinite(high(squares)) && std::isfinite(high(centered_)) && has_bits(sums);
    wants_sums_ = wants_sums_ && usable_;
  }

  // Nothing if an element is not finite, or where bits would be lost at the ends of the range.
  std::optional<Statistics<T>> statistics() const noexcept {
    if (!usable_) return std::nullopt;
    const T variance = centered_ / count(n_ - formula_.ddof);
    const T eps{formula_.eps};
    using std::sqrt;
    const T denominator =
        formula_.eps_on == EpsOn::variance ? sqrt(variance + eps) : sqrt(variance) + eps;
    const bool in_range =
        high(denominator) >= kLeastDenominator && high(denominator) <= kLargestDenominator;
    if (!in_range) return std::nullopt;
    return Statistics<T>{center_, shift_, T{1} / denominator};
  }

  T shift() const noexcept { return shift_; }
  // sum((x - mean)^2), where usable.
  T centered_squares() const noexcept { return centered_; }
  bool usable() const noexcept { return usable_; }

  // Whether an element is not finite, which narrow sums tell for sure: they do not overflow.
  bool is_not_finite() const noexcept { return !usable_ && !kWide; }

  // Whether all elements are the same, as exact deviations tell; about 0, whether all are 0.
  bool is_constant() const noexcept { return usable_ && kWide && largest_ == 0; }

 private:
  static constexpr bool kWide = sizeof(T) > sizeof(double);

  static double high(double value) noexcept { return value; }
  static double high(DoubleDouble value) noexcept { return value.high; }
  static T count(std::int64_t n) noexcept { return T{static_cast<double>(n)}; }
  static T rounded(DoubleDouble sum) noexcept {
    if constexpr (kWide) {
      return sum;
    } else {
      return sum.high;
    }
  }
  // In wide sums of tiny numbers the low parts underflow.
  static bool has_bits(const Sums& sums) noexcept {
    return !kWide || sums.largest == 0 || sums.largest >= 0x1p-480;
  }

  double center_;
  std::int64_t n_;
  Formula formula_;
  T shift_{};
  T centered_{};
  double largest_ = 0;
  bool wants_sums_;
  bool recentered_ = false;
  bool usable_ = false;
};

inline double sample_mean(const Passes& passes, const RowsIn& row) noexcept {
  const std::int64_t n = row.row_length;
  return passes.mean(part_of(row, sample_start(n), sample_length(n)));
}

// Sums over a whole row: segment by segment.
template <class SumSegment>
Sums sum_segments(const RowsIn& row, SumSegment sum_segment) {
  if (row.row_length <= kSegment) return sum_segment(row);
  Sums total;
  for (std::int64_t start = 0; start < row.row_length; start += kSegment) {
    const std::int64_t n = std::min(kSegment, row.row_length - start);
    total = total + sum_segment(part_of(row, start, n));
  }
  return total;
}

// One row by these passes. Where their bounds would not hold a row is given up: narrow to wide, wide
// to the reference, whose integers have no range to leave. A row's values alone decide which way it
// goes.
void layer_norm_row(const Passes& passes, const RowsIn& x, const RowsOut& y, const Affine& affine,
                    const Formula& formula, const RowStats& stats) noexcept;

// Element i of a wide result where y * weight + bias is not finite: since a weight or bias is not, or
// since an intermediate step overflowed; scaled down it does not, if the result itself does not.
double overflowed_element(DoubleDouble y, const Affine& affine, std::int64_t i) noexcept;

// Where the bias cancels a whole row, the rounding errors of its narrow terms show.
inline bool bias_cancels(double largest, const Affine& affine) noexcept {
  return !(largest >= affine.bias.max_abs() / 16);
}

}  // namespace lnorm
