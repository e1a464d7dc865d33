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
inline double square_root(double value) noexcept { return std::sqrt(value); }

#define LNORM_REAL_INLINE inline
#include "lnorm/core/double_double-inl.hpp"
#undef LNORM_REAL_INLINE

}  // namespace double_double

using double_double::fast_two_sum;
using double_double::two_product;
using double_double::two_sum;
using double_double::operator+;
using double_double::operator-;
using double_double::operator*;
using double_double::operator/;

inline DoubleDouble sqrt(DoubleDouble a) noexcept {
  return a.high == 0 ? DoubleDouble{} : double_double::root(a);
}

}  // namespace lnorm
