#pragma once

#include <vector>

#include "lnorm/diagnosis/mutants.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/plan.hpp"
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
  Rounding rounding;
  ChooseKernel choose;  // empty: all
  Criteria criteria;
};

// Computes each wrong kernel on x, and compares what it writes with what apply writes by the plan, whose rows are whole
// and in C order. A kernel writes its results in float64, rounded once to the output dtype. Reads x row by row, again for
// each other axes: all sources have random access. Does not finish them. Rank 0 does all of it. Throws Error.
std::vector<TriedMutant> try_mutants(const MutantInputs& inputs, const Plan& plan,
                                     const Backend& backend, const MutantOptions& options,
                                     const RunOptions& run_options);

// Throws Error unless the right result passes. x: what it was computed of.
void require_passing(const Comparison& right, const TensorInfo& x);

}  // namespace lnorm
