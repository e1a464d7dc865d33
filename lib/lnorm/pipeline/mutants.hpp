#pragma once

#include <vector>

#include "lnorm/diagnosis/mutants.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/gradient_rows.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/quantized_rules.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// What a kernel is given.
struct MutantInputs {
  TensorSource& x;                // or its sum with a residual
  TensorSource* alone = nullptr;  // x without the residual, if there is one
  const AffineTerm& weight;
  const AffineTerm& bias;
  const Affine& affine;  // made of these
};

struct MutantOptions {
  bool zero_centered_weight = false;
  Rounding rounding = {};  // not of a backward pass
  ChooseKernel choose;     // empty: all
  Criteria criteria;       // of y, or of dx
  Criteria parameter_criteria = {};
  // Whether a kernel is done with once an element does not pass: how many do not is not known then. Requires criteria of each
  // element alone.
  bool until_caught = false;

  bool is_done(const Comparison& comparison) const {
    return until_caught && comparison.mismatched > 0;
  }
};

// Computes each wrong kernel on x, and compares what it writes with what apply writes by the plan, whose rows are whole
// and in C order. A kernel writes its results in float64, rounded once to the output dtype. Reads x row by row, again for
// each other axes: all sources have random access. Does not finish them. Rank 0 does all of it. Throws Error.
std::vector<TriedMutant> try_mutants(const MutantInputs& inputs, const Plan& plan,
                                     const Backend& backend, const MutantOptions& options,
                                     const RunOptions& run_options);

// The same as try_mutants for the kernels of quantized_kernels(), and for those of the norm, quantized as asked for: compares q, as
// numbers, with what apply writes, and scales by the default tolerance of float32, unless they are given. A kernel computes in float64; where
// it and the right one have the same number there, it is the exact one.
std::vector<TriedMutant> try_quantized_mutants(const MutantInputs& inputs,
                                               const AskedQuantization& asked, const Plan& plan,
                                               const Backend& backend, const MutantOptions& options,
                                               const RunOptions& run_options);

// What a backward pass is given.
struct GradientMutantInputs {
  GradSources sources;
  const AffineTerm& weight;
  const AffineTerm& bias;
  TensorInfo parameters;  // what dweight and dbias are, but for their names
};

// Computes each wrong backward pass, and compares the gradients that it gets wrong with the exact ones by the plan, whose rows
// are whole and in C order. It writes its results in float64, rounded once. Reads x and dy again for dweight and dbias of
// each: all sources have random access. Does not finish them. Rank 0 does all of it. Throws Error.
std::vector<TriedMutant> try_gradient_mutants(const GradientMutantInputs& inputs,
                                              const GradPlan& plan, const Backend& backend,
                                              const MutantOptions& options,
                                              const RunOptions& run_options);

// A comparison with what is right, of which counts and the greatest error are read.
Comparison begin_trial(const TensorInfo& written, const Criteria& criteria);

// Throws Error unless the right result passes. x: what it was computed of.
void require_passing(const Comparison& right, const TensorInfo& x);

}  // namespace lnorm
