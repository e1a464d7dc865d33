#pragma once

#include <cstdint>
#include <limits>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// What is done to a softmax, and what is known of the result: it lies from least to most, which are numbers of the dtype.
struct SoftmaxResult {
  double scale = 1;
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

// Softmax of the element x of a row whose largest element is max, times the scale, rounded once to dtype: by integers of more and more
// bits, until they decide. They always do. By Lindemann and Weierstrass no result lies halfway between two numbers
// unless all elements that count are equal; then nothing is rounded, and the tie is seen.
//
// Elements that are smaller than 2^-5000 of the largest after exp count as an open interval from 0 to that.
double exact_softmax(const ReadRow& read_row, Number x, Number max, DType dtype,
                     const SoftmaxResult& known = {});

}  // namespace lnorm
