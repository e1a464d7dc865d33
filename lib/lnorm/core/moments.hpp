#pragma once

#include <cstdint>

namespace lnorm {

// The elements of one row, in numbers.
struct Moments {
  std::int64_t non_finite = 0;  // NaNs, infinities; where there is one, sum to variance are NaN
  double sum = 0;
  double mean = 0;      // sum / n
  double variance = 0;  // sum((x - mean)^2) / (n - ddof)
  double min = 0;       // of the elements that are not NaN; NaN if there are none
  double max = 0;
};

}  // namespace lnorm
