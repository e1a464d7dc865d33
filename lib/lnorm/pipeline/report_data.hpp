#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

#include "lnorm/measure/report_data.hpp"
#include "lnorm/pipeline/run.hpp"
#include "lnorm/pipeline/stats.hpp"

namespace lnorm {

// Measures what StatsObserver does, histograms among it, and draws the report_data. Memory does not grow with the
// tensor. The result does not depend on the number of threads.
class ReportDataObserver final : public RowObserver {
 public:
  // softmax: as of StatsObserver.
  ReportDataObserver(const Plan& plan, const ReportDataSize& size, bool softmax);

  BlockFindings examine(const RowBlock& block) const override;
  void see(const RowBlock& block, const BlockFindings& findings) override;
  void finish() override { stats_.finish(); }

  // Follows the loop. As of StatsObserver::stats.
  TensorReportData report_data(const TensorInfo& x) const;

 private:
  struct Findings;

  // Those of a block that may stand out, in order.
  std::vector<OutlierRow> outlier_rows(const RowBlock& block, const StatsBlock& rows) const;
  RowDetail detail(const RowBlock& block, std::int64_t row, const StatsRow& found) const;

  ReportDataSize size_;
  bool softmax_;
  StatsObserver stats_;
  HeatMap x_;
  HeatMap y_;
  Partition points_;
  std::size_t most_outliers_;
  OutlierRows outlier_rows_;
  std::vector<FeatureSums> features_;
  // What a row must be ahead of to stand out, by list.
  std::array<std::atomic<double>, kOutlierRows.size()> least_;
};

}  // namespace lnorm
