#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/layout/row_view.hpp"

namespace lnorm {

// How a tensor gets from a file to its rows, or from the rows to a file. What needs random access and has none
// is spooled.
struct IoPath {
  bool needs_random_access = false;  // tiles do not follow each other in the file
  bool transposes = false;           // first into C order, in a temporary file; of a source
  bool repacks_rows = false;  // by way of a temporary file in which rows lie one after another
  bool holds_tiles = false;   // of a sink: a tile is written whole, in longer runs

  // Whether there is a temporary file on the way.
  bool uses_temporary_file(bool has_random_access) const noexcept {
    return transposes || repacks_rows || (needs_random_access && !has_random_access);
  }
};

// Room for a tile on its way. A thread uses it again for the next one.
struct TileBuffer {
  std::vector<std::byte> rows;
  const std::byte* found = nullptr;  // the rows that were read: in rows, or in the source's memory
  std::vector<std::byte> packed;     // as it lies in the file, where that is another order
  std::string text;                  // if that is what it is encoded as
  std::span<const std::byte> encoded;
};

// Gives a buffer so many bytes. A large one that grows loses its contents.
void grow_to(std::vector<std::byte>& buffer, std::size_t bytes);

// Reads a tile by read_at, packed.
void read_packed(const TensorSource& source, const RowView& view, const Tile& tile,
                 std::vector<std::byte>& packed);

// Reads a tile by read_at, as rows.
void read_tile(const TensorSource& source, const RowView& view, const Tile& tile,
               TileBuffer& buffer);

// Writes rows of items of a size by write_at. packed: a buffer for what is written.
void write_tile(const TensorSink& sink, const RowView& view, const Tile& tile, std::size_t item,
                std::span<const std::byte> rows, std::vector<std::byte>& packed);

// Calls work(number, buffer) for every number below tiles, several at once, and after it end(number, buffer), if
// that is not empty, from the first number to the last; bytes: what each takes. Whoever owns the threads
// provides it.
using TileWork = std::function<void(std::int64_t number, TileBuffer& buffer)>;
using ForEachTile = std::function<void(std::int64_t tiles, std::int64_t bytes, const TileWork& work,
                                       const TileWork& end)>;

// Copies all rows of to, which are those of from, from its row first_row on, in tiles with runs as long as memory allows.
// source and sink have random access. Does not finish them.
void copy_tiles(const TensorSource& source, const RowView& from, const TensorSink& sink,
                const RowView& to, const ForEachTile& for_each_tile, std::int64_t first_row = 0);

}  // namespace lnorm
