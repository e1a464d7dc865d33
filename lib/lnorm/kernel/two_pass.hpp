#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/rows.hpp"

// Mean and sum of squares of one row by the corrected two-pass algorithm, in two precisions, both
// with a fixed order of summation.
//
// narrow: doubles. For elements narrower than float64: each is exact in a double, no square can
//         overflow, and the sums end some 20 bits better than float32 needs.
// wide:   double-doubles, good to about 2^-96. For float64 and 64-bit integers.
//
// Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance: analysis and
// recommendations": with d = x - m0 about a rounded mean m0, the sum of d corrects both the mean
// and the sum of squares for what m0 was off.
namespace lnorm {

// Element i of a chunk is summed in lane i % kLanes; the lanes are then added in halves. The number
// is the same whatever the width of the machine's vectors, so that the result is, too.
inline constexpr std::int64_t kLanes = 32;
static_assert(kChunk % kLanes == 0);

inline std::int64_t chunk_length(const RowsIn& row, std::int64_t start) noexcept {
  return std::min(kChunk, row.row_length - start);
}

// Loads the chunk of the row that begins at start, and fills it up to whole lanes with elements that
// add nothing: x = pad. Returns the filled length.
std::int64_t load_padded(const RowsIn& row, std::int64_t start, double pad, Chunk& chunk) noexcept;

// Adds the lanes in halves; the lanes that n elements do not reach hold zeros and are left out.
template <class T>
T fold(T (&lanes)[kLanes], std::int64_t n) noexcept {
  const auto used = std::bit_ceil(static_cast<std::uint64_t>(std::min(n, kLanes)));
  for (auto half = static_cast<std::int64_t>(used) / 2; half > 0; half /= 2) {
    for (std::int64_t j = 0; j < half; ++j) lanes[j] = lanes[j] + lanes[j + half];
  }
  return lanes[0];
}

// x - center, exactly.
inline DoubleDouble deviation(const Chunk& chunk, std::int64_t i, double center) noexcept {
  const DoubleDouble d = two_sum(chunk.high[i], -center);
  return fast_two_sum(d.high, d.low + chunk.low[i]);
}

template <class T>
struct CenteredSums {
  double center;  // mean = center + shift
  T shift;
  T squares;  // sum((x - mean)^2), not negative
};

// About the mean, or about 0 (which is then center and shift). Nothing if an element is not finite;
// wide_sums also gives up where bits would be lost at the ends of the range. chunk is for their use,
// its low parts zero unless the dtype has them.
enum class About { mean, zero };
std::optional<CenteredSums<double>> narrow_sums(const RowsIn& row, About about,
                                                Chunk& chunk) noexcept;
std::optional<CenteredSums<DoubleDouble>> wide_sums(const RowsIn& row, About about,
                                                    Chunk& chunk) noexcept;

}  // namespace lnorm
