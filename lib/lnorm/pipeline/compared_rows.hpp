#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/measure/comparison.hpp"
#include "lnorm/measure/raw_elements.hpp"
#include "lnorm/measure/worst.hpp"

namespace lnorm {

// Finds row_max of the worst elements while blocks of elements go by, each once. Rows lie one after another
// in C order; a row may begin in one block and end in another.
class RowMaxima {
 public:
  explicit RowMaxima(std::int64_t row_length) : row_length_(row_length) {}

  // The greatest finite |expected| from one position up to another, or kNoneFinite.
  using Greatest = std::function<double(std::int64_t begin, std::int64_t end)>;

  // Successive elements, and the greatest ones of the rows at their ends.
  struct Block {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    double first_row = kNoneFinite;
    double last_row = kNoneFinite;
  };

  // Any thread may call it. Sets row_max of the elements, which lie in the block, as far as the
  // block tells.
  Block examine(std::int64_t begin, std::int64_t end, const Greatest& greatest,
                WorstElements& elements) const;

  // Comes in order, before the elements of a block, which may be empty, are added to those of the
  // blocks before it. Sets row_max as far as all of the blocks tell.
  void append(const Block& block, WorstElements& before, WorstElements& of_block);

  // All blocks so far as one.
  const Block& all() const noexcept { return all_; }

 private:
  std::int64_t row_of(std::int64_t position) const { return position / row_length_; }

  std::int64_t row_length_;
  Block all_;  // last_row: of the row that the next block goes on with
};

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
