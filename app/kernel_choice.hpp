#pragma once

#include "arguments.hpp"
#include "lnorm/diagnosis/diagnosis.hpp"

namespace lnorm::app {

// The wrong kernels of --kernels and --skip-kernels, whose arguments outlive it. Throws Error for a pattern that none
// matches.
ChooseKernel kernel_choice(const Arguments& arguments);

}  // namespace lnorm::app
