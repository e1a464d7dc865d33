#pragma once

#include <optional>
#include <span>

// What rows together tell of the statistics that a kernel had: of its mean, and of its divisor's square,
//
//   mean' = c mean,   s'^2 = f variance + eps + k mean^2
namespace lnorm {

// A number holds if so many rows, in parts of all, are within so many standard errors of it.
inline constexpr double kMostRows = 0.9;
inline constexpr double kWithinErrors = 6;

// A number that rows tell.
struct EstimatedNumber {
  double number = 0;
  double error = 0;  // a standard error
  // The shortest number within three errors, where the rows need another one than the formula's.
  std::optional<double> plain = {};
};

// What one row tells.
struct ToldStatistics {
  double mean = 0;
  double variance = 0;  // the exact one
  EstimatedNumber mean_factor = {};
  EstimatedNumber square = {};  // s'^2
};

// The mean of what each row tells, weighted by its error; nothing unless it holds. A row whose number is NaN tells nothing, and counts.
std::optional<EstimatedNumber> number_of(std::span<const EstimatedNumber> told);

// Each is nothing where the rows do not tell it.
struct StatisticEstimates {
  std::optional<EstimatedNumber> mean_factor = {};      // c
  std::optional<EstimatedNumber> variance_factor = {};  // f
  std::optional<EstimatedNumber> eps = {};
  std::optional<EstimatedNumber> mean_square_factor = {};  // k
  bool is_sure = false;  // many rows tell f and k apart, so that the formula may be said
};

// By weighted least squares. eps: the formula's. has_mean: the kernel's norm has one;
// without it c and k are nothing.
StatisticEstimates estimate_statistics(std::span<const ToldStatistics> rows, double eps,
                                       bool has_mean);

}  // namespace lnorm
