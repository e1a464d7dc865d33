#include "lnorm/layout/row_source.hpp"

#include <utility>

#include "lnorm/layout/reorder.hpp"
#include "lnorm/layout/spooled_tensor.hpp"

namespace lnorm {

RowSource::RowSource(TensorSource& source, RowView view, const IoPath& io_path,
                     const ForEachTile& for_each_tile)
    : source_(&source), view_(std::move(view)) {
  if (io_path.transposes) take(transposed(*source_, for_each_tile));
  if (io_path.repacks_rows) line_up(for_each_tile);
  if (io_path.needs_random_access && !source_->has_random_access()) take(spooled(*source_));
}

void RowSource::line_up(const ForEachTile& for_each_tile) {
  TensorInfo rows = info();
  rows.order = MemoryOrder::c;
  rows.shape = {view_.rows(), view_.row_length()};
  take(lined_up(*source_, view_, 0, rows, for_each_tile));
  view_ = view_.lined_up();
}

void RowSource::take(std::unique_ptr<TensorSource> temporary) {
  temporary_ = std::move(temporary);
  source_ = temporary_.get();
}

void RowSource::begin(const Tile& tile, TileBuffer& buffer) {
  if (source_->has_random_access()) return;
  source_->read(view_.is_contiguous() ? buffer.rows : buffer.packed,
                tile.bytes(item_size(info().dtype)));
}

bool RowSource::find_in_memory(const Tile& tile, TileBuffer& buffer) const {
  const auto start = view_.start_of_run(tile, item_size(info().dtype));
  buffer.found = start ? source_->in_memory(*start) : nullptr;
  return buffer.found != nullptr;
}

void RowSource::read(const Tile& tile, TileBuffer& buffer) const {
  if (find_in_memory(tile, buffer)) return;
  if (source_->has_random_access()) {
    read_tile(*source_, view_, tile, buffer);
  } else if (!view_.is_contiguous()) {
    buffer.rows.resize(buffer.packed.size());
    view_.gather(tile, item_size(info().dtype), buffer.packed.data(), buffer.rows.data(),
                 tile.count);
  }
  buffer.found = buffer.rows.data();
}

void RowSource::hold(const Tile& tile, TileBuffer& buffer) const {
  if (find_in_memory(tile, buffer)) return;
  if (source_->has_random_access()) {
    read_packed(*source_, view_, tile, view_.is_contiguous() ? buffer.rows : buffer.packed);
  }
  buffer.found = buffer.rows.data();
}

const std::byte* RowSource::rows_of(const Tile& block, const Tile& tile, const TileBuffer& buffer,
                                    std::vector<std::byte>& rows) const {
  const std::size_t item = item_size(info().dtype);
  if (view_.is_contiguous()) return buffer.found + tile.offset_of(block, item);
  rows.resize(block.bytes(item));
  view_.gather_block(block, item, tile, buffer.packed.data(), rows.data());
  return rows.data();
}

}  // namespace lnorm
