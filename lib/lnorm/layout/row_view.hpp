#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/layout/piece.hpp"

namespace lnorm {

// Some successive elements of some successive rows.
struct Tile {
  std::int64_t first_row;
  std::int64_t rows;
  std::int64_t first;  // element of a row
  std::int64_t count;  // elements of each row

  // The bytes that it takes.
  std::size_t bytes(std::size_t item) const {
    return static_cast<std::size_t>(rows * count) * item;
  }

  // Where some of its rows begin, in bytes.
  std::size_t offset_of(const Tile& block, std::size_t item) const {
    return static_cast<std::size_t>((block.first_row - first_row) * count) * item;
  }
};

// A tensor in a file or in memory, seen as rows of elements: where each of them lies. Positions are
// counted in elements.
//
// A tile has two forms. As rows, one after another, kernels work on it. Packed, as its runs of neighboring
// elements, one after another, it is read and written. gather and scatter lead from one form to the other.
class RowView {
 public:
  RowView() = default;

  // Rows are numbered along row_axes of a tensor, and their elements along element_axes, the last of either
  // fastest. Throws Error if there are more of them than 63 bits count.
  RowView(const Shape& shape, MemoryOrder order, const Axes& row_axes, const Axes& element_axes);

  // Rows that lie one after another.
  static RowView contiguous(std::int64_t rows, std::int64_t row_length) {
    return {{rows, row_length}, MemoryOrder::c, {0}, {1}};
  }

  // All elements of a tensor as one row, in C order.
  static RowView one_row(const Shape& shape, MemoryOrder order) {
    return {shape, order, {}, kept_axes(shape, {})};
  }

  // A view of so many rows of the same length that lie alike.
  RowView lined_up() const { return contiguous(rows_, row_length_); }

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t row_length() const noexcept { return row_length_; }
  Tile all() const noexcept { return {0, rows_, 0, row_length_}; }

  // Whether rows and their elements lie one after another: then packed tiles of whole rows are rows.
  bool is_contiguous() const noexcept { return contiguous_; }

  // Where the tile begins, in bytes, if it lies as its rows are, one element after another.
  std::optional<std::int64_t> start_of_run(const Tile& tile, std::size_t item) const noexcept {
    if (!contiguous_ || (tile.rows > 1 && tile.count != row_length_)) return std::nullopt;
    return (tile.first_row * row_length_ + tile.first) * static_cast<std::int64_t>(item);
  }

  // Blocks of this many rows, or a multiple, lie one after another, each of them without gaps.
  std::int64_t slab_rows() const noexcept { return slab_rows_; }

  // Whether the tile is such blocks: packed, it is one run.
  bool is_slab(const Tile& tile) const noexcept {
    return tile.count == row_length_ && tile.first_row % slab_rows_ == 0 &&
           tile.rows % slab_rows_ == 0;
  }

  // The most rows, but no more than given, that are whole along each axis but one.
  std::int64_t whole_rows(std::int64_t most) const noexcept;

  // They go from the first run of the tile to the last, in the order of the packed form.
  std::vector<Run> runs(const Tile& tile) const;

  // How many they are, or some more: neighbors may count twice.
  std::int64_t count_runs(const Tile& tile) const;

  // The tile in pieces of at most so many items, one after another in the packed form.
  std::vector<Piece> pieces(const Tile& tile, std::int64_t row_stride, std::int64_t most) const;

  // These take a tile from one form to the other. Items have 1, 2, 4, 8 or 16 bytes; from and to
  // must not overlap. Rows begin row_stride items after one another, at least tile.count.
  void gather(const Tile& tile, std::size_t item, const std::byte* packed, std::byte* rows,
              std::int64_t row_stride) const;
  void scatter(const Tile& tile, std::size_t item, const std::byte* rows, std::int64_t row_stride,
               std::byte* packed) const;

  // Copies a block of some rows of a tile, which is packed; rows are those of the block, one after another.
  void gather_block(const Tile& block, std::size_t item, const Tile& tile, const std::byte* packed,
                    std::byte* rows) const;
  void scatter_block(const Tile& block, std::size_t item, const std::byte* rows, const Tile& tile,
                     std::byte* packed) const;

 private:
  // Calls see(piece, where the rows begin that it is a piece of, where its first item is packed) for all pieces of a
  // block of a packed tile.
  template <class See>
  void for_each_packed_piece(const Tile& block, const Tile& tile, See see) const;

  std::vector<RowAxis> row_axes_;
  std::vector<RowAxis> element_axes_;
  std::int64_t rows_ = 1;
  std::int64_t row_length_ = 1;
  std::int64_t slab_rows_ = 1;
  bool contiguous_ = true;
};

// They are the distances from one index of each axis to the next.
std::vector<std::int64_t> strides(const Shape& shape, MemoryOrder order);

}  // namespace lnorm
