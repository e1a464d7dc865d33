#pragma once

#include <vector>

#include "lnorm/diagnosis/mutants.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/gradient_rows.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// What a backward pass is given.
struct GradientMutantInputs {
  GradSources sources;
  const AffineTerm& weight;
  const AffineTerm& bias;
  TensorInfo parameters;  // what dweight and dbias are, but for their names
};

struct GradientMutantOptions {
  bool zero_centered_weight = false;
  ChooseKernel choose;  // empty: all
  Criteria criteria;    // of dx
  Criteria parameter_criteria;
};

// Computes each wrong backward pass, and compares the gradients that it gets wrong with the exact ones by the plan, whose rows
// are whole and in C order. It writes its results in float64, rounded once. Reads x and dy again for dweight and dbias of
// each: all sources have random access. Does not finish them. Rank 0 does all of it. Throws Error.
std::vector<TriedMutant> try_gradient_mutants(const GradientMutantInputs& inputs,
                                              const GradPlan& plan, const Backend& backend,
                                              const GradientMutantOptions& options,
                                              const RunOptions& run_options);

}  // namespace lnorm
