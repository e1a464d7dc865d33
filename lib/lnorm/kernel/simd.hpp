#pragma once

#include <vector>

#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

// The SIMD kernels that this machine can run, the best one first.
std::vector<Kernel> simd_kernels();

}  // namespace lnorm
