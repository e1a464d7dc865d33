#pragma once

#include <vector>

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/grad_plan.hpp"
#include "lnorm/pipeline/gradient_rows.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

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
