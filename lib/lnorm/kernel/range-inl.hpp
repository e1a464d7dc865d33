// The range of a row.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lnorm/kernel/range.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

Range range_of_doubles(const RowsIn& row) {
  const V infinity = splat(HUGE_VAL);
  V min = infinity;
  V max = hn::Neg(infinity);
  V least = infinity;
  V not_finite = hn::Zero(kDoubles);  // NaN, if an element is that or infinite
  for_each_chunk(row, 0, [&](std::int64_t, std::int64_t n, Chunk& chunk) HWY_ATTR {
    const std::int64_t whole = (n + kWidth - 1) / kWidth * kWidth;
    std::fill(chunk.high + n, chunk.high + whole, chunk.high[0]);
    for (std::int64_t i = 0; i < whole; i += kWidth) {
      const V x = hn::Load(kDoubles, chunk.high + i);
      const V size = hn::Abs(x);
      min = hn::Min(min, x);
      max = hn::Max(max, x);
      least = hn::Min(least, hn::IfThenElse(hn::Eq(size, hn::Zero(kDoubles)), infinity, size));
      not_finite = not_finite + (x - x);
    }
  });
  if (sum_of_lanes(not_finite) != 0) return range_one_by_one(row);
  return {.min = hn::GetLane(hn::MinOfLanes(kDoubles, min)) + 0.0,
          .max = hn::GetLane(hn::MaxOfLanes(kDoubles, max)) + 0.0,
          .least = hn::GetLane(hn::MinOfLanes(kDoubles, least))};
}

Range range(const RowsIn& row) {
  return has_low(row.dtype) || row.row_length == 0 ? range_one_by_one(row) : range_of_doubles(row);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
