// The formula by another route: sum(x) and sum(x^2) as integers, without rounding, and from them
//
//   x - mean = (n x - sum(x)) / n        var = (n sum(x^2) - sum(x)^2) / (n (n - ddof))
//
// whose differences are exact, too, so that nothing can cancel. What is left (a division, a root,
// the affine parameters) is done in double-doubles with an exponent of their own, and rounded once.

#include <algorithm>
#include <cmath>
#include <limits>

#include "lnorm/kernel/chunk.hpp"
#include "lnorm/kernel/each_row.hpp"
#include "lnorm/kernel/exact_integer.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

namespace {

// Elements are counted in units of 2^-1074, the smallest double; squares in units of 2^-2148.
constexpr std::int64_t kUnit = 1074;

// +-magnitude * 2^(shift - kUnit)
struct Element {
  std::uint64_t magnitude;
  std::int64_t shift;
  bool negative;
};

Element element(double high, double low) noexcept {
  if (low != 0) {  // a 64-bit integer
    const Int128 value = static_cast<Int128>(high) + static_cast<Int128>(low);
    return {static_cast<std::uint64_t>(value < 0 ? -value : value), kUnit, value < 0};
  }
  if (high == 0) return {0, 0, false};
  int exponent;
  const double mantissa = std::frexp(std::fabs(high), &exponent);
  auto magnitude = static_cast<std::uint64_t>(std::ldexp(mantissa, 53));
  std::int64_t shift = exponent - 53 + kUnit;
  if (shift < 0) {  // subnormal: the bits below the smallest unit are zeros
    magnitude >>= -shift;
    shift = 0;
  }
  return {magnitude, shift, high < 0};
}

Scaled normalized(DoubleDouble m, std::int64_t exponent) noexcept {
  if (m.high == 0) return {};
  const int shift = std::ilogb(m.high);
  return {{std::ldexp(m.high, -shift), std::ldexp(m.low, -shift)}, exponent + shift};
}

Scaled scaled(double high, double low = 0) noexcept {
  if (high == 0) return {};
  const int shift = std::ilogb(high);  // low first, since scaling a subnormal pair up is exact
  return {{std::scalbn(high, -shift), std::scalbn(low, -shift)}, shift};
}

Scaled operator*(Scaled a, Scaled b) noexcept {
  return normalized(a.m * b.m, a.exponent + b.exponent);
}

Scaled operator/(Scaled a, Scaled b) noexcept {
  if (a.m.high == 0) return {};
  return normalized(a.m / b.m, a.exponent - b.exponent);
}

Scaled operator+(Scaled a, Scaled b) noexcept {
  if (a.m.high == 0) return b;
  if (b.m.high == 0) return a;
  if (a.exponent < b.exponent) std::swap(a, b);
  const auto shift = static_cast<int>(std::max<std::int64_t>(b.exponent - a.exponent, -400));
  const DoubleDouble aligned{std::ldexp(b.m.high, shift), std::ldexp(b.m.low, shift)};
  return normalized(a.m + aligned, a.exponent);
}

Scaled sqrt(Scaled a) noexcept {
  if (a.m.high == 0) return {};
  const std::int64_t odd = a.exponent & 1;
  const double factor = odd ? 2 : 1;
  return normalized(sqrt(DoubleDouble{a.m.high * factor, a.m.low * factor}),
                    (a.exponent - odd) / 2);
}

double to_double(Scaled value) noexcept {
  const auto exponent = static_cast<int>(std::clamp<std::int64_t>(value.exponent, -5000, 5000));
  const double result = std::ldexp(value.m.high, exponent);
  if (std::fabs(result) >= std::numeric_limits<double>::min() || value.m.high == 0) return result;
  // A subnormal result keeps fewer bits than m.high, which is rounded already: round both parts at
  // once, in units of the smallest number.
  const double sign = value.m.high < 0 ? -1 : 1;
  const double high = std::ldexp(sign * value.m.high, exponent + static_cast<int>(kUnit));
  const double low = sign * value.m.low;  // its sign is all that counts
  const double whole = std::floor(high);
  const double fraction = high - whole;
  const bool odd = std::fmod(whole, 2) != 0;
  const bool up = fraction > 0.5 || (fraction == 0.5 && (low > 0 || (low == 0 && odd)));
  return std::ldexp(sign * (whole + (up ? 1 : 0)), static_cast<int>(-kUnit));
}

// Calls see(i, high, low) for every element of the one row of x.
template <class See>
void for_each_element(const RowsIn& x, See see) {
  Chunk chunk;
  std::fill(std::begin(chunk.low), std::end(chunk.low), 0.0);
  const auto size = static_cast<std::int64_t>(item_size(x.dtype));
  for (std::int64_t start = 0; start < x.row_length; start += kChunk) {
    const std::int64_t n = std::min(kChunk, x.row_length - start);
    load(x.data + start * size, x.dtype, x.byte_order, n, chunk);
    for (std::int64_t i = 0; i < n; ++i) see(start + i, chunk.high[i], chunk.low[i]);
  }
}

struct ExactStatistics {
  bool finite = true;
  ExactInteger sum;    // of x; 0 under rms
  Scaled denominator;  // sqrt(var + eps), or the like
};

ExactStatistics exact_statistics(const RowsIn& x, const Formula& formula) noexcept {
  ExactStatistics result;
  ExactInteger sum_of_squares;
  for_each_element(x, [&](std::int64_t, double high, double low) {
    result.finite = result.finite && std::isfinite(high);
    if (!result.finite) return;
    const Element e = element(high, low);
    if (!formula.rms) result.sum.add(e.magnitude, e.shift, e.negative);
    sum_of_squares.add(static_cast<UInt128>(e.magnitude) * e.magnitude, 2 * e.shift, false);
  });
  if (!result.finite) return result;
  const auto n = static_cast<std::uint64_t>(x.row_length);
  const ExactInteger centered = sum_of_squares * n + -square(result.sum);
  const Scaled variance = centered.scaled(-2 * kUnit) / scaled(static_cast<double>(n)) /
                          scaled(static_cast<double>(x.row_length - formula.ddof));
  const Scaled eps = scaled(formula.eps);
  result.denominator =
      formula.eps_on == EpsOn::variance ? sqrt(variance + eps) : sqrt(variance) + eps;
  return result;
}

// value * weight + bias, rounded once.
double apply_affine(Scaled value, const Affine& affine, std::int64_t i) noexcept {
  const double weight = affine.weight.empty() ? 1 : *affine.weight.high(i);
  const double bias = affine.bias.empty() ? 0 : *affine.bias.high(i);
  if (!std::isfinite(weight) || !std::isfinite(bias)) return to_double(value) * weight + bias;
  if (!affine.weight.empty()) value = value * scaled(weight, *affine.weight.low(i));
  if (!affine.bias.empty()) value = value + scaled(bias, *affine.bias.low(i));
  return to_double(value);
}

void reference_row(const RowsIn& x, const RowsOut& y, const Affine& affine, const Formula& formula,
                   const RowStats& stats) noexcept {
  const ExactStatistics statistics = exact_statistics(x, formula);
  const Scaled length = scaled(static_cast<double>(x.row_length));
  const bool defined = statistics.finite && statistics.denominator.m.high != 0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (stats.mean) {
    *stats.mean = statistics.finite ? to_double(statistics.sum.scaled(-kUnit) / length) : nan;
  }
  if (stats.rstd) *stats.rstd = defined ? to_double(scaled(1) / statistics.denominator) : nan;

  const ExactInteger minus_sum = -statistics.sum;
  const auto n = static_cast<std::uint64_t>(x.row_length);
  const Scaled divisor = length * statistics.denominator;
  const auto out_size = static_cast<std::int64_t>(item_size(y.dtype));
  for_each_element(x, [&](std::int64_t i, double high, double low) {
    double result = nan;
    if (defined) {
      const Element e = element(high, low);
      ExactInteger scaled_deviation = minus_sum;  // n x - sum(x)
      scaled_deviation.add(static_cast<UInt128>(e.magnitude) * n, e.shift, e.negative);
      result = apply_affine(scaled_deviation.scaled(-kUnit) / divisor, affine, i);
    }
    store(&result, 1, y.dtype, y.data + i * out_size);
  });
}

}  // namespace

void layer_norm_reference(const RowsIn& x, const RowsOut& y, const Affine& affine,
                          const Formula& formula, const RowStats& stats) noexcept {
  each_row(x, y, stats, [&](const RowsIn& row, const RowsOut& out, const RowStats& row_stats) {
    reference_row(row, out, affine, formula, row_stats);
  });
}

}  // namespace lnorm
