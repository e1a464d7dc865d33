#pragma once

#include <vector>

#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

// The SIMD kernels that this machine can run, the best one first.
std::vector<Kernel> simd_kernels();

const KernelTable& portable_passes();

}  // namespace lnorm
