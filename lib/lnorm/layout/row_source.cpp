#include "lnorm/layout/row_source.hpp"

#include <utility>

#include "lnorm/layout/reorder.hpp"
#include "lnorm/layout/spooled_tensor.hpp"

namespace lnorm {

RowSource::RowSource(TensorSource& source, RowView view, const Passage& passage,
                     const ForEachTile& for_each_tile)
    : source_(&source), view_(std::move(view)) {
  if (passage.transposes) take(transposed(*source_, for_each_tile));
  if (passage.lines_up_rows) line_up(for_each_tile);
  if (passage.needs_positions && !source_->has_positions()) take(spooled(*source_));
}

void RowSource::line_up(const ForEachTile& for_each_tile) {
  take(lined_up(*source_, view_, for_each_tile));
  view_ = view_.lined_up();
}

void RowSource::take(std::unique_ptr<TensorSource> detour) {
  detour_ = std::move(detour);
  source_ = detour_.get();
}

void RowSource::begin(const Tile& tile, std::vector<std::byte>& packed,
                      std::vector<std::byte>& rows) {
  if (source_->has_positions()) return;
  source_->read(view_.is_contiguous() ? rows : packed, tile.bytes(item_size(info().dtype)));
}

void RowSource::read(const Tile& tile, std::vector<std::byte>& packed,
                     std::vector<std::byte>& rows) const {
  if (source_->has_positions()) return read_tile(*source_, view_, tile, packed, rows);
  if (view_.is_contiguous()) return;
  rows.resize(packed.size());
  view_.gather(tile, item_size(info().dtype), packed.data(), rows.data(), tile.count);
}

void RowSource::hold(const Tile& tile, TileRoom& room) const {
  if (!source_->has_positions()) return;
  read_packed(*source_, view_, tile, view_.is_contiguous() ? room.rows : room.packed);
}

const std::byte* RowSource::rows_of(const Tile& block, const Tile& tile, const TileRoom& room,
                                    std::vector<std::byte>& rows) const {
  const std::size_t item = item_size(info().dtype);
  if (view_.is_contiguous()) return room.rows.data() + tile.offset_of(block, item);
  rows.resize(block.bytes(item));
  view_.gather_block(block, item, tile, room.packed.data(), rows.data());
  return rows.data();
}

}  // namespace lnorm
