#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lnorm/measure/grid.hpp"

namespace lnorm {

// The elements of rows in a grid, each cell the mean and the greatest |x| of its finite elements. Elements are divided
// by the cell's size before they go into the sum, so that there is no overflow.
class HeatMap : public Grid {
 public:
  HeatMap() = default;
  HeatMap(Partition rows, Partition columns);

  class Part : public Grid::Part {
   public:
    // The next elements of a row.
    void add(std::int64_t row, std::int64_t first, std::span<const double> elements);

   private:
    friend class HeatMap;
    const HeatMap* map_ = nullptr;
  };

  // Empty, for rows first to first + count. The map must stay where it is.
  Part part(std::int64_t first, std::int64_t count) const;

  // Nothing where a cell has no finite element.
  std::optional<double> mean(std::int64_t row, std::int64_t column) const;
  std::optional<double> greatest(std::int64_t row, std::int64_t column) const;  // |x|
  std::int64_t non_finite(std::int64_t row, std::int64_t column) const {
    return cell(row, column).non_finite;
  }

 private:
  std::vector<double> parts_of_column_;  // 1 / its size
};

}  // namespace lnorm
