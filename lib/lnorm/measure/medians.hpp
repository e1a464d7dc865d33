#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lnorm/core/non_finite.hpp"

namespace lnorm {

// Over the values that count: those that are not NaN, of the rows whose elements are all finite.
struct ColumnSummary {
  std::int64_t count = 0;
  double min = kNan;  // where count is 0, as median and max
  double median = kNan;
  double max = kNan;

  // All but the median.
  void add(double value) noexcept {
    if (!std::isnan(value)) append({1, value, value, value});
  }

  // Adds all values of another one.
  void append(const ColumnSummary& next) noexcept {
    if (next.count == 0) return;
    min = count == 0 ? next.min : std::min(min, next.min);
    max = count == 0 ? next.max : std::max(max, next.max);
    count += next.count;
  }
};

// Takes some values of a column.
using SeeValues = std::function<void(std::size_t column, std::span<const double> values)>;

// Calls see for the values of every column; may be called again. One value in every step will do,
// about evenly spread.
using EachValue = std::function<void(std::int64_t step, const SeeValues& see)>;

// The median of every column, whose number of values is given; of an even number, the mean of the
// two in the middle; of none, NaN. No value is NaN. Exact, while at most most_held values, in all, are held: a sample
// tells between which values the median will lie, and these are sorted. Where there are too many of them, or a sample
// misleads, digits are counted in several passes.
//
// add_up: where others have the rest of the values. It adds up the counts of all of them, who call medians with the same
// counts of values and get the same medians. Then digits are counted.
using AddUp = std::function<void(std::span<std::int64_t> counts)>;
inline constexpr std::int64_t kHeldValues = 1'000'000;
std::vector<double> medians(std::span<const std::int64_t> counts, const EachValue& each_value,
                            std::int64_t most_held = kHeldValues, const AddUp& add_up = {});

// The medians of columns to which all values were added. each_value gives them again; with add_up, those that are here (as
// of medians). Exact, in memory that does not grow with the rows.
inline void find_medians(std::span<ColumnSummary> columns, const EachValue& each_value,
                         const AddUp& add_up = {}, std::int64_t most_held = kHeldValues) {
  std::vector<std::int64_t> counts;
  for (const ColumnSummary& column : columns) counts.push_back(column.count);
  const std::vector<double> found = medians(counts, each_value, most_held, add_up);
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].median = found[i];
}

}  // namespace lnorm
