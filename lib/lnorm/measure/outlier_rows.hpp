#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/measure/grid.hpp"
#include "lnorm/measure/stats.hpp"
#include "lnorm/measure/top.hpp"

// Which rows stand out: those of `stats --top`.
namespace lnorm {

// A list for each of these.
inline constexpr std::array kOutlierRows{TopBy::mean, TopBy::variance, TopBy::variance_min,
                                         TopBy::absmax, TopBy::non_finite};

// The elements of a row in as many points as a figure has room for. A point is an element, or the least and the
// greatest finite one of neighbors; NaN where none is finite.
class RowSeries {
 public:
  struct Point {
    double low = kNan;
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

struct OutlierRow {
  std::int64_t row = 0;
  StatsRow found;
  std::shared_ptr<const RowDetail> detail;
};

// The rows that stand out most, in a list for each of kOutlierRows, without those that have nothing to stand out by.
class OutlierRows {
 public:
  using Scores = std::array<double, kOutlierRows.size()>;

  // each: how many rows a list has at most.
  explicit OutlierRows(std::size_t each = 0);

  // By how much a row stands out; NaN where it does not.
  static Scores scores(const StatsRow& found);

  // Rows come in order.
  void add(const OutlierRow& row);

  // What a later row has to be ahead of.
  Scores least() const;

  // Those that stand out most come first. list: of kOutlierRows.
  std::vector<OutlierRow> of(std::size_t list) const { return lists_[list].items(); }

  // Every row of the lists once, in their order.
  std::vector<OutlierRow> once_each() const;

 private:
  std::vector<TopList<OutlierRow>> lists_;
};

}  // namespace lnorm
