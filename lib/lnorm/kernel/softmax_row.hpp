#pragma once

#include <cstdint>
#include <optional>

#include "lnorm/core/double_double.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/non_finite.hpp"
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

  // The result of an element of the row, rounded once to dtype.
  double result(Number x, DType dtype) const;

 private:
  // The last result that took integers.
  struct Exact {
    Number x;
    double y;
  };

  bool is_tiny(Number x) const;
  // Decides it in doubles, where dtype is narrower and they suffice.
  std::optional<double> double_result(Number x, DType dtype) const;

  ReadRow read_row_;
  Number max_;
  double scale_;
  int exponent_ = 0;  // scale_ is factor_ * 2^exponent_
  double factor_;
  DoubleDouble sum_;
  double error_ = 0;
  mutable std::optional<Exact> last_;
};

// Softmax of the element x of a row whose largest element is max, times the scale, rounded once to dtype: by integers of more and more
// bits, until they decide. They always do. By Lindemann and Weierstrass no result lies halfway between two numbers
// unless all elements that count are equal; then nothing is rounded, and the tie is seen. The result is known to lie from
// least to most, which are numbers of the dtype.
//
// Elements that are smaller than 2^-5000 of the largest after exp count as an open interval from 0 to that.
double exact_softmax(const ReadRow& read_row, Number x, Number max, DType dtype, double scale = 1,
                     double least = -kInfinity, double most = kInfinity);

}  // namespace lnorm
