#pragma once

#include <optional>
#include <string>
#include <vector>

#include "affine_inputs.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm::app {

// --mean, and --rstd or --variance: statistics of rows that are not computed.
class GivenInputs {
 public:
  GivenInputs(const NormalizationArguments& arguments, const ReadOptions& input);

  bool are_given() const noexcept { return is_rstd_ || has_variance_; }

  // Throws Error unless there is a number for each row of x, or one for all.
  void check(const TensorInfo& x, const InputName& name);

  // Those of a plan's rows, after the same checks; null if there are none. Throws Error for a variance below 0.
  const GivenStatistics* of(const Plan& plan, const TensorInfo& x, const InputName& name);

 private:
  NormalizedAxes axes_;
  bool is_rstd_;
  bool has_variance_;
  AffineInput mean_;
  AffineInput spread_;
  AffineTerm mean_term_;
  AffineTerm spread_term_;
  GivenStatistics statistics_;
};

}  // namespace lnorm::app
