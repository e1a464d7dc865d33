// The kernel table for any machine: vectors of one double.

#define HWY_COMPILE_ONLY_SCALAR
#include <hwy/highway.h>

#include "lnorm/kernel/other_kernels-inl.hpp"
#include "lnorm/kernel/row_kernels-inl.hpp"
#include "lnorm/kernel/simd.hpp"

namespace lnorm {

const KernelTable& portable_table() {
  static const KernelTable table{HWY_NAMESPACE::kRowKernels, HWY_NAMESPACE::kOtherKernels};
  return table;
}

}  // namespace lnorm
