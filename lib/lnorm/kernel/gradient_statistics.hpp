#pragma once

#include <array>
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

// What the terms of the bounds of dx add up to: (18) of docs/numbers.md, in u and beside rho and h, and (19), in u^2 and
// beside rho and G.
struct DxTerms {
  double g;         // rho + this, of a |g|
  double product;   // 3 h + this, of n w q a^2 / (f t) |x - mean|
  double slope;     // 3 rho + this, of |b| |x - mean|
  double shift;     // h + this, of |b| q
  double constant;  // h + this, of a w
  double mean;      // rho + this, of a |G| / n
};
inline constexpr DxTerms kDxTerms{9, 24, 17, 17, 12, 9};
inline constexpr DxTerms kDxTerms2{20, 60, 60,
                                   0,  10, 40};  // the error of the mean stands for shift

// Relative: a root within this, or within its error, of the eps of max() does not tell which of the two s is.
inline constexpr double kNearEps = 8 * kUnit;

// Rows that go together in doubles.
inline constexpr std::int64_t kMaxGradientRows = 32;

// Rows whose terms of a column add up in doubles: they are few, so that little is lost. Such sums add up in double-doubles.
inline constexpr std::int64_t kMaxSummedRows = 8;

// Their sums, one number a row in each array, of d = x - center and of g = dy * weight. The center is the mean if that is saved.
struct GradientRowSums {
  using Numbers = std::array<double, kMaxGradientRows>;

  alignas(64) Numbers center{};
  alignas(64) Numbers x{};
  alignas(64) Numbers x_squares{};
  alignas(64) Numbers g{};
  alignas(64) Numbers gx{};  // of g * d
  alignas(64) Numbers g_squares{};
};

// What is the same for all rows.
struct GradientRule {
  std::int64_t n;
  const Formula& formula;
  double per_root;  // 1 / sqrt(n)
  double growth;    // h: double_growth()
  double share;     // of the mean of dx^2; if the squared error is less, most results are decided
  double most_correction;  // K / C of a row that is usable, at most
  double nearness;  // how many s from its center the mean of a row may be that needs no other

  // Of one backend's tables, for rows that start in doubles.
  explicit GradientRule(const GradientSetting& setting);
};

// Their gradients, one number a row in each array:
//
//   dx' = g * rstd + (d * slope + constant)      d = x - center
//   xhat' = (d - shift) * rstd                   mean = center + shift
//
// with GradientBounds of dx.
struct DoubleGradients {
  using Numbers = GradientRowSums::Numbers;

  alignas(64) Numbers center{};
  alignas(64) Numbers shift{};
  alignas(64) Numbers rstd{};
  alignas(64) Numbers slope{};
  alignas(64) Numbers constant{};
  alignas(64) Numbers g_error{};
  alignas(64) Numbers x_error{};
  alignas(64) Numbers offset{};
  alignas(64) Numbers error{};
  XhatBounds xhat;  // of all usable rows
  // A bit for each row, the lowest one for the first: whether it has a gradient, and whether this decides most results
  // of dx. It does not where g is 0, or where the terms of dx cancel far.
  unsigned usable = 0;
  unsigned decides = 0;
};

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

// 1/s of saved statistics; nothing where double-doubles do not hold them.
std::optional<DoubleDouble> plain_rstd(const SavedStatistics& saved,
                                       const Formula& formula) noexcept;

}  // namespace lnorm
