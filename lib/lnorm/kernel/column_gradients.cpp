#include "lnorm/kernel/column_gradients.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

namespace {

// Rows whose terms add up in doubles: the fewer they are, the less is lost.
constexpr int kPendingRows = 16;

// What a sum of so many rows is off by, in u of the sum of sizes: an addition each, and two to spare.
constexpr double kPendingError = (kPendingRows + 2) * kUnit;

constexpr double kSlack = 1 + 0x1p-8;

// A sum of double-doubles is off by 3 u^2 of it; terms' sizes are at most 1 / 20 u^2 of the bounds of their errors.
constexpr double kSumUnits = 3 * kUnit * kUnit;
constexpr double kSumShare = 0.15;

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
  const auto move_to = [&](double* pending, double* high, double* low) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(columns_); ++i) {
      const DoubleDouble sum = DoubleDouble{high[i], low[i]} + pending[i];
      high[i] = sum.high;
      low[i] = sum.low;
      pending[i] = 0;
    }
  };
  double* const totals = totals_.data();
  move_to(narrow_.data(), totals, totals + stride_);
  move_to(narrow_.data() + stride_, totals + 2 * stride_, totals + 3 * stride_);
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
  const DoubleDouble sum =
      DoubleDouble{at[2 * stride_], at[3 * stride_]} + DoubleDouble{dy.high, dy.low};
  at[2 * stride_] = sum.high;
  at[3 * stride_] = sum.low;
  at[5 * stride_] += std::fabs(dy.high);
}

void ColumnGradients::merge(const ColumnGradients& other) {
  for (std::size_t i = 0; i < flags_.size(); ++i) flags_[i] |= other.flags_[i];
  if (!other.narrow_.empty()) {
    flush();
    narrow(0);
    const auto add_pair = [&](std::size_t pair) {
      const std::size_t high = 2 * pair * stride_;
      for (std::size_t i = 0; i < static_cast<std::size_t>(columns_); ++i) {
        const std::size_t h = high + i;
        const std::size_t l = h + stride_;
        const DoubleDouble theirs =
            DoubleDouble{other.totals_[h], other.totals_[l]} + other.narrow_[pair * stride_ + i];
        const DoubleDouble sum = DoubleDouble{totals_[h], totals_[l]} + theirs;
        totals_[h] = sum.high;
        totals_[l] = sum.low;
        narrow_[(2 + pair) * stride_ + i] += other.narrow_[(2 + pair) * stride_ + i];
      }
    };
    add_pair(0);
    add_pair(1);
  }
  if (!other.wide_.empty()) {
    make_wide();
    for (std::size_t i = 0; i < static_cast<std::size_t>(columns_); ++i) {
      for (const std::size_t high : {i, i + 2 * stride_}) {
        const std::size_t low = high + stride_;
        const DoubleDouble sum = DoubleDouble{wide_[high], wide_[low]} +
                                 DoubleDouble{other.wide_[high], other.wide_[low]};
        wide_[high] = sum.high;
        wide_[low] = sum.low;
      }
      for (const std::size_t at : {i + 4 * stride_, i + 5 * stride_}) wide_[at] += other.wide_[at];
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
  if (!narrow_.empty()) {
    sum.value =
        DoubleDouble{totals_[i + 2 * stride_], totals_[i + 3 * stride_]} + narrow_[i + stride_];
    sum.error = narrow_[i + 3 * stride_] * kPendingError * kSlack;
  }
  if (!wide_.empty()) {
    const auto rows = static_cast<double>(wide_rows_ + 2);
    sum.value = sum.value + DoubleDouble{wide_[i + 2 * stride_], wide_[i + 3 * stride_]};
    sum.error += wide_[i + 5 * stride_] * kSumUnits * rows * kSlack;
  }
  return sum;
}

}  // namespace lnorm
