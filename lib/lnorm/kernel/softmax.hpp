#pragma once

#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// Softmax of every row by itself:
//
//   y[r][i] = exp(x[r][i] - max[r]) / sum_j exp(x[r][j] - max[r])      max[r]: the row's largest
//
//   x, y    rows x row_length, row-major; they must not overlap
//
// Accuracy: each y is within 0.501 ulp of the exact value, rounded once to y's dtype, whatever the
// dtypes; 64-bit integers are taken exactly.
//
// -infinity gives 0 (a masked element) where another element is finite. A row with a NaN, with
// +infinity, or of nothing but -infinity gives NaN in all its elements, as in PyTorch. The same bits
// on every machine; the result does not depend on how rows are grouped into calls. Does not throw,
// allocate or print.
void softmax(const RowsIn& x, const RowsOut& y) noexcept;

}  // namespace lnorm
