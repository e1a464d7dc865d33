#pragma once

#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/measure/explanation.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

// How the source's only row is normalized, in memory that does not grow with it: one that should not be held is read again
// and again, if it has no random access from a temporary file. affine: of weight and bias, and of rounds_xhat. given: null
// if statistics are computed. Finishes the source. Throws Error.
ExplainedRow explain(TensorSource& source, const Plan& plan, const Backend& backend,
                     const AffineTerm& weight, const AffineTerm& bias, const Affine& affine,
                     const GivenStatistics* given, bool rounds_xhat, const Progress& progress = {});

}  // namespace lnorm
