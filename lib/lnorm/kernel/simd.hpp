#pragma once

#include <vector>

#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/passes.hpp"

namespace lnorm {

// The SIMD kernels that this machine can run, the best one first.
std::vector<Kernel> simd_kernels();

const Passes& portable_passes();

}  // namespace lnorm
