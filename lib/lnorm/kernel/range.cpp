#include "lnorm/kernel/range.hpp"

#include <cmath>

namespace lnorm {

Range range_one_by_one(const RowsIn& row) {
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
