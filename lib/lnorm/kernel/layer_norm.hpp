#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// Room for one float64 a row each, or null where it is not wanted.
struct RowStats {
  double* mean = nullptr;
  double* rstd = nullptr;
};

// Layer normalisation of every row by itself:
//
//   y[r][i] = (x[r][i] - mean[r]) * rstd[r] * weight[i] + bias[i]
//   rstd    = 1 / sqrt(var + eps)     or 1 / (sqrt(var) + eps)
//   var     = sum((x - mean)^2) / (row_length - ddof)
//
//   x, y    rows x row_length, row-major; they must not overlap
//   affine  weight and bias of row_length elements each, or neither
//   stats   mean and rstd of every row, each rounded once to float64; with formula.rms the mean is
//   0
//
// Accuracy: each y is within 0.501 ulp of the exact value of the formula, rounded once to y's dtype;
// so are mean and rstd. A further allowance covers elements that all but equal the mean, or that
// weight and bias all but cancel: where x and y are both narrower than float64 (8 to 32 bit integers
// count as such), 2^-48 of the row's largest |y|; otherwise 2^-96 of the terms that cancel. 64-bit
// integers are taken exactly, not by way of float64.
//
// A row with a NaN or an infinity gives NaN in all its elements and in its stats; so does a row with
// var = 0 and eps = 0 (its mean apart). A finite row with eps > 0 gives finite results unless the
// result itself, or a weight or bias, is beyond the finite range. The result does not depend on how
// rows are grouped into calls. Does not throw, allocate or print.
//
// Requires 0 <= ddof < row_length, eps finite and >= 0.
//
// [Ba, Kiros, Hinton 2016, arXiv:1607.06450; RMS: Zhang, Sennrich 2019, arXiv:1910.07467]
using LayerNormRows = void(const RowsIn& x, const RowsOut& y, const Affine& affine,
                           const Formula& formula, const RowStats& stats) noexcept;

// Portable C++, by the corrected two-pass algorithm.
LayerNormRows layer_norm_portable;

// Slow and plain: exact sums in integer arithmetic, one rounding at the very end.
LayerNormRows layer_norm_reference;

struct Passes;  // two_pass.hpp

struct Kernel {
  std::string name;
  LayerNormRows* layer_norm;
  const Passes* passes;  // null: by exact sums
};

// Every kernel that this machine can run, the preferred one first: SIMD kernels named by their
// targets (avx512, avx2, sse4, neon, ...), then "portable" and "reference". All but the reference
// give the same bits.
std::span<const Kernel> kernels();

// Throws Error, naming the kernels there are.
const Kernel& find_kernel(std::string_view name);

}  // namespace lnorm
