#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lnorm/measure/partition.hpp"

namespace lnorm {

// The elements of rows in a grid: neighboring rows by neighboring elements, each cell the mean and the
// greatest |x| of its finite elements. Memory is that of the cells.
class HeatMap {
 public:
  HeatMap() = default;
  HeatMap(Partition rows, Partition columns);

  // Of some rows that follow each other: the grid rows that they touch.
  class Part {
   public:
    // The next elements of a row.
    void add(std::int64_t row, std::int64_t first, std::span<const double> elements);

   private:
    friend class HeatMap;
    struct Cell {
      double sum = 0;  // of elements, each divided by the cell's size, so that there is no overflow
      double greatest = 0;  // |x| of the finite elements
      std::int64_t non_finite = 0;
    };

    const HeatMap* map_ = nullptr;
    std::int64_t first_ = 0;  // row of the grid
    std::vector<Cell> cells_;
  };

  // Empty, for rows first to first + count. The map must stay where it is.
  Part part(std::int64_t first, std::int64_t count) const;

  // Adds what was found. In order, for the same bits each time.
  void add(const Part& part);

  const Partition& rows() const noexcept { return rows_; }
  const Partition& columns() const noexcept { return columns_; }

  // Whether a cell may have several elements.
  bool is_coarse() const noexcept { return rows_.is_coarse() || columns_.is_coarse(); }

  // Nothing where a cell has no finite element.
  std::optional<double> mean(std::int64_t row, std::int64_t column) const;
  std::optional<double> greatest(std::int64_t row, std::int64_t column) const;  // |x|
  std::int64_t non_finite(std::int64_t row, std::int64_t column) const;

 private:
  const Part::Cell& cell(std::int64_t row, std::int64_t column) const {
    return cells_[static_cast<std::size_t>(row * columns_.parts + column)];
  }

  Partition rows_;
  Partition columns_;
  std::vector<std::int64_t> column_begins_;
  std::vector<double> parts_of_column_;  // 1 / its size
  std::vector<Part::Cell> cells_;
};

}  // namespace lnorm
