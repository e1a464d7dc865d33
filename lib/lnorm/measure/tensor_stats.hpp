#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/measure/column_summary.hpp"
#include "lnorm/measure/stats.hpp"

// What a tensor is like, in a line of a report on many.
namespace lnorm {

// The element of the greatest |x|; of several the first in C order.
struct LargestElement {
  Number value;
  std::int64_t position = 0;  // in C order

  bool is_beaten_by(const LargestElement& other) const noexcept {
    if (std::fabs(other.value.high) != std::fabs(value.high)) {
      return std::fabs(other.value.high) > std::fabs(value.high);
    }
    // high is the element rounded, and low what it lacks.
    const double low = value.high < 0 ? -value.low : value.low;
    const double other_low = other.value.high < 0 ? -other.value.low : other.value.low;
    return other_low > low || (other_low == low && other.position < position);
  }
};

struct TensorStats {
  TensorInfo x;                   // the whole tensor, where only some rows were looked at
  Axes axes;                      // along which rows go
  std::optional<RowSlice> slice;  // these rows, of which there are so many:
  std::int64_t rows = 0;
  std::int64_t row_length = 0;
  std::int64_t ddof = 0;  // of the variances
  NonFinite non_finite;
  ColumnSummary means;  // over the rows whose elements are all finite
  ColumnSummary variances;
  std::optional<LargestElement> largest;  // of the finite elements; nothing if there are none

  template <class Archive>
  void serialize(Archive& archive) {
    archive(x, axes, slice, rows, row_length, ddof, non_finite, means, variances, largest);
  }
};

}  // namespace lnorm
