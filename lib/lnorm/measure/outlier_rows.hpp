#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "lnorm/measure/grid.hpp"
#include "lnorm/measure/stats.hpp"

// Which rows stand out.
namespace lnorm {

enum class Outlier { first, largest_mean, largest_variance, smallest_variance, non_finite };
inline constexpr std::array kOutlierRows{Outlier::first, Outlier::largest_mean,
                                         Outlier::largest_variance, Outlier::smallest_variance,
                                         Outlier::non_finite};

// How much a row stands out; nothing if it does not. Of equals the first row counts.
std::optional<double> score(Outlier kind, std::int64_t row, const StatsRow& found);

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

struct OutlierRow {
  std::int64_t row = 0;
  StatsRow found;
  std::shared_ptr<const RowDetail> detail;
};

// The rows that stand out most, in a list for each kind. A list has at most so many rows, and that of the first row one. A
// tensor of few rows has shorter lists, or each would have all rows.
class OutlierRows {
 public:
  OutlierRows() = default;
  OutlierRows(std::size_t each, std::int64_t rows);

  // Another one with these limits, and without rows.
  OutlierRows empty_copy() const;

  // How many rows a list may have.
  std::size_t most(Outlier kind) const noexcept;

  // Whether a row with this score, behind all that have been added, would be one of them.
  bool takes(Outlier kind, double score) const;

  // Rows come in order.
  void add(const OutlierRow& row);

  // Those that stand out most come first.
  const std::vector<OutlierRow>& of(Outlier kind) const { return lists_[index(kind)]; }

  // Every row of the lists once, in their order.
  std::vector<OutlierRow> once_each() const;

 private:
  static std::size_t index(Outlier kind) { return static_cast<std::size_t>(kind); }

  std::size_t each_ = 0;
  std::size_t of_few_ = 0;
  std::array<std::vector<OutlierRow>, kOutlierRows.size()> lists_;
};

}  // namespace lnorm
