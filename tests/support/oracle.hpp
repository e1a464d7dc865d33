#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/int128.hpp"
#include "lnorm/core/options.hpp"

// Layer normalisation, moments and softmax in exact arithmetic (Boost.Multiprecision): sums and
// deviations as integers; divisions, roots, exp and the affine parameters with 320 bits. None of
// the library's code takes part.
namespace oracle {

using Exact = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<320, boost::multiprecision::digit_base_2, void,
                                         std::int64_t, -1000000, 1000000>,
    boost::multiprecision::et_off>;

// A number of an input: a double, or a 64-bit integer, exactly.
struct Number {
  double value = 0;
  lnorm::Int128 integer = 0;
  bool is_integer = false;
};
Exact exact(const Number& number);

struct Row {
  bool finite = true;   // otherwise every y is NaN
  bool defined = true;  // false: 0/0
  std::vector<Exact> y;
  Exact mean;
  Exact rstd;
  Exact largest;  // |y|
  // What cancels in each y: |bias| + |weight| times the row's largest |x - mean| rstd.
  std::vector<Exact> terms;
};

// weight, bias: one for each element, or empty. plus_one: weight is 1 + weight.
Row layer_norm(std::span<const Number> x, std::span<const Number> weight, bool plus_one,
               std::span<const Number> bias, const lnorm::Formula& formula);

// Of finite numbers, at least one.
struct Moments {
  Exact sum;
  Exact mean;
  Exact squares;     // sum((x - mean)^2)
  Exact magnitudes;  // sum(|x|)
  Exact min;
  Exact max;
};
Moments moments(std::span<const Number> x);

// Of numbers that are finite or -infinity, at least one finite.
std::vector<Exact> softmax(std::span<const Number> x);

// The nearest number of a float dtype, ties to even.
double rounded(const Exact& value, lnorm::DType dtype);

// How far actual is from expected, in units in the last place of a dtype at expected; actual
// infinite is right where expected rounds to it.
double ulp_distance(double actual, const Exact& expected, lnorm::DType dtype);

// One unit in the last place of the dtype at value.
Exact ulp(const Exact& value, lnorm::DType dtype);

}  // namespace oracle
