#include "lnorm/kernel/plain_sums.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/two_pass.hpp"

namespace lnorm {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Range portable_range(const RowsIn& row) noexcept {
  Range range;
  Chunk chunk;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = load_padded(row, start, kNan, chunk);
    std::int64_t finite[kLanes] = {};
    double min[kLanes];
    double max[kLanes];
    double least[kLanes];
    std::fill(min, min + kLanes, kInfinity);
    std::fill(max, max + kLanes, -kInfinity);
    std::fill(least, least + kLanes, kInfinity);
    for (std::int64_t i = 0; i < n; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) {
        const double x = chunk.high[i + j];
        const double size = std::fabs(x);
        finite[j] += size < kInfinity ? 1 : 0;
        min[j] = x < min[j] ? x : min[j];  // false for NaN
        max[j] = x > max[j] ? x : max[j];
        const double other_than_zero = size == 0 ? kInfinity : size;
        least[j] = other_than_zero < least[j] ? other_than_zero : least[j];
      }
    }
    range.non_finite += chunk_length(row, start);
    for (std::int64_t j = 0; j < kLanes; ++j) {
      range.non_finite -= finite[j];
      range.min = std::min(range.min, min[j]);
      range.max = std::max(range.max, max[j]);
      range.least = std::min(range.least, least[j]);
    }
  }
  // Of a zero the sign would depend on the order.
  range.min += 0.0;
  range.max += 0.0;
  range.greatest = std::max(-range.min, range.max);
  return range;
}

PlainSums portable_plain_sums(const RowsIn& row, int exponent) noexcept {
  const double splitter = plain_splitter(exponent);
  PlainSums sums;
  Chunk chunk;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = load_padded(row, start, 0, chunk);
    double x[kLanes] = {};
    double upper[kLanes] = {};
    double lower[kLanes] = {};
    for (std::int64_t i = 0; i < n; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) {
        const double square = chunk.high[i + j] * chunk.high[i + j];
        const double part = (square + splitter) - splitter;
        x[j] += chunk.high[i + j];
        upper[j] += part;
        lower[j] += square - part;
      }
    }
    sums.add(fold(x, n), fold(upper, n), fold(lower, n));
  }
  return sums;
}

}  // namespace lnorm
