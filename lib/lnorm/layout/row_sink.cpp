#include "lnorm/layout/row_sink.hpp"

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

void RowSink::put(const Tile& tile, std::span<const std::byte> rows, TileBuffer& buffer) const {
  buffer.encoded = {};
  if (sink_.needs_prescan()) sink_.prescan(rows);
  if (lined_up_) return write_tile(*lined_up_, view_.lined_up(), tile, item_, rows, buffer.packed);
  if (target().has_random_access())
    return write_tile(target(), view_, tile, item_, rows, buffer.packed);
  if (!view_.is_contiguous()) {
    buffer.packed.resize(rows.size());
    view_.scatter(tile, item_, rows.data(), tile.count, buffer.packed.data());
    rows = buffer.packed;
  }
  const std::int64_t first = tile.first_row * view_.row_length() + tile.first;
  buffer.encoded = sink_.encode(first, rows, buffer.text);
}

RowSink::Held RowSink::held(const Tile& tile) const {
  if (lined_up_) return Held::not_at_all;
  if (in_memory(tile) != nullptr) return Held::in_memory;
  if (!view_.is_contiguous() && view_.is_slab(tile)) return Held::packed;
  return holds_tiles_ || !target().has_random_access() ? Held::rows : Held::not_at_all;
}

std::byte* RowSink::in_memory(const Tile& block) const {
  const auto start = view_.start_of_run(block, item_);
  return start ? target().in_memory(*start) : nullptr;
}

std::byte* RowSink::buffer_for(const Tile& block, const Tile& tile, TileBuffer& buffer,
                               std::vector<std::byte>& rows) const {
  if (held(tile) == Held::in_memory) return in_memory(block);
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
    put(block, rows, buffer);
  }
}

void RowSink::put_tile(const Tile& tile, TileBuffer& buffer) const {
  buffer.encoded = {};
  if (held(tile) == Held::not_at_all || held(tile) == Held::in_memory) return;
  if (held(tile) == Held::rows) return put(tile, buffer.rows, buffer);
  const std::int64_t first = tile.first_row * tile.count;
  if (target().has_random_access()) {
    target().write_at(first * static_cast<std::int64_t>(item_), buffer.packed);
  } else {
    buffer.encoded = sink_.encode(first, buffer.packed, buffer.text);
  }
}

void RowSink::write(const TileBuffer& buffer) {
  if (!buffer.encoded.empty()) sink_.write(buffer.encoded);
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
