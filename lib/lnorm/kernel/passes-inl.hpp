// The passes of one target, in one table. These headers have no guards: they are compiled once more for every target
// (simd.cpp), and for vectors of one double (portable.cpp).

#include "lnorm/kernel/simd-inl.hpp"
// The others build on it.
#include "lnorm/kernel/nearest-inl.hpp"
// So do the next two on that.
#include "lnorm/kernel/add-inl.hpp"
#include "lnorm/kernel/affine_steps-inl.hpp"
// The passes along a row.
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/narrow-inl.hpp"
#include "lnorm/kernel/range-inl.hpp"
#include "lnorm/kernel/transpose-inl.hpp"
#include "lnorm/kernel/triple_sum-inl.hpp"
#include "lnorm/kernel/wide-inl.hpp"
// Those for many short rows at once build on them. The first one has what the next two share.
#include "lnorm/kernel/short_narrow-inl.hpp"
// A vector of rows at a time.
#include "lnorm/kernel/short_wide-inl.hpp"
#include "lnorm/kernel/tiny_rows-inl.hpp"
// Which of the three is taken.
#include "lnorm/kernel/short_rows-inl.hpp"
// These need the passes along a row only.
#include "lnorm/kernel/backward-inl.hpp"
#include "lnorm/kernel/plain_moments-inl.hpp"
#include "lnorm/kernel/softmax-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

constexpr KernelTable kPasses{kLanes,
                              narrow_sums,
                              wide_sums,
                              narrow_write,
                              wide_write,
                              short_rows,
                              take_step,
                              kGradientLanes,
                              narrow_gradient_sums,
                              wide_gradient_sums,
                              narrow_gradient_write,
                              wide_gradient_write,
                              add,
                              round_row,
                              range,
                              plain_moments,
                              triple_sum,
                              largest,
                              narrow_softmax,
                              wide_softmax};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
