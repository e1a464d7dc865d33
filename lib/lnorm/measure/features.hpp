#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/feature_sums.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/tensor_info.hpp"
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

// All that a report says of the features of a tensor.
struct FeatureStats {
  TensorInfo x;                   // the whole tensor, where only some rows were looked at
  Axes axes;                      // along which rows go
  std::optional<RowSlice> slice;  // these rows, of which there are so many:
  std::int64_t rows = 0;
  std::int64_t ddof = 0;
  std::vector<FeatureSums> sums;

  std::int64_t count() const noexcept { return static_cast<std::int64_t>(sums.size()); }
  Feature feature(std::int64_t number) const noexcept;
  Shape index(std::int64_t number) const { return index_of(number, extents(x.shape, axes)); }

  // The full index of the first element that is not finite, in the order of rows.
  std::optional<Shape> first_non_finite_index() const;
};

}  // namespace lnorm
