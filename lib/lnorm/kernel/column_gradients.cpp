#include "lnorm/kernel/column_gradients.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

namespace {

// The error of a sum over up to kMaxGradientRows rows, relative to the sum of the sizes of its terms: u for each
// addition. The first one is to 0. It rounds the product of dweight, but not dy.
constexpr double kDweightError = kMaxGradientRows * kUnit;
constexpr double kDbiasError = (kMaxGradientRows - 1) * kUnit;

// The relative error of adding n of these sums: the k-th addition loses at most u, which rounds once more where it joins
// at most k u.
double pairs_error(std::int64_t n) {
  const double lost = static_cast<double>(n) * kUnit;
  return lost * lost;
}

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

constexpr std::size_t kArrays = 6;  // of NarrowColumns, and of WideColumns

}  // namespace

ColumnGradients::ColumnGradients(std::int64_t columns, std::int64_t first)
    : columns_(columns),
      first_(first),
      stride_(static_cast<std::size_t>(columns) + kAffinePadding),
      flags_(static_cast<std::size_t>(columns)) {}

void ColumnGradients::make_narrow() {
  if (narrow_.empty()) narrow_.resize(kArrays * stride_);
}

void ColumnGradients::add_bounds(const XhatBounds& xhat) {
  xhat_.offset = std::max(xhat_.offset, xhat.offset);
  xhat_.slope = std::max(xhat_.slope, xhat.slope);
}

NarrowColumns ColumnGradients::narrow(std::span<const NarrowGradient> rows) {
  make_narrow();
  for (const NarrowGradient& row : rows) add_bounds(row.xhat);
  narrow_rows_ += std::ssize(rows);
  double* const at = narrow_.data();
  return {at, at + stride_, at + 2 * stride_, at + 3 * stride_, at + 4 * stride_, at + 5 * stride_};
}

void ColumnGradients::make_wide() {
  std::call_once(has_wide_, [this] { wide_.resize(kArrays * stride_); });
}

WideColumns ColumnGradients::wide(std::int64_t first) {
  make_wide();
  wide_rows_.fetch_add(1, std::memory_order_relaxed);
  double* const at = wide_.data() + index(first);
  return {at, at + stride_, at + 2 * stride_, at + 3 * stride_, at + 4 * stride_, at + 5 * stride_};
}

void ColumnGradients::add_dweight(std::int64_t column, DoubleDouble term, double error) {
  double* const at = wide_.data() + index(column);
  const DoubleDouble sum = DoubleDouble{at[0], at[stride_]} + term;
  at[0] = sum.high;
  at[stride_] = sum.low;
  at[4 * stride_] += error;
}

void ColumnGradients::add_dbias(std::int64_t column, Number dy) {
  double* const at = wide_.data() + index(column);
  for (const double part : {dy.high, dy.low}) {
    add_exactly(part, at[2 * stride_], at[3 * stride_], at[5 * stride_]);
  }
}

void ColumnGradients::merge(const ColumnGradients& other) {
  const auto columns = static_cast<std::size_t>(columns_);
  for (std::size_t i = 0; i < columns; ++i) flags_[i] |= other.flags_[i];
  if (!other.narrow_.empty()) {
    make_narrow();
    add_bounds(other.xhat_);
    narrow_rows_ += other.narrow_rows_;
    for (std::size_t i = 0; i < columns; ++i) {
      for (const std::size_t high : {i, i + 2 * stride_}) {
        const std::size_t low = high + stride_;
        const DoubleDouble sum = two_sum(narrow_[high], other.narrow_[high]);
        narrow_[high] = sum.high;
        narrow_[low] += other.narrow_[low] + sum.low;
      }
      for (const std::size_t size : {i + 4 * stride_, i + 5 * stride_}) {
        narrow_[size] += other.narrow_[size];
      }
    }
  }
  if (!other.wide_.empty()) {
    make_wide();
    for (std::size_t i = 0; i < columns; ++i) {
      const std::int64_t column = first_ + static_cast<std::int64_t>(i);
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
    sum.value = two_sum(narrow_[i], narrow_[i + stride_]);
    sum.error =
        ((xhat_.slope + kDweightError + pairs_error(narrow_rows_)) * narrow_[i + 4 * stride_] +
         xhat_.offset * narrow_[i + 5 * stride_]) *
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
    sum.value = two_sum(narrow_[i + 2 * stride_], narrow_[i + 3 * stride_]);
    sum.error = (kDbiasError + pairs_error(narrow_rows_)) * narrow_[i + 5 * stride_] * kSlack;
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
