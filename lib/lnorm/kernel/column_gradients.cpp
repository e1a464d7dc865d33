#include "lnorm/kernel/column_gradients.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/passes.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

namespace {

// What the sum of so many terms loses, relative to the sum of their sizes: an addition each, and two to spare; and the
// rounding of the term of dweight.
constexpr double kDbiasError = (kMostGradientRows + 2) * kUnit;
constexpr double kDweightError = (kMostGradientRows + 4) * kUnit;

constexpr double kSlack = 1 + 0x1p-8;

// A sum of double-doubles is off by 3 u^2 of it, and the sizes of terms are at most 1 / 20 u^2 of the bounds of their
// errors: so much of these is what an addition loses.
constexpr double kSumShare = 0.15;

// Adds a number to an unevaluated sum; what is lost is added to error. Few numbers add up without a loss, so that
// ties are decided.
void add_exactly(double number, double& high, double& low, double& error) {
  const DoubleDouble sum = two_sum(high, number);
  const DoubleDouble rest = two_sum(low, sum.low);
  high = sum.high;
  low = rest.high;
  error += std::fabs(rest.low);
}

constexpr std::size_t kNarrowArrays = 4;
constexpr std::size_t kTotals = 4;
constexpr std::size_t kWideArrays = 6;

}  // namespace

ColumnGradients::ColumnGradients(std::int64_t columns)
    : columns_(columns),
      stride_(static_cast<std::size_t>(columns) + kAffinePadding),
      flags_(static_cast<std::size_t>(columns)) {}

void ColumnGradients::make_narrow() {
  if (!narrow_.empty()) return;
  narrow_.resize(kNarrowArrays * stride_);
  totals_.resize(kTotals * stride_);
}

NarrowColumns ColumnGradients::narrow() {
  make_narrow();
  double* const at = narrow_.data();
  return {at, at + stride_, at + 2 * stride_, at + 3 * stride_};
}

void ColumnGradients::end_narrow_rows(std::span<const NarrowGradient> rows, const Passes& passes) {
  for (const NarrowGradient& row : rows) {
    xhat_.offset = std::max(xhat_.offset, row.xhat.offset);
    xhat_.slope = std::max(xhat_.slope, row.xhat.slope);
  }
  double* const totals = totals_.data();
  passes.move_to_pairs(narrow_.data(), totals, totals + stride_, columns_);
  passes.move_to_pairs(narrow_.data() + stride_, totals + 2 * stride_, totals + 3 * stride_,
                       columns_);
}

void ColumnGradients::make_wide() {
  std::call_once(has_wide_, [this] { wide_.resize(kWideArrays * stride_); });
}

WideColumns ColumnGradients::wide(std::int64_t first) {
  make_wide();
  wide_rows_.fetch_add(1, std::memory_order_relaxed);
  double* const at = wide_.data() + first;
  return {at, at + stride_, at + 2 * stride_, at + 3 * stride_, at + 4 * stride_, at + 5 * stride_};
}

void ColumnGradients::add_dweight(std::int64_t column, DoubleDouble term, double error) {
  double* const at = wide_.data() + column;
  const DoubleDouble sum = DoubleDouble{at[0], at[stride_]} + term;
  at[0] = sum.high;
  at[stride_] = sum.low;
  at[4 * stride_] += error;
}

void ColumnGradients::add_dbias(std::int64_t column, Number dy) {
  double* const at = wide_.data() + column;
  for (const double part : {dy.high, dy.low}) {
    add_exactly(part, at[2 * stride_], at[3 * stride_], at[5 * stride_]);
  }
}

void ColumnGradients::merge(const ColumnGradients& other) {
  const auto columns = static_cast<std::size_t>(columns_);
  for (std::size_t i = 0; i < columns; ++i) flags_[i] |= other.flags_[i];
  if (!other.narrow_.empty()) {
    make_narrow();
    xhat_.offset = std::max(xhat_.offset, other.xhat_.offset);
    xhat_.slope = std::max(xhat_.slope, other.xhat_.slope);
    for (std::size_t i = 0; i < columns; ++i) {
      for (const std::size_t array : {std::size_t{0}, std::size_t{1}}) {
        const std::size_t size = i + (2 + array) * stride_;
        const std::size_t high = i + 2 * array * stride_;
        const std::size_t low = high + stride_;
        const DoubleDouble sum = DoubleDouble{totals_[high], totals_[low]} +
                                 DoubleDouble{other.totals_[high], other.totals_[low]};
        totals_[high] = sum.high;
        totals_[low] = sum.low;
        narrow_[size] += other.narrow_[size];
      }
    }
  }
  if (!other.wide_.empty()) {
    make_wide();
    for (std::size_t i = 0; i < columns; ++i) {
      const auto column = static_cast<std::int64_t>(i);
      add_dweight(column, {other.wide_[i], other.wide_[i + stride_]}, other.wide_[i + 4 * stride_]);
      add_dbias(column, {other.wide_[i + 2 * stride_], other.wide_[i + 3 * stride_]});
      wide_[i + 5 * stride_] += other.wide_[i + 5 * stride_];
    }
    wide_rows_ += other.wide_rows_ + 1;  // and the sums here
  }
}

ColumnGradients::Sum ColumnGradients::dweight(std::int64_t column) const {
  const std::size_t i = index(column);
  Sum sum;
  sum.is_nan = (flags_[i] & kNoDweight) != 0;
  sum.is_open = (flags_[i] & kOpenDweight) != 0;
  if (!narrow_.empty()) {
    sum.value = {totals_[i], totals_[i + stride_]};
    sum.error = ((xhat_.slope + kDweightError) * narrow_[i + 2 * stride_] +
                 xhat_.offset * narrow_[i + 3 * stride_]) *
                kSlack;
  }
  if (!wide_.empty()) {
    const double error = wide_[i + 4 * stride_];
    const auto rows = static_cast<double>(wide_rows_ + 2);
    sum.value = sum.value + DoubleDouble{wide_[i], wide_[i + stride_]};
    sum.error += error * (1 + kSumShare * rows) * kSlack + (error > 0 ? kLostBits * rows : 0);
  }
  return sum;
}

ColumnGradients::Sum ColumnGradients::dbias(std::int64_t column) const {
  const std::size_t i = index(column);
  Sum sum;
  sum.is_nan = (flags_[i] & kNoDbias) != 0;
  if (!narrow_.empty()) {
    sum.value = {totals_[i + 2 * stride_], totals_[i + 3 * stride_]};
    sum.error = kDbiasError * narrow_[i + 3 * stride_] * kSlack;
  }
  if (!wide_.empty()) {
    const DoubleDouble wide = two_sum(wide_[i + 2 * stride_], wide_[i + 3 * stride_]);
    const bool alone = sum.error == 0;  // 0 is added without a loss
    sum.value = alone ? wide : sum.value + wide;
    sum.error += wide_[i + 5 * stride_] * kSlack;
  }
  return sum;
}

}  // namespace lnorm
