#include "lnorm/kernel/column_gradients.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

namespace {

// Rows whose terms add up in doubles: the fewer they are, the less is lost. 20 u of the sum of their sizes, which are in
// the bounds, cover an addition for each, the rounding of the term, and more.
constexpr int kPendingRows = 16;

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

NarrowColumns ColumnGradients::narrow(std::int64_t first) {
  if (narrow_.empty()) {
    narrow_.resize(kNarrowArrays * stride_);
    totals_.resize(kTotals * stride_);
  }
  double* const at = narrow_.data() + first;
  return {at, at + stride_, at + 2 * stride_, at + 3 * stride_};
}

void ColumnGradients::end_narrow_row() {
  if (++pending_rows_ == kPendingRows) flush();
}

void ColumnGradients::flush() {
  pending_rows_ = 0;
  if (narrow_.empty()) return;
  double* const dweight = narrow_.data();
  double* const dbias = dweight + stride_;
  double* const dbias_error = dweight + 3 * stride_;
  double* const totals = totals_.data();
  for (std::size_t i = 0; i < static_cast<std::size_t>(columns_); ++i) {
    const DoubleDouble sum = DoubleDouble{totals[i], totals[i + stride_]} + dweight[i];
    totals[i] = sum.high;
    totals[i + stride_] = sum.low;
    dweight[i] = 0;
    add_exactly(dbias[i], totals[i + 2 * stride_], totals[i + 3 * stride_], dbias_error[i]);
    dbias[i] = 0;
  }
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
    narrow(0);
    flush();
    for (std::size_t i = 0; i < columns; ++i) {
      const DoubleDouble theirs =
          DoubleDouble{other.totals_[i], other.totals_[i + stride_]} + other.narrow_[i];
      const DoubleDouble sum = DoubleDouble{totals_[i], totals_[i + stride_]} + theirs;
      totals_[i] = sum.high;
      totals_[i + stride_] = sum.low;
      narrow_[i + 2 * stride_] += other.narrow_[i + 2 * stride_];
      double& error = narrow_[i + 3 * stride_];
      error += other.narrow_[i + 3 * stride_];
      for (const double part : {other.narrow_[i + stride_], other.totals_[i + 2 * stride_],
                                other.totals_[i + 3 * stride_]}) {
        add_exactly(part, totals_[i + 2 * stride_], totals_[i + 3 * stride_], error);
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
    sum.value = DoubleDouble{totals_[i], totals_[i + stride_]} + narrow_[i];
    sum.error = narrow_[i + 2 * stride_] * kSlack;
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
  double high = 0;
  double low = 0;
  double error = 0;
  if (!narrow_.empty()) {
    high = totals_[i + 2 * stride_];
    low = totals_[i + 3 * stride_];
    error = narrow_[i + 3 * stride_];
    add_exactly(narrow_[i + stride_], high, low, error);
  }
  if (!wide_.empty()) {
    error += wide_[i + 5 * stride_];
    add_exactly(wide_[i + 2 * stride_], high, low, error);
    add_exactly(wide_[i + 3 * stride_], high, low, error);
  }
  sum.value = two_sum(high, low);
  sum.error = error * kSlack;
  return sum;
}

}  // namespace lnorm
