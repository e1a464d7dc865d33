#include "lnorm/kernel/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/kernel/exact_softmax.hpp"
#include "lnorm/kernel/exp.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "lnorm/kernel/statistics.hpp"

// As for layer normalization there are three precisions: narrow, doubles, where y is narrower than float64 and x is
// no 64-bit integer or pair; wide, double-doubles; and exact. Each result is taken from the first one whose bound decides
// it. docs/numbers.md derives the bounds.
namespace lnorm {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1 + 0x1p-8;

// Sums are kept apart, so that elements go through few additions each.
constexpr std::int64_t kLanes = 16;

// The largest element; NaN if an element is.
Number largest_element(const RowsIn& row) {
  Number largest{-kInfinity};
  for_each_element(row, [&](std::int64_t, Number x) {
    const bool larger = x.high > largest.high || (x.high == largest.high && x.low > largest.low);
    if (larger || std::isnan(x.high)) largest = x;
  });
  return largest;
}

const Exp& exponential() {
  static const Exp exp;
  return exp;
}

// A row by double-doubles, and its single elements by integers.
class WideRow {
 public:
  WideRow(const RowsIn& row, Number max, double scale)
      : row_(row), max_(max), scale_(scale), factor_(std::frexp(scale, &exponent_)) {
    DoubleDouble lanes[kLanes];
    for_each_element(row, [&](std::int64_t i, Number x) {
      const Exp::Wide e = exp_of(x);
      // What is below 2^-1000 does not show in a sum that is at least 1.
      const double power = Exp::power_of_two(std::max<std::int64_t>(e.exponent, -1000));
      DoubleDouble& lane = lanes[i % kLanes];
      lane = lane + DoubleDouble{e.m.high * power, e.m.low * power};
    });
    for (const DoubleDouble& lane : lanes) sum_ = sum_ + lane;
    // Every addition is off by 3 u^2, the quotient by 10 u^2, the product with the scale by 3 u^2. Both exponentials have their errors.
    const std::int64_t in_lane = row.row_length / kLanes + 1;
    const auto additions = static_cast<double>(in_lane + kLanes);
    const double of_exp = Exp::kWideError - 3 * kLeast * kUnit * kUnit;
    error_ = (2 * of_exp + (3 * additions + 13) * kUnit * kUnit) * kSlack;
  }

  double result(Number x, DType dtype) const {
    if (std::isinf(x.high)) return 0;  // masked
    if (is_tiny(x)) return std::copysign(0.0, scale_);
    // Where results lie halfway all elements are the same.
    if (last_ && last_->x.high == x.high && last_->x.low == x.low) return last_->y;
    const Exp::Wide e = exp_of(x);
    const DoubleDouble y = e.m / sum_ * factor_;
    const double margin = std::fabs(y.high) * (error_ + 4 * kUnit * kUnit);
    const double least = rounded(y + -margin, e.exponent + exponent_, dtype);
    const double most = rounded(y + margin, e.exponent + exponent_, dtype);
    if (same_result(least, most)) return least;
    last_ = Exact{x, exact_softmax(row_, x, max_, dtype, {scale_, least, most})};
    return last_->y;
  }

 private:
  // exp of which is far below the smallest double, and below the smallest float8 for any scale.
  static constexpr double kLeast = -1200;

  bool is_tiny(Number x) const { return (x.high - max_.high) + (x.low - max_.low) < kLeast; }

  // exp(x - max). The difference is off by 3 u^2 of itself where both have low parts, and else exact.
  Exp::Wide exp_of(Number x) const {
    if (is_tiny(x)) return exponential().wide({kLeast});
    return exponential().wide(two_sum(x.high, -max_.high) + two_sum(x.low, -max_.low));
  }

  // The last result that took integers.
  struct Exact {
    Number x;
    double y;
  };

  const RowsIn& row_;
  Number max_;
  double scale_;
  int exponent_ = 0;  // scale_ is factor_ * 2^exponent_
  double factor_;
  DoubleDouble sum_;
  double error_;
  mutable std::optional<Exact> last_;
};

// Calls use(start, n) for every chunk, with x - max and exp of it in the chunks.
template <class Use>
void narrow_chunks(const RowsIn& row, double max, Chunk& d, Chunk& e, Use use) {
  const Exp& exp = exponential();
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
  std::optional<WideRow> wide;
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
        if (!wide) wide.emplace(row, Number{max}, scale);
        e.high[i] = wide->result(element_of(row, start + i), y.dtype);
      }
    }
    store(e.high, n, y, start);
  });
}

void wide_row(const RowsIn& row, Number max, double scale, const RowsOut& y, Chunk& chunk) {
  const WideRow wide(row, max, scale);
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
    const Number max = largest_element(row);
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
