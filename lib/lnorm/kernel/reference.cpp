// The formula by another route: sum(x) and sum(x^2) as integers, without rounding.

#include "lnorm/kernel/each_row.hpp"
#include "lnorm/kernel/exact_row.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

void layer_norm_reference(const RowsIn& x, const RowsOut& y, const Affine& affine,
                          const Formula& formula, const RowStats& stats) noexcept {
  each_row(x, y, stats, [&](const RowsIn& row, const RowsOut& out, const RowStats& row_stats) {
    const ExactRow exact(exact_sums(row), row.row_length, formula);
    exact.write(row, affine, 0, out);
    if (row_stats.mean) *row_stats.mean = exact.mean();
    if (row_stats.rstd) *row_stats.rstd = exact.rstd();
  });
}

}  // namespace lnorm
