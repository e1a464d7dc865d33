#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/measure/comparison.hpp"
#include "lnorm/measure/row_runs.hpp"

namespace lnorm {

// The rows of a tensor whose elements go by in C order.
class RowLayout {
 public:
  // axes: along which rows go.
  RowLayout(const Shape& shape, const Axes& axes);

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t row_length() const noexcept { return row_length_; }
  const Shape& row_shape() const noexcept { return row_shape_; }
  const Axes& axes() const noexcept { return axes_; }

  // Whether rows lie one after another, and are so short that a block holds whole ones.
  bool blocks_hold_rows() const noexcept { return blocks_hold_rows_; }

  // How many elements a block has.
  std::int64_t block_elements() const noexcept { return block_elements_; }

  // The row of an element at a position in C order.
  std::int64_t row_of(std::int64_t position) const {
    return is_trailing_ ? position / row_length_ : number_of(position, row_strides_);
  }

  // Cuts count elements from a position on into runs, each with its row's scale.
  void cut(std::int64_t position, std::int64_t count,
           const std::function<RowScale(std::int64_t row)>& scale_of,
           std::vector<RowRun>& runs) const;

 private:
  std::int64_t number_of(std::int64_t position, const Shape& strides) const;
  std::int64_t column_of(std::int64_t position) const {
    return is_trailing_ ? position % row_length_ : number_of(position, column_strides_);
  }

  Shape shape_;
  Shape row_shape_;
  Axes axes_;
  std::int64_t rows_;
  std::int64_t row_length_;
  std::int64_t run_length_ = 1;  // so many neighbors are of one row
  bool is_trailing_;             // rows lie one after another
  bool blocks_hold_rows_;
  std::int64_t block_elements_;
  Shape row_strides_;  // in row numbers; 0 along a row
  Shape column_strides_;
};

// Gathers where the elements are that do not pass, as blocks go by in order. It takes a bit a row and a bit an element of
// a row, once there is a mismatch.
class FailedRows {
 public:
  // wants_errors: of every row with a mismatch, in memory.
  FailedRows(const RowLayout& layout, bool wants_errors)
      : layout_(layout), wants_errors_(wants_errors) {}

  void add(const MismatchPlaces& places);

  // As bytes, for another rank; and what another one has found.
  std::string packed();
  void append(const std::string& bytes);

  // Says of the comparison which rows and columns are affected. asked: whether rows were asked for.
  void describe(bool asked, Comparison& result) const;

 private:
  const RowLayout& layout_;
  bool wants_errors_;
  NumberBits rows_;
  NumberBits columns_;
  std::map<std::int64_t, RowErrors> errors_;
};

}  // namespace lnorm
