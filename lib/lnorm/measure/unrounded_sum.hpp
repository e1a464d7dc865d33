#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "lnorm/core/double_double.hpp"

namespace lnorm {

// A sum of doubles times powers of two, without rounding: it does not depend on their order. Its memory is that of the bits
// from the greatest of them to the least.
class UnroundedSum {
 public:
  // Adds value * 2^exponent, which is finite.
  void add(double value, int exponent);
  void append(const UnroundedSum& next);

  // The sum rounded once to a factor in [1/2, 1), or 0, and a power of two.
  struct Parts {
    double factor;
    int exponent;
  };
  Parts rounded() const;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(first_, words_);
  }

 private:
  using Word = std::uint64_t;

  void add_words(std::int64_t first, std::span<const Word> words);
  void reach(std::int64_t begin, std::int64_t end);

  // They are in two's complement, the last word all sign: that of number 0 is a multiple of 2^(64
  // first).
  std::int64_t first_ = 0;
  std::vector<Word> words_;
};

// The sum of numbers that may be beyond the range of a double. What is added is rounded to a double-double, in order; what
// is appended is not rounded, and may come in any order.
class ScaledSum {
 public:
  // Adds sum * 2^exponent.
  void add(DoubleDouble sum, int exponent = 0) noexcept {
    if (exponent == exponent_) {
      sum_ = sum_ + sum;
    } else if (sum.high != 0) {
      add_aligned(sum, exponent);
    }
  }
  void append(const ScaledSum& next) {
    appended_.append(next.appended_);
    next.add_to(appended_);
  }

  // The sum / divisor, rounded to a double.
  double over(double divisor) const {
    const auto [factor, exponent] = parts();
    return std::ldexp(factor / divisor, exponent);
  }

  // Rounded to a double.
  UnroundedSum::Parts parts() const {
    UnroundedSum sum = appended_;
    add_to(sum);
    return sum.rounded();
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(sum_, exponent_, appended_);
  }

 private:
  void add_to(UnroundedSum& sum) const {
    sum.add(sum_.high, exponent_);
    sum.add(sum_.low, exponent_);
  }

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
  UnroundedSum appended_;
};

}  // namespace lnorm
