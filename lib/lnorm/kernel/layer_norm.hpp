#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

// Where numbers of rows go, as float64; null: they are not wanted. There is one a row; of scales one for each group (quantize.hpp).
struct RowNumbersOut {
  double* mean = nullptr;
  double* rstd = nullptr;
  double* variance = nullptr;
  double* scale = nullptr;
};

// Statistics of all rows that are not computed, as those of batch normalization in evaluation: mean, and rstd or the variance.
struct GivenStatistics {
  std::vector<double> mean;  // empty: 0
  std::vector<double> rstd;
  std::vector<double> variance;  // 0 or more; empty: rstd is given
  AffineLayout layout;           // which numbers a row has

  SavedStatistics of(std::int64_t row) const {
    const auto number = [&](const std::vector<double>& numbers) {
      if (numbers.empty()) return Number{};
      return Number{numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(layout.first(row))]};
    };
    SavedStatistics one{number(mean), number(rstd)};
    if (!variance.empty()) one.variance = number(variance);
    return one;
  }
};

struct KernelTable;  // kernel_table.hpp

// Layer normalization on one kind of machine.
struct Backend {
  std::string name;
  const KernelTable* table;  // null: the exact way alone

  // Every row by itself:
  //
  //   y[r][i] = (x[r][i] - mean[r]) * rstd[r] * weight[i] + bias[i]      as core/formula-inl.hpp says
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
                  const RowNumbersOut& stats) const;
};

// The same by these statistics. offset: where in their rows x and y begin, if they are parts. What is not finite, and a division by
// s = 0, act by IEEE's rules; so the elements of a row do not depend on each other.
void normalize_by(const Backend& backend, const GivenStatistics& given, const RowsIn& x,
                  const RowsOut& y, const Affine& affine, const Formula& formula,
                  std::int64_t offset = 0);

// Every kernel that this machine can run, the preferred one first: SIMD kernels named by their targets (avx512,
// avx2, sse4, neon), then "portable", then "reference", which decides everything in exact integers.
std::span<const Backend> backends();

// Throws Error, naming the kernels there are.
const Backend& find_backend(std::string_view name);

}  // namespace lnorm
