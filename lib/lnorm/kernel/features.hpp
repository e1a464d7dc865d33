#pragma once

#include <cstdint>

#include "lnorm/core/feature_sums.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// The sums of every feature over the rows: x.row_length of them, which are counted from x.first_row on.
//
// Accuracy: mean and variance are within 1e-12 of the exact ones, the mean relative to the root of the mean square, for up to
// 4096 rows. Of 64-bit integers the nearest doubles are taken. The same bits on every machine.
//
// Throws std::bad_alloc alone.
void sum_features(const RowsIn& x, FeatureSums* sums, const Backend& backend = backends().front());

// So many features at once: their sums stay in the L1 cache.
inline constexpr std::int64_t kFeatureStrip = 256;

// The sums of a strip of features. Deviations are from the first finite element: so what cancels is no more than the number of
// rows.
struct FeatureStrip {
  alignas(64) double shift[kFeatureStrip];
  alignas(64) double sum[kFeatureStrip];
  alignas(64) double squares[kFeatureStrip];  // not finite where an element is not, or its square
  alignas(64) double absmax[kFeatureStrip];
  alignas(64) double zeros[kFeatureStrip];
  // Where elements that are not finite are left out:
  alignas(64) double non_finite[kFeatureStrip];
  alignas(64) double first_non_finite[kFeatureStrip];  // row
};

}  // namespace lnorm
