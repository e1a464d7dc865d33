#pragma once

#include <cstdint>
#include <optional>

#include "lnorm/core/double_double.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/statistics.hpp"

// The sums of a row become the numbers that its gradient is made of, with bounds of their errors,
// in the two precisions of statistics.hpp. docs/numbers.md derives the bounds.
namespace lnorm {

// What bounds |dx - dx'|: for an element g_error |g| + x_error |x - mean| + offset, and for the whole row error.
struct GradientBounds {
  double g_error = 0;
  double x_error = 0;
  double offset = 0;
  double error = 0;
};

// What bounds the error of x-hat: offset + slope |xhat|.
struct XhatBounds {
  double offset = 0;
  double slope = 0;
};

// dx' = g * rstd + (d * slope + constant)      d = x - center
// xhat' = (d - shift) * rstd                   mean = center + shift
struct DoubleGradient {
  double center;
  double shift;
  double rstd;
  double slope;
  double constant;
  GradientBounds dx;
  XhatBounds xhat;
};

// There is none where the row is not usable. sums are finite, about center, which is the mean if that is saved. saved:
// null if it is not. growth: double_growth().
std::optional<DoubleGradient> double_gradient(const GradientSums& sums, double center,
                                              std::int64_t n, const Formula& formula,
                                              const SavedStatistics* saved,
                                              std::int64_t growth) noexcept;

// Whether the terms of dx cancel so far that doubles would leave many results of the dtype undecided.
bool cancels(const GradientSums& sums, const DoubleGradient& gradient, std::int64_t n,
             DType dtype) noexcept;

// Whether g may be a line in x, c + b x (RMS: b x), whose dx is 0 without eps, as far as its sums tell.
bool may_be_line(const GradientSums& sums, std::int64_t n, const Formula& formula) noexcept;

// dx' = g * rstd + ((x - mean) * slope + constant)
struct DoubleDoubleGradient {
  DoubleDouble mean;
  DoubleDouble rstd;
  DoubleDouble slope;
  DoubleDouble constant;
  GradientBounds dx;
  XhatBounds xhat;
};

// The gradient in double-doubles. centered: of sums.x; null if the mean is saved, about which sums are then.
// growth: double_double_growth().
std::optional<DoubleDoubleGradient> double_double_gradient(const GradientSums& sums,
                                                           const CenteredSums* centered,
                                                           std::int64_t n, const Formula& formula,
                                                           const SavedStatistics* saved,
                                                           double growth) noexcept;

// 1/s of saved statistics; nothing where doubles do not hold them.
std::optional<DoubleDouble> plain_rstd(const SavedStatistics& saved,
                                       const Formula& formula) noexcept;

}  // namespace lnorm
