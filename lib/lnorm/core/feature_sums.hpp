#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lnorm {

// The sums of one feature, an element of the row, over some rows. They are merged in order, for the same bits each time.
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

  void append(const FeatureSums& next) noexcept {
    if (non_finite == 0) first_non_finite = next.first_non_finite;
    non_finite += next.non_finite;
    if (next.finite == 0) return;
    const auto n = static_cast<double>(finite);
    const auto m = static_cast<double>(next.finite);
    const double share = m / (n + m);
    const double apart = next.mean - mean;
    // Halves where the difference is beyond the range.
    mean = std::isfinite(apart) ? mean + apart * share : mean * (1 - share) + next.mean * share;
    squares += next.squares + (finite == 0 ? 0 : apart * apart * (n * share));
    absmax = std::max(absmax, next.absmax);
    zeros += next.zeros;
    finite += next.finite;
    if (n == 0) mean = next.mean;
  }
};

}  // namespace lnorm
