#pragma once

#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

// Calls normalise(x, y, stats) once for every row, each time with that row alone.
template <class Normalise>
void each_row(const RowsIn& x, const RowsOut& y, const RowStats& stats, Normalise normalise) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    normalise(
        row_of(x, r), row_of(y, x.row_length, r),
        RowStats{stats.mean ? stats.mean + r : nullptr, stats.rstd ? stats.rstd + r : nullptr});
  }
}

}  // namespace lnorm
