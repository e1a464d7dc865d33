#include "lnorm/kernel/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/exp.hpp"
#include "lnorm/kernel/scaled.hpp"
#include "lnorm/kernel/two_pass.hpp"

// As for layer normalisation there are two precisions: narrow, doubles, where y is narrower than
// float64; wide, double-doubles, for float64 results and 64-bit integers. Sums are taken in the same
// fixed order.
namespace lnorm {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The largest element, high + low; NaN if an element is.
DoubleDouble largest_element(const RowsIn& row, Chunk& chunk) {
  DoubleDouble largest{-kInfinity};
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = chunk_length(row, start);
    load_padded(row, start, -kInfinity, chunk);
    for (std::int64_t i = 0; i < n; ++i) {
      const DoubleDouble x{chunk.high[i], chunk.low[i]};
      if (std::isnan(x.high)) return x;
      if (x.high > largest.high || (x.high == largest.high && x.low > largest.low)) largest = x;
    }
  }
  return largest;
}

// Calls use(start, n, padded) for every chunk, with exp(x - max) in chunk.high, zeros from n on.
template <class Use>
void narrow_chunks(const RowsIn& row, double max, const Exp& exp, Chunk& chunk, Use use) {
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t padded = load_padded(row, start, 0, chunk);
    const std::int64_t n = chunk_length(row, start);
    for (std::int64_t i = 0; i < n; ++i) chunk.high[i] = exp.narrow(chunk.high[i] - max);
    std::fill(chunk.high + n, chunk.high + padded, 0.0);
    use(start, n, padded);
  }
}

void narrow_row(const RowsIn& row, double max, const RowsOut& y, const Exp& exp, Chunk& chunk) {
  DoubleDouble sum;
  narrow_chunks(row, max, exp, chunk, [&](std::int64_t, std::int64_t n, std::int64_t padded) {
    double lanes[kLanes] = {};
    for (std::int64_t i = 0; i < padded; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] += chunk.high[i + j];
    }
    sum = sum + DoubleDouble{fold(lanes, n)};
  });
  const auto size = static_cast<std::int64_t>(item_size(y.dtype));
  narrow_chunks(row, max, exp, chunk, [&](std::int64_t start, std::int64_t n, std::int64_t) {
    for (std::int64_t i = 0; i < n; ++i) chunk.high[i] /= sum.high;
    store(chunk.high, n, y.dtype, y.data + start * size);
  });
}

// exp(x - max).
Exp::Wide wide_element(const Chunk& chunk, std::int64_t i, DoubleDouble max, const Exp& exp) {
  constexpr double kLeast = -1200;  // exp of which is far below the smallest double
  const double low = chunk.low[i] - max.low;
  if ((chunk.high[i] - max.high) + low < kLeast) return exp.wide({kLeast});
  const DoubleDouble d = two_sum(chunk.high[i], -max.high);
  return exp.wide(two_sum(d.high, d.low + low));
}

DoubleDouble wide_sum(const RowsIn& row, DoubleDouble max, const Exp& exp, Chunk& chunk) {
  DoubleDouble sum;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    load_padded(row, start, 0, chunk);
    const std::int64_t n = chunk_length(row, start);
    DoubleDouble lanes[kLanes] = {};
    for (std::int64_t i = 0; i < n; ++i) {
      const Exp::Wide e = wide_element(chunk, i, max, exp);
      // What is below 2^-1000 does not show in a sum that is at least 1.
      const double scale = Exp::power_of_two(std::max<std::int64_t>(e.exponent, -1000));
      DoubleDouble& lane = lanes[i % kLanes];
      lane = lane + DoubleDouble{e.m.high * scale, e.m.low * scale};
    }
    sum = sum + fold(lanes, n);
  }
  return sum;
}

double quotient(const Exp::Wide& e, DoubleDouble sum) {
  const DoubleDouble q = e.m / sum;
  constexpr std::int64_t kSafelyNormal = -900;
  if (e.exponent >= kSafelyNormal) return q.high * Exp::power_of_two(e.exponent);
  return to_double(normalized(q, e.exponent));
}

void wide_row(const RowsIn& row, DoubleDouble max, const RowsOut& y, const Exp& exp, Chunk& chunk) {
  const DoubleDouble sum = wide_sum(row, max, exp, chunk);
  const auto size = static_cast<std::int64_t>(item_size(y.dtype));
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    load_padded(row, start, 0, chunk);
    const std::int64_t n = chunk_length(row, start);
    for (std::int64_t i = 0; i < n; ++i) {
      chunk.high[i] = quotient(wide_element(chunk, i, max, exp), sum);
    }
    store(chunk.high, n, y.dtype, y.data + start * size);
  }
}

void fill_row(const RowsIn& row, double value, const RowsOut& y) {
  const auto size = static_cast<std::int64_t>(item_size(y.dtype));
  for (std::int64_t i = 0; i < row.row_length; ++i) store(&value, 1, y.dtype, y.data + i * size);
}

}  // namespace

void softmax(const RowsIn& x, const RowsOut& y) noexcept {
  static const Exp exp;
  const bool narrow = y.dtype != DType::float64 && !has_low(x.dtype);
  Chunk chunk;
  std::fill(std::begin(chunk.low), std::end(chunk.low), 0.0);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const RowsIn row = row_of(x, r);
    const RowsOut out = row_of(y, x.row_length, r);
    const DoubleDouble max = largest_element(row, chunk);
    if (!std::isfinite(max.high)) {
      fill_row(row, std::numeric_limits<double>::quiet_NaN(), out);
    } else if (narrow) {
      narrow_row(row, max.high, out, exp, chunk);
    } else {
      wide_row(row, max, out, exp, chunk);
    }
  }
}

}  // namespace lnorm
