#pragma once

#include <cmath>
#include <optional>

#include "lnorm/core/double_double.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

// What the numbers within error of a value round to.
struct Bracket {
  double least = -kInfinity;
  double most = kInfinity;

  bool is_decided() const noexcept { return same_result(least, most); }
};

// An end that is no double, because something on the way to it is beyond the range, tells nothing.
inline Bracket bracket(double value, double error, DType dtype) noexcept {
  const double low = value - error;
  const double high = value + error;
  if (!std::isfinite(low) || !std::isfinite(high)) return {};
  return {rounded(low, dtype), rounded(high, dtype)};
}

// exponent: of the power of two that the numbers are to be multiplied by.
inline Bracket bracket(DoubleDouble value, double error, DType dtype, int exponent = 0) noexcept {
  if (value.high == 0 && error == 0) return {0, 0};
  const double margin = error + bound::kRounding * kUnit2 * std::fabs(value.high);
  const DoubleDouble low = value + -margin;
  const DoubleDouble high = value + margin;
  if (!std::isfinite(low.high) || !std::isfinite(high.high)) return {};
  if (exponent == 0) return {rounded(low, dtype), rounded(high, dtype)};
  return {rounded(low, exponent, dtype), rounded(high, exponent, dtype)};
}

// The float64 that value rounds to, where its error leaves no choice.
inline std::optional<double> decided(DoubleDouble value, double error) noexcept {
  const Bracket b = bracket(value, error, DType::float64);
  if (!b.is_decided()) return std::nullopt;
  return b.least;
}

}  // namespace lnorm
