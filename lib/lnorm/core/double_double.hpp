#pragma once

#include <cfloat>
#include <cmath>

// Arithmetic on unevaluated sums of two doubles, good to about 2^-100 relative.
//
// Needs round-to-nearest and no contraction of a * b + c into a fused multiply-add that the source
// does not ask for: the library is compiled with -ffp-contract=off.
// [Dekker 1971; Knuth TAOCP vol. 2, 4.2.2; Hida, Li, Bailey 2001, "Library for Double-Double and
// Quad-Double Arithmetic"]
namespace lnorm {

static_assert(FLT_EVAL_METHOD == 0, "doubles are computed with more precision than they have");

// high is the sum rounded to double wherever the value has been normalised.
struct DoubleDouble {
  double high = 0;
  double low = 0;
};

// a + b = high + low exactly (no overflow).  [Knuth]
inline DoubleDouble two_sum(double a, double b) noexcept {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// The same where |a| >= |b| or a = 0.  [Dekker]
inline DoubleDouble fast_two_sum(double a, double b) noexcept {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// a * b = high + low exactly, for |a|, |b| < 2^996 and products from 2^-968 up; without a fused
// multiply-add, so that every machine does the same.  [Dekker, Veltkamp]
inline DoubleDouble two_product(double a, double b) noexcept {
  constexpr double kSplitter = 0x1p27 + 1;
  const double a_scaled = kSplitter * a;
  const double a_high = a_scaled - (a_scaled - a);
  const double a_low = a - a_high;
  const double b_scaled = kSplitter * b;
  const double b_high = b_scaled - (b_scaled - b);
  const double b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

inline DoubleDouble operator-(DoubleDouble a) noexcept { return {-a.high, -a.low}; }

inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) noexcept {
  const DoubleDouble high = two_sum(a.high, b.high);
  const DoubleDouble low = two_sum(a.low, b.low);
  const DoubleDouble sum = fast_two_sum(high.high, high.low + low.high);
  return fast_two_sum(sum.high, sum.low + low.low);
}

inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) noexcept { return a + -b; }

inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) noexcept {
  const DoubleDouble product = two_product(a.high, b.high);
  return fast_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

// Long division, two digits of the quotient.
inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) noexcept {
  const double first = a.high / b.high;
  const DoubleDouble rest = a - b * DoubleDouble{first};
  return fast_two_sum(first, rest.high / b.high);
}

// For a >= 0: one Newton step from the rounded root.
inline DoubleDouble sqrt(DoubleDouble a) noexcept {
  if (a.high == 0) return {};
  const double root = std::sqrt(a.high);
  const DoubleDouble rest = a - two_product(root, root);
  return fast_two_sum(root, rest.high / (2 * root));
}

}  // namespace lnorm
