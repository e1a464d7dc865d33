#include "lnorm/layout/row_slice.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "lnorm/layout/reorder.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/layout/tiles.hpp"

namespace lnorm {

namespace {

// The same elements under another header.
class SeenSource final : public TensorSource {
 public:
  SeenSource(TensorInfo info, std::unique_ptr<TensorSource> source)
      : TensorSource(std::move(info)), source_(std::move(source)) {}

  void read(std::vector<std::byte>& to, std::size_t bytes) override { source_->read(to, bytes); }
  void skip(std::int64_t bytes) override { source_->skip(bytes); }
  bool has_random_access() const noexcept override { return source_->has_random_access(); }
  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    source_->read_at(offset, to);
  }
  void finish() override { source_->finish(); }

 private:
  std::unique_ptr<TensorSource> source_;
};

std::unique_ptr<TensorSource> seen_as(TensorInfo info, std::unique_ptr<TensorSource> source) {
  if (!info.split) return source;
  source = gathered(std::move(source));
  info.byte_order = source->info().byte_order;
  return std::make_unique<SeenSource>(std::move(info), std::move(source));
}

class SlicedSource final : public TensorSource {
 public:
  // Without random access rows lie one after another.
  SlicedSource(TensorInfo info, std::unique_ptr<TensorSource> source, RowView view,
               std::int64_t first)
      : TensorSource(std::move(info)),
        source_(std::move(source)),
        view_(std::move(view)),
        first_(first) {
    if (!has_random_access()) source_->skip(first * view_.row_length() * item());
  }

  void read(std::vector<std::byte>& to, std::size_t bytes) override {
    if (has_random_access()) {
      to.resize(bytes);
      read_at(next_, to);
    } else {
      source_->read(to, bytes);
    }
    next_ += static_cast<std::int64_t>(bytes);
  }

  void skip(std::int64_t bytes) override {
    if (!has_random_access()) source_->skip(bytes);
    next_ += bytes;
  }

  bool has_random_access() const noexcept override { return source_->has_random_access(); }

  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    const std::int64_t length = view_.row_length();
    if (view_.is_contiguous()) {
      return source_->read_at(first_ * length * item() + offset, to);
    }
    // Whole rows at once; at both ends there may be parts of a row.
    TileBuffer buffer;
    for (std::int64_t at = offset / item(); !to.empty();) {
      const std::int64_t items = std::ssize(to) / item();
      Tile tile{first_ + at / length, items / length, 0, length};
      if (at % length > 0 || tile.rows == 0) {
        tile = {tile.first_row, 1, at % length, std::min(length - at % length, items)};
      }
      read_tile(*source_, view_, tile, buffer);
      std::copy(buffer.rows.begin(), buffer.rows.end(), to.begin());
      to = to.subspan(buffer.rows.size());
      at += tile.rows * tile.count;
    }
  }

  void finish() override {
    if (!has_random_access()) {
      source_->skip((view_.rows() - first_) * view_.row_length() * item() - next_);
    }
    source_->finish();
  }

 private:
  std::int64_t item() const { return static_cast<std::int64_t>(item_size(info().dtype)); }

  std::unique_ptr<TensorSource> source_;
  RowView view_;
  std::int64_t first_;
  std::int64_t next_ = 0;
};

// Whether blocks of rows lie in runs so short that it takes less time to have the rows copied in longer ones.
bool is_scattered(const RowView& view, const TensorInfo& slice, std::int64_t first) {
  constexpr std::int64_t kBlockBytes = 256 << 10;
  constexpr std::int64_t kFewBytes = 1 << 20;
  constexpr std::int64_t kShortRunBytes = 256;
  const std::int64_t rows = slice.shape.front();
  const std::int64_t row_bytes =
      view.row_length() * static_cast<std::int64_t>(item_size(slice.dtype));
  if (view.is_contiguous() || rows * row_bytes < kFewBytes) return false;
  const Tile block{first, std::clamp<std::int64_t>(kBlockBytes / row_bytes, 1, rows), 0,
                   view.row_length()};
  // Runs grow with the rows that are taken at once.
  return rows >= 4 * block.rows && block.rows * row_bytes < kShortRunBytes * view.count_runs(block);
}

void in_turn(std::int64_t tiles, std::int64_t, const TileWork& work, const TileWork&) {
  TileBuffer buffer;
  for (std::int64_t number = 0; number < tiles; ++number) work(number, buffer);
}

}  // namespace

std::unique_ptr<TensorSource> grouped(std::unique_ptr<TensorSource> source,
                                      const NormalizedAxes& axes) {
  TensorInfo info = grouped(source->info(), axes);
  return seen_as(std::move(info), std::move(source));
}

std::unique_ptr<TensorSource> grouped_as(std::unique_ptr<TensorSource> other, const TensorInfo& x) {
  const TensorInfo whole = whole_of(x);
  if (!x.split || other->info().shape != file_shape(whole)) return other;
  TensorInfo info = grouped_as(other->info(), x);
  return seen_as(std::move(info), std::move(other));
}

std::unique_ptr<TensorSource> rows_of(std::unique_ptr<TensorSource> source, const Axes& axes,
                                      std::int64_t first, std::int64_t count) {
  const TensorInfo x = source->info();
  TensorInfo info = slice_info(x, axes, first, count);
  RowView view(x.shape, x.order, kept_axes(x.shape, axes), axes);
  if (!view.is_contiguous() && !source->has_random_access()) source = spooled(*source);
  if (is_scattered(view, info, first)) return lined_up(*source, view, first, info, in_turn);
  return std::make_unique<SlicedSource>(std::move(info), std::move(source), std::move(view), first);
}

}  // namespace lnorm
