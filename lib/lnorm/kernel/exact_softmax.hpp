#pragma once

#include <cstdint>
#include <limits>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// Softmax of the element x of a row whose largest element is max, rounded once to dtype: by integers of more and more
// bits, until they decide. They always do. By Lindemann and Weierstrass no result lies halfway between two numbers
// unless all elements that count are equal; then nothing is rounded, and the tie is seen.
//
// Elements that are smaller than 2^-5000 of the largest after exp count as an open interval from 0 to that. It is known that
// the result lies from least to most, which are numbers of dtype.
double exact_softmax(const RowsIn& row, Number x, Number max, DType dtype, double least = 0,
                     double most = std::numeric_limits<double>::infinity());

}  // namespace lnorm
