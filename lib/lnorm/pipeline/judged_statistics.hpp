#pragma once

#include <vector>

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/check_rows.hpp"
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

  // What was found in the rows of x.
  Check check(const TensorInfo& x, const Plan& plan) const;

 private:
  // What was found in some rows. causes: of the table.
  struct Found {
    JudgedRows judged;
    CauseCounts causes;
  };

  void try_causes(const RowStatistics& row, double actual, double relative,
                  CauseCounts& counts) const;
  RowBounds bounds(const RowStatistics& row, double exact, const SumLosses& losses) const;

  Quantity of_;
  JudgeSetting setting_;
  TensorInfo actual_;
  ChooseKernel choose_;
  std::vector<double> numbers_;
  Found found_;
};

}  // namespace lnorm
