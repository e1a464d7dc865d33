#pragma once

#include "arguments.hpp"
#include "lnorm/diagnosis/diagnosis.hpp"

namespace lnorm::app {

// Whether an option gives a criterion.
bool has_criteria(const Arguments& arguments);

// Those that are given, or else the default tolerance. own: of the tensors' name; null if there is none.
Criteria criteria_of(const Arguments& arguments, const ToleranceOfNames* own, DType actual,
                     DType expected, std::optional<double> baseline = {});

// The wrong kernels of --kernels and --skip-kernels, whose arguments outlive it. Throws Error for a pattern that none
// matches.
ChooseKernel kernel_choice(const Arguments& arguments);

}  // namespace lnorm::app
