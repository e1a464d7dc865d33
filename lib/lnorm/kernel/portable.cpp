// The passes for any machine: vectors of one double.

#define HWY_COMPILE_ONLY_SCALAR
#include <hwy/highway.h>

#include "lnorm/kernel/passes-inl.hpp"
#include "lnorm/kernel/simd.hpp"

namespace lnorm {

const KernelTable& portable_passes() { return HWY_NAMESPACE::kPasses; }

}  // namespace lnorm
