#include "lnorm/kernel/column_gradients.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

namespace {

// (20) The error of a sum over up to kMaxSummedRows rows, relative to the sum of the sizes of its terms: u for each
// addition. The first one is to 0. It rounds the product of dweight, but not dy.
constexpr double kDweightError = kMaxSummedRows * kUnit;
constexpr double kDbiasError = (kMaxSummedRows - 1) * kUnit;

// The relative error of adding n of these sums: the k-th addition loses at most u, which rounds once more where it joins
// at most k u.
double pairs_error(std::int64_t n) {
  const double lost = static_cast<double>(n) * kUnit;
  return lost * lost;
}

// Adds a number to an unevaluated sum; what is lost is added to error. Few numbers add up without a loss, so that
// ties are decided.
void add_exactly(double number, double& high, double& low, double& error) {
  const DoubleDouble sum = two_sum(high, number);
  const DoubleDouble rest = two_sum(low, sum.low);
  high = sum.high;
  low = rest.high;
  error += std::fabs(rest.low);
}

}  // namespace

ColumnGradients::ColumnGradients(std::int64_t columns, std::int64_t first)
    : columns_(columns),
      first_(first),
      stride_(static_cast<std::size_t>(columns) + kAffinePadding),
      flags_(static_cast<std::size_t>(columns)) {}

void ColumnGradients::make_doubles() {
  if (doubles_.empty()) doubles_.resize(ColumnSums::kArrays * stride_);
}

void ColumnGradients::add_bounds(const XhatBounds& xhat) {
  xhat_.offset = std::max(xhat_.offset, xhat.offset);
  xhat_.slope = std::max(xhat_.slope, xhat.slope);
}

ColumnSums ColumnGradients::in_doubles(const XhatBounds& xhat, std::int64_t rows) {
  make_doubles();
  add_bounds(xhat);
  double_rows_ += rows;
  return {doubles_.data(), stride_};
}

void ColumnGradients::make_double_doubles() {
  std::call_once(has_double_doubles_,
                 [this] { double_doubles_.resize(ColumnSums::kArrays * stride_); });
}

ColumnSums ColumnGradients::in_double_doubles(std::int64_t first) {
  make_double_doubles();
  double_double_rows_.fetch_add(1, std::memory_order_relaxed);
  return {double_doubles_.data() + index(first), stride_};
}

void ColumnGradients::add_dweight(std::int64_t column, DoubleDouble term, double error) {
  double* const at = double_doubles_.data() + index(column);
  const DoubleDouble sum = DoubleDouble{at[0], at[stride_]} + term;
  at[0] = sum.high;
  at[stride_] = sum.low;
  at[4 * stride_] += error + kPairSumError * std::fabs(sum.high);
}

void ColumnGradients::add_dbias(std::int64_t column, Number dy) {
  double* const at = double_doubles_.data() + index(column);
  for (const double part : {dy.high, dy.low}) {
    if (part != 0) add_exactly(part, at[2 * stride_], at[3 * stride_], at[5 * stride_]);
  }
}

void ColumnGradients::merge(const ColumnGradients& other) {
  const auto columns = static_cast<std::size_t>(columns_);
  for (std::size_t i = 0; i < columns; ++i) flags_[i] |= other.flags_[i];
  if (!other.doubles_.empty()) {
    make_doubles();
    add_bounds(other.xhat_);
    double_rows_ += other.double_rows_;
    for (std::size_t i = 0; i < columns; ++i) {
      for (const std::size_t high : {i, i + 2 * stride_}) {
        const std::size_t low = high + stride_;
        const DoubleDouble sum = two_sum(doubles_[high], other.doubles_[high]);
        doubles_[high] = sum.high;
        doubles_[low] += other.doubles_[low] + sum.low;
      }
      for (const std::size_t size : {i + 4 * stride_, i + 5 * stride_}) {
        doubles_[size] += other.doubles_[size];
      }
    }
  }
  if (!other.double_doubles_.empty()) {
    make_double_doubles();
    for (std::size_t i = 0; i < columns; ++i) {
      const std::int64_t column = first_ + static_cast<std::int64_t>(i);
      add_dweight(column, {other.double_doubles_[i], other.double_doubles_[i + stride_]},
                  other.double_doubles_[i + 4 * stride_]);
      add_dbias(column,
                {other.double_doubles_[i + 2 * stride_], other.double_doubles_[i + 3 * stride_]});
      double_doubles_[i + 5 * stride_] += other.double_doubles_[i + 5 * stride_];
    }
    double_double_rows_ += other.double_double_rows_ + 1;  // and the sums here
  }
}

ColumnGradients::Sum ColumnGradients::dweight(std::int64_t column) const {
  const std::size_t i = index(column);
  Sum sum;
  sum.is_nan = (flags_[i] & kNoDweight) != 0;
  sum.is_undecided = (flags_[i] & kUndecidedDweight) != 0;
  if (!doubles_.empty()) {
    sum.value = two_sum(doubles_[i], doubles_[i + stride_]);
    sum.error =
        ((xhat_.slope + kDweightError + pairs_error(double_rows_)) * doubles_[i + 4 * stride_] +
         xhat_.offset * doubles_[i + 5 * stride_]) *
        kSlack;
  }
  if (!double_doubles_.empty()) {
    const double error = double_doubles_[i + 4 * stride_];
    const auto rows = static_cast<double>(double_double_rows_ + 2);
    sum.value = sum.value + DoubleDouble{double_doubles_[i], double_doubles_[i + stride_]};
    sum.error += (error + kPairSumError * std::fabs(sum.value.high)) * kSlack +
                 (error > 0 ? kLostBits * rows : 0);
  }
  return sum;
}

ColumnGradients::Sum ColumnGradients::dbias(std::int64_t column) const {
  const std::size_t i = index(column);
  Sum sum;
  sum.is_nan = (flags_[i] & kNoDbias) != 0;
  if (!doubles_.empty()) {
    sum.value = two_sum(doubles_[i + 2 * stride_], doubles_[i + 3 * stride_]);
    sum.error = (kDbiasError + pairs_error(double_rows_)) * doubles_[i + 5 * stride_] * kSlack;
  }
  if (!double_doubles_.empty()) {
    const DoubleDouble better =
        two_sum(double_doubles_[i + 2 * stride_], double_doubles_[i + 3 * stride_]);
    const bool alone = sum.error == 0;  // 0 is added without a loss
    sum.value = alone ? better : sum.value + better;
    sum.error += double_doubles_[i + 5 * stride_] * kSlack;
  }
  return sum;
}

}  // namespace lnorm
