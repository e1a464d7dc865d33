#pragma once

#include <vector>

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Holds the exact statistics of rows, as the loop brings them, against those that a kernel has saved: mean within E_mean,
// rstd = 1 / s within what E_s makes of it, and half an ulp. The plan wants mean and rstd.
class StatisticObserver final : public RowObserver {
 public:
  // setting: that of the forward pass. choose: which causes are tried; empty: none. Reads all numbers of actual, one a row.
  // Throws Error.
  StatisticObserver(Quantity of, const JudgeSetting& setting, TensorSource& actual,
                    ChooseKernel choose, int threads);

  BlockFindings examine(const RowBlock& block) const override;
  void see(const RowBlock& block, const BlockFindings& findings) override;

  // What was found; like is the check of the output that was saved beside it.
  Check check(const Check& like) const;

 private:
  // What was found in some rows. explained: by each cause of the table, of those that are not right.
  struct Found {
    JudgedRows judged;
    std::vector<std::int64_t> explained;
    std::int64_t wrong = 0;
  };

  void try_causes(const RowStatistics& row, double actual, double relative, Found& found) const;
  RowBounds bounds(const RowStatistics& row, double exact, const SumLosses& losses) const;

  Quantity of_;
  JudgeSetting setting_;
  TensorInfo actual_;
  ChooseKernel choose_;
  std::vector<double> numbers_;
  Found found_;
};

}  // namespace lnorm
