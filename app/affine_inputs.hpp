#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "auxiliary_input.hpp"
#include "each_tensor.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "residual_input.hpp"

namespace lnorm::app {

// Throws Error for standard input, or a FIFO, that is named more than once, since a second reader would wait for ever; and for what is
// no file, of which several ranks could not read parts.
void check_streams(const Ranks& ranks, const std::vector<std::string>& names);

// The same of all tensors that a command names. others: names of further ones.
void check_inputs(const InputArguments& input, const NormalizationArguments& arguments,
                  const WorkArguments& work, const std::vector<std::string>& others = {});

// --weight or --bias: an auxiliary input, JSON, or a number.
class AffineInput {
 public:
  // word: nothing if it is not given. input: see AuxiliaryInput. plus_one: see AffineTerm.
  AffineInput(const std::string& option, const std::optional<std::string>& word,
              const ReadOptions& input, bool plus_one)
      : plus_one_(plus_one) {
    if (word) auxiliary_.emplace(option, *word, input, parse_literal);
  }

  // Throws Error unless there is one for this input.
  void find(const InputName& name);
  // That, and it must be of the shape that the plan has for it.
  void check(const Plan& plan, const InputName& name);

  // Whether what was checked last is to be read: the first time, and where it is not what was read last.
  bool is_unread() const noexcept { return auxiliary_ && !is_read_; }
  AffineTerm read();

  // The one that was checked last; null if it is not given.
  const TensorInfo* info() const noexcept { return auxiliary_ ? &auxiliary_->info() : nullptr; }
  bool has_dtype(DType dtype) const { return auxiliary_ && auxiliary_->has_dtype(dtype); }

 private:
  bool plus_one_;
  std::optional<AuxiliaryInput> auxiliary_;
  bool is_read_ = false;
};

// Both of them, and where results are rounded before they are used.
class AffineInputs {
 public:
  // residual, and another one: what else --as may be for. scale: of the results, where nothing is rounded before.
  AffineInputs(const NormalizationArguments& arguments, const ReadOptions& input,
               const ResidualInput& residual, double scale = 1,
               const AuxiliaryInput* other = nullptr);

  // Throws Error unless they are there for this input, of the plan's normalized shape; or if --as is given, but
  // is neither for the input nor for them.
  void check(const Plan& plan, const TensorInfo& x, const InputName& name);

  // What multiplies a plan's rows, and what is added, after the same checks. What was read for the last input is
  // not read again if it is the same.
  const Affine& of(const Plan& plan, const TensorInfo& x, const InputName& name);

  // The weight that was checked last; null if it is not given.
  const TensorInfo* weight_info() const noexcept { return weight_.info(); }
  bool has_number_for_weight() const noexcept {
    return weight_.info() != nullptr && weight_.info()->shape.empty();
  }

  // What is in it, as it was read, but in the order of the plan's layout.
  const AffineTerm& weight() const noexcept { return weight_laid_out_; }
  const AffineTerm& bias() const noexcept { return bias_laid_out_; }

 private:
  Affine make_affine(const AffineLayout& layout);

  std::optional<DType> as_;
  const ResidualInput& residual_;
  const AuxiliaryInput* other_;
  Rounding rounding_;
  double scale_;
  AffineInput weight_;
  AffineInput bias_;
  AffineTerm weight_term_;
  AffineTerm bias_term_;
  AffineTerm weight_laid_out_;
  AffineTerm bias_laid_out_;
  AffineLayout layout_;
  Affine affine_;
};

}  // namespace lnorm::app
