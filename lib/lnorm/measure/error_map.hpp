#pragma once

#include <cstdint>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/measure/grid.hpp"

namespace lnorm {

// Where two tensors differ: |actual - expected| over rows that follow each other in C order, in a grid of rows by
// elements and in bands of rows. Equal pairs that are not finite count as no pair, and have no error. Memory is that of the grid and
// the bands.
class ErrorMap : public Grid {
 public:
  struct Size {
    std::int64_t grid_rows = 96;
    std::int64_t grid_columns = 128;
    std::int64_t bands = 400;
  };

  ErrorMap() = default;
  ErrorMap(std::int64_t rows, std::int64_t row_length, const Size& size);

  // The errors of elements that follow each other in C order.
  class Part {
   public:
    // Back to no errors, of count elements from a position on, 1 at least.
    void clear(const ErrorMap& map, std::int64_t position, std::int64_t count);

    // The next pairs from a position on; those that are left out are NaN and NaN.
    void add(std::int64_t position, const Chunk& actual, const Chunk& expected, std::int64_t count);

   private:
    friend class ErrorMap;
    const ErrorMap* map_ = nullptr;
    Grid::Part cells_;
    Grid::Part bands_;
  };

  // Adds what was found. Parts come in order, for the same bits each time.
  void add(const Part& part);

  const Partition& band_rows() const noexcept { return bands_.rows(); }
  const Cell& band(std::int64_t number) const { return bands_.cell(number, 0); }

  // Nothing where no pair has a finite error.
  std::optional<double> mean_of_band(std::int64_t number) const;

 private:
  Grid bands_;  // a column of them
};

}  // namespace lnorm
