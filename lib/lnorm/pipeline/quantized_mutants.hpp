#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/pipeline/mutants.hpp"
#include "lnorm/pipeline/quantized_rules.hpp"

namespace lnorm {

// What a row becomes: q, and its scales. They are none if they are given, if they are more than were asked for, or if rows share one and it
// is not the first of them.
struct WrittenRow {
  std::vector<double> q;
  std::vector<double> scales;
};

// How kernels quantize the rows of mutants, wrong ones and right ones. A kernel computes in float64. It refers to what it is made of.
class MutantQuantizer {
 public:
  MutantQuantizer(const MutantInputs& inputs, const AskedQuantization& asked, const Plan& plan,
                  const JudgeSetting& setting, int threads);

  QuantizedContext context() const;
  const Quantization& asked() const { return asked_.quantization; }

  // A row at the steps of a kernel. It refers to the sample's row.
  RowOfKernel steps_of(const SampleRow& row) const;

  // The scale of each element of a row; empty if none are given.
  std::vector<double> given_scales(std::int64_t row) const;
  // shared_amax: the rule's in all rows that share the scale, if rows do.
  WrittenRow quantized(const QuantizedRule& rule, std::int64_t row, std::span<const double> given,
                       double shared_amax) const;

  // What apply writes, and what it wrote of a row of a block.
  const RowQuantizer& exact() const { return *exact_; }
  WrittenRow exact_row(const RowBlock& block, std::int64_t r) const;

  // How many scales rows share, and which one a row has.
  std::int64_t shared_scales() const { return plan_.shared_scales; }
  std::size_t shared_scale(std::int64_t row) const {
    return static_cast<std::size_t>(plan_.scales.first(row));
  }
  // How many scales the rows before a row have.
  std::int64_t scales_before(std::int64_t row) const;

 private:
  // Whether it is the first one that has its scale.
  bool has_first(std::int64_t row) const { return first_rows_[shared_scale(row)] == row; }
  RowQuantizer quantizer(const AffineTerm* scales) const;

  const MutantInputs& inputs_;
  const AskedQuantization& asked_;
  const Plan& plan_;
  const JudgeSetting& setting_;
  QuantizedGrid grid_;
  std::int64_t group_;
  std::vector<double> shared_;            // the exact scales
  AffineTerm shared_term_;                // the same
  std::vector<std::int64_t> first_rows_;  // that have them
  std::optional<RowQuantizer> exact_;
  double scale_of_tensor_ = kNan;
};

}  // namespace lnorm
