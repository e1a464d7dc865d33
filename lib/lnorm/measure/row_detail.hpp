#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "lnorm/measure/partition.hpp"

namespace lnorm {

// The elements of a row in as many points as a figure has room for. A point is an element, or the least and the
// greatest finite one of neighbors; NaN where none is finite.
class RowSeries {
 public:
  struct Point {
    double low = std::numeric_limits<double>::quiet_NaN();
    double high = low;
  };

  RowSeries() = default;
  explicit RowSeries(Partition elements)
      : elements_(elements), points_(static_cast<std::size_t>(elements.parts)) {}

  void add(std::int64_t number, double element) {
    if (!std::isfinite(element)) return;
    Point& point = points_[static_cast<std::size_t>(number)];
    // The first one replaces NaN.
    point.low = element >= point.low ? point.low : element;
    point.high = element <= point.high ? point.high : element;
  }

  const Partition& elements() const noexcept { return elements_; }
  const std::vector<Point>& points() const noexcept { return points_; }

 private:
  Partition elements_;
  std::vector<Point> points_;
};

// A row, what normalization makes of it, and what softmax does.
struct RowDetail {
  RowSeries x;
  RowSeries y;
  RowSeries softmax;
};

}  // namespace lnorm
