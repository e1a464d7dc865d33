#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/measure/grid.hpp"

namespace lnorm {

// The errors of pairs that have a finite one, and how many have none.
struct ErrorCell {
  double greatest = 0;
  double sum = 0;
  std::int64_t non_finite = 0;

  void add(double error) noexcept {
    if (std::isnan(error)) {
      ++non_finite;
    } else {
      greatest = std::max(greatest, error);
      sum += error;
    }
  }
  void append(const ErrorCell& next) noexcept {
    greatest = std::max(greatest, next.greatest);
    sum += next.sum;
    non_finite += next.non_finite;
  }
};

// Where two tensors differ: |actual - expected| over rows that follow each other in C order, in a grid of rows by
// elements and in bands of rows. Pairs of equal numbers, NaN and NaN among them, have the error 0. Memory is that of
// the grid and the bands.
class ErrorMap : public Grid<ErrorCell> {
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

    // The next pairs from a position on; those that are left out have the error 0.
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
  const ErrorCell& band(std::int64_t number) const { return bands_.cell(number, 0); }

  // Nothing where no pair has a finite error.
  std::optional<double> mean_of_band(std::int64_t number) const;

 private:
  Grid bands_;  // a column of them
};

}  // namespace lnorm
