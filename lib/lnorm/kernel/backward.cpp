#include "lnorm/kernel/backward.hpp"

#include <hwy/cache_control.h>

#include "lnorm/kernel/row_gradient.hpp"

namespace lnorm {

void layer_norm_backward(const Kernel& kernel, const RowsIn& x, const RowsIn& dy, const RowsOut& dx,
                         const AffineTerm& weight, const Formula& formula,
                         const SavedStatistics* saved, ColumnGradients* columns) {
  // More than the second-level cache of a core holds will not be found there by who reads it.
  constexpr std::int64_t kPastCaches = std::int64_t{4} << 20;
  // While a row is written, the next one is read, if a second-level cache has room for both.
  constexpr std::int64_t kTwoRows = std::int64_t{256} << 10;
  const auto bytes_of = [&](DType dtype) {
    return x.row_length * static_cast<std::int64_t>(item_size(dtype));
  };
  RowsOut out = dx;
  out.past_caches = x.rows * bytes_of(dx.dtype) >= kPastCaches;
  const GradientSetting setting{kernel, x.dtype, dy.dtype, dx.dtype, x.row_length, weight, formula};
  const bool reads_ahead = 2 * (bytes_of(x.dtype) + bytes_of(dy.dtype)) <= kTwoRows;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    GradientPart row{row_of(x, r), row_of(dy, r)};
    RowGradient gradient(setting, sample_of(row.x), saved == nullptr ? nullptr : saved + r,
                         [&](const auto& see) { see(row); });
    gradient.sum_up();
    if (r + 1 < x.rows && reads_ahead) {
      row.x.to_next = bytes_of(x.dtype);
      row.dy.to_next = bytes_of(dy.dtype);
    }
    RowsOut row_out = row_of(out, x.row_length, r);
    if (out.data == nullptr) row_out.data = nullptr;
    gradient.write(row, row_out, columns);
  }
  if (out.past_caches && out.data != nullptr) hwy::FlushStream();  // it is there for other threads
}

}  // namespace lnorm
