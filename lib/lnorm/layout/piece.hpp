#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lnorm {

// An axis along which rows, or their elements, are numbered.
struct RowAxis {
  std::int64_t extent;
  std::int64_t stride;  // from one index to the next, in positions of the file
  std::int64_t step;    // the same in numbers
};

// How many combinations of indices there are.
std::int64_t size_of(std::span<const RowAxis> axes);

// Merges axes that go on where the next one ends, and leaves out those of one index.
std::vector<RowAxis> merged(std::span<const RowAxis> axes);

// Neighbors in the file.
struct Run {
  std::int64_t position;
  std::int64_t count;
};

// Some items of the rows of a tile: all combinations of some indices of each axis. Packed, they lie as in the file, but for
// the gaps between their runs.
struct Piece {
  std::int64_t position = 0;  // where the first item lies in the file
  std::int64_t start = 0;     // the same in the rows
  // With their steps in the rows. Those of a finished piece are in the order of the file, and merged.
  std::vector<RowAxis> axes;

  std::int64_t items() const { return size_of(axes); }
  std::vector<Run> runs() const;
  std::int64_t run_length() const;

  // Adds parts of at most so many items, in the order of the packed form.
  void cut(std::int64_t most, std::vector<Piece>& parts) const;

  // The same items where they lie packed.
  Piece packed() const;

  // Items have 1, 2, 4, 8 or 16 bytes; from and to must not overlap. rows: of the whole tile. file: in memory as in the
  // file, from position on.
  void gather(std::size_t item, const std::byte* file, std::byte* rows) const;
  void scatter(std::size_t item, const std::byte* rows, std::byte* file) const;
};

}  // namespace lnorm
