#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lnorm/io/spool.hpp"
#include "lnorm/measure/stats.hpp"
#include "lnorm/pipeline/ranks.hpp"

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

  // Follows the last, on every rank: the rows of one rank follow those of the rank before it. Then each_row is for rank 0,
  // and others provide their rows meanwhile, until rank 0 ends that.
  void merge(Ranks& ranks);
  void provide() const;
  void end_providing() const;

  // As EachStatsRow. A row has what the columns show, how many elements are not finite, and the maximum of softmax.
  void each_row(std::int64_t first, std::int64_t count,
                const std::function<void(const StatsRow&)>& see) const;

  StatsSummary summary() const;

 private:
  std::string records_of(std::int64_t first, std::int64_t count) const;

  // Of all numbers of rows whose input is finite.
  void each_value(std::int64_t step, const SeeValues& see) const;

  std::span<const StatsColumn> columns_;
  std::span<const StatsColumn> kept_;
  Spool records_;
  StatsSummary summary_;  // without medians
  Ranks* ranks_ = &sole_rank();
  std::vector<std::int64_t> ends_;  // of the rows of every rank, once they are merged
};

}  // namespace lnorm
