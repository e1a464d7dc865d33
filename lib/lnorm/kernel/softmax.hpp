#pragma once

#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// Softmax of every row by itself:
//
//   y[r][i] = scale * exp(x[r][i] - max[r]) / sum_j exp(x[r][j] - max[r])      max[r]: the row's largest
//
//   x, y    rows x row_length, row-major; they must not overlap
//   scale   a finite number; other than 1 only where y is a float8
//
// Accuracy: each y is the exact value rounded once to y's dtype, to nearest, ties to even; 64-bit integers are taken
// exactly. So the result does not depend on the machine, nor on how rows are grouped into calls.
//
// -infinity gives 0 (a masked element) where another element is finite. A row with a NaN, with
// +infinity, or of nothing but -infinity gives NaN in all its elements, as in PyTorch. Throws std::bad_alloc alone.
void softmax(const RowsIn& x, const RowsOut& y, double scale = 1,
             const Backend& backend = backends().front());

}  // namespace lnorm
