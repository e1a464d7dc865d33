#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "lnorm/core/options.hpp"
#include "lnorm/diagnosis/rounding_model.hpp"
#include "lnorm/kernel/row_errors.hpp"

// One row by a formula of the form
//
//   y_i = (x_i - center) / s * weight_i + bias_i
//
// in float64, and how far off a kernel may be that computes it: E_y of docs/numbers.md without the last rounding.
namespace lnorm {

// What the kernel is known to do.
struct KernelModel {
  Arithmetic arithmetic;
  std::optional<std::int64_t> depth;  // of its sums
  bool rounds_x = false;              // x is a sum, or wider than the arithmetic
  bool adds_one = false;              // to the weight
};

// Statistics of a row that a kernel is given. An rstd stands for the variance 1 / rstd^2 without eps.
struct GivenNumbers {
  double mean = 0;
  double variance = 0;
};

// Numbers of a row, or of some of its elements.
struct RowStatistics {
  double mean = 0;
  double variance = 0;  // by the formula's ddof; of RMS the mean of squares
  double mean_abs = 0;
  double max_abs = 0;     // of x
  double count = 0;       // what sums are divided by
  bool is_given = false;  // mean and variance are not sums
};

// x is finite. formula: of the mean and the variance, unless they are given.
RowStatistics statistics_of(std::span<const double> x, const Formula& formula,
                            const std::optional<GivenNumbers>& given = {});

// What sums one after another lose of a row, at worst: sum_losses.hpp.
struct SumLosses {
  double mean = 0;
  double variance = 0;
  // Of the sums of g and of g xhat in dx, in parts of the sums of their magnitudes.
  double g = 0;
  double products = 0;
};

// s, or what stands in its place.
double divisor_of(double variance, const Formula& formula);

// How far off mean, variance and s may be.
struct StatisticErrors {
  double mean = 0;
  double variance = 0;
  double s = 0;
  double s_low = 0;          // the smallest s that the kernel may have
  bool is_in_range = false;  // of the arithmetic: sums, squares and |x| / s
  bool is_bounded = false;   // so it is, and s is not three times what the kernel may have
};
// By the tree bound, and so many times the losses beside it.
inline constexpr double kLossFactor = 4;
StatisticErrors errors_of(const RowStatistics& row, const Formula& formula,
                          const KernelModel& kernel, const SumLosses& losses = {});

// Fills the errors of s, and is_bounded, from those of mean and variance and from is_in_range. unit: u.
void carry_to_divisor(const RowStatistics& row, const Formula& formula, double unit,
                      StatisticErrors& errors);

// Mean and 1 / s as a kernel has them that keeps them in a dtype. Returns whether there is such an s.
bool keep_statistics_in(DType dtype, RowStatistics& row, double& s, StatisticErrors& errors);

RowLine line_of(const RowStatistics& row, double s, const StatisticErrors& errors,
                const KernelModel& kernel);

// The least squares fit of a row's errors to weight_i (shift + scale xhat_i), of which the scale is kept.
struct RowFit {
  double scale = 0;
  bool is_known = false;  // the row has deviations, and no error is infinite or NaN
  // The sums of products that it is solved by.
  double ww = 0;
  double wp = 0;
  double pp = 0;

  double determinant() const { return ww * pp - wp * wp; }
  // What an element gives that is off by 1. product: weight_i xhat_i.
  double scale_by(double weight, double product) const {
    return (ww * product - wp * weight) / determinant();
  }
};

// mean and s: the row's own; exact: y by them. kept: of the elements of which it is not 0; empty: of all.
RowFit fit_errors(std::span<const double> x, std::span<const double> weight, double mean, double s,
                  std::span<const double> actual, std::span<const double> exact,
                  std::span<const char> kept);

// (x - center) / s of an element, and how far off a kernel may be.
struct Xhat {
  double value;
  double error;
};
inline Xhat xhat_of(const RowLine& line, double x) noexcept {
  const double d = x - line.center;
  const double size = std::fabs(d);
  const double xhat = d * line.inverse;
  const double d_error = line.center_error + line.unit * size + line.x_unit * std::fabs(x);
  const double error = d_error * line.inverse_high + size * (line.inverse_high - line.inverse) +
                       line.unit * std::fabs(xhat) + line.smallest;
  // No kernel's |xhat| is beyond the root of n by more than its own rounding.
  const double most = line.most + std::fabs(xhat) +
                      3 * line.unit * (std::fabs(x) + std::fabs(line.center)) * line.inverse_high;
  return {xhat, std::min(error, most)};
}

// Fills y and error with count elements. weight and bias: as many numbers each.
void fill_line(const RowLine& line, const double* x, const double* weight, const double* bias,
               std::int64_t count, double* y, double* error) noexcept;

// Fills them by a formula that may round xhat, or its product with weight, to the output as well. Adds a whole ulp where a
// kernel may round to the other side.
void fill_rounded_line(const RowLine& line, const Rounding& rounding, const OutputFormat& output,
                       const double* x, const double* weight, const double* bias,
                       std::int64_t count, double* y, double* error) noexcept;

}  // namespace lnorm
