#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// Room for one float64 a row each, or null where it is not wanted.
struct MeanAndRstd {
  double* mean = nullptr;
  double* rstd = nullptr;
};

struct KernelTable;  // kernel_table.hpp

// Layer normalization on one kind of machine.
struct Backend {
  std::string name;
  const KernelTable* table;  // null: the exact way alone

  // Every row by itself:
  //
  //   y[r][i] = (x[r][i] - mean[r]) * rstd[r] * weight[i] + bias[i]
  //   rstd    = 1 / sqrt(var + eps)     or 1 / (sqrt(var) + eps)
  //   var     = sum((x - mean)^2) / (row_length - ddof)
  //   RMS     mean = 0, var = sum(x^2) / (row_length - ddof)
  //
  //   x, y    rows x row_length, row-major; they must not overlap
  //   affine  weight and bias of row_length elements each, or one for all of them, or none; where its layout says so,
  //           rows or runs of elements have a number each
  //   stats   mean and rstd of every row
  //
  // Accuracy: each y is the exact value of the formula rounded once to y's dtype, mean and rstd to float64: to
  // nearest, ties to even, subnormals and overflow by IEEE 754. 64-bit integers are taken exactly. So all kernels
  // give the same results, however rows are grouped into calls.
  //
  // Where affine has steps, xhat or its product with weight is rounded to y's dtype before the next step, and every
  // step to it once.
  //
  // An exact zero is +0; a result that rounds to zero keeps its sign. A row with a NaN or an infinity gives NaN in
  // all its elements and stats. A row with var = 0 gives NaN where eps = 0, its mean apart. Weight or bias that is
  // not finite acts on the exact xhat by IEEE's rules.
  //
  // Requires 0 <= ddof < row_length, eps finite and >= 0. Throws std::bad_alloc alone.
  //
  // [Ba, Kiros, Hinton 2016, arXiv:1607.06450; RMS: Zhang, Sennrich 2019, arXiv:1910.07467]
  void layer_norm(const RowsIn& x, const RowsOut& y, const Affine& affine, const Formula& formula,
                  const MeanAndRstd& stats) const;
};

// Every kernel that this machine can run, the preferred one first: SIMD kernels named by their targets (avx512,
// avx2, sse4, neon), then "portable", then "reference", which decides everything in exact integers.
std::span<const Backend> backends();

// Throws Error, naming the kernels there are.
const Backend& find_backend(std::string_view name);

}  // namespace lnorm
