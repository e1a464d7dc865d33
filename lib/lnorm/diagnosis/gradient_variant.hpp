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

// A backward pass that a kernel may compute in place of the one asked for (kernel/backward.hpp), in float64, and how far off
// a kernel may be that computes it: the bounds of docs/numbers.md, "The bounds of gradients".
namespace lnorm {

enum class Gradient { dx, dweight, dbias };
std::string_view name(Gradient gradient);

struct GradientVariant {
  Formula formula;

  // dx = (a g - b sum(g) / n) / s - c xhat * sum(g * xhat) / (f * t), a, b and c being 1
  double of_g = 1;
  double of_mean = 1;
  double of_variance = 1;
  bool has_weight = true;                    // in g
  std::optional<std::int64_t> freedom = {};  // f, if it is not n - ddof
  std::optional<std::int64_t> summed = {};   // so many elements of a row, if not all
  bool is_divided = true;                    // by s, at the end
  bool adds_dy = false;                      // to dx

  bool own_statistics = false;           // they are computed where others are saved
  bool xhat_has_affine = false;          // weight and bias are in xhat
  double factor = 1;                     // of all of the gradient
  std::optional<DType> statistics = {};  // mean and 1 / s are rounded to it

  // Sums of dweight and dbias.
  bool weight_in_sums = false;     // g stands in the place of dy
  bool is_of_x = false;            // x stands in the place of xhat
  bool exchanged = false;          // each stands for the other
  std::int64_t lost_rows = 0;      // they leave out so many rows, the last ones
  std::optional<DType> sums = {};  // they are rounded to it after each row
  bool is_any_order = false;       // so they are, but in which order is not known
};

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
GradientVariant asked_for(const GradientModel& model);

// What sums one after another lose in a row (sum_losses.hpp); those of g and of g xhat in parts of the sums of their magnitudes.
struct GradientLosses {
  SumLosses statistics;
  double g = 0;
  double products = 0;
};
// The bound of a column has its loss so many times, since kernels add its terms in any order.
inline constexpr double kColumnLossFactor = 6;

// Numbers of one row.
struct GradientRow {
  std::int64_t number = 0;
  std::span<const double> x;
  std::span<const double> dy;
  // 1 and 0 where there are none.
  std::span<const double> weight;
  std::span<const double> bias;
  const SavedStatistics* saved = nullptr;  // null: statistics are computed
  const GradientLosses* losses = nullptr;  // null: by the tree bound
};

// What the sums of dx lose in rows of one length, by the formula asked for.
std::vector<GradientLosses> losses_of(const GradientModel& model,
                                      std::span<const GradientRow> rows);

// dx of the row.
RowBounds evaluate_dx(const GradientVariant& variant, const GradientModel& model,
                      const GradientRow& row);

// xhat of the row.
std::vector<double> xhat_of(const GradientVariant& variant, const GradientModel& model,
                            const GradientRow& row);

// dweight or dbias. Rows whose elements are not finite make their columns NaN.
class ParameterSums {
 public:
  ParameterSums(const GradientVariant& variant, const GradientModel& model, Gradient of);

  // The next row.
  void add(const GradientRow& row);
  // What was found of the rows that follow. Not where sums are rounded.
  void append(const ParameterSums& next);
  // losses: what the sums lose beside the tree bound, in parts of the sums of magnitudes; of each parameter in the layout's order, of all
  // of them, or none.
  RowBounds finish(std::span<const double> losses = {}) const;

 private:
  void add_term(std::size_t i, double term, double error);

  GradientVariant variant_;
  const GradientModel& model_;
  Gradient of_;
  bool is_bounded_ = true;
  bool is_in_range_ = true;
  std::vector<double> sums_;
  std::vector<double> counts_;  // of the terms
  std::vector<double> sizes_;   // sums of their magnitudes
  std::vector<double>
      errors_;  // sums of what the terms are off by; where sums are rounded, what the sum is off by
};

}  // namespace lnorm
