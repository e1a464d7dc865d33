#include "lnorm/kernel/backward.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "lnorm/kernel/row_gradient.hpp"

namespace lnorm {

namespace {

// The rows of a block, some at a time. Most are done from their sums in doubles; a RowGradient does the
// others, and decides what the bounds leave undecided.
class BlockOfRows final : public GradientResolver {
 public:
  BlockOfRows(const GradientSetting& setting, const RowsIn& x, const RowsIn& dy, const RowsOut& dx,
              const SavedStatistics* saved, ColumnGradients* columns)
      : setting_(setting), x_(x), dy_(dy), dx_(dx), saved_(saved), columns_(columns) {}

  void run() {
    if (!starts_in_doubles(setting_)) {
      for (first_ = 0; first_ < x_.rows; ++first_) write_row(0);
      return;
    }
    if (!setting_.formula.rms) center_ = sample_of(row_of(x_, 0)).center;
    // The second-level cache holds what is read twice.
    constexpr std::int64_t kBytes = std::int64_t{256} << 10;
    const std::int64_t at_once =
        std::clamp<std::int64_t>(kBytes / (row_bytes(x_) + row_bytes(dy_)), 1, kMaxGradientRows);
    while (first_ < x_.rows) {
      count_ = 0;
      const std::int64_t most = std::min(at_once, x_.rows - first_);
      while (count_ < most && sum_up()) ++count_;
      write_rows();
      first_ += count_;
      if (count_ < most) {
        write_row(0);
        ++first_;
      }
    }
  }

  double resolve(std::int64_t row, std::int64_t index, Number x, Number dy) const override {
    return gradient_of(row).resolve(0, index, x, dy);
  }

 private:
  static std::int64_t row_bytes(const RowsIn& rows) {
    return rows.row_length * static_cast<std::int64_t>(item_size(rows.dtype));
  }
  const SavedStatistics* saved_of(std::int64_t r) const {
    return saved_ == nullptr ? nullptr : saved_ + first_ + r;
  }
  // Row r of those at hand.
  GradientPart part(std::int64_t r) const {
    return {row_of(x_, first_ + r), row_of(dy_, first_ + r)};
  }
  RowsOut out(std::int64_t r) const {
    return dx_.data == nullptr ? dx_ : row_of(dx_, x_.row_length, first_ + r);
  }

  // Sums up the next row; false if that takes more than doubles.
  bool sum_up() {
    const std::int64_t n = x_.row_length;
    const SavedStatistics* const saved = saved_of(count_);
    const double mean = saved == nullptr ? center_ : saved->mean.high;
    const double center = setting_.formula.rms ? 0 : mean;
    if (!std::isfinite(center)) return false;
    const KernelTable& table = *setting_.backend.table;
    const GradientSums sums = table.double_gradient_sums(part(count_), center, setting_.weight);
    const bool is_fast_path = sums.g_squares > 0 && std::isfinite(sums.g_squares) &&
                              std::isfinite(sums.x.squares.high) &&
                              !may_be_constant(sums.g.high, sums.g_squares, n);
    if (!is_fast_path) return false;
    const auto gradient = double_gradient(sums, center, n, setting_.formula, saved,
                                          double_growth(n, table.gradient_lanes));
    if (!gradient || cancels(sums, *gradient, n, dx_.dtype) ||
        may_be_line(sums, n, setting_.formula)) {
      return false;
    }
    gradients_[static_cast<std::size_t>(count_)] = *gradient;
    // The next row is about where this is. One that is near 0 needs no center.
    const double next = center + gradient->shift;
    center_ = std::fabs(next) * gradient->rstd <= 0.7 ? 0 : next;
    // The first row is summed again then: a center widens its bounds of x-hat, and the widest are those of all rows.
    const bool is_better_about_zero =
        saved == nullptr && first_ + count_ == 0 && center != 0 && center_ == 0;
    return !is_better_about_zero || sum_up();
  }

