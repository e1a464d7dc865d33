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

enum class Standout { first, largest_mean, largest_variance, smallest_variance, non_finite };
inline constexpr std::array kStandouts{Standout::first, Standout::largest_mean,
                                       Standout::largest_variance, Standout::smallest_variance,
                                       Standout::non_finite};

// How much a row stands out; nothing if it does not. Of equals the first row counts.
std::optional<double> score(Standout kind, std::int64_t row, const StatsRow& found);

struct StandoutRow {
  std::int64_t row = 0;
  StatsRow found;
  std::shared_ptr<const RowDetail> detail;
};

// The rows that stand out most, in a list for each kind. A list has at most so many rows, and that of the first row one. A
// tensor of few rows has shorter lists, or each would have all rows.
class StandoutRows {
 public:
  StandoutRows() = default;
  StandoutRows(std::size_t each, std::int64_t rows);

  // The same limits, without rows.
  StandoutRows empty_copy() const;

  // How many rows a list may have.
  std::size_t most(Standout kind) const noexcept;

  // Whether a row with this score, behind all that have been added, would be one of them.
  bool takes(Standout kind, double score) const;

  // Rows come in order.
  void add(const StandoutRow& row);

  // Those that stand out most come first.
  const std::vector<StandoutRow>& of(Standout kind) const { return lists_[index(kind)]; }

  // Every row of the lists once, in their order.
  std::vector<StandoutRow> once_each() const;

 private:
  static std::size_t index(Standout kind) { return static_cast<std::size_t>(kind); }

  std::size_t each_ = 0;
  std::size_t of_few_ = 0;
  std::array<std::vector<StandoutRow>, kStandouts.size()> lists_;
};

}  // namespace lnorm
