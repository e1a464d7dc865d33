#pragma once

#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// The elements of x in the dtype of y: the same bits in native byte order where it is that of x, otherwise each rounded once,
// to nearest, ties to even; then every NaN is the positive quiet one.
void convert(const RowsIn& x, const RowsOut& y);

}  // namespace lnorm
