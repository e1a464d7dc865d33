// Sums in three doubles: see triple_sum.hpp.

#include <cstdint>

#include "lnorm/kernel/triple_sum.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

TripleSum triple_sum(const RowsIn& row) {
  V high[kVectors];
  V middle[kVectors];
  V low[kVectors];
  for (std::int64_t v = 0; v < kVectors; ++v) high[v] = middle[v] = low[v] = hn::Zero(kDoubles);
  for_each_chunk(row, 0, [&](std::int64_t, std::int64_t n, Chunk& chunk) HWY_ATTR {
    const std::int64_t whole = (n + kLanes - 1) / kLanes * kLanes;
    std::fill(chunk.high + n, chunk.high + whole, 0.0);
    for (std::int64_t i = 0; i < whole; i += kLanes) {
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const V2 first = two_sum(high[v], hn::Load(kDoubles, chunk.high + i + v * kWidth));
        const V2 second = two_sum(middle[v], first.low);
        high[v] = first.high;
        middle[v] = second.high;
        low[v] = low[v] + second.low;
      }
    }
  });
  TripleSum total;
  alignas(64) double lanes[3][kWidth];
  for (std::int64_t v = 0; v < kVectors; ++v) {
    hn::Store(high[v], kDoubles, lanes[0]);
    hn::Store(middle[v], kDoubles, lanes[1]);
    hn::Store(low[v], kDoubles, lanes[2]);
    for (std::int64_t j = 0; j < kWidth; ++j) total += {lanes[0][j], lanes[1][j], lanes[2][j]};
  }
  return total;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
