#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/measure/partition.hpp"

namespace lnorm {

// Where two tensors differ: |actual - expected| over rows that follow each other in C order, in a grid of rows by
// elements and in bands of rows. Pairs of equal numbers, NaN and NaN among them, have the error 0. Memory is that of
// the grid and the bands.
class ErrorMap {
 public:
  struct Size {
    std::int64_t grid_rows = 96;
    std::int64_t grid_columns = 128;
    std::int64_t bands = 400;
  };

  ErrorMap() = default;
  ErrorMap(std::int64_t rows, std::int64_t row_length, const Size& size);

  // Of pairs with a finite error, and how many have none.
  struct Errors {
    double greatest = 0;
    double sum = 0;
    std::int64_t non_finite = 0;

    void add(double error) noexcept;
    void append(const Errors& next) noexcept;
  };

  // Of elements that follow each other in C order.
  class Part {
   public:
    // Back to no errors, of count elements from a position on, 1 at least.
    void clear(const ErrorMap& map, std::int64_t position, std::int64_t count);

    // The next pairs from a position on; those that are left out have the error 0.
    void add(std::int64_t position, const Chunk& actual, const Chunk& expected, std::int64_t count);

   private:
    friend class ErrorMap;
    const ErrorMap* map_ = nullptr;
    std::int64_t first_grid_row_ = 0;
    std::int64_t first_band_ = 0;
    std::vector<Errors> cells_;
    std::vector<Errors> bands_;
  };

  // Adds what was found. In order, for the same bits each time.
  void add(const Part& part);

  const Partition& rows() const noexcept { return rows_; }
  const Partition& columns() const noexcept { return columns_; }
  const Partition& band_rows() const noexcept { return bands_; }
  const Errors& cell(std::int64_t row, std::int64_t column) const {
    return cells_[static_cast<std::size_t>(row * columns_.parts + column)];
  }
  const Errors& band(std::int64_t number) const {
    return errors_[static_cast<std::size_t>(number)];
  }

  // Nothing where no pair has a finite error.
  std::optional<double> mean_of_band(std::int64_t number) const;

 private:
  Partition rows_;
  Partition columns_;
  Partition bands_;
  std::vector<std::int64_t> column_begins_;
  std::vector<Errors> cells_;
  std::vector<Errors> errors_;  // of the bands
};

}  // namespace lnorm
