// The passes of one target, in one table.

#if defined(LNORM_KERNEL_PASSES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_PASSES_INL_HPP_
#undef LNORM_KERNEL_PASSES_INL_HPP_
#else
#define LNORM_KERNEL_PASSES_INL_HPP_
#endif

#include <hwy/cache_control.h>

#include "lnorm/kernel/narrow-inl.hpp"
#include "lnorm/kernel/passes.hpp"
#include "lnorm/kernel/plain_sums-inl.hpp"
#include "lnorm/kernel/simd-inl.hpp"
#include "lnorm/kernel/wide-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

void flush() { hwy::FlushStream(); }

constexpr Passes kPasses{kLanes,     narrow_sums, wide_sums, narrow_write, wide_write,
                         short_rows, flush,       range,     plain_sums};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
