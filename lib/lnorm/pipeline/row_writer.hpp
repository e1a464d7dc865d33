#pragma once

#include <span>
#include <string>
#include <vector>

#include "lnorm/layout/row_sink.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Writes one number a row, mean or rstd, to a sink of float64, as the blocks pass.
class RowWriter final : public RowObserver {
 public:
  RowWriter(TensorSink& sink, const Plan& plan, std::span<const double> RowBlock::*column);

  void see(const RowBlock& block, const BlockFindings& findings) override;
  void finish() override { out_.finish(); }

 private:
  std::span<const double> RowBlock::*column_;
  RowSink out_;
  std::string text_;
  std::vector<std::byte> packed_;
};

}  // namespace lnorm
