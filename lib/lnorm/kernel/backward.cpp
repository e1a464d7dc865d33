#include "lnorm/kernel/backward.hpp"

#include <hwy/cache_control.h>

#include <cmath>
#include <optional>

#include "lnorm/kernel/row_gradient.hpp"

namespace lnorm {

namespace {

// The rows of a block, one after another. Most are done from their narrow sums; a RowGradient does the others, and
// decides what the narrow bounds leave open.
class BlockOfRows final : public GradientSettler {
 public:
  BlockOfRows(const GradientSetting& setting, const RowsIn& x, const RowsIn& dy, const RowsOut& dx,
              const SavedStatistics* saved, ColumnGradients* columns)
      : setting_(setting), x_(x), dy_(dy), dx_(dx), saved_(saved), columns_(columns) {}

  void run() {
    // While a row is written, the next one is read, if a second-level cache has room for both.
    constexpr std::int64_t kTwoRows = std::int64_t{256} << 10;
    const std::int64_t x_bytes = x_.row_length * static_cast<std::int64_t>(item_size(x_.dtype));
    const std::int64_t dy_bytes = x_.row_length * static_cast<std::int64_t>(item_size(dy_.dtype));
    const bool reads_ahead = 2 * (x_bytes + dy_bytes) <= kTwoRows;
    const bool is_quick = is_narrow_setting(setting_);
    if (!setting_.formula.rms) center_ = sample_of(row_of(x_, 0)).center;
    for (std::int64_t r = 0; r < x_.rows; ++r) {
      part_ = {row_of(x_, r), row_of(dy_, r)};
      row_saved_ = saved_ == nullptr ? nullptr : saved_ + r;
      row_.reset();
      RowsOut dx = row_of(dx_, x_.row_length, r);
      if (dx_.data == nullptr) dx.data = nullptr;
      const bool is_done = is_quick && write_narrow(dx, r + 1 < x_.rows && reads_ahead);
      if (!is_done) row().write(part_, dx, columns_);
    }
  }

  double settle(std::int64_t index, Number x, Number dy) const override {
    return row().settle(index, x, dy);
  }

 private:
  bool write_narrow(const RowsOut& dx, bool reads_ahead) {
    const std::int64_t n = x_.row_length;
    const Passes& passes = *setting_.kernel.passes;
    const double center = row_saved_ == nullptr  ? center_
                          : setting_.formula.rms ? 0
                                                 : row_saved_->mean.high;
    if (!std::isfinite(center)) return false;
    const GradientSums sums = passes.narrow_gradient_sums(part_, center, setting_.weight);
    // What is not finite, and what may be 0 throughout, is not for here.
    if (!(sums.g_squares > 0 && std::isfinite(sums.g_squares)) ||
        may_be_constant(sums.g.high, sums.g_squares, n) || !std::isfinite(sums.x.squares.high)) {
      return false;
    }
    const auto gradient = narrow_gradient(sums, center, n, setting_.formula, row_saved_,
                                          narrow_growth(n, passes.gradient_lanes));
    if (!gradient) return false;
    // The next row is about where this is. One that is near 0 needs no center.
    const double mean = center + gradient->shift;
    if (row_saved_ == nullptr && !setting_.formula.rms) {
      center_ = std::fabs(mean) * gradient->rstd <= 0.7 ? 0 : mean;
    }
    std::optional<NarrowColumns> at;
    if (columns_ != nullptr) at = columns_->narrow(0);
    GradientPart part = part_;
    if (reads_ahead) {
      part.x.to_next = n * static_cast<std::int64_t>(item_size(x_.dtype));
      part.dy.to_next = n * static_cast<std::int64_t>(item_size(dy_.dtype));
    }
    passes.narrow_gradient_write(part, *gradient, setting_.weight, dx, at ? &*at : nullptr, *this);
    if (columns_ != nullptr) columns_->end_narrow_row();
    return true;
  }

  RowGradient& row() const {
    if (!row_) {
      row_.emplace(setting_, sample_of(part_.x), row_saved_,
                   [this](const auto& see) { see(part_); });
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
  GradientPart part_;  // the row under way
  const SavedStatistics* row_saved_ = nullptr;
  mutable std::optional<RowGradient> row_;
};

}  // namespace

void layer_norm_backward(const Kernel& kernel, const RowsIn& x, const RowsIn& dy, const RowsOut& dx,
                         const AffineTerm& weight, const Formula& formula,
                         const SavedStatistics* saved, ColumnGradients* columns) {
  if (x.rows == 0) return;
  // More than the second-level cache of a core holds will not be found there by who reads it.
  constexpr std::int64_t kPastCaches = std::int64_t{4} << 20;
  RowsOut out = dx;
  out.past_caches =
      x.rows * x.row_length * static_cast<std::int64_t>(item_size(dx.dtype)) >= kPastCaches;
  const GradientSetting setting{kernel, x.dtype, dy.dtype, dx.dtype, x.row_length, weight, formula};
  BlockOfRows(setting, x, dy, out, saved, columns).run();
  if (out.past_caches && out.data != nullptr) hwy::FlushStream();  // it is there for other threads
}

}  // namespace lnorm
