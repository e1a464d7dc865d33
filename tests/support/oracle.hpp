#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/int128.hpp"
#include "lnorm/core/options.hpp"

// The correctly rounded results of layer normalization, moments and softmax, by another route than the library's, and
// with none of its code: fractions of integers (Boost.Multiprecision), a root by more and more digits until both of its
// bounds round alike, or as a fraction where it is one; exp by MPFR.
namespace oracle {

using Integer = boost::multiprecision::cpp_int;

// numerator / denominator * 2^exponent
struct Fraction {
  Integer numerator = 0;
  Integer denominator = 1;
  std::int64_t exponent = 0;
};

// The nearest number of a float dtype, ties to even; a zero that was not exact keeps its sign. Infinity stands for what is
// beyond the greatest number, in float8_e4m3fn as well.
double rounded(const Fraction& value, lnorm::DType dtype);

// How far actual is from a value, in units in the last place of a dtype at the value; for messages.
double ulp_distance(double actual, const Fraction& value, lnorm::DType dtype);

// A number of an input: a double, or a 64-bit integer, exactly.
struct Number {
  double value = 0;
  lnorm::Int128 integer = 0;
  bool is_integer = false;
};

// numbers[i] = numerators[i] * 2^exponent
struct Integers {
  std::vector<Integer> numerators;
  std::int64_t exponent = 0;
  Integer sum = 0;
};
Integers integers(std::span<const Number> numbers);

class Row {
 public:
  // weight, bias: one for each element, or empty. plus_one: weight is 1 + weight. scale multiplies y.
  Row(std::span<const Number> x, std::span<const Number> weight, bool plus_one,
      std::span<const Number> bias, const lnorm::Formula& formula, double scale = 1);

  bool is_finite() const { return finite_; }    // otherwise all is NaN
  bool is_defined() const { return defined_; }  // otherwise y and rstd are 0/0

  // Rounded once.
  double y(std::size_t i, lnorm::DType dtype) const;
  double mean() const;
  double rstd() const;
  double sum() const;
  double variance() const;

  // Good to a thousand bits, for making inputs that are close to it.
  Fraction y(std::size_t i) const;

 private:
  // A bound of s: 0 is the lower one, 1 the upper one. bits: after the binary point.
  const Fraction& root(int bound, std::int64_t bits) const;
  Fraction find_root(int bound, std::int64_t bits) const;
  Fraction y(std::size_t i, int bound, std::int64_t bits) const;

  lnorm::Formula formula_;
  double scale_;
  bool finite_ = true;
  bool defined_ = true;
  Integer n_;
  Integers x_;
  std::vector<Number> weight_;
  std::vector<Number> bias_;
  bool plus_one_;
  Integer center_;       // the sum, or 0 by RMS; in units of x_
  Fraction variance_;    // by the formula
  Fraction under_root_;  // with eps, if that goes there
  mutable std::map<std::pair<int, std::int64_t>, Fraction> roots_;
};

// Of numbers that are finite or -infinity, at least one finite: each rounded once to dtype.
std::vector<double> softmax(std::span<const Number> x, lnorm::DType dtype, double scale = 1);

}  // namespace oracle
