#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "lnorm/measure/medians.hpp"

namespace lnorm {

// Over the values that count: those that are not NaN, of the rows whose elements are all finite.
struct ColumnSummary {
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  std::int64_t count = 0;
  double min = kNan;  // where count is 0, as median and max
  double median = kNan;
  double max = kNan;

  // All but the median.
  void add(double value) noexcept {
    if (std::isnan(value)) return;
    min = count == 0 ? value : std::min(min, value);
    max = count == 0 ? value : std::max(max, value);
    ++count;
  }

  // The same of all values of another one.
  void append(const ColumnSummary& next) noexcept {
    if (next.count == 0) return;
    min = count == 0 ? next.min : std::min(min, next.min);
    max = count == 0 ? next.max : std::max(max, next.max);
    count += next.count;
  }
};

// The medians of columns to which all values were added. each_value gives them again; with add_up, those that are here (as
// of medians). Exact, in memory that does not grow with the rows.
void find_medians(std::span<ColumnSummary> columns, const EachValue& each_value,
                  const AddUp& add_up = {});

}  // namespace lnorm
