#pragma once

#include <string>
#include <vector>

#include "lnorm/pipeline/check.hpp"
#include "support/emulated_kernel.hpp"

namespace emulated {

// What lnorm says of y as layer norm of x, in these dtypes. formula: what the kernel was asked for.
lnorm::Check check(const Tensor& x, lnorm::DType x_dtype, const Tensor& y, const Kernel& kernel,
                   const lnorm::Formula& formula, const Affine& affine);

// A right kernel among all: its factors by a number, and what they are called.
struct RightCase {
  std::string name;
  Kernel kernel;
  int input = 0;
  int affine = 0;
  std::int64_t rows = 0;
  std::int64_t n = 0;
  lnorm::DType x_dtype = lnorm::DType::float32;
};
RightCase right_case(std::mt19937_64& random);

}  // namespace emulated
