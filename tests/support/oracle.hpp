#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"

// The correctly rounded results of layer normalization, moments and softmax, by another route than the library's, and
// with none of its code: fractions of integers (Boost.Multiprecision), a root by more and more digits until both of its
// bounds round alike, or as a fraction where it is one; exp by MPFR.
namespace oracle {

using Integer = boost::multiprecision::cpp_int;

// numerator / denominator * 2^exponent, the denominator positive
struct Fraction {
  Integer numerator = 0;
  Integer denominator = 1;
  std::int64_t exponent = 0;
};

Fraction operator+(const Fraction& a, const Fraction& b);
Fraction operator-(const Fraction& a, const Fraction& b);
Fraction operator*(const Fraction& a, const Fraction& b);
Fraction operator/(const Fraction& a, const Fraction& b);

// floor(log2(value)), of a value that is positive.
std::int64_t exponent_of(const Fraction& value);

// The nearest number of a float dtype, ties to even; a zero that was not exact keeps its sign. Infinity stands for what is
// beyond the greatest number, in float8_e4m3fn as well.
double rounded(const Fraction& value, lnorm::DType dtype);

inline bool is_same(double a, double b) { return a == b && std::signbit(a) == std::signbit(b); }
template <class T>
bool is_same(const T& a, const T& b) {
  return a == b;
}

// What value(0, bits) and value(1, bits), which come of the bounds of a root, of more and more bits, have both come to.
template <class Value>
auto decided(Value value) {
  for (std::int64_t bits = 200; bits < 100'000; bits *= 4) {
    const auto low = value(0, bits);
    if (is_same(low, value(1, bits))) return low;
  }
  throw std::runtime_error("the oracle does not come to a decision");
}

// A number of an input: a double, a 64-bit integer, or the sum of two doubles, exactly.
struct Number {
  double value = 0;
  lnorm::Int128 integer = 0;
  bool is_integer = false;
  double low = 0;
};

Fraction fraction(const Number& number);

// numbers[i] = numerators[i] * 2^exponent
struct Integers {
  std::vector<Integer> numerators;
  std::int64_t exponent = 0;
  Integer sum = 0;
};
Integers integers(std::span<const Number> numbers);
// Of fractions whose denominators are 1.
Integers integers(std::span<const Fraction> numbers);

// The square root of a fraction that is not negative.
class Root {
 public:
  Root() = default;
  explicit Root(const Fraction& square);

  // The root, if it is a fraction.
  const std::optional<Fraction>& exact() const { return exact_; }

  // A bound, within 2^-bits of its size: 0 is the lower one, 1 the upper one. Both are the root where that is exact.
  const Fraction& bound(int which, std::int64_t bits) const;

 private:
  Fraction find(int which, std::int64_t bits) const;

  Fraction square_;
  std::optional<Fraction> exact_ = Fraction{};
  mutable std::map<std::pair<int, std::int64_t>, Fraction> bounds_;
};

class Row {
 public:
  // weight, bias: one for each element, or empty. plus_one: weight is 1 + weight. scale multiplies y.
  Row(std::span<const Number> x, std::span<const Number> weight, bool plus_one,
      std::span<const Number> bias, const lnorm::Formula& formula, double scale = 1);

  bool is_finite() const { return finite_; }    // otherwise all is NaN
  bool is_defined() const { return defined_; }  // otherwise y and rstd are 0/0

  // Rounded once.
  double y(std::size_t i, lnorm::DType dtype) const;
  // One of two bounds of y that are within some 2^-bits of its size, on either side of it.
  Fraction bound_of_y(std::size_t i, int bound, std::int64_t bits) const;
  double mean() const;
  double rstd() const;
  double sum() const;
  double variance() const;

 private:
  // A bound of s, as those of a root.
  Fraction divisor(int bound, std::int64_t bits) const;

  lnorm::Formula formula_;
  double scale_;
  bool finite_ = true;
  bool defined_ = true;
  Integer n_;
  Integers x_;
  std::vector<Number> weight_;
  std::vector<Number> bias_;
  bool plus_one_;
  Integer center_;     // the sum, or 0 by RMS; in units of x_
  Fraction variance_;  // by the formula
  Root root_;          // of it, with eps if that goes there
};

// Of numbers that are finite or -infinity, at least one finite: each rounded once to dtype.
std::vector<double> softmax(std::span<const Number> x, lnorm::DType dtype, double scale = 1);

}  // namespace oracle
