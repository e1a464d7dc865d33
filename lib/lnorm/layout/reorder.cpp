#include "lnorm/layout/reorder.hpp"

#include <algorithm>
#include <utility>

#include "lnorm/layout/spooled_tensor.hpp"

namespace lnorm {

namespace {

TensorInfo c_ordered(TensorInfo info) {
  info.order = MemoryOrder::c;
  return info;
}

class GatheredTensor final : public RandomAccessSource {
 public:
  // source: has random access.
  explicit GatheredTensor(std::unique_ptr<TensorSource> source)
      : RandomAccessSource(c_ordered(source->info())),
        source_(std::move(source)),
        view_(RowView::one_row(info().shape, source_->info().order)) {}

  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    const auto item = static_cast<std::int64_t>(item_size(info().dtype));
    const Tile tile{0, 1, offset / item, std::ssize(to) / item};
    TileBuffer buffer;
    read_tile(*source_, view_, tile, buffer);
    std::copy(buffer.rows.begin(), buffer.rows.end(), to.begin());
  }

  void finish() override { source_->finish(); }

 private:
  std::unique_ptr<TensorSource> source_;
  RowView view_;
};

// Rows of a source, from one on, in a temporary file, where they lie as another view says.
std::unique_ptr<TensorSource> copied(TensorSource& given, const RowView& from,
                                     const TensorInfo& info, const RowView& to,
                                     const ForEachTile& for_each_tile, std::int64_t first_row = 0) {
  const auto positioned = given.has_random_access() ? nullptr : spooled(given);
  TensorSource& source = positioned ? *positioned : given;
  TensorSpool spool(info);
  copy_tiles(source, from, spool, to, for_each_tile, first_row);
  source.finish();
  return spool.source();
}

}  // namespace

std::unique_ptr<TensorSource> gathered(std::unique_ptr<TensorSource> source) {
  const TensorInfo& info = source->info();
  if (info.order == MemoryOrder::c || element_count(info.shape) == 0) return source;
  if (!source->has_random_access()) source = spooled(*source);
  return std::make_unique<GatheredTensor>(std::move(source));
}

std::unique_ptr<TensorSource> transposed(TensorSource& source, const ForEachTile& for_each_tile) {
  const TensorInfo& info = source.info();
  // Rows along the last axis, numbered so that neighbors are neighbors in the file.
  Axes axes = kept_axes(info.shape, {});
  std::reverse(axes.begin(), axes.end());
  const Axes rows(axes.begin() + 1, axes.end());
  const Axes elements{axes.front()};
  const RowView from(info.shape, MemoryOrder::fortran, rows, elements);
  const RowView to(info.shape, MemoryOrder::c, rows, elements);
  return copied(source, from, c_ordered(info), to, for_each_tile);
}

std::unique_ptr<TensorSource> lined_up(TensorSource& source, const RowView& rows,
                                       std::int64_t first, const TensorInfo& info,
                                       const ForEachTile& for_each_tile) {
  const RowView to = RowView::contiguous(info.shape.front(), rows.row_length());
  return copied(source, rows, info, to, for_each_tile, first);
}

}  // namespace lnorm
