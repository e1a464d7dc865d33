#include "lnorm/kernel/two_pass.hpp"

#include <limits>

namespace lnorm {

namespace {

template <class T, class SumSegment>
Centering<T> center_row(const Passes& passes, const RowsIn& row, const Formula& formula,
                        SumSegment sum_segment) {
  const double center = formula.rms ? 0 : sample_mean(passes, row);
  Centering<T> centering(center, row.row_length, formula);
  while (centering.wants_sums()) {
    centering.take(sum_segments(
        row, [&](const RowsIn& part) { return sum_segment(part, centering.center()); }));
  }
  return centering;
}

// Calls write(part, offset, y) for every segment.
template <class Write>
void write_segments(const RowsIn& row, const RowsOut& y, Write write) {
  for (std::int64_t start = 0; start < row.row_length; start += kSegment) {
    const std::int64_t n = std::min(kSegment, row.row_length - start);
    write(part_of(row, start, n), start, row_of(y, start, 1));
  }
}

void write_nan(const RowsIn& x, const RowsOut& y) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  double nans[kLanes];
  std::fill(nans, nans + kLanes, kNan);
  for (std::int64_t i = 0; i < x.row_length; i += kLanes) {
    store(nans, std::min(kLanes, x.row_length - i), y.dtype, row_of(y, i, 1).data);
  }
}

// Whether that is all: if not, the row has to be done in wide.
bool narrow_row(const Passes& passes, const RowsIn& x, const RowsOut& y, const Affine& affine,
                const Formula& formula) {
  const auto centering = center_row<double>(passes, x, formula, passes.narrow_sums);
  if (centering.is_not_finite()) {
    write_nan(x, y);
    return true;
  }
  const auto statistics = centering.statistics();
  if (!statistics) return false;
  double largest = 0;
  write_segments(x, y, [&](const RowsIn& part, std::int64_t offset, const RowsOut& out) {
    largest = std::max(largest, passes.narrow_write(part, *statistics, affine, offset, out));
  });
  return !bias_cancels(largest, affine);
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

double overflowed_element(DoubleDouble y, const Affine& affine, std::int64_t i) noexcept {
  constexpr double kDown = 0x1p-60;
  const double weight = affine.weight.empty() ? 1 : *affine.weight.high(i);
  const double weight_low = affine.weight.empty() ? 0 : *affine.weight.low(i);
  DoubleDouble result = y * DoubleDouble{weight * kDown, weight_low * kDown};
  if (!affine.bias.empty()) {
    result = result + DoubleDouble{*affine.bias.high(i) * kDown, *affine.bias.low(i) * kDown};
  }
  if (std::isfinite(result.high)) return result.high / kDown;
  const double product = affine.weight.empty() ? y.high : y.high * weight;
  return affine.bias.empty() ? product : product + *affine.bias.high(i);
}

void layer_norm_row(const Passes& passes, const RowsIn& x, const RowsOut& y, const Affine& affine,
                    const Formula& formula, const RowStats& stats) noexcept {
  const bool written = is_narrow(x.dtype, y.dtype) && narrow_row(passes, x, y, affine, formula);
  if (written && stats.mean == nullptr && stats.rstd == nullptr) return;
  const auto centering = center_row<DoubleDouble>(passes, x, formula, passes.wide_sums);
  if (centering.is_constant() && formula.eps == 0) {  // 0 / 0
    if (!written) write_nan(x, y);
    if (stats.mean) *stats.mean = centering.center() + 0.0;
    if (stats.rstd) *stats.rstd = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  const auto statistics = centering.statistics();
  if (!statistics) return layer_norm_reference(x, y, affine, formula, stats);
  if (!written) {
    write_segments(x, y, [&](const RowsIn& part, std::int64_t offset, const RowsOut& out) {
      passes.wide_write(part, *statistics, affine, offset, out);
    });
  }
  if (stats.mean) *stats.mean = (DoubleDouble{statistics->center} + statistics->shift).high;
  if (stats.rstd) *stats.rstd = statistics->rstd.high;
}

}  // namespace lnorm
