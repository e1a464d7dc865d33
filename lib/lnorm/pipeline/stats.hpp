#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lnorm/measure/stats.hpp"
#include "lnorm/pipeline/run.hpp"
#include "lnorm/pipeline/stats_rows.hpp"

namespace lnorm {

// Measures every row that goes through the loop, its output and, if asked for, its softmax in the
// output dtype. Variances are those of the plan's ddof.
class StatsObserver final : public RowObserver {
 public:
  struct Wanted {
    bool softmax = false;
    bool histograms = false;
  };
  StatsObserver(Plan plan, Wanted wanted);

  struct Findings {
    StatsBlock rows;
    StatsRows::Part kept;
  };
  BlockFindings examine(const RowBlock& block) const override;
  void see(const RowBlock& block, const BlockFindings& findings) override;
  void finish() override {}
  bool takes_parts() const override { return true; }
  void merge(Ranks& ranks) override;

  // Follows the loop, on every rank. x: the input's info. The result keeps the rows, which may lie on disk. The caller
  // sets what it says of weight and bias.
  Stats stats(const TensorInfo& x) const;

  // Calls write, which may ask for rows, on rank 0; the other ranks provide theirs meanwhile.
  void report(const std::function<void()>& write) const;

 private:
  struct ElementHistograms {
    Histogram input;
    Histogram output;

    template <class Archive>
    void serialize(Archive& archive) {
      archive(input, output);
    }
  };

  ElementHistograms all_elements() const;
  void count_elements(const RowBlock& block, const StatsBlock& rows) const;

  Plan plan_;
  Wanted wanted_;
  std::shared_ptr<StatsRows> rows_;
  Histogram row_means_;
  Histogram row_variances_;
  // As many as there are threads: it does not matter which element is counted where.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ElementHistograms>> elements_;
  Ranks* ranks_ = &sole_rank();
};

}  // namespace lnorm
