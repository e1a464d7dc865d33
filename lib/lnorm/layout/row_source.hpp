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

  // Takes a tile from a source without random access: before read, in order.
  void begin(const Tile& tile, TileBuffer& buffer);

  // The buffer then says where the tile is as rows. Several threads may do so at once.
  void read(const Tile& tile, TileBuffer& buffer) const;

  // Gives a tile in blocks of some of its rows: hold brings the tile, after begin; then rows_of are the rows of a block,
  // one after another, where the tile is or in rows.
  void hold(const Tile& tile, TileBuffer& buffer) const;
  const std::byte* rows_of(const Tile& block, const Tile& tile, const TileBuffer& buffer,
                           std::vector<std::byte>& rows) const;

  // Puts the rows one after another into a temporary file, for whoever reads them one by one.
  // Requires random access.
  void line_up(const ForEachTile& for_each_tile);

  void finish() { source_->finish(); }

 private:
  // Whether the source holds the tile in memory, as rows: the buffer then says where.
  bool find_in_memory(const Tile& tile, TileBuffer& buffer) const;
  void take(std::unique_ptr<TensorSource> temporary);

  std::unique_ptr<TensorSource> temporary_;  // that the rows come by, if there is one
  TensorSource* source_;
  RowView view_;
};

}  // namespace lnorm
