#pragma once

#include <cmath>

#include "lnorm/core/double_double.hpp"

namespace lnorm {

// The sum of numbers that may be beyond the range of a double: sum * 2^exponent.
class ScaledSum {
 public:
  void add(DoubleDouble sum, int exponent = 0) noexcept {
    if (exponent == exponent_) {
      sum_ = sum_ + sum;
    } else if (sum.high != 0) {
      add_aligned(sum, exponent);
    }
  }
  void append(const ScaledSum& next) noexcept { add(next.sum_, next.exponent_); }

  bool is_zero() const noexcept { return sum_.high == 0; }

  // The sum / divisor, rounded to a double.
  double over(double divisor) const noexcept { return std::ldexp(sum_.high / divisor, exponent_); }

  // As a factor in [1/2, 1), or 0, and a power of two.
  struct Parts {
    double factor;
    int exponent;
  };
  Parts parts() const noexcept {
    int exponent = 0;
    const double factor = std::frexp(sum_.high, &exponent);
    return {factor, exponent + exponent_};
  }

 private:
  // What underflows here is next to nothing beside the other.
  void add_aligned(DoubleDouble sum, int exponent) noexcept {
    const auto scaled = [](DoubleDouble a, int by) {
      return DoubleDouble{std::ldexp(a.high, by), std::ldexp(a.low, by)};
    };
    if (sum_.high == 0) {
      sum_ = sum;
      exponent_ = exponent;
    } else if (exponent < exponent_) {
      sum_ = sum_ + scaled(sum, exponent - exponent_);
    } else {
      sum_ = scaled(sum_, exponent_ - exponent) + sum;
      exponent_ = exponent;
    }
  }

  DoubleDouble sum_;
  int exponent_ = 0;
};

}  // namespace lnorm
