#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lnorm/core/double_double.hpp"

// exp of numbers that are not positive, by basic operations alone, so that every machine gets the
// same bits; the functions of <cmath> differ from one C library to the next.
//
//   d = k ln2/64 + r, |r| < 0.0055      exp(d) = 2^(k/64) exp(r) = 2^(k div 64) T[k mod 64] exp(r)
//
// [Tang 1989, "Table-driven implementation of the exponential function in IEEE floating-point
// arithmetic"]
namespace lnorm {

class Exp {
 public:
  // Makes the table T[j] = 2^(j/64), good to 2^-98, by roots of roots of 2.
  Exp() noexcept {
    table_[0] = {1};
    DoubleDouble root{2};
    for (std::size_t step = kSteps; step > 1; step /= 2) {
      root = sqrt(root);  // 2^(step / 2 / kSteps)
      for (std::size_t j = 0; j < kSteps; j += step) table_[j + step / 2] = table_[j] * root;
    }
  }

  // exp(d) for -707 <= d <= 0, within 2^-50 of itself; exp(-707), some 2^-1020, for d below that.
  double narrow(double d) const noexcept {
    const Reduced k(std::max(d, kLeastNarrow));
    const double r = (k.d - k.multiple * kHigh) - k.multiple * kMiddle;
    const double series =
        r + r * r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720)))));
    const double power = table_[k.index].high;
    return (power + power * series) * power_of_two(k.exponent);
  }

  // exp(d) = m * 2^exponent for -1200 <= d <= 0, within 2^-66 of itself; m lies about [1, 2).
  struct Wide {
    DoubleDouble m;
    std::int64_t exponent;
  };
  Wide wide(DoubleDouble d) const noexcept {
    const Reduced k(d.high);
    // The first difference and the products with kHigh and kMiddle are exact.
    const DoubleDouble high = two_sum(d.high - k.multiple * kHigh, -(k.multiple * kMiddle));
    const DoubleDouble r = two_sum(high.high, high.low + (d.low - k.multiple * kLow));
    const double h = r.high;
    const double series =
        h * h *
        (1.0 / 2 +
         h * (1.0 / 6 + h * (1.0 / 24 + h * (1.0 / 120 + h * (1.0 / 720 + h * (1.0 / 5040))))));
    const DoubleDouble one_plus_h = fast_two_sum(1, h);
    const DoubleDouble power =
        fast_two_sum(one_plus_h.high, one_plus_h.low + (series + (r.low + r.low * h)));
    return {table_[k.index] * power, k.exponent};
  }

  // 2^exponent for -1022 <= exponent <= 1023.
  static double power_of_two(std::int64_t exponent) noexcept {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  }

 private:
  static constexpr std::size_t kSteps = 64;
  static constexpr double kLeastNarrow = -707;

  // ln2/64 in parts: 33 bits, 33 bits, the rest.
  static constexpr double kHigh = 0x1.62e42fefp-7;
  static constexpr double kMiddle = 0x1.473de6afp-40;
  static constexpr double kLow = 0x1.3c7673007e5edp-75;

  struct Reduced {
    explicit Reduced(double value) noexcept : d(value) {
      // Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits.
      constexpr double kRounder = 0x1.8p52;
      const double rounded = d * 0x1.71547652b82fep+6 + kRounder;
      multiple = rounded - kRounder;
      const std::int64_t k =
          std::bit_cast<std::int64_t>(rounded) - std::bit_cast<std::int64_t>(kRounder);
      index = static_cast<std::size_t>(k) % kSteps;
      exponent = (k - static_cast<std::int64_t>(index)) / static_cast<std::int64_t>(kSteps);
    }
    double d;
    double multiple;  // k
    std::size_t index;
    std::int64_t exponent;
  };

  DoubleDouble table_[kSteps];
};

}  // namespace lnorm
