#pragma once

#include <vector>

#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

// The SIMD kernels that this machine can run, the best one first.
std::vector<Backend> simd_backends();

const KernelTable& portable_table();

// What every backend has one of: the reference has the portable one.
inline const KernelTable& table_of(const Backend& backend) {
  return backend.table == nullptr ? portable_table() : *backend.table;
}

}  // namespace lnorm
