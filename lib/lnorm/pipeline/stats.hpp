#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lnorm/core/pool.hpp"
#include "lnorm/io/spool.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/layout/mask.hpp"
#include "lnorm/measure/features.hpp"
#include "lnorm/measure/stats.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/ranks.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Returns the first element of a row that is not finite, -1 if there is none. kept: of kept_of; only these are looked at.
std::int64_t first_non_finite(const RowsIn& row, std::span<const char> kept = {});

// Measures what a mask leaves of each row, or all elements if the mask is null. The variance is NaN if no more than ddof
// elements are left.
void measure_left(const RowMask* mask, const RowsIn& x, std::int64_t ddof, Moments* moments);

// The rows of a tensor in the columns of their report, kept for whoever reads them, and summarized. They lie on disk where they
// are many.
class StatsRows {
 public:
  explicit StatsRows(std::span<const StatsColumn> columns);

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

  // Calls an EachStatsRow. A row has what the columns show, how many elements are not finite, and the maximum of softmax.
  void each_row(std::int64_t first, std::int64_t count,
                const std::function<void(const StatsRow&)>& see) const;

  // Threads divide the columns between them, where rows are many.
  StatsSummary summary(int threads) const;

 private:
  // What is found of all numbers of rows whose input is finite, in columns from the first on.
  void each_value(std::size_t first, std::size_t count, std::int64_t step,
                  const SeeValues& see) const;

  std::span<const StatsColumn> columns_;
  std::span<const StatsColumn> kept_;
  Spool records_;
  StatsSummary summary_;  // without medians
  Ranks* ranks_ = &sole_rank();
  std::vector<std::int64_t> ends_;  // of the rows of every rank, once they are merged
};

// Measures every row that goes through the loop, its output and, if asked for, its softmax in the
// output dtype. Variances are those of the plan's ddof.
class StatsObserver final : public RowObserver {
 public:
  struct Wanted {
    bool softmax = false;
    bool histograms = false;
    std::optional<RowMask> mask = {};  // with it: of the input alone, and of what it leaves
    int threads = 1;                   // for the medians; 0: as many as the machine has
  };
  StatsObserver(Plan plan, Wanted wanted);

  struct Findings {
    StatsBlock rows;
    StatsRows::Part kept;
  };
  BlockFindings examine(const RowBlock& block) const override;
  void see(const RowBlock& block, const BlockFindings& findings) override;
  void finish() override;
  bool takes_parts() const override { return true; }
  void merge(Ranks& ranks) override;

  // Follows the loop, on every rank. x: the input's info. The result keeps the rows, which may lie on disk. The caller
  // sets what it says of weight and bias.
  Stats stats(const TensorInfo& x) const;

  // Calls write, which may ask for rows, on rank 0; the other ranks provide theirs meanwhile.
  void report(const std::function<void()>& write) const;

 private:
  void count_elements(const RowBlock& block, const StatsBlock& rows) const;

  Plan plan_;
  Wanted wanted_;
  std::span<const StatsColumn> columns_;
  std::shared_ptr<StatsRows> rows_;
  StatsHistograms histograms_;
  // Of elements, one for each thread: it does not matter which element is counted where.
  mutable Pool<StatsHistograms> elements_;
  Ranks* ranks_ = &sole_rank();
};

// Measures the input alone: reads it once, and finishes it. The plan is for rows that are whole and ordered.
// Means and variances of rows are those of kernel/moments.hpp. The result does not depend on the number of
// threads. Several ranks measure some rows each, where the source has random access; otherwise rank 0 measures all. Rank 0 gets
// the whole result, the others something. Throws Error.
// mask: of the elements that are measured; nothing: all are.
TensorStats measure_tensor(TensorSource& source, const Plan& plan, const RunOptions& options = {},
                           const std::optional<RowMask>& mask = {});

// Measures every feature in one pass: the elements of a row over all rows of the plan, in 80 bytes for each. Blocks of rows do
// not depend on the number of threads. Of features beyond 2^20 there are several passes, and a pipe is spooled. Finishes
// the source. Rank 0 gets the whole result. mask: of the elements that are measured; nothing: all are. Throws Error.
FeatureStats measure_features(TensorSource& source, const Plan& plan, const RunOptions& options,
                              const std::optional<RowMask>& mask = {});

}  // namespace lnorm
