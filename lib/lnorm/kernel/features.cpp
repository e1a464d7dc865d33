#include "lnorm/kernel/features.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/simd.hpp"

namespace lnorm {

namespace {

// The first finite element of each feature, which its sums are about.
void find_shifts(const RowsIn& x, std::int64_t first, std::int64_t count, FeatureStrip& strip) {
  std::fill_n(strip.shift, kFeatureStrip, kNan);
  bool all = false;
  Chunk chunk;
  for (std::int64_t r = 0; r < x.rows && !all; ++r) {
    load_chunk(part_of(row_of(x, r), first, count), 0, chunk);
    all = true;
    for (std::int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(strip.shift[i])) strip.shift[i] = chunk.high[i];
      all = all && std::isfinite(strip.shift[i]);
    }
  }
}

void clear_sums(FeatureStrip& strip) {
  for (double* const sums :
       {strip.sum, strip.squares, strip.absmax, strip.zeros, strip.non_finite}) {
    std::fill_n(sums, kFeatureStrip, 0.0);
  }
  std::fill_n(strip.first_non_finite, kFeatureStrip, kInfinity);
}

// One feature, of which squares are beyond the range of doubles.
FeatureSums merged(const RowsIn& x, std::int64_t feature) {
  FeatureSums sums;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const double element = element_of(part_of(row_of(x, r), feature, 1), 0).high;
    if (std::isfinite(element)) {
      sums.append(
          {.mean = element, .absmax = std::fabs(element), .zeros = element == 0, .finite = 1});
    } else {
      sums.append({.non_finite = 1, .first_non_finite = x.first_row + r});
    }
  }
  return sums;
}

// Feature i of a strip.
FeatureSums feature_sums(const RowsIn& x, const FeatureStrip& strip, std::int64_t i) {
  FeatureSums sums;
  sums.non_finite = static_cast<std::int64_t>(strip.non_finite[i]);
  if (sums.non_finite > 0) {
    sums.first_non_finite = x.first_row + static_cast<std::int64_t>(strip.first_non_finite[i]);
  }
  sums.finite = x.rows - sums.non_finite;
  if (sums.finite == 0) return sums;
  const auto n = static_cast<double>(sums.finite);
  sums.mean = strip.shift[i] + strip.sum[i] / n;
  sums.squares = std::max(strip.squares[i] - strip.sum[i] * (strip.sum[i] / n), 0.0);
  sums.absmax = strip.absmax[i];
  sums.zeros = static_cast<std::int64_t>(strip.zeros[i]);
  return sums;
}

}  // namespace

void sum_features(const RowsIn& x, FeatureSums* sums, const Backend& backend) {
  const auto is_finite = [](double squares) { return std::isfinite(squares); };
  const auto strip = std::make_unique<FeatureStrip>();
  for (std::int64_t first = 0; first < x.row_length; first += kFeatureStrip) {
    const std::int64_t count = std::min(kFeatureStrip, x.row_length - first);
    find_shifts(x, first, count, *strip);
    for (const bool leaves_out : {false, true}) {
      clear_sums(*strip);
      table_of(backend).add_features(x, first, count, leaves_out, *strip);
      if (std::all_of(strip->squares, strip->squares + count, is_finite)) break;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      sums[first + i] =
          is_finite(strip->squares[i]) ? feature_sums(x, *strip, i) : merged(x, first + i);
    }
  }
}

}  // namespace lnorm
