#include "lnorm/kernel/moments.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lnorm/kernel/exact_statistics.hpp"
#include "lnorm/kernel/two_pass.hpp"

namespace lnorm {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Range {
  std::int64_t non_finite = 0;
  double min = kInfinity;
  double max = -kInfinity;
};

Range range_of(const RowsIn& row, Chunk& chunk) {
  Range range;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = load_padded(row, start, kNan, chunk);
    std::int64_t finite[kLanes] = {};
    double min[kLanes];
    double max[kLanes];
    std::fill(min, min + kLanes, kInfinity);
    std::fill(max, max + kLanes, -kInfinity);
    for (std::int64_t i = 0; i < n; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) {
        const double x = chunk.high[i + j];
        finite[j] += std::fabs(x) < kInfinity ? 1 : 0;
        min[j] = x < min[j] ? x : min[j];  // false for NaN
        max[j] = x > max[j] ? x : max[j];
      }
    }
    range.non_finite += chunk_length(row, start);
    for (std::int64_t j = 0; j < kLanes; ++j) {
      range.non_finite -= finite[j];
      range.min = std::min(range.min, min[j]);
      range.max = std::max(range.max, max[j]);
    }
  }
  return range;
}

Moments exact_moments(const RowsIn& row, std::int64_t ddof) {
  const ExactSums sums = exact_sums(row);
  return {.sum = to_double(sums.sum.scaled(-kExactUnit)),
          .mean = to_double(exact_mean(sums, row.row_length)),
          .variance = to_double(exact_variance(sums, row.row_length, ddof))};
}

Moments finite_moments(const Passes& passes, const RowsIn& row, std::int64_t ddof,
                       const Range& range) {
  const DoubleDouble n{static_cast<double>(row.row_length)};
  if (range.min == range.max && !has_low(row.dtype)) {
    return {.sum = to_double(scaled(range.min) * scaled(n.high)), .mean = range.min};
  }
  Centering<DoubleDouble> centering(sample_mean(passes, row), row.row_length, Formula{});
  while (centering.wants_sums()) {
    centering.take(sum_segments(
        row, [&](const RowsIn& part) { return passes.wide_sums(part, centering.center()); }));
  }
  if (!centering.usable()) return exact_moments(row, ddof);
  const DoubleDouble mean = DoubleDouble{centering.center()} + centering.shift();
  const DoubleDouble freedom{static_cast<double>(row.row_length - ddof)};
  const Moments result{.sum = (mean * n).high,
                       .mean = mean.high,
                       .variance = (centering.centered_squares() / freedom).high};
  const bool finite = std::isfinite(result.sum) && std::isfinite(result.variance);
  return finite ? result : exact_moments(row, ddof);
}

Moments row_moments(const Passes& passes, const RowsIn& row, std::int64_t ddof, Chunk& chunk) {
  if (row.row_length == 0) return {.mean = kNan, .variance = kNan, .min = kNan, .max = kNan};
  const Range range = range_of(row, chunk);
  Moments result{.sum = kNan, .mean = kNan, .variance = kNan};
  if (range.non_finite == 0) result = finite_moments(passes, row, ddof, range);
  result.non_finite = range.non_finite;
  const bool has_number = range.min <= range.max;
  result.min = has_number ? range.min : kNan;
  result.max = has_number ? range.max : kNan;
  return result;
}

}  // namespace

void measure_moments(const RowsIn& x, std::int64_t ddof, Moments* moments) noexcept {
  Chunk chunk;
  std::fill(std::begin(chunk.low), std::end(chunk.low), 0.0);
  const Passes& passes = best_passes();
  for (std::int64_t r = 0; r < x.rows; ++r) {
    moments[r] = row_moments(passes, row_of(x, r), ddof, chunk);
  }
}

}  // namespace lnorm
