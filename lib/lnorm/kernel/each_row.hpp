#pragma once

#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

// Calls normalise(x, y, stats) once for every row, each time with that row alone.
template <class Normalise>
void each_row(const RowsIn& x, const RowsOut& y, const RowStats& stats, Normalise normalise) {
  const std::int64_t x_size = x.row_length * static_cast<std::int64_t>(item_size(x.dtype));
  const std::int64_t y_size = x.row_length * static_cast<std::int64_t>(item_size(y.dtype));
  for (std::int64_t r = 0; r < x.rows; ++r) {
    normalise(
        RowsIn{x.data + r * x_size, x.dtype, x.byte_order, 1, x.row_length},
        RowsOut{y.data + r * y_size, y.dtype},
        RowStats{stats.mean ? stats.mean + r : nullptr, stats.rstd ? stats.rstd + r : nullptr});
  }
}

}  // namespace lnorm
