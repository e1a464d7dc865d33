#include "support/oracle.hpp"

#include <algorithm>
#include <boost/multiprecision/mpfr.hpp>
#include <limits>

namespace oracle {

namespace mp = boost::multiprecision;

namespace {

struct Format {
  std::int64_t precision;
  std::int64_t min_exponent;  // of the smallest normal number
  std::int64_t max_exponent;  // of the largest
};

Format format(lnorm::DType dtype) {
  switch (dtype) {
    case lnorm::DType::float8_e4m3fn:
      return {4, -6, 8};
    case lnorm::DType::float8_e5m2:
      return {3, -14, 15};
    case lnorm::DType::float8_e4m3fnuz:
      return {4, -7, 7};
    case lnorm::DType::int8:  // integers up to 255
      return {8, 7, 7};
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

Integer shifted(const Integer& value, std::int64_t by) {
  return by >= 0 ? Integer(value << static_cast<unsigned>(by))
                 : Integer(value >> static_cast<unsigned>(-by));
}

std::int64_t bit_length(const Integer& value) {
  return value == 0 ? 0 : static_cast<std::int64_t>(mp::msb(value)) + 1;
}

// The root of an integer, if it is one.
std::optional<Integer> exact_root(const Integer& value) {
  Integer rest;
  Integer root = mp::sqrt(value, rest);
  if (rest != 0) return std::nullopt;
  return root;
}

}  // namespace

Fraction fraction(const Number& number) {
  if (number.is_integer) return {Integer(number.integer), 1, 0};
  if (number.low != 0) return fraction({number.value}) + fraction({number.low});
  int exponent = 0;
  const double mantissa = std::frexp(number.value, &exponent);
  return {Integer(static_cast<std::int64_t>(std::ldexp(mantissa, 53))), 1, exponent - 53};
}

Fraction operator*(const Fraction& a, const Fraction& b) {
  return {a.numerator * b.numerator, a.denominator * b.denominator, a.exponent + b.exponent};
}

Fraction operator/(const Fraction& a, const Fraction& b) {
  const int sign = b.numerator < 0 ? -1 : 1;
  return {sign * a.numerator * b.denominator, sign * a.denominator * b.numerator,
          a.exponent - b.exponent};
}

Fraction operator+(const Fraction& a, const Fraction& b) {
  const std::int64_t exponent = std::min(a.exponent, b.exponent);
  return {shifted(a.numerator, a.exponent - exponent) * b.denominator +
              shifted(b.numerator, b.exponent - exponent) * a.denominator,
          a.denominator * b.denominator, exponent};
}

Fraction operator-(const Fraction& a, const Fraction& b) {
  return a + Fraction{-b.numerator, b.denominator, b.exponent};
}

std::int64_t exponent_of(const Fraction& value) {
  std::int64_t e = bit_length(value.numerator) - bit_length(value.denominator);
  const bool below = e >= 0 ? value.numerator < (value.denominator << static_cast<unsigned>(e))
                            : (value.numerator << static_cast<unsigned>(-e)) < value.denominator;
  return (below ? e - 1 : e) + value.exponent;
}

double rounded(const Fraction& value, lnorm::DType dtype) {
  if (value.numerator == 0) return 0;
  const bool negative = value.numerator < 0;
  const Fraction size{mp::abs(value.numerator), value.denominator, value.exponent};
  const Format f = format(dtype);
  // The number of units in the last place.
  const std::int64_t unit = std::max(exponent_of(size), f.min_exponent) - f.precision + 1;
  Integer numerator = size.numerator;
  Integer denominator = size.denominator;
  const std::int64_t shift = size.exponent - unit;
  (shift >= 0 ? numerator : denominator) <<= static_cast<unsigned>(std::abs(shift));
  Integer rest;
  Integer units;
  mp::divide_qr(numerator, denominator, units, rest);
  const Integer twice = rest * 2;
  if (twice > denominator || (twice == denominator && mp::bit_test(units, 0))) ++units;
  // What would be 480 in float8_e4m3fn is none of its numbers.
  const bool is_480 = dtype == lnorm::DType::float8_e4m3fn && unit == 5 && units == 15;
  const bool overflows = units != 0 && (bit_length(units) - 1 + unit > f.max_exponent || is_480);
  const double result = overflows ? std::numeric_limits<double>::infinity()
                                  : std::ldexp(static_cast<double>(units), static_cast<int>(unit));
  return negative ? -result : result;
}

Integers integers(std::span<const Number> numbers) {
  std::vector<Fraction> fractions;
  for (const Number& number : numbers) fractions.push_back(fraction(number));
  return integers(fractions);
}

Integers integers(std::span<const Fraction> numbers) {
  std::optional<std::int64_t> exponent;
  for (const Fraction& number : numbers) {
    if (number.numerator == 0) continue;
    exponent = std::min(exponent.value_or(number.exponent), number.exponent);
  }
  Integers result;
  result.exponent = exponent.value_or(0);
  for (const Fraction& number : numbers) {
    result.numerators.push_back(number.numerator == 0
                                    ? Integer(0)
                                    : shifted(number.numerator, number.exponent - result.exponent));
    result.sum += result.numerators.back();
  }
  return result;
}

Root::Root(const Fraction& square) : square_(square) {
  if (square_.numerator == 0) return;
  // Lowest terms, and an even exponent, so that a root that is a fraction shows.
  const Integer divisor = mp::gcd(square_.numerator, square_.denominator);
  square_.numerator /= divisor;
  square_.denominator /= divisor;
  for (Integer* part : {&square_.numerator, &square_.denominator}) {
    const auto zeros = static_cast<unsigned>(mp::lsb(*part));
    *part >>= zeros;
    square_.exponent += part == &square_.numerator ? zeros : -static_cast<std::int64_t>(zeros);
  }
  if (square_.exponent % 2 != 0) {
    square_.numerator *= 2;
    --square_.exponent;
  }
  const auto numerator = exact_root(square_.numerator);
  const auto denominator = exact_root(square_.denominator);
  exact_.reset();
  if (numerator && denominator) exact_ = {*numerator, *denominator, square_.exponent / 2};
}

const Fraction& Root::bound(int which, std::int64_t bits) const {
  if (exact_) return *exact_;
  auto& known = bounds_[{which, bits}];
  if (known.numerator == 0) known = find(which, bits);
  return known;
}

Fraction Root::find(int which, std::int64_t bits) const {
  const std::int64_t places = std::max<std::int64_t>(
      0, bits + bit_length(square_.denominator) - bit_length(square_.numerator));
  const Integer scaled = shifted(square_.numerator, 2 * places) / square_.denominator;
  return {mp::sqrt(scaled) + which, 1, square_.exponent / 2 - places};
}

Row::Row(std::span<const Number> x, std::span<const Number> weight, bool plus_one,
         std::span<const Number> bias, const lnorm::Formula& formula, double scale)
    : formula_(formula),
      scale_(scale),
      n_(x.size()),
      weight_(weight.begin(), weight.end()),
      bias_(bias.begin(), bias.end()),
      plus_one_(plus_one) {
  finite_ = std::all_of(x.begin(), x.end(), [](const Number& number) {
    return number.is_integer || std::isfinite(number.value);
  });
  if (!finite_) return;
  x_ = integers(x);
  center_ = formula.rms ? Integer(0) : x_.sum;
  Integer squares = 0;  // of n (x - mean)
  for (const Integer& value : x_.numerators) {
    const Integer deviation = value * n_ - center_;
    squares += deviation * deviation;
  }
  const Integer freedom = n_ - formula.ddof;
  variance_ = {squares, n_ * n_ * freedom, 2 * x_.exponent};
  const Fraction eps = fraction({formula.eps});
  const bool is_eps = formula.eps_on == lnorm::EpsOn::max && (variance_ - eps * eps).numerator < 0;
  const Fraction under_root = formula.eps_on == lnorm::EpsOn::variance ? variance_ + eps
                              : is_eps                                 ? eps * eps
                                                                       : variance_;
  defined_ = under_root.numerator != 0 || eps.numerator != 0;
  root_ = Root(under_root);
}

Fraction Row::divisor(int bound, std::int64_t bits) const {
  const Fraction& root = root_.bound(bound, bits);
  return formula_.eps_on == lnorm::EpsOn::std ? root + fraction({formula_.eps}) : root;
}

Fraction Row::bound_of_y(std::size_t i, int bound, std::int64_t bits) const {
  const Fraction deviation{x_.numerators[i] * n_ - center_, n_, x_.exponent};
  Fraction result = deviation / divisor(bound, bits);
  if (!weight_.empty()) {
    const Fraction weight = fraction(weight_[i]);
    result = result * (plus_one_ ? weight + Fraction{1, 1, 0} : weight);
  }
  if (!bias_.empty()) result = result + fraction(bias_[i]);
  return result * fraction({scale_});
}

double Row::y(std::size_t i, lnorm::DType dtype) const {
  return decided(
      [&](int which, std::int64_t bits) { return rounded(bound_of_y(i, which, bits), dtype); });
}

double Row::mean() const { return rounded({center_, n_, x_.exponent}, lnorm::DType::float64); }

double Row::rstd() const {
  return decided([&](int which, std::int64_t bits) {
    return rounded(Fraction{1, 1, 0} / divisor(1 - which, bits), lnorm::DType::float64);
  });
}

double Row::sum() const { return rounded({x_.sum, 1, x_.exponent}, lnorm::DType::float64); }
double Row::variance() const { return rounded(variance_, lnorm::DType::float64); }

std::vector<double> softmax(std::span<const Number> x, lnorm::DType dtype, double scale) {
  // 400 digits: more than any tensor here asks for.
  using Real = mp::number<mp::mpfr_float_backend<400>, mp::et_off>;
  const auto is_masked = [](const Number& number) {
    return !number.is_integer && std::isinf(number.value);
  };
  const auto real = [](const Number& number) {
    return number.is_integer ? Real(Integer(number.integer))
                             : Real(Real(number.value) + Real(number.low));
  };
  std::optional<Real> max;
  for (const Number& number : x) {
    if (!is_masked(number) && (!max || real(number) > *max)) max = real(number);
  }
  std::vector<Real> terms;
  Real sum = 0;
  for (const Number& number : x) {
    terms.push_back(is_masked(number) ? Real(0) : Real(mp::exp(Real(real(number) - *max))));
    sum += terms.back();
  }
  std::vector<double> result;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    constexpr int kBits = 3600;
    const Real scaled = mp::ldexp(Real(terms[i] / sum), kBits);
    Fraction y{scaled.convert_to<Integer>(), 1, -kBits};
    if (y.numerator == 0 && !is_masked(x[i])) y.numerator = 1;  // which has a sign
    result.push_back(rounded(y * fraction({scale}), dtype));
  }
  return result;
}

}  // namespace oracle
