#include "support/oracle.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <optional>

namespace oracle {

namespace mp = boost::multiprecision;

namespace {

// numerator * 2^exponent
struct Dyadic {
  mp::cpp_int numerator;
  int exponent = 0;
};

Dyadic dyadic(const Number& number) {
  if (number.is_integer) return {mp::cpp_int(number.integer), 0};
  int exponent = 0;
  const double mantissa = std::frexp(number.value, &exponent);
  return {mp::cpp_int(static_cast<std::int64_t>(std::ldexp(mantissa, 53))), exponent - 53};
}

Exact scaled(const mp::cpp_int& numerator, int exponent) {
  return mp::ldexp(Exact(numerator), exponent);
}

struct Format {
  int precision;
  int min_exponent;  // of the smallest normal number
  int max_exponent;  // of the largest
};

// values[i] * 2^unit, and their sum.
struct Integers {
  std::vector<mp::cpp_int> values;
  mp::cpp_int sum = 0;
  int unit = 0;
};

Integers integers(std::span<const Number> x) {
  std::vector<Dyadic> parts;
  int unit = std::numeric_limits<int>::max();
  for (const Number& number : x) {
    parts.push_back(dyadic(number));
    if (parts.back().numerator != 0) unit = std::min(unit, parts.back().exponent);
  }
  Integers result;
  if (unit != std::numeric_limits<int>::max()) result.unit = unit;
  for (const Dyadic& part : parts) {
    result.values.push_back(part.numerator == 0 ? mp::cpp_int(0)
                                                : part.numerator << (part.exponent - unit));
    result.sum += result.values.back();
  }
  return result;
}

Format format(lnorm::DType dtype) {
  switch (dtype) {
    case lnorm::DType::float16:
      return {11, -14, 15};
    case lnorm::DType::bfloat16:
      return {8, -126, 127};
    case lnorm::DType::float32:
      return {24, -126, 127};
    default:
      return {53, -1022, 1023};
  }
}

}  // namespace

Exact exact(const Number& number) {
  const Dyadic d = dyadic(number);
  return scaled(d.numerator, d.exponent);
}

Row layer_norm(std::span<const Number> x, std::span<const Number> weight, bool plus_one,
               std::span<const Number> bias, const lnorm::Formula& formula) {
  Row row;
  row.finite = std::all_of(x.begin(), x.end(), [](const Number& number) {
    return number.is_integer || std::isfinite(number.value);
  });
  if (!row.finite) return row;
  const auto n = static_cast<std::int64_t>(x.size());

  auto [values, sum, unit] = integers(x);
  const mp::cpp_int center = formula.rms ? mp::cpp_int(0) : sum;
  mp::cpp_int squares = 0;  // of n (x - mean)
  for (mp::cpp_int& value : values) {
    value = value * n - center;
    squares += value * value;
  }
  const Exact eps(formula.eps);
  const Exact variance = scaled(squares, 2 * unit) / Exact(n) / Exact(n) / Exact(n - formula.ddof);
  const Exact denominator = formula.eps_on == lnorm::EpsOn::variance
                                ? Exact(mp::sqrt(Exact(variance + eps)))
                                : Exact(mp::sqrt(variance) + eps);
  row.mean = scaled(center, unit) / Exact(n);
  row.defined = denominator != 0;
  if (!row.defined) return row;
  row.rstd = 1 / denominator;
  Exact largest_normalized;
  for (const mp::cpp_int& value : values) {
    row.y.push_back(scaled(value, unit) / (Exact(n) * denominator));
    largest_normalized = std::max(largest_normalized, Exact(mp::abs(row.y.back())));
  }
  for (std::size_t i = 0; i < row.y.size(); ++i) {
    const Exact w = weight.empty() ? Exact(1) : Exact(exact(weight[i]) + (plus_one ? 1 : 0));
    const Exact b = bias.empty() ? Exact(0) : exact(bias[i]);
    row.y[i] = row.y[i] * w + b;
    row.terms.push_back(largest_normalized * mp::abs(w) + mp::abs(b));
    row.largest = std::max(row.largest, Exact(mp::abs(row.y[i])));
  }
  return row;
}

Moments moments(std::span<const Number> x) {
  const auto [values, sum, unit] = integers(x);
  const mp::cpp_int n = x.size();
  mp::cpp_int magnitudes = 0;
  mp::cpp_int squares = 0;  // of n (x - mean)
  for (const mp::cpp_int& value : values) {
    const mp::cpp_int deviation = value * n - sum;
    squares += deviation * deviation;
    magnitudes += mp::abs(value);
  }
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return {.sum = scaled(sum, unit),
          .mean = scaled(sum, unit) / Exact(n),
          .squares = scaled(squares, 2 * unit) / Exact(n) / Exact(n),
          .magnitudes = scaled(magnitudes, unit),
          .min = scaled(*min, unit),
          .max = scaled(*max, unit)};
}

std::vector<Exact> softmax(std::span<const Number> x) {
  const auto masked = [](const Number& number) {
    return !number.is_integer && std::isinf(number.value);
  };
  std::optional<Exact> max;
  for (const Number& number : x) {
    if (!masked(number) && (!max || exact(number) > *max)) max = exact(number);
  }
  constexpr int kVanishes = -10000;  // exp of which no dtype tells from 0
  std::vector<Exact> result;
  Exact sum = 0;
  for (const Number& number : x) {
    const Exact d = masked(number) ? Exact(kVanishes) : Exact(exact(number) - *max);
    result.push_back(d <= kVanishes ? Exact(0) : Exact(mp::exp(d)));
    sum += result.back();
  }
  for (Exact& y : result) y /= sum;
  return result;
}

double rounded(const Exact& value, lnorm::DType dtype) {
  const Exact unit = ulp(value, dtype);
  const Exact steps = mp::abs(value) / unit;
  mp::cpp_int whole(mp::floor(steps));
  const Exact rest = steps - Exact(whole);
  if (rest > 0.5 || (rest == 0.5 && mp::bit_test(whole, 0))) ++whole;
  const Exact magnitude = Exact(whole) * unit;
  const double result = magnitude < mp::ldexp(Exact(2), format(dtype).max_exponent)
                            ? static_cast<double>(magnitude)
                            : std::numeric_limits<double>::infinity();
  return value < 0 ? -result : result;
}

Exact ulp(const Exact& value, lnorm::DType dtype) {
  const Format f = format(dtype);
  std::int64_t exponent = f.min_exponent;
  if (value != 0) exponent = std::max<std::int64_t>(exponent, mp::ilogb(value));
  return mp::ldexp(Exact(1), static_cast<int>(exponent) - f.precision + 1);
}

double ulp_distance(double actual, const Exact& expected, lnorm::DType dtype) {
  if (std::isnan(actual)) return std::numeric_limits<double>::infinity();
  if (std::isinf(actual)) {
    // Rounding to nearest takes everything from half an ulp beyond the largest number to infinity.
    const Format f = format(dtype);
    const Exact limit = mp::ldexp(Exact(2) - mp::ldexp(Exact(1), -f.precision), f.max_exponent);
    const bool right = mp::abs(expected) >= limit && (expected > 0) == (actual > 0);
    return right ? 0 : std::numeric_limits<double>::infinity();
  }
  return static_cast<double>(Exact(mp::abs(Exact(actual) - expected) / ulp(expected, dtype)));
}

}  // namespace oracle
