#pragma once

#include <array>
#include <string>
#include <string_view>

namespace lnorm::page {

// What a scale counts in: 1, or a power of ten where numbers are so small or so great that Vega finds no ticks for them.
class Magnitude {
 public:
  Magnitude() = default;
  // greatest: in absolute value, of the numbers.
  explicit Magnitude(double greatest);

  double count(double value) const { return value * factors_[0] * factors_[1]; }

  // The same of an expression: what stands after it.
  std::string times() const;
  // The two that a number is multiplied with.
  const std::array<double, 2>& factors() const { return factors_; }

  // "mean", or "mean in 1e-310".
  std::string title(std::string_view what) const;

 private:
  int exponent_ = 0;
  std::array<double, 2> factors_ = {1, 1};  // as 1e324 is no number
};

}  // namespace lnorm::page
