#include "lnorm/kernel/two_pass.hpp"

#include <cmath>

namespace lnorm {

namespace {

// The mean, good enough to centre by. Not finite if an element is not, or if the sum overflows. A
// mean of zero is negative, since x - -0.0 is +0 for zeros x of either sign.
double rough_mean(const RowsIn& row, Chunk& chunk) {
  DoubleDouble sum;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = load_padded(row, start, 0, chunk);
    double lanes[kLanes] = {};
    for (std::int64_t i = 0; i < n; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] += chunk.high[i + j];
    }
    sum = sum + DoubleDouble{fold(lanes, chunk_length(row, start))};
  }
  const double mean = (sum.high + sum.low) / static_cast<double>(row.row_length);
  return mean == 0 ? -0.0 : mean;
}

struct WideSums {
  DoubleDouble sum;             // of x - center
  DoubleDouble sum_of_squares;  // of (x - center)^2
  double largest = 0;           // |x - center|
};

WideSums wide_sums_about(const RowsIn& row, double center, Chunk& chunk) {
  WideSums total;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
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

}  // namespace

std::int64_t load_padded(const RowsIn& row, std::int64_t start, double pad, Chunk& chunk) noexcept {
  const std::int64_t n = chunk_length(row, start);
  const auto size = static_cast<std::int64_t>(item_size(row.dtype));
  load(row.data + start * size, row.dtype, row.byte_order, n, chunk);
  const std::int64_t padded = (n + kLanes - 1) / kLanes * kLanes;
  std::fill(chunk.high + n, chunk.high + padded, pad);
  if (has_low(row.dtype)) std::fill(chunk.low + n, chunk.low + padded, 0.0);
  return padded;
}

std::optional<CenteredSums<double>> narrow_sums(const RowsIn& row, About about,
                                                Chunk& chunk) noexcept {
  const double center = about == About::zero ? 0 : rough_mean(row, chunk);
  if (!std::isfinite(center)) return std::nullopt;
  DoubleDouble sum;
  DoubleDouble sum_of_squares;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
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
  const double shift = about == About::zero ? 0 : sum.high / static_cast<double>(row.row_length);
  return CenteredSums<double>{center, shift, std::max(0.0, sum_of_squares.high - shift * sum.high)};
}

std::optional<CenteredSums<DoubleDouble>> wide_sums(const RowsIn& row, About about,
                                                    Chunk& chunk) noexcept {
  const DoubleDouble length{static_cast<double>(row.row_length)};
  double center = about == About::zero ? 0 : rough_mean(row, chunk);
  if (!std::isfinite(center)) return std::nullopt;
  WideSums sums = wide_sums_about(row, center, chunk);
  DoubleDouble shift;
  DoubleDouble centered = sums.sum_of_squares;
  if (about == About::mean) {
    shift = sums.sum / length;
    centered = sums.sum_of_squares - shift * sums.sum;
    // A centre that is off by many deviations, in a row that is all but constant, costs bits: too
    // many from some 2^24 elements on.
    if (shift.high * sums.sum.high > 0x1p20 * centered.high) {
      center += shift.high;
      sums = wide_sums_about(row, center, chunk);
      shift = sums.sum / length;
      centered = sums.sum_of_squares - shift * sums.sum;
    }
    if (centered.high < 0) centered = {};
  }
  if (!std::isfinite(centered.high) || (sums.largest != 0 && sums.largest < 0x1p-480)) {
    return std::nullopt;
  }
  return CenteredSums<DoubleDouble>{center, shift, centered};
}

}  // namespace lnorm
