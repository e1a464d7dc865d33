#pragma once

#include "lnorm/core/options.hpp"
#include "lnorm/kernel/dyadic.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// The sums over a row, or a part of it, without rounding.
struct ExactSums {
  bool finite = true;  // if not, the sums say nothing
  Dyadic sum;          // of x
  Dyadic squares;      // of x^2

  ExactSums& operator+=(const ExactSums& other) {
    finite = finite && other.finite;
    sum = sum + other.sum;
    squares = squares + other.squares;
    return *this;
  }
};

// The exact sums of the one row of x.
inline ExactSums exact_sums(const RowsIn& x) {
  ExactSums sums;
  for_each_element(x, [&](std::int64_t, Number element) {
    sums.finite = sums.finite && std::isfinite(element.high);
    if (!sums.finite) return;
    const Dyadic term(element);
    sums.sum = sums.sum + term;
    sums.squares = sums.squares + square(term);
  });
  return sums;
}

// What the exact results of a row of n elements are made of. Let S1 and S2 be the sums of x and x^2, and eps_v or eps_s the
// one that is not eps, 0. With eps in max() both are 0 where sqrt(V / (n f)) >= eps; else A = 0 and eps_s = eps.
struct ExactMoments {
  Dyadic n;
  Dyadic freedom;      // f = n - ddof
  Dyadic sum;          // S1; 0 without a mean
  Dyadic centered;     // V = n S2 - S1^2
  Dyadic scaled;       // A = V + n f eps_v
  Dyadic eps_on_std;   // eps_s
  bool is_s_constant;  // s is eps, whatever x is

  ExactMoments(const ExactSums& sums, std::int64_t length, const Formula& formula)
      : n(length),
        freedom(formula.freedom(length)),
        sum(formula.has_mean() ? sums.sum : Dyadic()),
        centered(n * sums.squares - square(sum)),
        scaled(centered) {
    const Dyadic eps(formula.eps);
    is_s_constant =
        formula.eps_on == EpsOn::max && compare(centered, n * freedom * square(eps)) < 0;
    if (is_s_constant) scaled = Dyadic();
    if (formula.eps_on == EpsOn::variance) scaled = scaled + n * freedom * eps;
    if (formula.eps_on == EpsOn::std || is_s_constant) eps_on_std = eps;
  }

  // Whether s = sqrt(A / (n f)) + eps_s > 0.
  bool is_defined() const { return scaled.sign() != 0 || eps_on_std.sign() != 0; }
};

}  // namespace lnorm
