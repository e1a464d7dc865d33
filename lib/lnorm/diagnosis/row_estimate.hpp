#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lnorm/diagnosis/row_formula.hpp"

// What a row of an output tells of the mean and of the divisor that the kernel had:
//
//   actual_i - bias_i = weight_i (alpha (x_i - mean) / s + gamma) + rounding,   alpha = s / s',   gamma = (mean - mean') / s'
namespace lnorm {

struct EstimatedRow {
  std::span<const double> x;
  std::span<const double> actual;
  std::span<const double> weight;
  std::span<const double> bias;
  std::span<const char> kept;  // elements of which it is 0 are left out; empty: none
  // The exact ones.
  double mean = 0;
  double s = 1;
};

struct RowEstimate {
  double alpha = 1;
  double gamma = 0;
  // Standard errors; the worst case where fewer than 32 different elements repeat, whose errors repeat as well. But no less than how
  // far the number may go while all elements round to the same results.
  double alpha_error = 0;
  double gamma_error = 0;
  double residual =
      0;  // the largest, in parts of what the element's own operations and its last rounding may add
  double signal = 0;      // the root mean square of weight_i (x_i - mean) / s in the same parts
  bool is_known = false;  // two numbers can be told apart
};

// Some elements of a row, evenly spaced.
struct ThinRow {
  static constexpr std::size_t kSome = 64;
  // Which element of a row of n is number k here.
  static std::size_t place(std::size_t k, std::size_t n) { return k * (n / kSome); }

  std::array<double, kSome> x;
  std::array<double, kSome> actual;
  std::array<double, kSome> weight;
  std::array<double, kSome> bias;
  std::array<char, kSome> kept;
  double mean;
  double s;
};
// Nothing where the row has fewer than four times as many.
std::optional<ThinRow> thinned(const EstimatedRow& row);

// The residual up to which a row is a line; right rows need 1.4.
inline constexpr double kLine = 1.5;

class RowEstimator {
 public:
  RowEstimator(const KernelModel& kernel, const OutputFormat& output, const Rounding& rounding)
      : kernel_(kernel), output_(output), rounding_(rounding) {}

  // Weighted least squares.
  RowEstimate estimate(const EstimatedRow& row);

  // The same of a row that is a line; nothing of others.
  std::optional<RowEstimate> line(const EstimatedRow& row);

  // Whether these elements are too far from any line.
  bool is_bent(const ThinRow& row);

  // Whether some alpha and gamma leave no residual above most. Looks for the least of the largest residuals by reweighting.
  // [Lawson 1961]
  bool fits(const EstimatedRow& row, double most);

 private:
  struct Solution {
    double alpha;
    double gamma;
    // The sums of products that it is solved by.
    double aa;
    double ag;
    double gg;
    bool is_known;
  };

  // Fills the terms of the equations, each in parts of its element's own error. scale: of xhat, in parts of the exact one. offset: what xhat
  // is moved by.
  void fill(const EstimatedRow& row, double scale = 1, double offset = 0);
  double own_error(const EstimatedRow& row, std::size_t i, double scale, double offset) const;
  Solution solve() const;
  Solution solve(const std::vector<double>& right) const;
  double residual(const Solution& solution, std::size_t i) const;
  // How far alpha or gamma, whose terms these are, may go until an element rounds to another result.
  double room(const Solution& solution, const std::vector<double>& terms) const;

  const KernelModel& kernel_;
  const OutputFormat& output_;
  const Rounding& rounding_;
  std::vector<double> of_alpha_;
  std::vector<double> of_gamma_;
  std::vector<double> right_;
  std::vector<double> parts_;      // how much an equation counts
  std::vector<double> roundings_;  // half an ulp of the result, in the same parts
};

}  // namespace lnorm
