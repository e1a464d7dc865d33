// Layer normalisation by the corrected two-pass algorithm (two_pass.hpp).
//
// A float64 result, or one of float64 or 64-bit integers, is computed wide, all others narrow. Each
// of the two gives a row up where its bounds would not hold: narrow to wide, wide to the reference,
// whose integers have no range to leave. A row's values alone decide which way it goes.

#include <algorithm>
#include <cmath>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/each_row.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/two_pass.hpp"

namespace lnorm {

namespace {

About about(const Formula& formula) { return formula.rms ? About::zero : About::mean; }

// mean = center + shift
template <class T>
struct Statistics {
  double center;
  T shift;
  T rstd;
};

// Neither the denominator nor the sums behind it may have lost bits to the ends of the range.
bool in_range(double denominator) { return denominator >= 0x1p-400 && denominator <= 0x1p400; }

std::optional<Statistics<double>> narrow_statistics(const RowsIn& row, const Formula& formula,
                                                    Chunk& chunk) {
  const auto sums = narrow_sums(row, about(formula), chunk);
  if (!sums) return std::nullopt;
  const double variance = sums->squares / static_cast<double>(row.row_length - formula.ddof);
  const double denominator = formula.eps_on == EpsOn::variance ? std::sqrt(variance + formula.eps)
                                                               : std::sqrt(variance) + formula.eps;
  if (!in_range(denominator)) return std::nullopt;
  return Statistics<double>{sums->center, sums->shift, 1 / denominator};
}

std::optional<Statistics<DoubleDouble>> wide_statistics(const RowsIn& row, const Formula& formula,
                                                        Chunk& chunk) {
  const auto sums = wide_sums(row, about(formula), chunk);
  if (!sums) return std::nullopt;
  const DoubleDouble eps{formula.eps};
  const DoubleDouble variance =
      sums->squares / DoubleDouble{static_cast<double>(row.row_length - formula.ddof)};
  const DoubleDouble denominator =
      formula.eps_on == EpsOn::variance ? sqrt(variance + eps) : sqrt(variance) + eps;
  if (!in_range(denominator.high)) return std::nullopt;
  return Statistics<DoubleDouble>{sums->center, sums->shift, DoubleDouble{1} / denominator};
}

// Writes y and returns the row's largest |y|.
double narrow_write(const RowsIn& row, const Statistics<double>& statistics, const Affine& affine,
                    DType out_dtype, std::byte* out, Chunk& chunk) {
  const auto out_size = static_cast<std::int64_t>(item_size(out_dtype));
  double largest = 0;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
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

void wide_write(const RowsIn& row, const Statistics<DoubleDouble>& statistics, const Affine& affine,
                DType out_dtype, std::byte* out, Chunk& chunk) {
  const auto out_size = static_cast<std::int64_t>(item_size(out_dtype));
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
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
  bool written = false;
  if (narrow) {
    if (const auto statistics = narrow_statistics(x, formula, chunk)) {
      const double largest = narrow_write(x, *statistics, affine, y.dtype, y.data, chunk);
      // Where the bias cancels a whole row, the rounding errors of its terms show: do it in wide.
      written = largest >= affine.bias.max_abs() / 16;
    }
  }
  const bool stats_wanted = stats.mean != nullptr || stats.rstd != nullptr;
  if (written && !stats_wanted) return;
  const auto statistics = wide_statistics(x, formula, chunk);
  if (!statistics) return layer_norm_reference(x, y, affine, formula, stats);
  if (!written) wide_write(x, *statistics, affine, y.dtype, y.data, chunk);
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
