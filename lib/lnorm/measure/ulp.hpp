#pragma once

#include <cstdint>
#include <limits>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"

namespace lnorm {

// How far two numbers are apart in units in the last place of the expected one's dtype: the number of
// steps from one representable value to the next that lead from actual, rounded to one of them
// (nearest, ties to even), to expected. Of integers |actual - expected|, rounded up, so that only
// equal numbers have no distance. kNoUlpDistance if actual is beyond the dtype's finite range, or the
// distance beyond that. Zeros of both signs are the same. Both are finite.
inline constexpr std::uint64_t kNoUlpDistance = std::numeric_limits<std::uint64_t>::max();
std::uint64_t ulp_distance(Number actual, Number expected, DType dtype) noexcept;

// The greatest of the first count pairs of two chunks, and the first pair that has it.
struct UlpDistance {
  std::uint64_t distance = 0;
  std::int64_t index = 0;
};
UlpDistance greatest_ulp_distance(const Chunk& actual, const Chunk& expected, std::int64_t count,
                                  DType dtype) noexcept;

}  // namespace lnorm
