#pragma once

#include <memory>
#include <vector>

#include "lnorm/layout/tiles.hpp"

namespace lnorm {

// Rows from a source, in whatever order they lie there: a loop sees tiles as rows, one after another.
class RowSource {
 public:
  RowSource(TensorSource& source, RowView view, const IoPath& io_path,
            const ForEachTile& for_each_tile);

  const TensorInfo& info() const noexcept { return source_->info(); }

  // Takes a block from a source without positions: before read, in order. packed: room.
  void begin(const Tile& tile, std::vector<std::byte>& packed, std::vector<std::byte>& rows);

  // The tile as rows. Several threads may do so at once.
  void read(const Tile& tile, std::vector<std::byte>& packed, std::vector<std::byte>& rows) const;

  // The same in blocks of some of its rows: hold brings the tile, after begin; then rows_of are the rows of a block,
  // one after another, in the room of the tile or in rows.
  void hold(const Tile& tile, TileBuffer& buffer) const;
  const std::byte* rows_of(const Tile& block, const Tile& tile, const TileBuffer& buffer,
                           std::vector<std::byte>& rows) const;

  // The same rows from now on one after another in a temporary file, for whoever reads them one by one.
  // Requires positions.
  void line_up(const ForEachTile& for_each_tile);

  void finish() { source_->finish(); }

 private:
  void take(std::unique_ptr<TensorSource> temporary);

  std::unique_ptr<TensorSource> temporary_;  // that the rows come by, if there is one
  TensorSource* source_;
  RowView view_;
};

}  // namespace lnorm
