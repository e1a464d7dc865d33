#pragma once

#include "arguments.hpp"
#include "lnorm/pipeline/check.hpp"
#include "lnorm/pipeline/compare.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm::app {

// Whether an option asks for a comparison of OUTPUT with the exact result.
bool wants_details(const Arguments& arguments);

// Makes it: reads x once more, and writes the exact result to a temporary file. Both sources have random access.
Comparison compare_with_exact(const Arguments& arguments, TensorSource& x, TensorSource& actual,
                              const Plan& plan, const CheckInputs& inputs,
                              const RunOptions& options);

}  // namespace lnorm::app
