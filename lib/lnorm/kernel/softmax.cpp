#include "lnorm/kernel/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/kernel/exp.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "lnorm/kernel/softmax_row.hpp"
#include "lnorm/kernel/statistics.hpp"

// As for layer normalization there are three precisions: narrow, doubles, where y is narrower than float64 and x is
// no 64-bit integer or pair; wide, double-doubles; and exact. Each result is taken from the first one whose bound decides
// it. docs/numbers.md derives the bounds.
namespace lnorm {

namespace {

constexpr double kSlack = 1 + 0x1p-8;

// Sums are kept apart, so that elements go through few additions each.
constexpr std::int64_t kLanes = 16;

ReadRow reader(const RowsIn& row) {
  return [&row](const auto& see) { see(row); };
}

// Calls use(start, n) for every chunk, with x - max and exp of it in the chunks.
template <class Use>
void narrow_chunks(const RowsIn& row, double max, Chunk& d, Chunk& e, Use use) {
  const Exp& exp = Exp::shared();
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = load_chunk(row, start, d);
    for (std::int64_t i = 0; i < n; ++i) d.high[i] -= max;
    for (std::int64_t i = 0; i < n; ++i) e.high[i] = exp.narrow(d.high[i]);
    use(start, n);
  }
}

void narrow_row(const RowsIn& row, double max, double scale, const RowsOut& y, Chunk& d, Chunk& e) {
  DoubleDouble sum;
  narrow_chunks(row, max, d, e, [&](std::int64_t, std::int64_t n) {
    double lanes[kLanes] = {};
    for (std::int64_t i = 0; i < n; ++i) lanes[i % kLanes] += e.high[i];
    double total = 0;
    for (const double lane : lanes) total += lane;
    sum = sum + total;
  });
  // x - max is off by u |x - max|, which is a relative error of its exponential. In the sum these errors are on average at
  // most 2 (ln n + 1) u: let L = ln n + 1; elements up to L below max make at most L u of the sum, each of the others less
  // than L exp(-L) u, which is less than L/n u.
  const double in_sum = 2 * (std::log(static_cast<double>(row.row_length)) + 1);
  constexpr std::int64_t kGrowth = kChunk / kLanes + kLanes + 1;
  const auto growth = static_cast<double>(kGrowth);
  const double error = (2 * Exp::kNarrowError + (in_sum + growth + 5) * kUnit) * kSlack;
  std::optional<SoftmaxRow> wide;
  narrow_chunks(row, max, d, e, [&](std::int64_t start, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double quotient = e.high[i] / sum.high * scale;
      const double margin = std::fabs(quotient) * (error - d.high[i] * (kUnit * kSlack));
      const double least = rounded(quotient - margin, y.dtype);
      if (std::isinf(d.high[i])) {
        // Masked; or a difference beyond the range of doubles, of which the sign counts.
        const bool is_negative = scale < 0 && std::isfinite(element_of(row, start + i).high);
        e.high[i] = is_negative ? -0.0 : 0;
      } else if (same_result(least, rounded(quotient + margin, y.dtype))) {
        e.high[i] = least;
      } else {
        if (!wide) wide.emplace(reader(row), row.row_length, Number{max}, scale);
        e.high[i] = wide->result(element_of(row, start + i), y.dtype);
      }
    }
    store(e.high, n, y, start);
  });
}

void wide_row(const RowsIn& row, Number max, double scale, const RowsOut& y, Chunk& chunk) {
  const SoftmaxRow wide(reader(row), row.row_length, max, scale);
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = load_chunk(row, start, chunk);
    for (std::int64_t i = 0; i < n; ++i) {
      chunk.high[i] = wide.result({chunk.high[i], chunk.low[i]}, y.dtype);
    }
    store(chunk.high, n, y, start);
  }
}

void fill_row(const RowsIn& row, double value, const RowsOut& y) {
  for (std::int64_t i = 0; i < row.row_length; ++i) store(&value, 1, y, i);
}

}  // namespace

void softmax(const RowsIn& x, const RowsOut& y, double scale) {
  // Then a result that does not round to zero is far from the ends of the range of doubles, scaled or not.
  const bool is_moderate = std::fabs(scale) >= 0x1p-300 && std::fabs(scale) <= 0x1p300;
  const bool narrow = y.dtype != DType::float64 && !has_low(x.dtype) && is_moderate;
  Chunk chunk;
  Chunk exponentials;
  std::fill(std::begin(chunk.low), std::end(chunk.low), 0.0);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const RowsIn row = row_of(x, r);
    const RowsOut out = row_of(y, x.row_length, r);
    const Number max = largest_element(reader(row));
    if (!std::isfinite(max.high)) {
      fill_row(row, std::numeric_limits<double>::quiet_NaN(), out);
    } else if (narrow) {
      narrow_row(row, max.high, scale, out, chunk, exponentials);
    } else {
      wide_row(row, max, scale, out, chunk);
    }
  }
}

}  // namespace lnorm
