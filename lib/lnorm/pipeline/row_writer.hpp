#pragma once

#include <span>
#include <string>
#include <vector>

#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Writes one number a row, mean or rstd, to a sink of float64, as the blocks pass.
class RowWriter final : public RowObserver {
 public:
  RowWriter(TensorSink& sink, const Plan& plan, std::span<const double> RowBlock::*column);

  void see(const RowBlock& block, BlockFindings* findings) override;
  void finish() override;

 private:
  TensorSink& sink_;
  const Plan& plan_;
  std::span<const double> RowBlock::*column_;
  std::optional<PositionedSink> positioned_;  // if rows do not come in C order
  std::string text_;
  std::vector<std::byte> packed_;
};

}  // namespace lnorm
