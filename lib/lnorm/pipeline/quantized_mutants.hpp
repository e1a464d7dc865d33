#pragma once

#include <vector>

#include "lnorm/kernel/quantize.hpp"
#include "lnorm/pipeline/mutants.hpp"

namespace lnorm {

// How a kernel was asked to quantize.
struct AskedQuantization {
  const Quantization& quantization;
  bool is_of_tensor = false;  // there is one scale
  const AffineTerm* given_scale =
      nullptr;  // in the order of the plan's layout; null: scales are computed
};

// The same as try_mutants for the kernels of quantized_kernels(): compares q, as numbers, with what apply writes. The scales are not
// compared: a wrong one shows in q, and kernels that save right ones wrongly are equivalent. A kernel computes in float64; where it and the
// right one have the same q there, it is the exact q.
std::vector<TriedMutant> try_quantized_mutants(const MutantInputs& inputs,
                                               const AskedQuantization& asked, const Plan& plan,
                                               const Backend& backend, const MutantOptions& options,
                                               const RunOptions& run_options);

}  // namespace lnorm
