// Which rows are short, and how they go.

#include "lnorm/kernel/row_normalizer.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

bool short_rows(const RowSetting& setting, const RowsIn& x, const RowsOut& y) {
  const Affine& affine = setting.affine;
  if (y.dtype == DType::float64) {
    const bool goes = x.row_length <= ShortWideRows::kMaxElements && !has_low(x.dtype) &&
                      affine.steps().empty() && affine.is_within(kMaxWideAffine);
    if (goes) ShortWideRows(setting, x, y).run();
    return goes;
  }
  const bool is_float8 = y.dtype == DType::float8_e4m3fn || y.dtype == DType::float8_e5m2;
  if (!is_narrow(x.dtype, y.dtype) || is_float8 || x.row_length > kChunk ||
      !affine.is_within(kMaxNarrowAffine)) {
    return false;
  }
  with_narrow_type(y.dtype, [&]<class Out>(Out) {
    if (x.row_length <= TinyRows<Out>::kMaxElements && affine.steps().empty()) {
      TinyRows<Out>(setting, x, y).run();
    } else {
      ShortRows<Out>(setting, x, y).run();
    }
  });
  return true;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
