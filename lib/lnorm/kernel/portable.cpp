// The two passes in portable C++.

#include <algorithm>
#include <cmath>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/each_row.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/two_pass.hpp"

namespace lnorm {

namespace {

// A chunk whose low parts, which the wide passes read, are zero unless a load sets them.
struct ClearChunk : Chunk {
  ClearChunk() noexcept { std::fill(std::begin(low), std::end(low), 0.0); }
};

double mean(const RowsIn& sample) noexcept {
  Chunk chunk;
  load_padded(sample, 0, 0, chunk);
  double lanes[kLanes];
  std::copy_n(chunk.high, kLanes, lanes);
  return fold(lanes, sample.row_length) / static_cast<double>(sample.row_length);
}

Sums narrow_sums(const RowsIn& part, double center) noexcept {
  Chunk chunk;
  Sums total;
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const std::int64_t n = load_padded(part, start, center, chunk);
    double sums[kLanes] = {};
    double squares[kLanes] = {};
    for (std::int64_t i = 0; i < n; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) {
        const double d = chunk.high[i + j] - center;
        sums[j] += d;
        squares[j] += d * d;
      }
    }
    const std::int64_t length = chunk_length(part, start);
    total = total + Sums{{fold(sums, length)}, {fold(squares, length)}};
  }
  return total;
}

Sums wide_sums(const RowsIn& part, double center) noexcept {
  ClearChunk chunk;
  Sums total;
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const std::int64_t n = load_padded(part, start, center, chunk);
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
    const std::int64_t length = chunk_length(part, start);
    total = total + Sums{fold(sums, length), fold(squares, length),
                         *std::max_element(largest, largest + kLanes)};
  }
  return total;
}

double narrow_write(const RowsIn& part, const Statistics<double>& statistics, const Affine& affine,
                    std::int64_t offset, const RowsOut& out) noexcept {
  Chunk chunk;
  double* const y = chunk.high;
  double largest = 0;
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const std::int64_t n = chunk_length(part, start);
    load_padded(part, start, 0, chunk);
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = ((y[i] - statistics.center) - statistics.shift) * statistics.rstd;
    }
    if (!affine.weight.empty()) {
      const double* weight = affine.weight.high(offset + start);
      for (std::int64_t i = 0; i < n; ++i) y[i] *= weight[i];
    }
    if (!affine.bias.empty()) {
      const double* bias = affine.bias.high(offset + start);
      for (std::int64_t i = 0; i < n; ++i) y[i] += bias[i];
      for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(y[i]));
    }
    store(y, n, out.dtype, row_of(out, start, 1).data);
  }
  return largest;
}

double wide_element(DoubleDouble y, const Affine& affine, std::int64_t i) {
  DoubleDouble result = y;
  if (!affine.weight.empty()) {
    result = result * DoubleDouble{*affine.weight.high(i), *affine.weight.low(i)};
  }
  if (!affine.bias.empty()) {
    result = result + DoubleDouble{*affine.bias.high(i), *affine.bias.low(i)};
  }
  return std::isfinite(result.high) ? result.high : overflowed_element(y, affine, i);
}

void wide_write(const RowsIn& part, const Statistics<DoubleDouble>& statistics,
                const Affine& affine, std::int64_t offset, const RowsOut& out) noexcept {
  ClearChunk chunk;
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const std::int64_t n = chunk_length(part, start);
    load_padded(part, start, 0, chunk);
    for (std::int64_t i = 0; i < n; ++i) {
      const DoubleDouble d = deviation(chunk, i, statistics.center);
      const DoubleDouble y = (d - statistics.shift) * statistics.rstd;
      chunk.high[i] = wide_element(y, affine, offset + start + i);
    }
    store(chunk.high, n, out.dtype, row_of(out, start, 1).data);
  }
}

}  // namespace

const Passes portable_passes{mean,       narrow_sums,    wide_sums,          narrow_write,
                             wide_write, portable_range, portable_plain_sums};

void layer_norm_portable(const RowsIn& x, const RowsOut& y, const Affine& affine,
                         const Formula& formula, const RowStats& stats) noexcept {
  each_row(x, y, stats, [&](const RowsIn& row, const RowsOut& out, const RowStats& row_stats) {
    layer_norm_row(portable_passes, row, out, affine, formula, row_stats);
  });
}

}  // namespace lnorm
