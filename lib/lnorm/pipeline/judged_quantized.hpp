#pragma once

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/quantize.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// What a kernel has quantized, and how it was asked to.
struct QuantizedInputs {
  TensorSource& x;  // or its sum with a residual
  TensorSource& actual;
  TensorSource* alone =
      nullptr;  // x without the residual; null: there is none, or it cannot be read again
  TensorSource* scale = nullptr;  // the kernel's, a number for each group; null: computed
  bool is_transposed = false;     // groups come first in it
  const AffineTerm& weight;
  const AffineTerm& bias;
  const Affine& affine;                    // made of these
  const GivenStatistics* given = nullptr;  // null: statistics are computed
  const Quantization& quantization;
  const AffineTerm* given_scale =
      nullptr;  // in the order of the plan's layout; null: scales are computed
};

// Judges q and the scales together by the plan of x, whose rows are whole and in C order. E is E_y of docs/numbers.md without the last
// rounding, u the unit roundoff of the kernel's arithmetic:
//
//   a scale is right if it is what some amax / qmax gives, each |y| of the group within its E, and the quotient within 3 u
//   q is right if some (y +- E) / scale (1 +- 4 u) rounds to it, by the kernel's own scale
//
// So a scale that is wrong is said once, not in every element. Without the kernel's scales one number that a scale may be must suit all
// of a group. Throws Error.
// is_sum: x is a sum, which is not rounded.
Check check_quantized(const QuantizedInputs& inputs, const Plan& plan, const Backend& backend,
                      bool is_sum, const CheckOptions& options, const RunOptions& run_options);

}  // namespace lnorm
