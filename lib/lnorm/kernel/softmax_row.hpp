#pragma once

#include <cstdint>
#include <optional>

#include "lnorm/core/double_double.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// The largest element; NaN if an element is.
Number largest_element(const ReadRow& read_row);

// Softmax of one row, whole or in parts, as softmax.hpp defines it: by doubles and double-doubles, and single elements by integers. It
// reads the row once, and once more for such an element.
class SoftmaxRow {
 public:
  // max: the largest element, which is finite. scale: as of softmax().
  SoftmaxRow(ReadRow read_row, std::int64_t row_length, Number max, double scale = 1);

  // Of an element of the row, rounded once to dtype.
  double result(Number x, DType dtype) const;

 private:
  // The last result that took integers.
  struct Exact {
    Number x;
    double y;
  };

  bool is_tiny(Number x) const;
  // By doubles, where dtype is narrower and they decide it.
  std::optional<double> narrow_result(Number x, DType dtype) const;

  ReadRow read_row_;
  Number max_;
  double scale_;
  int exponent_ = 0;  // scale_ is factor_ * 2^exponent_
  double factor_;
  DoubleDouble sum_;
  double error_ = 0;
  mutable std::optional<Exact> last_;
};

}  // namespace lnorm
