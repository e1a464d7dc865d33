#pragma once

#include "lnorm/core/dtype.hpp"

namespace lnorm {

// What the finite numbers of a float dtype are: the multiples of a power of two that have at most so many
// bits, from the smallest subnormal up to the greatest.
struct FloatFormat {
  int precision = 0;       // bits, the leading one among them
  int least_exponent = 0;  // the smallest subnormal is 2^least_exponent
  double greatest = 0;
};

// Requires a float dtype.
FloatFormat float_format(DType dtype);

}  // namespace lnorm
