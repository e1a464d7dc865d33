#pragma once

#include <cfloat>
#include <cmath>

// Arithmetic on unevaluated sums of two doubles: see double_double-inl.hpp, which has most of it.
//
// Error-free transforms need every operation rounded by itself: the library is compiled with
// -ffp-contract=off, and asks for a fused multiply-add where it wants one.
namespace lnorm {

static_assert(FLT_EVAL_METHOD == 0, "doubles are computed with more precision than they have");

struct DoubleDouble {
  double high = 0;
  double low = 0;
};

namespace double_double {

using Real = double;
using Pair = DoubleDouble;

#ifdef __FP_FAST_FMA
constexpr bool kHasFusedMultiplyAdd = true;
#else
constexpr bool kHasFusedMultiplyAdd = false;
#endif
inline double multiply_subtract(double a, double b, double c) noexcept {
  return std::fma(a, b, -c);
}
inline double splat(double value) noexcept { return value; }

#define LNORM_REAL_INLINE inline
#include "lnorm/core/double_double-inl.hpp"
#undef LNORM_REAL_INLINE

}  // namespace double_double

using double_double::fast_two_sum;
using double_double::two_product;
using double_double::two_sum;
using double_double::operator+;
using double_double::operator*;

inline DoubleDouble operator-(DoubleDouble a) noexcept { return {-a.high, -a.low}; }
inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) noexcept { return a + -b; }

// Error: 10 u^2. The product is off by 3 u^2; the remainder is at most 2 u of a, and its three roundings
// (to rest.high, to b.high, of the quotient) make 2 u^2 each.  [compare Joldes et al., algorithm 17]
inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) noexcept {
  const double first = a.high / b.high;
  const DoubleDouble rest = a - b * first;
  return fast_two_sum(first, rest.high / b.high);
}

// For a >= 0. Error: 5 u^2. The rounded root is off by at most 1.5 u: u, and half of a.low. The Newton step
// from there leaves half of the square of that, 1.2 u^2, and is itself computed within 2 u, which makes 3 u^2.
inline DoubleDouble sqrt(DoubleDouble a) noexcept {
  if (a.high == 0) return {};
  const double root = std::sqrt(a.high);
  const DoubleDouble rest = a - two_product(root, root);
  return fast_two_sum(root, rest.high / (2 * root));
}

}  // namespace lnorm
