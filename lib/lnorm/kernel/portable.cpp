// The corrected two-pass algorithm in two precisions, both with a fixed order of summation.
//
// narrow: doubles. For x and y narrower than float64: each element is exact in a double, no square
//         can overflow, and the statistics end some 20 bits better than float32 needs.
// wide:   double-doubles. For float64 and 64-bit integers, and for every float64 result.
//
// Each of the two gives a row up where its bounds would not hold: narrow to wide, wide to the
// reference, whose integers have no range to leave. A row's values alone decide which way it goes.
//
// Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance: analysis and
// recommendations": with d = x - m0 about a rounded mean m0, the sum of d corrects both the mean
// and the sum of squares for what m0 was off.

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "lnorm/kernel/chunk.hpp"
#include "lnorm/kernel/double_double.hpp"
#include "lnorm/kernel/each_row.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

namespace {

// Element i of a chunk is summed in lane i % kLanes; the lanes are then added in halves. The number
// is the same whatever the width of the machine's vectors, so that the result is, too.
constexpr std::int64_t kLanes = 32;
static_assert(kChunk % kLanes == 0);

struct Row {
  const std::byte* data;
  DType dtype;
  std::endian byte_order;
  std::int64_t length;
};

std::int64_t chunk_length(const Row& row, std::int64_t start) {
  return std::min(kChunk, row.length - start);
}

// Loads a chunk and fills it up to whole lanes with elements that add nothing: x = pad.
std::int64_t load_padded(const Row& row, std::int64_t start, double pad, Chunk& chunk) {
  const std::int64_t n = chunk_length(row, start);
  const auto size = static_cast<std::int64_t>(item_size(row.dtype));
  load(row.data + start * size, row.dtype, row.byte_order, n, chunk);
  const std::int64_t padded = (n + kLanes - 1) / kLanes * kLanes;
  std::fill(chunk.high + n, chunk.high + padded, pad);
  if (has_low(row.dtype)) std::fill(chunk.low + n, chunk.low + padded, 0.0);
  return padded;
}

// Adds the lanes in halves; the lanes that n elements do not reach hold zeros and are left out.
template <class T>
T fold(T (&lanes)[kLanes], std::int64_t n) {
  const auto used = std::bit_ceil(static_cast<std::uint64_t>(std::min(n, kLanes)));
  for (auto half = static_cast<std::int64_t>(used) / 2; half > 0; half /= 2) {
    for (std::int64_t j = 0; j < half; ++j) lanes[j] = lanes[j] + lanes[j + half];
  }
  return lanes[0];
}

// The mean, good enough to centre by. Not finite if an element is not, or if the sum overflows. A
// mean of zero is negative, since x - -0.0 is +0 for zeros x of either sign.
double rough_mean(const Row& row, Chunk& chunk) {
  DoubleDouble sum;
  for (std::int64_t start = 0; start < row.length; start += kChunk) {
    const std::int64_t n = load_padded(row, start, 0, chunk);
    double lanes[kLanes] = {};
    for (std::int64_t i = 0; i < n; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] += chunk.high[i + j];
    }
    sum = sum + DoubleDouble{fold(lanes, chunk_length(row, start))};
  }
  const double mean = (sum.high + sum.low) / static_cast<double>(row.length);
  return mean == 0 ? -0.0 : mean;
}

// mean = center + shift
template <class T>
struct Statistics {
  double center;
  T shift;
  T rstd;
};

// Neither the denominator nor the sums behind it may have lost bits to the ends of the range.
bool in_range(double denominator) { return denominator >= 0x1p-400 && denominator <= 0x1p400; }

std::optional<Statistics<double>> narrow_statistics(const Row& row, const Formula& formula,
                                                    Chunk& chunk) {
  const double center = formula.rms ? 0 : rough_mean(row, chunk);
  if (!std::isfinite(center)) return std::nullopt;
  DoubleDouble sum;
  DoubleDouble sum_of_squares;
  for (std::int64_t start = 0; start < row.length; start += kChunk) {
    const std::int64_t n = load_padded(row, start, center, chunk);
    double sums[kLanes] = {};
    double squares[kLanes] = {};
    for (std::int64_t i = 0; i < n; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) {
        const double d = chunk.high[i + j] - center;
        sums[j] += d;
        squares[j] += d * d;
      }
    }
    sum = sum + DoubleDouble{fold(sums, chunk_length(row, start))};
    sum_of_squares = sum_of_squares + DoubleDouble{fold(squares, chunk_length(row, start))};
  }
  if (!std::isfinite(sum_of_squares.high)) return std::nullopt;
  const auto length = static_cast<double>(row.length);
  const double shift = formula.rms ? 0 : sum.high / length;
  const double centered = std::max(0.0, sum_of_squares.high - shift * sum.high);
  const double variance = centered / static_cast<double>(row.length - formula.ddof);
  const double denominator = formula.eps_on == EpsOn::variance ? std::sqrt(variance + formula.eps)
                                                               : std::sqrt(variance) + formula.eps;
  if (!in_range(denominator)) return std::nullopt;
  return Statistics<double>{center, shift, 1 / denominator};
}

