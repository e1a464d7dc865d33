#pragma once

#include <cstdint>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/measure/comparison.hpp"

namespace lnorm {

// The numbers of rows.
class RowNumbers {
 public:
  // axes: along which rows go.
  RowNumbers(const Shape& shape, const Axes& axes);

  // The row of an element at a position in C order.
  std::int64_t of(std::int64_t position) const;

 private:
  Shape shape_;
  Shape row_strides_;  // in row numbers; 0 along a row
};

// Counts the rows that have mismatches. It takes a bit a row, once there is a mismatch.
class RowCounter {
 public:
  RowCounter(const Shape& shape, const Axes& axes);

  // The position of an element that does not pass.
  void add(std::int64_t position);

  MismatchedRows result() const;

 private:
  RowNumbers numbers_;
  Shape row_shape_;
  MismatchedRows found_;
  std::int64_t first_ = -1;
  std::vector<bool> seen_;
};

}  // namespace lnorm
