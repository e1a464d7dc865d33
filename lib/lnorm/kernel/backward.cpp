#include "lnorm/kernel/backward.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>
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
      : setting_(setting),
        in_double_doubles_(setting),
        x_(x),
        dy_(dy),
        dx_(dx),
        saved_(saved),
        columns_(columns) {
    in_double_doubles_.needs_double_doubles = true;
  }

  void run() {
    if (!starts_in_doubles(setting_)) {
      for (first_ = 0; first_ < x_.rows; ++first_) write_row(0);
      return;
    }
    rule_.emplace(setting_);
    if (has_center()) center_ = sample_of(row_of(x_, 0)).center;
    // The second-level cache holds what is read twice.
    constexpr std::int64_t kBytes = std::int64_t{128} << 10;
    const std::int64_t at_once =
        std::clamp<std::int64_t>(kBytes / (row_bytes(x_) + row_bytes(dy_)), 1, kMaxGradientRows);
    for (first_ = 0; first_ < x_.rows; first_ += count_) {
      count_ = std::min(at_once, x_.rows - first_);
      find_gradients();
      for (std::int64_t r = 0; r < count_;) {
        const std::int64_t decided = std::countr_one(gradients_.decides >> r);
        decided == 0 ? write_row(r) : write_rows(r, decided);
        r += std::max<std::int64_t>(decided, 1);
      }
    }
  }

  double resolve(std::int64_t row, std::int64_t index, Number x, Number dy) const override {
    return gradient_of(written_ + row).resolve(0, index, x, dy);
  }

 private:
  static std::int64_t row_bytes(const RowsIn& rows) {
    return rows.row_length * static_cast<std::int64_t>(item_size(rows.dtype));
  }
  const SavedStatistics* saved_of(std::int64_t r) const {
    return saved_ == nullptr ? nullptr : saved_ + first_ + r;
  }
  // Rows from r on, of those at hand.
  GradientPart part(std::int64_t r, std::int64_t count = 1) const {
    GradientPart rows{row_of(x_, first_ + r), row_of(dy_, first_ + r)};
    rows.x.rows = rows.dy.rows = count;
    return rows;
  }
  RowsOut out(std::int64_t r) const {
    return dx_.data == nullptr ? dx_ : row_of(dx_, x_.row_length, first_ + r);
  }

  // Whether rows are about centers of our choice.
  bool has_center() const { return setting_.formula.has_mean() && saved_ == nullptr; }

  void sum_up() {
    sums_.center.fill(center_);
    const bool differ = has_own_centers_ || saved_ != nullptr;
    for (std::int64_t r = 0; differ && r < count_; ++r) {
      double& center = sums_.center[static_cast<std::size_t>(r)];
      if (has_own_centers_) center = sample_of(part(r).x).center;
      if (saved_ != nullptr) center = saved_of(r)->mean.high;
    }
    const KernelTable& table = *setting_.backend.table;
    table.double_gradient_sums(part(0, count_), setting_.weight, sums_);
    table.double_gradients(*rule_, sums_, count_, saved_of(0), gradients_);
  }

  void find_gradients() {
    sum_up();
    if (!has_center()) return;
    // Rows that are far from each other get a center each.
    if (!has_own_centers_ && std::countr_one(gradients_.usable) < count_) {
      has_own_centers_ = true;
      sum_up();
    }
    // The next rows are about where these are. What is near 0 needs no center.
    const double last = center_;
    const auto row = static_cast<std::size_t>(count_ - 1);
    const double next = gradients_.center[row] + gradients_.shift[row];
    center_ = std::isfinite(next) && !is_near(row, 0) ? next : 0;
    for (std::size_t r = 0; has_own_centers_ && is_near(r, center_); ++r) {
      if (r == row) has_own_centers_ = false;
    }
    // The first rows are summed again then: a center widens the bounds of x-hat, and the widest are those of all rows.
    if (first_ == 0 && last != 0 && center_ == 0 && !has_own_centers_) sum_up();
  }

  bool is_near(std::size_t row, double center) const {
    const double mean = gradients_.center[row] + gradients_.shift[row];
    return std::fabs(mean - center) * gradients_.rstd[row] <= rule_->nearness;
  }

  void write_rows(std::int64_t r, std::int64_t count) {
    written_ = r;
    const ColumnSums sums =
        columns_ == nullptr ? ColumnSums() : columns_->in_doubles(gradients_.xhat, count);
    const KernelTable& table = *setting_.backend.table;
    table.double_gradient_write(part(r, count), gradients_, r, setting_.weight, out(r), sums,
                                *this);
  }

  // A row by itself.
  void write_row(std::int64_t r) { gradient_of(r).write(part(r), out(r), columns_); }

  // Whether doubles are known not to decide a row. One whose dx may be 0 is left to them, for they tell that soonest: where g is
  // constant, and without eps where it is a line in x.
  bool is_beyond_doubles(std::int64_t r) const {
    const auto row = static_cast<std::size_t>(r);
    return ((gradients_.usable & ~gradients_.decides) >> r & 1) != 0 && setting_.formula.eps > 0 &&
           !may_be_constant(sums_.g[row], sums_.g_squares[row], x_.row_length);
  }

  const RowGradient& gradient_of(std::int64_t r) const {
    if (!row_ || number_ != first_ + r) {
      number_ = first_ + r;
      row_.emplace(is_beyond_doubles(r) ? in_double_doubles_ : setting_, sample_of(part(r).x),
                   saved_of(r), [read = part(r)](const auto& see) { see(read); });
      row_->sum_up();
    }
    return *row_;
  }

  const GradientSetting& setting_;
  GradientSetting in_double_doubles_;  // the same for rows that start there
  std::optional<GradientRule> rule_;
  RowsIn x_;
  RowsIn dy_;
  RowsOut dx_;
  const SavedStatistics* saved_;
  ColumnGradients* columns_;
  double center_ = 0;
  bool has_own_centers_ = false;  // each row has one
  std::int64_t first_ = 0;        // of the rows at hand
  std::int64_t count_ = 0;
  std::int64_t written_ = 0;  // the first of those that are being written
  GradientRowSums sums_;
  DoubleGradients gradients_;
  mutable std::optional<RowGradient> row_;  // the one that took more, or was asked for last
  mutable std::int64_t number_ = 0;
};

}  // namespace

void layer_norm_backward(const Backend& backend, const RowsIn& x, const RowsIn& dy,
                         const RowsOut& dx, const AffineTerm& weight, const Formula& formula,
                         const SavedStatistics* saved, ColumnGradients* columns) {
  if (x.rows == 0 || x.row_length == 0) return;
  RowsOut out = dx;
  out.non_temporal = goes_past_caches(x, dx);
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
  std::vector<double> high(static_cast<std::size_t>(row_length));
  std::vector<double> low(high.size());
  for (std::size_t i = 0; i < high.size(); ++i) {
    const Number number = weight.number(layout.number(first, static_cast<std::int64_t>(i)));
    high[i] = number.high;
    low[i] = number.low;
  }
  return {std::move(high), std::move(low)};
}

}  // namespace lnorm
