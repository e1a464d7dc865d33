#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lnorm/io/spool.hpp"
#include "lnorm/measure/stats.hpp"

namespace lnorm {

// The rows of a tensor in the columns of their report, kept for whoever reads them, and summarized. They lie on disk where they
// are many.
class StatsRows {
 public:
  explicit StatsRows(bool softmax);

  // Some successive rows, as they are kept.
  struct Part {
    std::vector<double> records;
    StatsSummary summary;
  };
  Part part(const StatsBlock& rows) const;

  // Parts come in order.
  void add(const Part& part);

  // As EachStatsRow. A row has what the columns show, how many elements are not finite, and the maximum of softmax.
  void each_row(std::int64_t first, std::int64_t count,
                const std::function<void(const StatsRow&)>& see) const;

  StatsSummary summary() const;

 private:
  // Of all numbers of rows whose input is finite.
  void each_value(std::int64_t step, const SeeValues& see) const;

  std::span<const StatsColumn> columns_;
  std::span<const StatsColumn> kept_;
  Spool records_;
  StatsSummary summary_;  // without medians
};

}  // namespace lnorm
