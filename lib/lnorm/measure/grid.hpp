#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lnorm {

// Things in order, in parts of neighbors. The sizes of parts differ by one at most.
struct Partition {
  std::int64_t all = 0;
  std::int64_t parts = 0;  // none is empty; fewer than 2^31

  Partition() = default;
  Partition(std::int64_t things, std::int64_t most_parts)
      : all(things), parts(std::min(things, most_parts)) {}

  // Whether a part may have several things.
  bool is_coarse() const noexcept { return parts < all; }

  // The first thing of a part; of the part after the last one, all.
  std::int64_t begin(std::int64_t part) const noexcept {
    return part * (all / parts) + part * (all % parts) / parts;
  }
  std::int64_t size(std::int64_t part) const noexcept { return begin(part + 1) - begin(part); }
  std::int64_t greatest_size() const noexcept { return (all + parts - 1) / parts; }

  // begin of every part, and all.
  std::vector<std::int64_t> begins() const {
    std::vector<std::int64_t> result(static_cast<std::size_t>(parts) + 1, 0);
    for (std::int64_t part = 1; part <= parts; ++part) {
      result[static_cast<std::size_t>(part)] = begin(part);
    }
    return result;
  }

  // The part that a thing is in.
  std::int64_t of(std::int64_t thing) const noexcept {
    std::int64_t part = std::min(thing / (all / parts), parts - 1);  // or one before
    while (begin(part) > thing) --part;
    return part;
  }
};

// A grid divides rows by elements into cells: neighboring rows by neighboring elements. It takes the memory of its cells.
class Grid {
 public:
  // What is found of numbers in a cell: of the finite ones, and how many are not.
  struct Cell {
    double sum = 0;
    double greatest = 0;  // magnitude
    std::int64_t finite = 0;
    std::int64_t non_finite = 0;

    void append(const Cell& next) noexcept {
      sum += next.sum;
      greatest = std::max(greatest, next.greatest);
      finite += next.finite;
      non_finite += next.non_finite;
    }
  };

  Grid() = default;
  Grid(Partition rows, Partition columns)
      : rows_(rows),
        columns_(columns),
        begins_(columns.begins()),
        cells_(static_cast<std::size_t>(rows.parts * columns.parts)) {}

  // A part has the grid rows that some successive rows touch.
  class Part {
   public:
    // Empties the part, for rows first to first + count. The grid must stay where it is.
    void clear(const Grid& grid, std::int64_t first, std::int64_t count) {
      grid_ = &grid;
      first_ = grid.rows_.of(first);
      const std::int64_t rows = grid.rows_.of(first + count - 1) - first_ + 1;
      cells_.assign(static_cast<std::size_t>(rows * grid.columns_.parts), {});
    }

    // Where the cells of a row of the grid begin.
    Cell* cells_of(std::int64_t grid_row) {
      return cells_.data() + (grid_row - first_) * grid_->columns_.parts;
    }

   private:
    friend class Grid;
    const Grid* grid_ = nullptr;
    std::int64_t first_ = 0;  // row of the grid
    std::vector<Cell> cells_;
  };

  // Adds what was found. Parts come in order, so that the bits are the same each time.
  void add(const Part& part) {
    Cell* to = cells_.data() + part.first_ * columns_.parts;
    for (const Cell& from : part.cells_) (to++)->append(from);
  }

  const Partition& rows() const noexcept { return rows_; }
  const Partition& columns() const noexcept { return columns_; }

  // Where a column ends.
  std::int64_t end_of(std::int64_t column) const {
    return begins_[static_cast<std::size_t>(column) + 1];
  }

  // Whether a cell may have several elements.
  bool is_coarse() const noexcept { return rows_.is_coarse() || columns_.is_coarse(); }

  const Cell& cell(std::int64_t row, std::int64_t column) const {
    return cells_[static_cast<std::size_t>(row * columns_.parts + column)];
  }
  std::int64_t size_of_cell(std::int64_t row, std::int64_t column) const {
    return rows_.size(row) * columns_.size(column);
  }

 private:
  Partition rows_;
  Partition columns_;
  std::vector<std::int64_t> begins_;  // of the columns
  std::vector<Cell> cells_;
};

}  // namespace lnorm
