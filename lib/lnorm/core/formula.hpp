#pragma once

#include "lnorm/core/double_double.hpp"
#include "lnorm/core/norm.hpp"

// The formula of layer normalization in doubles and double-doubles: formula-inl.hpp has it.
namespace lnorm {

namespace double_double {

inline DoubleDouble square_root(DoubleDouble value) noexcept { return sqrt(value); }
inline double negated(double value) noexcept { return 0 - value; }
inline DoubleDouble negated(DoubleDouble value) noexcept { return -value; }
inline double multiply_add(double a, double b, double c) noexcept { return a * b + c; }
inline DoubleDouble multiply_add(DoubleDouble a, DoubleDouble b, DoubleDouble c) noexcept {
  return a * b + c;
}
inline DoubleDouble quotient(DoubleDouble value, DoubleDouble count) noexcept {
  return value / count;
}

inline double larger(double value, double least) noexcept { return value > least ? value : least; }
inline DoubleDouble larger(DoubleDouble value, double least) noexcept {
  return value.high > least || (value.high == least && value.low > 0) ? value : DoubleDouble{least};
}

#define LNORM_REAL_INLINE inline
#include "lnorm/core/formula-inl.hpp"
#undef LNORM_REAL_INLINE

}  // namespace double_double

using double_double::Divisors;
using double_double::dx_of;
using double_double::GradientTerms;
using double_double::squares_about_mean;
using double_double::xhat_of;
using double_double::y_of;

}  // namespace lnorm
