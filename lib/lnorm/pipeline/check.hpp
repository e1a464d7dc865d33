#pragma once

#include <memory>
#include <vector>

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/layout/mask.hpp"
#include "lnorm/pipeline/gradient_rows.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/quantized_rules.hpp"
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

// The scales that a kernel has saved with q, a number for each group; null: none.
struct SavedScales {
  TensorSource* source = nullptr;
  bool is_transposed = false;  // groups come first in it
};

// Judges q and the scales together by the plan of x, whose rows are whole and in C order. E is E_y of docs/numbers.md without the last
// rounding, u the unit roundoff of the kernel's arithmetic:
//
//   a scale is right if it is what some amax / qmax gives, each |y| of the group within its E, and the quotient within 3 u
//   q is right if some (y +- E) / scale (1 +- 4 u) rounds to it, by the kernel's own scale
//
// So a scale that is wrong is said once, not in every element. Without the kernel's scales one number that a scale may be must suit all
// of a group. Throws Error.
Check check_quantized(const CheckInputs& inputs, const AskedQuantization& asked,
                      const SavedScales& saved, const Plan& plan, const Backend& backend,
                      const CheckOptions& options, const RunOptions& run_options);

// Judges the sum of x and a residual that a kernel has saved, in the rows of the plan: within half an ulp of its dtype and a rounding
// in the kernel's arithmetic, u |x + residual|. sum: exact, or rounded once; it can be read again, and so can actual. Throws Error.
Check check_sum(TensorSource& sum, TensorSource& actual, const Plan& plan, const Backend& backend,
                const CheckOptions& options, const RunOptions& run_options);

// What a backward pass was given, and what it made of it; all of it has random access. Null: it is not judged.
struct GradientCheckInputs {
  GradSources sources;
  TensorSource* dx = nullptr;       // of the shape of x
  TensorSource* dweight = nullptr;  // these two of that of the weight, or of the normalized axes
  TensorSource* dbias = nullptr;
  bool is_sum = false;      // x is a sum, which is not rounded
  bool is_uniform = false;  // one parameter serves all columns
  const AffineTerm& weight;
  const AffineTerm& bias;
};

// Judges the gradients, each in a check of its own, as check() does an output. The plan's rows are whole and in C order. Reads
// x and dy once, a block at a time, and again for what explains errors; memory: some numbers a column and thread. Does not
// finish the sources. Rank 0 does all of it. Throws Error.
std::vector<Check> check_gradients(const GradientCheckInputs& inputs, const GradPlan& plan,
                                   const Backend& backend, const CheckOptions& options,
                                   const RunOptions& run_options);

}  // namespace lnorm
