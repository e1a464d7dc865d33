#include "lnorm/layout/row_sink.hpp"

#include <memory>
#include <utility>

namespace lnorm {

RowSink::RowSink(TensorSink& sink, const TensorInfo& info, RowView view, const IoPath& io_path,
                 ForEachTile for_each_tile)
    : sink_(sink),
      item_(item_size(info.dtype)),
      view_(std::move(view)),
      holds_tiles_(io_path.holds_tiles),
      for_each_tile_(std::move(for_each_tile)) {
  const bool takes_random_access = io_path.needs_random_access || io_path.repacks_rows;
  if (sink.needs_prescan() || (takes_random_access && !sink.has_random_access()))
    spool_.emplace(info);
  if (io_path.repacks_rows) lined_up_.emplace(info);
}

std::span<const std::byte> RowSink::put(const Tile& tile, std::span<const std::byte> rows,
                                        std::vector<std::byte>& packed, std::string& text) const {
  if (sink_.needs_prescan()) sink_.prescan(rows);
  if (lined_up_) {
    write_tile(*lined_up_, view_.lined_up(), tile, item_, rows, packed);
    return {};
  }
  if (target().has_random_access()) {
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
  return holds_tiles_ || !target().has_random_access() ? Held::rows : Held::not_at_all;
}

std::byte* RowSink::buffer_for(const Tile& block, const Tile& tile, TileBuffer& buffer,
                               std::vector<std::byte>& rows) const {
  if (held(tile) == Held::rows) {
    grow_to(buffer.rows, tile.bytes(item_));
    return buffer.rows.data() + tile.offset_of(block, item_);
  }
  rows.resize(block.bytes(item_));
  return rows.data();
}

void RowSink::put_block(const Tile& block, const Tile& tile, TileBuffer& buffer,
                        const std::vector<std::byte>& rows) const {
  if (held(tile) == Held::packed) {
    if (sink_.needs_prescan()) sink_.prescan(rows);
    grow_to(buffer.packed, tile.bytes(item_));
    view_.scatter_block(block, item_, rows.data(), tile, buffer.packed.data());
  } else if (held(tile) == Held::not_at_all) {
    std::string none;  // there are positions
    put(block, rows, buffer.packed, none);
  }
}

std::span<const std::byte> RowSink::put_tile(const Tile& tile, TileBuffer& buffer,
                                             std::string& text) const {
  if (held(tile) == Held::not_at_all) return {};
  if (held(tile) == Held::rows) return put(tile, buffer.rows, buffer.packed, text);
  const std::int64_t position = tile.first_row * tile.count;
  if (!target().has_random_access()) return sink_.encode(position, buffer.packed, text);
  target().write_at(position * static_cast<std::int64_t>(item_), buffer.packed);
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
