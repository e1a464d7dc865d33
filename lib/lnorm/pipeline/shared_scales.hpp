#pragma once

#include <vector>

#include "lnorm/kernel/quantize.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Sees how large results are of all rows that share a scale.
class LargestObserver final : public RowObserver {
 public:
  LargestObserver(const RowQuantizer& quantizer, const Plan& plan)
      : quantizer_(quantizer),
        layout_(plan.scales),
        found_(static_cast<std::size_t>(plan.shared_scales)) {}

  BlockFindings examine(const RowBlock& block) const override {
    return quantizer_.largest(block.x);
  }
  void see(const RowBlock& block, const BlockFindings& findings) override {
    std::int64_t row = block.first_row;
    for (const auto& of_row : std::any_cast<const std::vector<LargestQuotient>&>(findings)) {
      found_[static_cast<std::size_t>(layout_.first(row++))].take(of_row);
    }
  }
  bool takes_parts() const override { return true; }
  void merge(Ranks& ranks) override {
    all_reduce_value(ranks, found_, [this](const std::vector<LargestQuotient>& other) {
      for (std::size_t i = 0; i < found_.size(); ++i) found_[i].take(other[i]);
    });
  }

  const std::vector<LargestQuotient>& found() const { return found_; }

 private:
  const RowQuantizer& quantizer_;
  const AffineLayout& layout_;
  std::vector<LargestQuotient> found_;
};

// The scales that rows share, by the plan's layout. Does not finish the source, which has random access.
inline std::vector<double> shared_scales(TensorSource& source, const Plan& plan,
                                         const RowQuantizer& quantizer,
                                         const Quantization& quantization,
                                         const RunOptions& options) {
  LargestObserver largest(quantizer, plan);
  RowObserver* const observers[] = {&largest};
  LentSource again(source);
  run(again, plan, {}, observers, nullptr, options);
  std::vector<double> scales;
  for (const LargestQuotient& one : largest.found()) {
    scales.push_back(quantization.scale(one.quotient, one.is_zero));
  }
  return scales;
}

// That of all rows.
inline double scale_of_tensor(TensorSource& source, Plan plan, const RowQuantizer& quantizer,
                              const Quantization& quantization, const RunOptions& options) {
  plan.shared_scales = 1;
  plan.scales = {};
  return shared_scales(source, plan, quantizer, quantization, options).front();
}

}  // namespace lnorm
