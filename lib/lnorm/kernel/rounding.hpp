#pragma once

#include <cstdint>

#include "lnorm/core/double_double.hpp"
#include "lnorm/core/dtype.hpp"

// Rounding to nearest, ties to even, to the output dtypes, which are the floats. A number of any of them is held in a
// double. float8_e4m3fn has no infinity: here, too, infinity stands for what is beyond the greatest number, and is stored
// as NaN.
namespace lnorm {

// value rounded once; infinity from the largest finite number and half its ulp on (float8_e4m3fn: above that).
double rounded(double value, DType dtype) noexcept;

// value.high + value.low rounded once. high is the nearest double to the sum.
double rounded(DoubleDouble value, DType dtype) noexcept;

// value * 2^exponent rounded once, of any exponent.
double rounded(DoubleDouble value, std::int64_t exponent, DType dtype) noexcept;

// Whether both are the same number with the same sign: what all numbers between two bounds round to if both
// bounds do.  [Ziv 1991, "Fast evaluation of elementary mathematical functions with correctly rounded last bit"]
bool same_result(double a, double b) noexcept;

// The numbers of a dtype that are not negative, in ascending order, counted from 0. Infinity is the last one.
// Number i is significand * 2^exponent, and the next one is an ulp, 2^exponent, above it.
class FloatOrder {
 public:
  explicit FloatOrder(DType dtype) noexcept;

  struct Parts {
    std::int64_t significand;
    std::int64_t exponent;
  };
  Parts parts(std::int64_t index) const noexcept;

  double value(std::int64_t index) const noexcept;
  // The index of the number that value is; otherwise that of one next to it. NaN has 0.
  std::int64_t index(double value) const noexcept;
  std::int64_t infinity() const noexcept { return infinity_; }

 private:
  int fraction_bits_;
  int least_exponent_;  // of the smallest number
  double greatest_;
  std::int64_t infinity_;
};

}  // namespace lnorm
