#pragma once

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Judges the sum of x and a residual that a kernel has saved, in the rows of the plan: within half an ulp of its dtype and a rounding
// in the kernel's arithmetic, u |x + residual|. sum: exact, or rounded once; it can be read again, and so can actual. Throws Error.
Check check_sum(TensorSource& sum, TensorSource& actual, const Plan& plan, const Backend& backend,
                const CheckOptions& options, const RunOptions& run_options);

}  // namespace lnorm
