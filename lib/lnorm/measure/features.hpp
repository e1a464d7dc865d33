#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/measure/medians.hpp"
#include "lnorm/measure/raw_elements.hpp"
#include "lnorm/measure/top.hpp"

// A feature is an element of the row, over all rows: what is dead, and what stands out.
namespace lnorm {

// What is known of one feature. All but non_finite is of its finite elements; NaN where there are none.
struct Feature {
  double mean = 0;
  double variance = 0;  // sum((x - mean)^2) / (n - ddof)
  double absmax = 0;    // the greatest |x|
  double zeros = 0;     // their share
  std::int64_t non_finite = 0;

  // By how much it stands out; NaN, which comes last, where it has no number.
  double score(TopBy by) const noexcept;
};

// The sums of one feature over some rows. They are merged in order, for the same bits each time. Of elements that are float64 at
// most, mean and variance are within 1e-12 of the exact ones, the mean relative to the root of the mean square.
// [Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance"]
struct FeatureSums {
  double mean = 0;
  double squares = 0;  // of deviations from the mean
  double absmax = kNoneFinite;
  std::int64_t zeros = 0;
  std::int64_t non_finite = 0;
  std::int64_t finite = 0;
  std::int64_t first_non_finite = -1;  // the row of the first; -1: there is none

  void append(const FeatureSums& next) noexcept;
  Feature feature(std::int64_t ddof) const noexcept;
};

// The sums of all features over successive rows, whose elements lie one after another.
void sum_features(const RawElements& elements, std::int64_t first_row, std::int64_t rows,
                  std::vector<FeatureSums>& sums);

// All that a report says of the features of a tensor.
struct FeatureStats {
  TensorInfo x;                   // the whole tensor, where only some rows were looked at
  Axes axes;                      // along which rows go
  std::optional<RowSlice> slice;  // these rows, of which there are so many:
  std::int64_t rows = 0;
  std::int64_t ddof = 0;
  std::vector<FeatureSums> sums;

  std::int64_t count() const noexcept { return static_cast<std::int64_t>(sums.size()); }
  Feature feature(std::int64_t number) const noexcept {
    return sums[static_cast<std::size_t>(number)].feature(ddof);
  }
  Shape index(std::int64_t number) const { return index_of(number, extents(x.shape, axes)); }

  // The full index of the first element that is not finite, in the order of rows.
  std::optional<Shape> first_non_finite_index() const;
};

}  // namespace lnorm
