#pragma once

#include <cstdint>
#include <optional>

#include "lnorm/core/double_double.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/statistics.hpp"

// From the sums of a row to the numbers that its gradient is made of, with bounds of their errors, in the two
// precisions of statistics.hpp. docs/numbers.md derives the bounds.
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
struct NarrowGradient {
  double center;
  double shift;
  double rstd;
  double slope;
  double constant;
  GradientBounds dx;
  XhatBounds xhat;
};

// Nothing where the row is not usable. sums are finite, about center, which is the mean if that is saved. saved:
// null if it is not. growth: as of narrow_growth().
std::optional<NarrowGradient> narrow_gradient(const GradientSums& sums, double center,
                                              std::int64_t n, const Formula& formula,
                                              const SavedStatistics* saved,
                                              std::int64_t growth) noexcept;

// dx' = g * rstd + ((x - mean) * slope + constant)
struct WideGradient {
  DoubleDouble mean;
  DoubleDouble rstd;
  DoubleDouble slope;
  DoubleDouble constant;
  GradientBounds dx;
  XhatBounds xhat;
};

// The same in double-doubles. centered: of sums.x; null if the mean is saved, about which sums are then.
// growth: as of wide_growth().
std::optional<WideGradient> wide_gradient(const GradientSums& sums, const CenteredSums* centered,
                                          std::int64_t n, const Formula& formula,
                                          const SavedStatistics* saved, double growth) noexcept;

// Whether saved statistics can be used as doubles.
bool is_plain(const SavedStatistics& saved) noexcept;

}  // namespace lnorm
