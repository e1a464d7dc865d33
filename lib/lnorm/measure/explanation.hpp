#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/moments.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"

// Layer normalization of one row, step by step. Every number is the exact value rounded once: y and softmax to the output
// dtype, xhat as well where it is rounded there, all others to float64. NaN stands for what is not defined.
namespace lnorm {

inline constexpr double kUndefined = kNan;
inline constexpr std::array kUndefinedDivisors{kUndefined, kUndefined, kUndefined};

struct ExplainedElement {
  std::int64_t number;  // in the row
  Number x;
  double deviation = kUndefined;  // x - mean, the one in use; by RMS x
  double square = kUndefined;     // of the deviation
  double xhat = kUndefined;
  Number weight{1};  // what multiplies: 1 + weight if that is centered about 0
  Number bias{0};
  double y = kUndefined;
  double softmax = kUndefined;
};

// Statistics that are given, not computed.
struct ExplainedGiven {
  double mean = 0;
  std::optional<double> rstd = {};  // or else the variance of the row is given
};

// What numbers say of a row and of what becomes of it. By RMS a variance is a mean of squares.
struct ExplainedRow {
  DType dtype = DType::float64;  // of x, which may be a sum
  std::int64_t length = 0;
  Moments input;
  Moments output;
  Moments softmax;
  double squares = kUndefined;   // sum((x - mean)^2)
  double biased = kUndefined;    // squares / n
  double unbiased = kUndefined;  // squares / (n - 1)
  double variance = kUndefined;  // squares / (n - ddof), or the one that is given: the one in use
  std::optional<ExplainedGiven> given = {};

  // s by each place of eps, and sqrt(var).
  std::array<double, std::size(kEpsPlaces)> divisors = kUndefinedDivisors;
  double divisor_without_eps = kUndefined;
  double divisor(EpsOn place) const { return divisors[static_cast<std::size_t>(place)]; }

  double mean_square = kUndefined;  // of xhat: sum(xhat^2) / n

  // The greatest |y - y'|, where y' has eps on the variance, or on its root if y has it on the variance; both as they are
  // written. -1: none is a number.
  double eps_difference = kUndefined;
  std::int64_t eps_difference_at = -1;

  std::vector<std::int64_t> non_finite;  // the first elements that are NaN or infinite, up to ten

  std::vector<ExplainedElement> elements;  // all; of a long row the first and the last
};

struct Explanation {
  TensorInfo x;
  Axes axes;  // normalized
  LayerNormOptions options;
  DType out = DType::float64;
  bool weight = false;  // whether there is one, as of the next two
  bool bias = false;
  bool residual = false;
  bool rounds_sum = false;
  std::int64_t number = 0;  // of the row
  std::string note = {};    // of the choice of the row, for the text
  ExplainedRow row;
};

}  // namespace lnorm