struct WideSums {
  DoubleDouble sum;             // of x - center
  DoubleDouble sum_of_squares;  // of (x - center)^2
  double largest = 0;           // |x - center|
};

// x - center, exactly.
DoubleDouble deviation(const Chunk& chunk, std::int64_t i, double center) {
  const DoubleDouble d = two_sum(chunk.high[i], -center);
  return fast_two_sum(d.high, d.low + chunk.low[i]);
}

WideSums wide_sums(const Row& row, double center, Chunk& chunk) {
  WideSums total;
  for (std::int64_t start = 0; start < row.length; start += kChunk) {
    const std::int64_t n = load_padded(row, start, center, chunk);
    DoubleDouble sums[kLanes] = {};
    DoubleDouble squares[kLanes] = {};
    double largest[kLanes] = {};
    for (std::int64_t i = 0; i < n; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) {
        const DoubleDouble d = deviation(chunk, i + j, center);
        largest[j] = std::max(largest[j], std::fabs(d.high));
        const DoubleDouble sum = two_sum(sums[j].high, d.high);
        sums[j] = {sum.high, sums[j].low + (sum.low + d.low)};
        const DoubleDouble square = two_product(d.high, d.high);
        const DoubleDouble square_sum = two_sum(squares[j].high, square.high);
        squares[j] = {square_sum.high,
                      squares[j].low + (square_sum.low + (square.low + 2 * d.high * d.low))};
      }
    }
    total.sum = total.sum + fold(sums, chunk_length(row, start));
    total.sum_of_squares = total.sum_of_squares + fold(squares, chunk_length(row, start));
    total.largest = std::max(total.largest, *std::max_element(largest, largest + kLanes));
  }
  return total;
}

std::optional<Statistics<DoubleDouble>> wide_statistics(const Row& row, const Formula& formula,
                                                        Chunk& chunk) {
  const DoubleDouble length{static_cast<double>(row.length)};
  double center = formula.rms ? 0 : rough_mean(row, chunk);
  if (!std::isfinite(center)) return std::nullopt;
  WideSums sums = wide_sums(row, center, chunk);
  DoubleDouble shift;
  DoubleDouble centered = sums.sum_of_squares;
  if (!formula.rms) {
    shift = sums.sum / length;
    centered = sums.sum_of_squares - shift * sums.sum;
    // A centre that is off by many deviations, in a row that is all but constant, costs bits: too
    // many from some 2^24 elements on.
    if (shift.high * sums.sum.high > 0x1p20 * centered.high) {
      center += shift.high;
      sums = wide_sums(row, center, chunk);
      shift = sums.sum / length;
      centered = sums.sum_of_squares - shift * sums.sum;
    }
    if (centered.high < 0) centered = {};
  }
  if (sums.largest != 0 && sums.largest < 0x1p-480) return std::nullopt;
  const DoubleDouble eps{formula.eps};
  const DoubleDouble variance =
      centered / DoubleDouble{static_cast<double>(row.length - formula.ddof)};
  const DoubleDouble denominator =
      formula.eps_on == EpsOn::variance ? sqrt(variance + eps) : sqrt(variance) + eps;
  if (!in_range(denominator.high)) return std::nullopt;
  return Statistics<DoubleDouble>{center, shift, DoubleDouble{1} / denominator};
}

