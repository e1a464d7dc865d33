#pragma once

#include <cstdint>
#include <memory>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

struct ExactSums;  // exact_sums.hpp

// What is done to xhat: y = (xhat * weight + bias) * scale / divisor.
struct ExactTerms {
  Number weight{1};
  Number bias{0};
  double scale = 1;
  double divisor = 1;  // positive
};

// What integer arithmetic says of a finite row: every result is decided, ties included.
//
// With the letters of ExactMoments (exact_sums.hpp) it is:
//
//   mean = S1 / n     var = V / (n f)     s = sqrt(A / (n f)) + eps_s     y = (n x - S1) w / (n s) + b
//   Without a mean S1 = 0 in all of these. Of saved statistics 1/s may be times rstd.
//
// A scale multiplies w and b.
//
// m is halfway between two neighboring results. All of these numbers are integers times powers of two, and
//
//   y < m   <=>   T < (m - b) sqrt(n A / f)      T = (n x - S1) w - (m - b) n eps_s
//
// is decided by sign_of (dyadic.hpp).
class ExactRow {
 public:
  // sums are finite. n: the length of the row.
  ExactRow(const ExactSums& sums, std::int64_t n, const Formula& formula);

  // Of saved statistics, which are finite: by rstd, the divisor is 1 before it.
  ExactRow(const SavedStatistics& saved, const Formula& formula);

  // Whether s > 0: else y and rstd are 0/0.
  bool is_defined() const noexcept;

  // Rounded once, to float64. rstd = 1 / s, where that is defined.
  double sum() const;
  double mean() const;
  double variance() const;
  double rstd() const;

  // sum((x - mean)^2), and s, which may be 0, rounded in the same way.
  double squares() const;
  double divisor() const;

  // So are x - mean of an element, and its square.
  double deviation(Number x) const;
  double squared_deviation(Number x) const;

  // So is sum(xhat^2) / n, where xhat is defined.
  double mean_square() const;

  // y of an element, rounded once to dtype; the terms are finite. It is known to lie from least to most, which are
  // results of that dtype.
  double element(Number x, const ExactTerms& terms, DType dtype, double least = -kInfinity,
                 double most = kInfinity) const;

  // Whether y of an element is 0, however small it may be.
  bool is_zero(Number x, const ExactTerms& terms) const;

  // The sign of x - mean: -1, 0 or 1.
  int deviation_sign(Number x) const;

 private:
  struct Integers;
  std::shared_ptr<const Integers> integers_;
};

// A row that is read once, for any formula.
class SummedRow {
 public:
  SummedRow(const ReadRow& read_row, std::int64_t n);

  bool is_finite() const noexcept;

  // Requires that it is finite, and ddof < n.
  ExactRow by(const Formula& formula) const;

 private:
  std::shared_ptr<const ExactSums> sums_;
  std::int64_t n_;
};

}  // namespace lnorm
