#pragma once

#include <cstdint>

#include "lnorm/core/double_double.hpp"

namespace lnorm {

// (m.high + m.low) * 2^exponent, 1 <= |m.high| < 2, or zero: a double-double that cannot overflow.
struct Scaled {
  DoubleDouble m;
  std::int64_t exponent = 0;
};

// m * 2^exponent of any m.
Scaled normalized(DoubleDouble m, std::int64_t exponent) noexcept;

// high + low, which are finite.
Scaled scaled(double high, double low = 0) noexcept;

Scaled operator*(Scaled a, Scaled b) noexcept;
Scaled operator/(Scaled a, Scaled b) noexcept;
Scaled operator+(Scaled a, Scaled b) noexcept;
Scaled sqrt(Scaled a) noexcept;

// Rounded once, to a subnormal number as well; infinity beyond the largest.
double to_double(Scaled value) noexcept;

}  // namespace lnorm
