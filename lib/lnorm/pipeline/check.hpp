#pragma once

#include <memory>

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/layout/mask.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// What a kernel was given, and what it made of it.
struct CheckInputs {
  TensorSource& x;                // or its sum with a residual
  TensorSource& actual;           // of the same shape
  TensorSource* alone = nullptr;  // x without the residual, if there is one
  TensorSource* residual =
      nullptr;          // where x is a sum that is rounded; null where it cannot be read again
  bool is_sum = false;  // x is a sum, which is not rounded
  const AffineTerm& weight;
  const AffineTerm& bias;
  const Affine& affine;                    // made of these
  const GivenStatistics* given = nullptr;  // null: statistics are computed
  // Statistics that the kernel has saved, a number for each row.
  TensorSource* mean = nullptr;
  TensorSource* rstd = nullptr;
  // Elements where it is 0 are not judged; null: all are. Rows are normalized whole.
  std::shared_ptr<const Mask> mask = nullptr;
};

// Judges actual by the plan of x, whose results have the dtype of actual, and whose rows are whole and in C order. Reads both
// tensors once, a block at a time. Then it reads some rows again for what explains the errors, and all of them for how many
// elements it explains: that takes random access to both. Does not finish the sources. Rank 0 does all of it. Throws Error.
Check check(const CheckInputs& inputs, const Plan& plan, const Backend& backend,
            const CheckOptions& options, const RunOptions& run_options);

}  // namespace lnorm
