#pragma once

#include <vector>

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

enum class Statistic { mean, rstd };

// Holds the exact statistics of rows, as the loop brings them, against those that a kernel has saved: mean within E_mean,
// rstd = 1 / s within what E_s makes of it, and half an ulp. The plan wants mean and rstd.
class StatisticObserver final : public RowObserver {
 public:
  // setting: that of the forward pass. Reads all numbers of actual, one a row. Throws Error.
  StatisticObserver(Statistic of, const JudgeSetting& setting, TensorSource& actual, int threads);

  BlockFindings examine(const RowBlock& block) const override;
  void see(const RowBlock& block, const BlockFindings& findings) override;

  // What was found; like is the check of the output that was saved beside it.
  Check check(const Check& like) const;

 private:
  RowBounds bounds(const RowStatistics& row, double exact, Summation order,
                   const std::optional<std::int64_t>& depth) const;

  Statistic of_;
  JudgeSetting setting_;
  TensorInfo actual_;
  std::vector<double> numbers_;
  JudgedRows found_;
};

}  // namespace lnorm