  void write_rows() {
    if (count_ == 0) return;
    GradientPart rows{x_, dy_};
    rows.x.data = part(0).x.data;
    rows.dy.data = part(0).dy.data;
    rows.x.rows = rows.dy.rows = count_;
    const std::span gradients(gradients_.data(), static_cast<std::size_t>(count_));
    const ColumnSums sums = columns_ == nullptr ? ColumnSums() : columns_->in_doubles(gradients);
    const KernelTable& table = *setting_.backend.table;
    table.double_gradient_write(rows, gradients_.data(), setting_.weight, out(0), sums, *this);
  }

  // A row by itself.
  void write_row(std::int64_t r) { gradient_of(r).write(part(r), out(r), columns_); }

  const RowGradient& gradient_of(std::int64_t r) const {
    if (!row_ || number_ != first_ + r) {
      number_ = first_ + r;
      row_.emplace(setting_, sample_of(part(r).x), saved_of(r),
                   [read = part(r)](const auto& see) { see(read); });
      row_->sum_up();
    }
    return *row_;
  }

  const GradientSetting& setting_;
  RowsIn x_;
  RowsIn dy_;
  RowsOut dx_;
  const SavedStatistics* saved_;
  ColumnGradients* columns_;
  double center_ = 0;
  std::int64_t first_ = 0;  // of the rows at hand
  std::int64_t count_ = 0;
  std::array<DoubleGradient, kMaxGradientRows> gradients_;
  mutable std::optional<RowGradient> row_;  // the one that took more, or was asked for last
  mutable std::int64_t number_ = 0;
};

}  // namespace

void layer_norm_backward(const Backend& backend, const RowsIn& x, const RowsIn& dy,
                         const RowsOut& dx, const AffineTerm& weight, const Formula& formula,
                         const SavedStatistics* saved, ColumnGradients* columns) {
  if (x.rows == 0 || x.row_length == 0) return;
  // Output larger than the second-level cache is evicted before it is read: write it past the caches.
  constexpr std::int64_t kPastCaches = std::int64_t{4} << 20;
  RowsOut out = dx;
  out.non_temporal =
      x.rows * x.row_length * static_cast<std::int64_t>(item_size(dx.dtype)) >= kPastCaches;
  const GradientSetting setting{backend,      x.dtype, dy.dtype, dx.dtype,
                                x.row_length, weight,  formula};
  BlockOfRows(setting, x, dy, out, saved, columns).run();
  if (out.non_temporal && out.data != nullptr) hwy::FlushStream();  // it is there for other threads
}

void layer_norm_backward(const Backend& backend, const RowsIn& x, const RowsIn& dy,
                         const RowsOut& dx, const AffineTerm& weight, const AffineLayout& layout,
                         const Formula& formula, const SavedStatistics* saved) {
  if (layout.is_plain() || weight.is_uniform()) {
    return layer_norm_backward(backend, x, dy, dx, weight, formula, saved, nullptr);
  }
  for (std::int64_t r = 0; r < x.rows; ++r) {
    layer_norm_backward(backend, row_of(x, r), row_of(dy, r), row_of(dx, x.row_length, r),
                        weight_of_row(weight, layout, x.first_row + r, x.row_length), formula,
                        saved == nullptr ? nullptr : saved + r, nullptr);
  }
}

AffineTerm weight_of_row(const AffineTerm& weight, const AffineLayout& layout, std::int64_t row,
                         std::int64_t row_length) {
  if (layout.is_plain() || weight.is_uniform()) return weight;
  const std::int64_t first = layout.first(row);
  if (layout.repeat >= row_length) return weight.alone(first);
  std::vector<double> pairs;
  pairs.reserve(2 * static_cast<std::size_t>(row_length));
  for (std::int64_t i = 0; i < row_length; ++i) {
    const Number number = weight.number(layout.number(first, i));
    pairs.insert(pairs.end(), {number.high, number.low});
  }
  const auto bytes = std::as_bytes(std::span(pairs));
  return {{"", DType::float64_pair, {row_length}}, {bytes.begin(), bytes.end()}, false};
}

}  // namespace lnorm
