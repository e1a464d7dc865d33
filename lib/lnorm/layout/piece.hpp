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

// Slowest first.
void sort_as_in_file(std::span<RowAxis> axes);

// Merges axes that go on where the next one ends, and leaves out those of one index.
std::vector<RowAxis> merged(std::span<const RowAxis> axes);

// Neighbors in the file.
struct Run {
  std::int64_t position;
  std::int64_t count;
};

// Some items of the rows of a tile: all combinations of some indices of each axis. Packed, they lie as in the file, but for
// the gaps between their runs.
class Piece {
 public:
  // position: where the first item lies in the file. start: the same in the rows. axes: as in the file, merged, with
  // their steps in the rows.
  Piece(std::int64_t position, std::int64_t start, std::vector<RowAxis> axes)
      : position_(position), start_(start), axes_(std::move(axes)) {}

  std::int64_t items() const { return size_of(axes_); }
  std::vector<Run> runs() const;
  std::int64_t run_length() const;

  // Adds parts of at most so many items, in the order of the packed form.
  void cut(std::int64_t most, std::vector<Piece>& parts) const;

  // Where the first item lies in the file.
  std::int64_t position() const noexcept { return position_; }

  // The same items where they lie packed.
  Piece packed() const;

  // Items have 1, 2, 4, 8 or 16 bytes; from and to must not overlap. rows: of the whole tile. file: in memory as in the
  // file, from position() on.
  void gather(std::size_t item, const std::byte* file, std::byte* rows) const;
  void scatter(std::size_t item, const std::byte* rows, std::byte* file) const;

 private:
  // How many of the last axes make up a run.
  std::size_t axes_of_run() const;

  std::int64_t position_;
  std::int64_t start_;
  std::vector<RowAxis> axes_;
};

}  // namespace lnorm
