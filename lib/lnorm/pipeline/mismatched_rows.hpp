#pragma once

#include <cstdint>
#include <span>
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

  // What another counter of the same rows has seen.
  void append(std::span<const std::uint64_t> seen);

  // A bit a row, from the least of the first number on; empty before the first mismatch.
  const std::vector<std::uint64_t>& seen() const noexcept { return seen_; }

  MismatchedRows result() const;

 private:
  RowNumbers numbers_;
  Shape row_shape_;
  Axes axes_;
  std::vector<std::uint64_t> seen_;
};

}  // namespace lnorm
