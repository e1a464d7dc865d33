// The backward pass, sums, moments, softmax, checks and features of one target.

#if defined(LNORM_KERNEL_OTHER_KERNELS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_OTHER_KERNELS_INL_HPP_
#undef LNORM_KERNEL_OTHER_KERNELS_INL_HPP_
#else
#define LNORM_KERNEL_OTHER_KERNELS_INL_HPP_
#endif

#include "lnorm/kernel/add-inl.hpp"
#include "lnorm/kernel/backward-inl.hpp"
#include "lnorm/kernel/features-inl.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/moments-inl.hpp"
#include "lnorm/kernel/quantize-inl.hpp"
#include "lnorm/kernel/row_errors-inl.hpp"
#include "lnorm/kernel/softmax-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {

extern const OtherKernels kOtherKernels;
const OtherKernels kOtherKernels{kGradientLanes,
                                 double_gradient_sums,
                                 double_gradients,
                                 double_double_gradient_sums,
                                 double_gradient_write,
                                 double_double_gradient_write,
                                 add,
                                 round_row,
                                 quantize,
                                 range,
                                 plain_moments,
                                 triple_sum,
                                 largest,
                                 double_softmax,
                                 double_double_softmax,
                                 decode_all,
                                 row_sizes,
                                 screen_row,
                                 add_features};

}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
