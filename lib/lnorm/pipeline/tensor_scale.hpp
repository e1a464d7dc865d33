#pragma once

#include "lnorm/kernel/quantize.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Sees how large results are, whatever the scale of rows.
class LargestObserver final : public RowObserver {
 public:
  explicit LargestObserver(const RowQuantizer& quantizer) : quantizer_(quantizer) {}

  BlockFindings examine(const RowBlock& block) const override {
    return quantizer_.largest(block.x);
  }
  void see(const RowBlock&, const BlockFindings& findings) override {
    found_.take(std::any_cast<const LargestQuotient&>(findings));
  }
  bool takes_parts() const override { return true; }
  void merge(Ranks& ranks) override {
    all_reduce_value(ranks, found_, [this](const LargestQuotient& other) { found_.take(other); });
  }

  double scale(const Quantization& quantization) const {
    return quantization.scale(found_.quotient, found_.is_zero);
  }

 private:
  const RowQuantizer& quantizer_;
  LargestQuotient found_;
};

// The scale of a whole tensor. Does not finish the source, which has random access.
inline double scale_of_tensor(TensorSource& source, const Plan& plan, const RowQuantizer& quantizer,
                              const Quantization& quantization, const RunOptions& options) {
  LargestObserver largest(quantizer);
  RowObserver* const observers[] = {&largest};
  LentSource again(source);
  run(again, plan, {}, observers, nullptr, options);
  return largest.scale(quantization);
}

}  // namespace lnorm
