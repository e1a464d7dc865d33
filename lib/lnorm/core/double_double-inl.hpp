// Error-free transforms and double-double arithmetic, over whatever Real is where this is included: a
// double (double_double.hpp), or a vector of doubles of one SIMD target (kernel/simd-inl.hpp). It has no
// include guard. Before it there are
//
//   Real                       with + - * /, each rounded to nearest, and square_root(Real)
//   Pair                       {Real high, low}: the unevaluated sum high + low, high the nearest double
//   splat(double)              as a Real
//   multiply_subtract(a, b, c) a * b - c, rounded once; kHasFusedMultiplyAdd: whether that is fast
//
// u is 2^-53. Error bounds are relative to the exact result, and hold while nothing overflows or
// underflows. [Joldes, Muller, Popescu 2017, "Tight and rigorous error bounds for basic building blocks
// of double-word arithmetic"; Muller, Rideau 2022 corrects its proofs]

// a + b = high + low exactly.  [Knuth, TAOCP vol. 2, 4.2.2, theorem B]
LNORM_REAL_INLINE Pair two_sum(Real a, Real b) {
  const Real sum = a + b;
  const Real b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// The exact sum in fewer steps. Requires |a| >= |b| or a = 0.  [Dekker 1971]
LNORM_REAL_INLINE Pair fast_two_sum(Real a, Real b) {
  const Real sum = a + b;
  return {sum, b - (sum - a)};
}

// a * b - product exactly, where that is the rounded a * b. Without fused multiply-add factors are split in
// halves.  [Dekker, Veltkamp]
LNORM_REAL_INLINE Real product_error(Real a, Real b, Real product) {
  if constexpr (kHasFusedMultiplyAdd) {
    return multiply_subtract(a, b, product);
  } else {
    const Real splitter = splat(0x1p27 + 1);
    const Real a_scaled = splitter * a;
    const Real a_high = a_scaled - (a_scaled - a);
    const Real a_low = a - a_high;
    const Real b_scaled = splitter * b;
    const Real b_high = b_scaled - (b_scaled - b);
    const Real b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
  }
}

// a * b = high + low exactly, for products from 2^-968 up; below that low is off by 2^-1074 (kernel/statistics.hpp, kLostBits). Where a
// factor cannot be split (2^996, without fused multiply-add), or the product overflows, low is not finite: nothing is decided by it.
LNORM_REAL_INLINE Pair two_product(Real a, Real b) {
  const Real product = a * b;
  return {product, product_error(a, b, product)};
}

// Error: 2 u^2.  [Joldes et al., algorithm 4]
LNORM_REAL_INLINE Pair operator+(Pair a, Real b) {
  const Pair sum = two_sum(a.high, b);
  return fast_two_sum(sum.high, a.low + sum.low);
}

// Error: 3 u^2 + 13 u^3, whatever cancels.  [algorithm 6]
LNORM_REAL_INLINE Pair operator+(Pair a, Pair b) {
  const Pair high = two_sum(a.high, b.high);
  const Pair low = two_sum(a.low, b.low);
  const Pair sum = fast_two_sum(high.high, high.low + low.high);
  return fast_two_sum(sum.high, sum.low + low.low);
}

// Error: 5 u^2.  [algorithm 10]
LNORM_REAL_INLINE Pair operator*(Pair a, Pair b) {
  const Pair product = two_product(a.high, b.high);
  return fast_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

// Error: 3 u^2.  [algorithm 7]
LNORM_REAL_INLINE Pair operator*(Pair a, Real b) {
  const Pair product = two_product(a.high, b);
  return fast_two_sum(product.high, product.low + a.low * b);
}

LNORM_REAL_INLINE Pair operator-(Pair a) { return {splat(-0.0) - a.high, splat(-0.0) - a.low}; }
LNORM_REAL_INLINE Pair operator-(Pair a, Pair b) { return a + -b; }

// Error: 10 u^2. The product is off by 3 u^2; the remainder is at most 2 u of a, and its three roundings
// (to rest.high, to b.high, of the quotient) make 2 u^2 each.  [compare Joldes et al., algorithm 17]
LNORM_REAL_INLINE Pair operator/(Pair a, Pair b) {
  const Real first = a.high / b.high;
  const Pair rest = a - b * first;
  return fast_two_sum(first, rest.high / b.high);
}

// Error: 3.5 u^2.  [algorithm 15]
LNORM_REAL_INLINE Pair operator/(Pair a, Real b) {
  const Real first = a.high / b;
  const Pair product = two_product(first, b);
  const Real rest = ((a.high - product.high) - product.low) + a.low;
  return fast_two_sum(first, rest / b);
}

// Requires a > 0. Error: 5 u^2. The rounded root is off by at most 1.5 u: u, and half of a.low. The
// Newton step from there leaves half of the square of that, 1.2 u^2, and is itself computed within
// 2 u, which makes 3 u^2.
LNORM_REAL_INLINE Pair root(Pair a) {
  const Real first = square_root(a.high);
  const Pair rest = a - two_product(first, first);
  return fast_two_sum(first, rest.high / (first + first));
}
