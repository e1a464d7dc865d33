// The backward pass, sums, moments and softmax in SIMD, compiled for every target that Highway can choose from at run time.

#include "lnorm/kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
  "lnorm/kernel/simd_other_kernels.cpp"  // compiled once more for every target
// foreach_target.h has to come before highway.h.
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

// portable.cpp does the same without vectors.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "lnorm/kernel/other_kernels-inl.hpp"
#endif
