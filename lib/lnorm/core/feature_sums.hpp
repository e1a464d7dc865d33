#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lnorm/core/double_double.hpp"

namespace lnorm {

// The sums of one feature, an element of the row, over some rows. They are merged in order. Sums are kept to twice the digits: so they
// are the same bits where several processes merge their own rows first.
// [Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance"]
struct FeatureSums {
  // All but the counts are of finite elements.
  double mean = 0;
  double squares = 0;  // of deviations from the mean
  double absmax = 0;   // the greatest |x|
  std::int64_t zeros = 0;
  std::int64_t non_finite = 0;
  std::int64_t finite = 0;
  std::int64_t first_non_finite = -1;  // the row of the first; -1: there is none
  // The exact sum of what was merged; 0 before that, where mean times finite is it. What the last rounding of squares leaves.
  double sum = 0;
  double sum_low = 0;
  double squares_low = 0;

  DoubleDouble exact_sum() const noexcept {
    return sum == 0 && sum_low == 0 ? two_product(mean, static_cast<double>(finite))
                                    : DoubleDouble{sum, sum_low};
  }

  void append(const FeatureSums& next) noexcept {
    if (non_finite == 0) first_non_finite = next.first_non_finite;
    non_finite += next.non_finite;
    if (next.finite == 0) return;
    absmax = std::max(absmax, next.absmax);
    zeros += next.zeros;
    const auto n = static_cast<double>(finite);
    const auto m = static_cast<double>(next.finite);
    const DoubleDouble own = exact_sum();
    const DoubleDouble other = next.exact_sum();
    finite += next.finite;
    if (n == 0) {
      mean = next.mean;
      squares = next.squares;
      sum = next.sum;
      sum_low = next.sum_low;
      squares_low = next.squares_low;
      return;
    }
    const DoubleDouble both = own + other;
    const DoubleDouble share = DoubleDouble{m} / (n + m);
    const double plain_apart = next.mean - mean;
    if (!std::isfinite(both.high + both.low)) {
      // Halves where the difference is beyond the range.
      squares += next.squares + plain_apart * plain_apart * (n * share.high);
      mean = std::isfinite(plain_apart) ? mean + plain_apart * share.high
                                        : mean * (1 - share.high) + next.mean * share.high;
      sum = sum_low = squares_low = 0;
      return;
    }
    const DoubleDouble apart = other / m - own / n;
    const DoubleDouble exact = DoubleDouble{squares, squares_low} +
                               DoubleDouble{next.squares, next.squares_low} +
                               apart * apart * (share * n);
    const bool is_exact = std::isfinite(exact.high + exact.low);
    squares = is_exact ? exact.high
                       : squares + next.squares + plain_apart * plain_apart * (n * share.high);
    squares_low = is_exact ? exact.low : 0;
    mean = (both / (n + m)).high;
    sum = both.high;
    sum_low = both.low;
  }
};

}  // namespace lnorm
