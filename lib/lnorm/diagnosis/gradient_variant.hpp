#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lnorm/diagnosis/variant.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/gradient.hpp"

// The gradients of a variant (kernel/backward.hpp), in float64, and how far off a kernel may be that computes it: the bounds of
// docs/numbers.md, "The bounds of gradients".
namespace lnorm {

// What is the same for all rows of a tensor.
struct GradientModel {
  const JudgeSetting& setting;  // output: of the gradient; rows have their own weight and bias
  std::int64_t rows = 0;
  std::int64_t row_length = 0;
  AffineLayout layout = {};    // which parameter an element has
  bool rounds_dy = false;      // dy is wider than the arithmetic
  bool is_uniform = false;     // one parameter serves all elements
  bool has_saved = false;      // statistics
  bool has_constants = false;  // of these: each is one of a row

  // How many elements have the same parameter, on average.
  std::int64_t terms() const noexcept {
    const std::int64_t parameters = is_uniform ? 1 : element_count(layout.shape);
    return rows * row_length / std::max<std::int64_t>(1, parameters);
  }
};

// What sums one after another lose in a row (sum_losses.hpp); those of g and of g xhat in parts of the sums of their magnitudes.
struct GradientLosses {
  SumLosses statistics;
  double g = 0;
  double products = 0;
};
// The bound of a column has its loss so many times, since kernels add its terms in any order.
inline constexpr double kColumnLossFactor = 6;

// A row's statistics by any formula.
class StatisticsOfNorms {
 public:
  explicit StatisticsOfNorms(std::span<const double> x);
  RowStatistics by(const Formula& formula) const;

 private:
  RowStatistics centered_;
  RowStatistics about_zero_;
};

// Numbers of one row.
struct GradientRow {
  std::int64_t number = 0;
  std::span<const double> x;
  std::span<const double> dy;
  // 1 and 0 where there are none.
  std::span<const double> weight;
  std::span<const double> bias;
  const SavedStatistics* saved = nullptr;         // null: statistics are computed
  const GradientLosses* losses = nullptr;         // null: by the tree bound
  const StatisticsOfNorms* statistics = nullptr;  // null: they are found each time
};

// What the sums of dx lose in rows of one length, by the formula asked for.
std::vector<GradientLosses> losses_of(const GradientModel& model,
                                      std::span<const GradientRow> rows);

// dx of the row.
RowBounds evaluate_dx(const Variant& variant, const GradientModel& model, const GradientRow& row);

// xhat of the row.
std::vector<double> xhat_of(const Variant& variant, const GradientModel& model,
                            const GradientRow& row);

// dweight or dbias. Rows whose elements are not finite make their columns NaN.
class ParameterSums {
 public:
  // wanted: the parameters whose sums are wanted, by their number in the layout; empty: all.
  ParameterSums(const Variant& variant, const GradientModel& model, Quantity of,
                std::vector<char> wanted = {});

  // The next row.
  void add(const GradientRow& row);
  // What was found of the rows that follow. Not where sums are rounded.
  void append(const ParameterSums& next);
  // losses: what the sums lose beside the tree bound, in parts of the sums of magnitudes; of each parameter in the layout's order, of all
  // of them, or none.
  RowBounds finish(std::span<const double> losses = {}) const;

 private:
  void add_term(std::size_t i, double term, double error);

  Variant variant_;
  const GradientModel& model_;
  Quantity of_;
  std::vector<char> wanted_;
  OutputFormat format_;  // of sums that are rounded
  std::vector<std::size_t>
      elements_;  // of a row that have such a parameter, if all rows have the same
  bool is_bounded_ = true;
  bool is_in_range_ = true;
  std::vector<double> sums_;
  std::vector<double> counts_;  // of the terms
  std::vector<double> sizes_;   // sums of their magnitudes
  std::vector<double>
      errors_;  // sums of what the terms are off by; where sums are rounded, what the sum is off by
};

}  // namespace lnorm
