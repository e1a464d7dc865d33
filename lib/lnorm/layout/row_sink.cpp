#include "lnorm/layout/row_sink.hpp"

#include <memory>
#include <utility>

namespace lnorm {

RowSink::RowSink(TensorSink& sink, const TensorInfo& info, RowView view, const Passage& passage,
                 ForEachTile for_each_tile)
    : sink_(sink),
      item_(item_size(info.dtype)),
      view_(std::move(view)),
      holds_tiles_(passage.holds_tiles),
      for_each_tile_(std::move(for_each_tile)) {
  const bool takes_positions = passage.needs_positions || passage.lines_up_rows;
  if (sink.surveys() || (takes_positions && !sink.has_positions())) spool_.emplace(info);
  if (passage.lines_up_rows) lined_up_.emplace(info);
}

std::span<const std::byte> RowSink::put(const Tile& tile, std::span<const std::byte> rows,
                                        std::vector<std::byte>& packed, std::string& text) const {
  if (sink_.surveys()) sink_.survey(rows);
  if (lined_up_) {
    write_tile(*lined_up_, view_.lined_up(), tile, item_, rows, packed);
    return {};
  }
  if (target().has_positions()) {
    write_tile(target(), view_, tile, item_, rows, packed);
    return {};
  }
  const std::int64_t position = tile.first_row * view_.row_length() + tile.first;
  if (view_.is_contiguous()) return sink_.encode(position, rows, text);
  packed.resize(rows.size());
  view_.scatter(tile, item_, rows.data(), tile.count, packed.data());
  return sink_.encode(position, packed, text);
}

RowSink::Held RowSink::held(const Tile& tile) const {
  if (lined_up_) return Held::not_at_all;
  if (!view_.is_contiguous() && view_.is_slab(tile)) return Held::packed;
  return holds_tiles_ || !target().has_positions() ? Held::rows : Held::not_at_all;
}

std::byte* RowSink::room_for(const Tile& block, const Tile& tile, TileRoom& room,
                             std::vector<std::byte>& rows) const {
  if (held(tile) == Held::rows) {
    make_room(room.rows, tile.bytes(item_));
    return room.rows.data() + tile.offset_of(block, item_);
  }
  rows.resize(block.bytes(item_));
  return rows.data();
}

void RowSink::put_block(const Tile& block, const Tile& tile, TileRoom& room,
                        const std::vector<std::byte>& rows) const {
  if (held(tile) == Held::packed) {
    if (sink_.surveys()) sink_.survey(rows);
    make_room(room.packed, tile.bytes(item_));
    view_.scatter_block(block, item_, rows.data(), tile, room.packed.data());
  } else if (held(tile) == Held::not_at_all) {
    std::string none;  // there are positions
    put(block, rows, room.packed, none);
  }
}

std::span<const std::byte> RowSink::put_tile(const Tile& tile, TileRoom& room,
                                             std::string& text) const {
  if (held(tile) == Held::not_at_all) return {};
  if (held(tile) == Held::rows) return put(tile, room.rows, room.packed, text);
  const std::int64_t position = tile.first_row * tile.count;
  if (!target().has_positions()) return sink_.encode(position, room.packed, text);
  target().write_at(position * static_cast<std::int64_t>(item_), room.packed);
  return {};
}

void RowSink::write(std::span<const std::byte> encoded) {
  if (!encoded.empty()) sink_.write(encoded);
}

void RowSink::finish() {
  if (lined_up_) {
    copy_tiles(*lined_up_->source(), view_.lined_up(), target(), view_, for_each_tile_);
  }
  if (spool_) {
    sink_.begin_writing();
    encode_in_order(*spool_->source(), sink_, for_each_tile_);
  }
  sink_.finish();
}

}  // namespace lnorm
