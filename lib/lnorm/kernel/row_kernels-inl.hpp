// Layer normalization of one target.

#if defined(LNORM_KERNEL_ROW_KERNELS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_ROW_KERNELS_INL_HPP_
#undef LNORM_KERNEL_ROW_KERNELS_INL_HPP_
#else
#define LNORM_KERNEL_ROW_KERNELS_INL_HPP_
#endif

#include "lnorm/kernel/affine_steps-inl.hpp"
#include "lnorm/kernel/double_doubles-inl.hpp"
#include "lnorm/kernel/doubles-inl.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/short_rows-inl.hpp"
#include "lnorm/kernel/transposed_rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// Which rows are short, and how they go.
bool short_rows(const RowSetting& setting, const RowsIn& x, const RowsOut& y) {
  const Affine& affine = setting.affine;
  if (y.dtype == DType::float64) {
    const bool goes = x.row_length <= ShortDoubleDoubleRows::kMaxElements && !has_low(x.dtype) &&
                      affine.steps().empty() && affine.layout().is_plain() &&
                      affine.is_within(kMaxDoubleDoubleAffine);
    if (goes) ShortDoubleDoubleRows(setting, x, y).run();
    return goes;
  }
  const std::int64_t repeat = affine.layout().repeat;
  const bool has_one_run = repeat == 1 || (repeat >= x.row_length && affine.steps().empty());
  const bool goes = fits_doubles(x.dtype, y.dtype) && x.row_length <= kChunk && has_one_run &&
                    affine.is_within(kMaxDoubleAffine);
  if (!goes) return false;
  const auto run_floats = [&]<class Out>(Out) {
    if constexpr (kFitsFloats<Out>) ChunkRows<Out, float>(setting, x, y).run();
  };
  const bool fits = fits_floats(x, y.dtype) && affine.have_floats();
  if (is_float8(y.dtype)) {
    return fits && affine.steps().empty() && with_narrow(y.dtype, run_floats);
  }
  return with_type<Float16, BFloat16, float>(y.dtype, [&]<class Out>(Out) {
    if (x.row_length <= TinyRows<Out>::kMaxElements && affine.steps().empty() &&
        affine.layout().is_plain()) {
      return TinyRows<Out>(setting, x, y).run();
    }
    if (fits) return run_floats(Out());
    ChunkRows<Out, double>(setting, x, y).run();
  });
}

}  // namespace

extern const RowKernels kRowKernels;
const RowKernels kRowKernels{kLanes,       double_sums,         double_double_sums,
                             double_write, double_double_write, short_rows,
                             take_step};

}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
