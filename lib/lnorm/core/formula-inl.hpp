// The formula of layer normalization, over whatever Real and Pair are where this is included: doubles and double-doubles
// (formula.hpp), or vectors of them (kernel/simd-inl.hpp). T is one of the two. It has no include guard. Before it there are
// double_double-inl.hpp, and of T
//
//   square_root(T), negated(T)
//   multiply_add(T a, T b, T c)   a * b + c
//   quotient(T, Count)            Count: a number of elements
//   larger(T, double)
//
// Of a row of n elements x:
//
//   y = xhat * weight + bias      xhat = (x - mean) / s
//
//   s = sqrt(var + eps)  or  sqrt(var) + eps  or  max(sqrt(var), eps)
//
//   mean = sum(x) / n      var = sum((x - mean)^2) / (n - ddof)
//
// and backward, with g = dy * weight:
//
//   dx = (g - sum(g) / n) / s - (x - mean) * sum(g * (x - mean)) / ((n - ddof) * s^2 * t)
//
// Where sqrt(var) < eps in max(), s is eps and has no derivative: dx is its first term.
// Norms without a mean (norm.hpp) take 0 for sum(x) and sum(g). Sums are of d = x - center, and mean = center + shift. What is exact
// says all of it once more, in integers: kernel/exact_sums.hpp, exact_row.hpp and exact_gradient.hpp.

// sum((x - mean)^2)
template <class T>
LNORM_REAL_INLINE T squares_about_mean(T squares, T sum, T shift) {
  return squares - shift * sum;
}

// s, and t: the derivative of s is that of var, divided by 2 t.
template <class T>
struct Divisors {
  bool are_same;
  T s;
  T t;

  LNORM_REAL_INLINE Divisors(T variance, const Formula& formula)
      : are_same(formula.eps_on == EpsOn::variance) {
    if (are_same) {
      s = t = square_root(variance + splat(formula.eps));
    } else {
      t = square_root(variance);
      s = formula.eps_on == EpsOn::std ? t + splat(formula.eps) : larger(t, formula.eps);
    }
  }
};

// rstd = 1 / s. at_center: xhat of the center, which is -shift * rstd.
template <class T>
LNORM_REAL_INLINE T xhat_of(T d, T rstd, T at_center) {
  return multiply_add(d, rstd, at_center);
}
LNORM_REAL_INLINE Pair xhat_of(Pair deviation, Pair rstd) { return deviation * rstd; }

template <class T>
LNORM_REAL_INLINE T y_of(T xhat, T weight, T bias) {
  return multiply_add(xhat, weight, bias);
}

template <class T>
LNORM_REAL_INLINE T dx_of(T g, T d, T rstd, T slope, T constant) {
  return multiply_add(g, rstd, multiply_add(d, slope, constant));
}

// What dx is made of: scale = 1 / ((n - ddof) s^2 t), slope and constant. gx: the sum of g * d.
template <class T>
struct GradientTerms {
  T scale;
  T slope;
  T constant;

  template <class Count>
  LNORM_REAL_INLINE GradientTerms(T g, T gx, T shift, T rstd, T per_t, const Count& n,
                                  const Count& freedom)
      : scale(quotient(rstd * rstd * per_t, freedom)),
        slope(negated((gx - shift * g) * scale)),
        constant(negated(quotient(g, n) * rstd)) {}
};
