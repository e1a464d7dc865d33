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

inline Bracket bracket(double value, double error, DType dtype) noexcept {
  return {rounded(value - error, dtype), rounded(value + error, dtype)};
}

inline Bracket bracket(DoubleDouble value, double error, DType dtype) noexcept {
  if (value.high == 0 && error == 0) return {0, 0};
  const double margin = error + bound::kRounding * kUnit2 * std::fabs(value.high);
  return {rounded(value + -margin, dtype), rounded(value + margin, dtype)};
}

// The float64 that value rounds to, where its error leaves no choice.
inline std::optional<double> decided(DoubleDouble value, double error) noexcept {
  const Bracket b = bracket(value, error, DType::float64);
  if (!b.is_decided()) return std::nullopt;
  return b.least;
}

}  // namespace lnorm
