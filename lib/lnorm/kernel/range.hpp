#pragma once

#include <algorithm>
#include <cstdint>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// Between which numbers the elements of a row are.
struct Range {
  std::int64_t non_finite = 0;
  double min = kInfinity;  // of what is not NaN; zero is +0
  double max = -kInfinity;
  double least = kInfinity;  // |x| that is not 0, where all is finite

  Range& operator+=(const Range& other) noexcept {
    non_finite += other.non_finite;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    least = std::min(least, other.least);
    return *this;
  }
};

// The range of a row of any dtype. Low parts of elements do not count.
Range range_one_by_one(const RowsIn& row);

}  // namespace lnorm
