#include "lnorm/kernel/moments.hpp"

#include <cmath>
#include <limits>

#include "lnorm/kernel/exact_statistics.hpp"
#include "lnorm/kernel/two_pass.hpp"

namespace lnorm {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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
  if (is_plain(row.dtype, range)) {
    const PlainSums sums = passes.plain_sums(row, plain_exponent(range));
    const DoubleDouble mean = sums.sum / n;
    const DoubleDouble centered = sums.squares - sums.sum * mean;
    // All bits but 30 of some 100 are left.
    if (sums.squares.high <= 0x1p30 * centered.high) {
      return {
          .sum = sums.sum.high,
          .mean = mean.high,
          .variance = (centered / DoubleDouble{static_cast<double>(row.row_length - ddof)}).high};
    }
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

Moments row_moments(const Passes& passes, const RowsIn& row, std::int64_t ddof) {
  if (row.row_length == 0) return {.mean = kNan, .variance = kNan, .min = kNan, .max = kNan};
  const Range range = passes.range(row);
  Moments result{.sum = kNan, .mean = kNan, .variance = kNan};
  if (range.non_finite == 0) result = finite_moments(passes, row, ddof, range);
  result.non_finite = range.non_finite;
  const bool has_number = range.min <= range.max;
  result.min = has_number ? range.min : kNan;
  result.max = has_number ? range.max : kNan;
  return result;
}

}  // namespace

void measure_moments(const RowsIn& x, std::int64_t ddof, Moments* moments,
                     const Passes& passes) noexcept {
  for (std::int64_t r = 0; r < x.rows; ++r) moments[r] = row_moments(passes, row_of(x, r), ddof);
}

}  // namespace lnorm
