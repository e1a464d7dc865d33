#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "lnorm/core/double_double.hpp"

// exp of numbers that are not positive, with proved bounds, which the functions of <cmath> do not have.
//
//   d = k ln2/64 + r, |r| < 0.0055      exp(d) = 2^(k/64) exp(r) = 2^(k div 64) T[k mod 64] exp(r)
//
// k has 17 bits, and the first two parts of ln2/64 have 33 bits each, so that their products with k are exact. So is
// the difference of d and the first product, which are within a factor of two of each other, or k is 0. [Sterbenz]
//
// [Tang 1989, "Table-driven implementation of the exponential function in IEEE floating-point
// arithmetic"]
namespace lnorm {

class Exp {
 public:
  static constexpr int kStepBits = 6;
  static constexpr std::int64_t kSteps = 1 << kStepBits;
  static constexpr double kStepsPerUnit = 0x1.71547652b82fep+6;  // 64/ln2
  // Adding it rounds to an integer, which then stands in the low bits.
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kMinDouble = -707;

  // ln2/64 in parts: 33 bits, 33 bits, the rest.
  static constexpr double kHigh = 0x1.62e42fefp-7;
  static constexpr double kMiddle = 0x1.473de6afp-40;
  static constexpr double kLow = 0x1.3c7673007e5edp-75;

  // 1/3!, 1/4!
  static constexpr DoubleDouble kThird{0x1.5555555555555p-3, 0x1.5555555555555p-57};
  static constexpr DoubleDouble kFourth{0x1.5555555555555p-5, 0x1.5555555555555p-59};

  // Makes the table T[j] = 2^(j/64), by roots of roots of 2. Each root is off by 5 u^2 and half of the error of the one
  // before, each product by 5 u^2 and the errors of its factors: at most 90 u^2 after six of both.
  Exp() noexcept {
    DoubleDouble table[kSteps] = {{1}};
    DoubleDouble root{2};
    for (std::size_t step = kSteps; step > 1; step /= 2) {
      root = sqrt(root);  // 2^(step / 2 / kSteps)
      for (std::size_t j = 0; j < kSteps; j += step) table[j + step / 2] = table[j] * root;
    }
    for (std::size_t j = 0; j < kSteps; ++j) {
      highs_[j] = table[j].high;
      lows_[j] = table[j].low;
    }
  }

  // Made once.
  static const Exp& shared() {
    static const Exp exp;
    return exp;
  }

  // exp(d) for -707 <= d <= 0, within kDoubleError of itself; exp(-707), some 2^-1020, for d below that. Without a table, in
  // which vectors are slow to look up:
  //
  //   d = k ln2 + r, |r| < 0.347      exp(d) = 2^k (1 + (r + r^2 (1/2! + r/3! + ... + r^11/13!)))
  //
  // r is off by 0.25 u where it is rounded, and by what is left of ln2, 2^-59. The series leaves out 0.05 u. Its sum in brackets
  // is off by 0.6 u, so that r^2 times it is by 0.12 u, the sum with r by 0.25 u more: over 0.7, the least 1 + r, that
  // is 0.6 u. The last sum makes u.
  static constexpr double kDoubleError = 2 * 0x1p-53;
  static constexpr double kPerLn2 = kStepsPerUnit / kSteps;  // 1/ln2
  static constexpr double kLn2High = kHigh * kSteps;
  static constexpr double kLn2Middle = kMiddle * kSteps;
  static constexpr double kSeries[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
      1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      1.0 / 2};
  static double in_double(double d) noexcept {
    d = std::max(d, kMinDouble);
    const double k = (d * kPerLn2 + kRounder) - kRounder;
    const double r = (d - k * kLn2High) - k * kLn2Middle;
    double series = 0;
    for (const double coefficient : kSeries) series = series * r + coefficient;
    return (1 + (r + r * r * series)) * power_of_two(static_cast<std::int64_t>(k));
  }

  // exp(d) = m * 2^exponent for -1200 <= d <= 0, within kDoubleDoubleError of itself; m lies about [1, 2).
  //
  // |d.low| <= 2^-42, so that the sum of the low parts of r is off by at most 2^-95, and ln2/64 by 2^-110. The
  // series leaves out r^12/12! < 2^-118; its terms from r^5/5! on have the errors of doubles, at most 2^-97, the others,
  // and the sums, at most 10 u^2 together. The table and the product make 95 u^2.
  static constexpr double kDoubleDoubleError = 0x1p-94;
  struct Power {
    DoubleDouble m;
    std::int64_t exponent;
  };
  Power in_double_double(DoubleDouble d) const noexcept {
    const double k = (d.high * kStepsPerUnit + kRounder) - kRounder;
    const DoubleDouble high = two_sum(d.high - k * kHigh, -(k * kMiddle));
    const DoubleDouble r = two_sum(high.high, high.low + (d.low - k * kLow));
    double from_fifth = kSeries[2];  // 1/11!
    for (const double coefficient : std::span(kSeries).subspan(3, 6)) {
      from_fifth = from_fifth * r.high + coefficient;
    }
    const DoubleDouble from_third = kThird + r * (kFourth + r * from_fifth);
    const DoubleDouble from_second = DoubleDouble{0.5} + r * from_third;
    const DoubleDouble power = DoubleDouble{1} + (r + r * (r * from_second));
    const auto integer = static_cast<std::int64_t>(k);
    const auto index = static_cast<std::size_t>(integer) % static_cast<std::size_t>(kSteps);
    return {DoubleDouble{highs_[index], lows_[index]} * power,
            (integer - static_cast<std::int64_t>(index)) / kSteps};
  }

  // T.
  const double* highs() const noexcept { return highs_; }
  const double* lows() const noexcept { return lows_; }

  // 2^exponent for -1022 <= exponent <= 1023.
  static double power_of_two(std::int64_t exponent) noexcept {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  }

 private:
  double highs_[kSteps];
  double lows_[kSteps];
};

}  // namespace lnorm
