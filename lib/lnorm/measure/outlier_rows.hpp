#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lnorm/measure/row_detail.hpp"
#include "lnorm/measure/stats.hpp"

// Which rows stand out.
namespace lnorm {

enum class Outlier { first, largest_mean, largest_variance, smallest_variance, non_finite };
inline constexpr std::array kOutlierRows{Outlier::first, Outlier::largest_mean,
                                         Outlier::largest_variance, Outlier::smallest_variance,
                                         Outlier::non_finite};

// How much a row stands out; nothing if it does not. Of equals the first row counts.
std::optional<double> score(Outlier kind, std::int64_t row, const StatsRow& found);

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

  // The same limits, without rows.
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
