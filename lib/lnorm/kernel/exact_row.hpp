#pragma once

#include <cstdint>

#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/exact_statistics.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// Layer normalisation of a row from its exact sums:
//
//   x - mean = (n x - sum(x)) / n
//
// What is left (a division, a root, the affine parameters) is done in double-doubles with an exponent
// of their own, and rounded once.
class ExactRow {
 public:
  // n: the length of the row.
  ExactRow(const ExactSums& sums, std::int64_t n, const Formula& formula) noexcept;

  // Rounded once; NaN where they are not defined.
  double mean() const noexcept;
  double rstd() const noexcept;

  // The results of a part of the row. offset: where in the row it begins.
  void write(const RowsIn& part, const Affine& affine, std::int64_t offset,
             const RowsOut& y) const noexcept;

 private:
  std::int64_t n_;
  bool finite_;
  bool defined_ = false;
  ExactInteger minus_sum_;  // 0 for RMS
  Scaled mean_;
  Scaled denominator_;  // sqrt(var + eps), or the like
};

}  // namespace lnorm
