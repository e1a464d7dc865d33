#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// Between which numbers the elements of a row are.
struct Range {
  std::int64_t non_finite = 0;
  double min = kInfinity;  // of what is not NaN; zero is +0
  double max = -kInfinity;
  double least = kInfinity;  // |x| that is not 0, where all is finite

  Range& operator+=(const Range& other) noexcept {
    non_finite += other.non_finite;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    least = std::min(least, other.least);
    return *this;
  }
};

// The range of a row of any dtype. Low parts of elements do not count.
inline Range range_one_by_one(const RowsIn& row) {
  Range range;
  for_each_element(row, [&](std::int64_t, Number element) {
    const double x = element.high;
    const double size = std::fabs(x);
    if (!std::isfinite(x)) ++range.non_finite;
    range.min = x < range.min ? x : range.min;  // false for NaN
    range.max = x > range.max ? x : range.max;
    if (size > 0) range.least = std::min(range.least, size);
  });
  // The sign of a zero would depend on the order.
  range.min += 0.0;
  range.max += 0.0;
  return range;
}

}  // namespace lnorm
