#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "lnorm/core/dtype_table.hpp"

// What rounding can do to a kernel's numbers: the model of docs/numbers.md, "What rounding explains".
namespace lnorm {

// The arithmetic that a kernel computes in.
struct Arithmetic {
  double unit;             // u, the unit roundoff
  double smallest_normal;  // t
  double greatest;
  DType dtype;
};
inline Arithmetic arithmetic_of(DType dtype) {
  const FloatFormat& format = float_format(dtype);
  return {std::ldexp(1.0, -format.precision),
          std::ldexp(1.0, format.least_exponent + format.precision - 1), format.greatest, dtype};
}

// g: what a sum of n terms loses that is added pairwise, by vectors or warps, relatively to the sum of their magnitudes. depth: the
// additions that a term goes through, where they are known. [Higham 2002, 4.2; Higham and Mary 2019, SIAM J. Sci. Comput. 41(5)]
inline double summation_error(double n, double unit,
                              const std::optional<std::int64_t>& depth = {}) {
  if (depth) return static_cast<double>(*depth) * unit;
  const double h = std::min(n, std::log2(n) + 8);
  return std::min(h, 4 * std::sqrt(h)) * unit;
}

// The spacing of a float dtype's numbers, and rounding to it.
class OutputFormat {
 public:
  explicit OutputFormat(DType dtype)
      : dtype_(dtype),
        format_(float_format(dtype)),
        half_unit_(std::ldexp(1.0, -format_.precision)),
        smallest_half_(std::ldexp(1.0, format_.least_exponent - 1)) {}

  DType dtype() const noexcept { return dtype_; }
  int precision() const noexcept { return format_.precision; }
  double greatest() const noexcept { return format_.greatest; }
  double half_unit() const noexcept { return half_unit_; }  // half an ulp of 1 to 2
  double smallest_half() const noexcept { return smallest_half_; }

  // Half an ulp at v, which is finite; of a float64 at least the smallest normal float64.
  double half_ulp(double v) const noexcept {
    constexpr std::uint64_t kExponent = 0x7ff0'0000'0000'0000;
    const auto power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(v) & kExponent);
    const double half = power * half_unit_;
    return half > smallest_half_ ? half : smallest_half_;
  }

  // Whether a finite number of this size rounds to infinity.
  bool overflows(double size) const noexcept {
    return size >= format_.greatest + half_ulp(format_.greatest);
  }

  // v rounded to nearest, ties to even.
  double rounded(double v) const noexcept { return to_grid(v, std::nearbyint); }

  // v rounded toward zero, as a kernel does that cuts bits off.
  double truncated(double v) const noexcept { return to_grid(v, std::trunc); }

 private:
  double to_grid(double v, double (*to_integer)(double)) const noexcept {
    if (dtype_ == DType::float64 || !std::isfinite(v) || v == 0) return v;
    const double ulp = 2 * half_ulp(v);
    const double on_grid = to_integer(v / ulp) * ulp;
    return std::fabs(on_grid) > format_.greatest ? std::copysign(INFINITY, v) : on_grid;
  }

  DType dtype_;
  FloatFormat format_;
  double half_unit_;
  double smallest_half_;
};

// Rounds a number that a kernel rounds as well, and has within an error: returns a whole ulp where the kernel may round to
// the other side, or else 0.
inline double keep_in(const OutputFormat& format, double& value, double error) {
  const double exact = value;
  value = format.rounded(exact);
  const double half = format.half_ulp(exact);
  return half - std::fabs(exact - value) <= error ? 2 * half : 0;
}

}  // namespace lnorm
