#include "lnorm/layout/tiles.hpp"

#include <algorithm>
#include <utility>

#include "lnorm/io/os.hpp"

namespace lnorm {

namespace {

// The L2 cache holds a piece with room to spare.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

// Calls see(piece) for all pieces of a tile, with a buffer for each in packed.
template <class See>
void for_each_piece(const RowView& view, const Tile& tile, std::size_t item,
                    std::vector<std::byte>& packed, See see) {
  // A run is written at once: threads that write to a file wait for each other, and then do so less often.
  const auto most = view.count_runs(tile) == 1 ? tile.rows * tile.count
                                               : static_cast<std::int64_t>(kPieceBytes / item);
  for (const Piece& piece : view.pieces(tile, tile.count, most)) {
    packed.resize(static_cast<std::size_t>(piece.items()) * item);
    see(piece);
  }
}

// Calls see(offset, bytes of packed) for every run of a piece.
template <class Bytes, class See>
void for_each_run(const Piece& piece, std::size_t item, Bytes packed, See see) {
  for (const Run& run : piece.runs()) {
    const std::size_t bytes = static_cast<std::size_t>(run.count) * item;
    see(run.position * static_cast<std::int64_t>(item), packed.first(bytes));
    packed = packed.subspan(bytes);
  }
}

// A run of a file, and what follows at most so many bytes behind it, is read by one call: a call takes as long as some
// kilobytes do.
class RunReader {
 public:
  explicit RunReader(const TensorSource& source) : source_(source) {}

  void read(const Piece& piece, std::size_t item, std::span<std::byte> packed) {
    const bool in_memory = source_.in_memory(0) != nullptr;
    for_each_run(piece, item, packed, [&](std::int64_t offset, std::span<std::byte> bytes) {
      if (in_memory) return source_.read_at(offset, bytes);
      if (!runs_.empty() && (offset < end_ || offset - end_ > kGap || offset - first_ > kMost))
        finish();
      if (runs_.empty()) first_ = offset;
      runs_.emplace_back(offset, bytes);
      end_ = offset + std::ssize(bytes);
    });
    finish();
  }

 private:
  static constexpr std::int64_t kGap = 4 << 10;
  static constexpr std::int64_t kMost = 64 << 10;

  void finish() {
    if (runs_.size() == 1) {
      source_.read_at(first_, runs_.front().second);
    } else if (!runs_.empty()) {
      together_.resize(static_cast<std::size_t>(end_ - first_));
      source_.read_at(first_, together_);
      for (const auto& [offset, bytes] : runs_) {
        std::copy_n(together_.begin() + (offset - first_), bytes.size(), bytes.begin());
      }
    }
    runs_.clear();
  }

  const TensorSource& source_;
  std::vector<std::pair<std::int64_t, std::span<std::byte>>> runs_;
  std::vector<std::byte> together_;
  std::int64_t first_ = 0;
  std::int64_t end_ = 0;
};

}  // namespace

void grow_to(std::vector<std::byte>& buffer, std::size_t bytes) {
  constexpr std::size_t kLarge = std::size_t{4} << 20;
  if (bytes >= kLarge && bytes > buffer.capacity()) {
    // Rows of a tile lie far apart: small pages of them would be too many for the processor's table.
    buffer = {};
    buffer.reserve(bytes);
    os::prefer_large_pages({buffer.data(), bytes});
  }
  buffer.resize(bytes);
}

void read_packed(const TensorSource& source, const RowView& view, const Tile& tile,
                 std::vector<std::byte>& packed) {
  const std::size_t item = item_size(source.info().dtype);
  grow_to(packed, tile.bytes(item));
  if (const auto start = view.start_of_run(tile, item)) return source.read_at(*start, packed);
  if (view.is_slab(tile)) {
    return source.read_at(tile.first_row * tile.count * static_cast<std::int64_t>(item), packed);
  }
  std::span<std::byte> rest(packed);
  RunReader reader(source);
  for (const Piece& piece : view.pieces(tile, tile.count, tile.rows * tile.count)) {
    reader.read(piece, item, rest);
    rest = rest.subspan(static_cast<std::size_t>(piece.items()) * item);
  }
}

void read_tile(const TensorSource& source, const RowView& view, const Tile& tile,
               TileBuffer& buffer) {
  const std::size_t item = item_size(source.info().dtype);
  grow_to(buffer.rows, tile.bytes(item));
  if (const auto start = view.start_of_run(tile, item)) return source.read_at(*start, buffer.rows);
  RunReader reader(source);
  for_each_piece(view, tile, item, buffer.packed, [&](const Piece& piece) {
    reader.read(piece, item, buffer.packed);
    piece.packed().gather(item, buffer.packed.data(), buffer.rows.data());
  });
}

void write_tile(const TensorSink& sink, const RowView& view, const Tile& tile, std::size_t item,
                std::span<const std::byte> rows, std::vector<std::byte>& packed) {
  if (const auto start = view.start_of_run(tile, item)) return sink.write_at(*start, rows);
  for_each_piece(view, tile, item, packed, [&](const Piece& piece) {
    piece.packed().scatter(item, rows.data(), packed.data());
    for_each_run(piece, item, std::span<const std::byte>(packed),
                 [&](std::int64_t offset, auto bytes) { sink.write_at(offset, bytes); });
  });
}

void copy_tiles(const TensorSource& source, const RowView& from, const TensorSink& sink,
                const RowView& to, const ForEachTile& for_each_tile, std::int64_t first_row) {
  constexpr std::int64_t kTileBytes = std::int64_t{2} << 20;
  constexpr std::int64_t kMinCount = 1024;
  const std::int64_t rows = to.rows();
  const std::int64_t row_length = to.row_length();
  if (rows == 0 || row_length == 0) return;
  const std::size_t item = item_size(source.info().dtype);
  const std::int64_t elements = kTileBytes / static_cast<std::int64_t>(item);
  const std::int64_t count = std::min(row_length, std::max(kMinCount, elements / rows));
  const std::int64_t tile_rows = std::min(rows, std::max<std::int64_t>(1, elements / count));
  const std::int64_t parts = (row_length + count - 1) / count;
  const std::int64_t tiles = parts * ((rows + tile_rows - 1) / tile_rows);
  const auto copy = [&](std::int64_t number, TileBuffer& buffer) {
    const std::int64_t row = number / parts * tile_rows;
    const std::int64_t first = number % parts * count;
    const Tile tile{row, std::min(tile_rows, rows - row), first,
                    std::min(count, row_length - first)};
    read_tile(source, from, {first_row + row, tile.rows, first, tile.count}, buffer);
    write_tile(sink, to, tile, item, buffer.rows, buffer.packed);
  };
  for_each_tile(tiles, 2 * kTileBytes, copy, {});
}

}  // namespace lnorm
