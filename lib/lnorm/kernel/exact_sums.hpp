#pragma once

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

// Of the one row of x.
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

}  // namespace lnorm
