#pragma once

#include <cstdint>
#include <optional>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/dyadic.hpp"
#include "lnorm/kernel/exact_sums.hpp"
#include "lnorm/kernel/gradient.hpp"

namespace lnorm {

// The sums over a row, or a part of it, without rounding.
struct ExactGradientSums {
  ExactSums x;
  bool is_g_finite = true;  // if not, the sums of g say nothing
  Dyadic g;                 // of g
  Dyadic gx;                // of g * x, where x is finite, too
};

void add_exact_sums(const GradientPart& part, const AffineTerm& weight, ExactGradientSums& sums);

// What integer arithmetic says of the gradient of a row whose x is finite: every result is decided, ties included.
//
// With the letters of ExactMoments, G = sum(g), H = sum(g x) and C = n H - S1 G (without a mean S1 = G = 0), D = n x - S1 and
// E = n g - G,
//
//   eps on the variance   dx = (E A - D C) / (n A s)                 s^2 = A / (n f)
//   on the std            dx < m  <=>  p + r q < 0                   q^2 = var = V / (n f)
//                         p = E V - D C - 2 m n eps_s V              r = E n f eps_s - m (n V + n^2 f eps_s^2)
//   saved M and R         dx = (f E R - n (x - M) R^3 P) / (n f)     P = H - M G
//
// is decided for m, a point halfway between two neighboring results, by sign_of (dyadic.hpp).
class ExactGradient {
 public:
  // saved: null if mean and s are computed. Of constants M is the mean, S1 = G = C = 0, and A is that of the variance.
  ExactGradient(const ExactGradientSums& sums, std::int64_t n, const Formula& formula,
                const SavedStatistics* saved);

  // Whether s > 0, so that x-hat is a number; and whether g is finite, too, and there is a derivative.
  bool is_defined() const { return is_saved_ || row_.is_defined(); }
  bool has_dx() const {
    return has_g_ && (is_saved_ || (is_s_constant() ? is_defined() : row_.scaled.sign() != 0));
  }

  // dx of an element, rounded once to dtype. g is finite. It is known to lie from least to most, which are results
  // of that dtype.
  double dx(Number x, const Dyadic& g, DType dtype, double least = -kInfinity,
            double most = kInfinity) const;

  // Whether x is the mean.
  bool is_mean(Number x) const { return deviation(x).sign() == 0; }

  // The term dy (x - mean) / s of dweight, dy finite: where it is not 0, the exponent of the greatest power of two that
  // is not above its size.
  std::optional<std::int64_t> term_exponent(Number x, Number dy) const;
  // The term in multiples of 2^exponent, truncated.
  Integer truncated_term(Number x, Number dy, std::int64_t exponent) const;

 private:
  // D, or with a mean that is given n (x - M).
  Dyadic deviation(Number x) const;
  // The sign of dx - m.
  int side(const Dyadic& d, const Dyadic& e, const Dyadic& m) const;
  // About log2 |dx|, where that is easy to tell.
  double guess_log2(const Dyadic& d, const Dyadic& e) const;
  // The size of D dy, of which a term is 1 / (n s) times.
  Dyadic scaled_term(Number x, Number dy) const;
  // The sign of size / (n s) - m; by a saved rstd both are positive.
  int term_side(const Dyadic& size, const Dyadic& m) const;
  double log2_s() const;
  // Whether s has no derivative that is not 0: dx = E / (n s).
  bool is_s_constant() const { return are_constants_ || row_.is_s_constant; }

  ExactMoments row_;
  bool has_mean_;
  bool are_constants_;
  bool is_saved_;   // rstd is, too
  bool has_g_;      // else g_sum_ and product_ say nothing
  Dyadic g_sum_;    // G
  Dyadic product_;  // C; of saved statistics P
  Dyadic mean_;     // M
  Dyadic rstd_;     // R
};

}  // namespace lnorm
