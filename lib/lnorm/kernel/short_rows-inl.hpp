// Which rows are short, and how they go.

#include "lnorm/kernel/row_normalizer.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

bool short_rows(const RowSetting& setting, const RowsIn& x, const RowsOut& y) {
  const Affine& affine = setting.affine;
  if (y.dtype == DType::float64) {
    const bool goes = x.row_length <= ShortWideRows::kMostElements && !has_low(x.dtype) &&
                      affine.steps().empty() && affine.is_within(kMostWideAffine);
    if (goes) ShortWideRows(setting, x, y).run();
    return goes;
  }
  if (x.row_length > kChunk || x.byte_order != std::endian::native ||
      !affine.is_within(kMostNarrowAffine)) {
    return false;
  }
  const auto run = [&]<class T>(T) {
    ShortRows<T, T>(setting, x, y).run();
    return true;
  };
  if (x.dtype == DType::float32 && y.dtype == DType::float32) return run(float{});
  if (x.dtype == DType::bfloat16 && y.dtype == DType::bfloat16) return run(BFloat16{});
  if constexpr (kHasFloat16) {
    if (x.dtype == DType::float16 && y.dtype == DType::float16) return run(Float16{});
  }
  return false;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
