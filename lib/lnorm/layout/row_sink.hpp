#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/layout/tiles.hpp"

namespace lnorm {

// Rows into a sink, in whatever order they lie there.
class RowSink {
 public:
  // info: of the tensor that is written. for_each_tile: for finish, if the tensor goes by way of a temporary file.
  RowSink(TensorSink& sink, const TensorInfo& info, RowView view, const IoPath& io_path,
          ForEachTile for_each_tile);

  // Takes rows, which may be those of the buffer; then write, in order, has the rest to do unless they are at their offsets
  // already. Several threads may put at once.
  void put(const Tile& tile, std::span<const std::byte> rows, TileBuffer& buffer) const;
  void write(const TileBuffer& buffer);

  // Whether all rows are written to their offsets in the sink itself.
  bool has_random_access() const { return !spool_ && !lined_up_ && sink_.has_random_access(); }

  // Takes a tile in blocks of some of its rows. buffer_for is where the rows of a block are to be put: in the sink itself, if
  // it is in memory; in the buffer of the tile; or in rows. put_block takes them, and put_tile follows the last.
  std::byte* buffer_for(const Tile& block, const Tile& tile, TileBuffer& buffer,
                        std::vector<std::byte>& rows) const;
  void put_block(const Tile& block, const Tile& tile, TileBuffer& buffer,
                 const std::vector<std::byte>& rows) const;
  void put_tile(const Tile& tile, TileBuffer& buffer) const;

  void finish();
  void skip() { sink_.skip(); }

 private:
  // How a tile is held until all its blocks are there.
  enum class Held { packed, rows, in_memory, not_at_all };
  Held held(const Tile& tile) const;
  // Where the rows of a block lie in the sink, if it is in memory; else null.
  std::byte* in_memory(const Tile& block) const;

  const TensorSink& target() const noexcept {
    return spool_ ? static_cast<const TensorSink&>(*spool_) : sink_;
  }

  TensorSink& sink_;
  std::size_t item_;
  RowView view_;
  bool holds_tiles_;
  ForEachTile for_each_tile_;
  std::optional<TensorSpool> spool_;     // for a sink that has no random access, or needs_prescan
  std::optional<TensorSpool> lined_up_;  // rows one after another, until all are there
};

}  // namespace lnorm