// Writes y and returns the row's largest |y|.
double narrow_write(const Row& row, const Statistics<double>& statistics, const Affine& affine,
                    DType out_dtype, std::byte* out, Chunk& chunk) {
  const auto out_size = static_cast<std::int64_t>(item_size(out_dtype));
  double largest = 0;
  for (std::int64_t start = 0; start < row.length; start += kChunk) {
    const std::int64_t n = chunk_length(row, start);
    load_padded(row, start, 0, chunk);
    double* y = chunk.high;
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = ((y[i] - statistics.center) - statistics.shift) * statistics.rstd;
    }
    if (!affine.weight.empty()) {
      const double* weight = affine.weight.high(start);
      for (std::int64_t i = 0; i < n; ++i) y[i] *= weight[i];
    }
    if (!affine.bias.empty()) {
      const double* bias = affine.bias.high(start);
      for (std::int64_t i = 0; i < n; ++i) y[i] += bias[i];
      for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(y[i]));
    }
    store(y, n, out_dtype, out + start * out_size);
  }
  return largest;
}

double wide_element(DoubleDouble y, const Affine& affine, const double* const weight[2],
                    const double* const bias[2], std::int64_t i) {
  DoubleDouble result = y;
  if (!affine.weight.empty()) result = result * DoubleDouble{weight[0][i], weight[1][i]};
  if (!affine.bias.empty()) result = result + DoubleDouble{bias[0][i], bias[1][i]};
  if (std::isfinite(result.high)) return result.high;
  // A weight or bias is not finite, or an intermediate step overflowed; scaled down it does not, if
  // the result itself does not.
  constexpr double kDown = 0x1p-60;
  if (affine.weight.empty()) {
    result = y * DoubleDouble{kDown};
  } else {
    result = y * DoubleDouble{weight[0][i] * kDown, weight[1][i] * kDown};
  }
  if (!affine.bias.empty()) result = result + DoubleDouble{bias[0][i] * kDown, bias[1][i] * kDown};
  if (std::isfinite(result.high)) return result.high / kDown;
  const double product = affine.weight.empty() ? y.high : y.high * weight[0][i];
  return affine.bias.empty() ? product : product + bias[0][i];
}

void wide_write(const Row& row, const Statistics<DoubleDouble>& statistics, const Affine& affine,
                DType out_dtype, std::byte* out, Chunk& chunk) {
  const auto out_size = static_cast<std::int64_t>(item_size(out_dtype));
  for (std::int64_t start = 0; start < row.length; start += kChunk) {
    const std::int64_t n = chunk_length(row, start);
    load_padded(row, start, 0, chunk);
    const double* const weight[2] = {affine.weight.high(start), affine.weight.low(start)};
    const double* const bias[2] = {affine.bias.high(start), affine.bias.low(start)};
    for (std::int64_t i = 0; i < n; ++i) {
      const DoubleDouble d = deviation(chunk, i, statistics.center);
      const DoubleDouble y = (d - statistics.shift) * statistics.rstd;
      chunk.high[i] = wide_element(y, affine, weight, bias, i);
    }
    store(chunk.high, n, out_dtype, out + start * out_size);
  }
}

void layer_norm_row(const RowsIn& x, const RowsOut& y, const Affine& affine, const Formula& formula,
                    const RowStats& stats, bool narrow, Chunk& chunk) {
  const Row row{x.data, x.dtype, x.byte_order, x.row_length};
  bool written = false;
  if (narrow) {
    if (const auto statistics = narrow_statistics(row, formula, chunk)) {
      const double largest = narrow_write(row, *statistics, affine, y.dtype, y.data, chunk);
      // Where the bias cancels a whole row, the rounding errors of its terms show: do it in wide.
      written = largest >= affine.bias.max_abs() / 16;
    }
  }
  const bool stats_wanted = stats.mean != nullptr || stats.rstd != nullptr;
  if (written && !stats_wanted) return;
  const auto statistics = wide_statistics(row, formula, chunk);
  if (!statistics) return layer_norm_reference(x, y, affine, formula, stats);
  if (!written) wide_write(row, *statistics, affine, y.dtype, y.data, chunk);
  if (stats.mean) *stats.mean = (DoubleDouble{statistics->center} + statistics->shift).high;
  if (stats.rstd) *stats.rstd = statistics->rstd.high;
}

}  // namespace

void layer_norm_portable(const RowsIn& x, const RowsOut& y, const Affine& affine,
                         const Formula& formula, const RowStats& stats) noexcept {
  const bool narrow = x.dtype != DType::float64 && !has_low(x.dtype) && y.dtype != DType::float64;
  Chunk chunk;
  std::fill(std::begin(chunk.low), std::end(chunk.low), 0.0);
  each_row(x, y, stats, [&](const RowsIn& row, const RowsOut& out, const RowStats& row_stats) {
    layer_norm_row(row, out, affine, formula, row_stats, narrow, chunk);
  });
}

}  // namespace lnorm
