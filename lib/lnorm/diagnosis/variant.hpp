#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lnorm/diagnosis/judge.hpp"
#include "lnorm/kernel/layer_norm.hpp"

// A formula that a kernel may compute in place of the one asked for, forward and backward, and its y for a row.
namespace lnorm {

// Of which elements a statistic is made, and what its sum is divided by.
struct StatisticOf {
  enum class Row { own, previous, next, first, last, all };
  Row row = Row::own;
  std::int64_t first = 0;  // of so many first elements; 0: of all
  static constexpr std::int64_t kWarp = 32;
  std::int64_t block = 0;      // of the first kWarp of each so many; 0: of all
  std::int64_t padded_to = 0;  // the sum goes on to so many elements; 0: it does not
  bool reads_on = false;       // these are what follows the row
  double padding = 0;          // otherwise these
  bool is_masked = false;      // the variance leaves them out
  bool by_padded = false;      // the sum is divided by padded_to

  bool is_plain() const { return row == Row::own && first == 0 && block == 0 && padded_to == 0; }
};

// Mutants that round partial sums join those of so many rows.
inline constexpr std::int64_t kRowsOfPartials = 4;

// Of the backward pass:
// dx = (a g - b sum(g) / n) / s - c xhat * sum(g * xhat) / (f * t), a, b and c being 1
struct Backward {
  double of_g = 1;
  double of_mean = 1;
  double of_variance = 1;
  bool has_weight = true;           // in g
  bool mean_has_weight = true;      // in the g of the mean of g
  bool variance_has_weight = true;  // in the g of the mean of g xhat
  bool weight_is_last = false;      // it multiplies all, not g
  enum class Xhat { xhat, deviation, x };
  Xhat xhat = Xhat::xhat;                    // what stands in its place
  std::optional<std::int64_t> freedom = {};  // f, if it is not n - ddof
  std::optional<std::int64_t> summed = {};   // so many elements of a row, if not all
  bool summed_of_warp = false;               // so many elements as a warp has, of each so many
  int divisions = 1;                         // by s, at the end
  bool t_is_s = false;                       // s stands for t
  bool adds_dy = false;                      // to dx
  bool xhat_has_affine = false;              // weight and bias are in xhat
  double factor = 1;                         // of all of the gradient
  std::optional<DType> result_in = {};       // it is rounded to it before the output

  // Sums of dweight and dbias.
  bool weight_in_sums = false;      // g stands in the place of dy
  bool is_of_x = false;             // x stands in the place of xhat
  bool exchanged = false;           // each stands for the other
  std::int64_t lost_rows = 0;       // they leave out so many rows, the last ones
  std::int64_t row_step = 1;        // they are of each so manyth row
  std::optional<DType> dy_in = {};  // dy is rounded to it
  std::optional<DType> sums = {};   // they are rounded to it
  // Where: after each row; after each term, in which order is not known; where partial sums of some rows are joined.
  enum class Rounded { rows, terms, partials };
  Rounded rounded = Rounded::rows;
  // All that is known of the result is how far off it is as a rule.
  bool is_noise() const noexcept { return rounded != Rounded::rows; }
};

struct Variant {
  Formula formula;
  Rounding rounding;
  std::shared_ptr<const AffineNumbers> affine;
  // What has become of weight and bias there, for rows that have their own.
  std::vector<std::function<void(AffineNumbers& numbers)>> affine_changes = {};

  bool eps_times_max = false;  // it is multiplied by the square of the row's largest |x|
  bool eps_on_both = false;    // it is added to the variance and to its root
  bool weight_by_row = false;  // it is that of the row's number
  bool bias_by_row = false;
  bool is_tiled = false;               // weight and bias of groups are tiled, not repeated
  bool own_statistics = false;         // they are computed where others are given
  std::optional<bool> saturates = {};  // the last rounding; nothing: as was asked for
  double variance_factor = 1;          // what the variance is multiplied by
  double given_power = 1;              // of the variance that is given, which is raised to it

  StatisticOf mean = {};
  StatisticOf variance = {};
  // What the variance is about: the mean above; that of its own elements, as where it is another row's; the mean as it is subtracted.
  enum class Center { mean, own, subtracted };
  Center center = Center::mean;
  bool squares_about_zero = false;          // the variance is mean(x^2)
  bool without = false;                     // mean and variance are 0
  std::optional<DType> mean_in = {};        // the mean is rounded before the variance
  std::optional<DType> rstd_in = {};        // 1 / s is rounded
  std::optional<DType> statistics_in = {};  // both are, at the end
  // These sums lose more than those of the arithmetic. Nobody knows their order.
  bool one_pass = false;                // the variance is mean(x^2) - mean^2
  std::optional<DType> summed_in = {};  // terms and sums are rounded to it
  bool has_own_sums() const noexcept { return one_pass || summed_in; }
  std::optional<DType> arithmetic = {};  // the whole kernel computes in it

  // y
  double mean_factor = 1;  // how often the mean is subtracted
  enum class Divisor { deviation, variance, variance_squared, one };
  Divisor divisor = Divisor::deviation;
  enum class Result {
    formula,
    input,
    zeros,
    twice,
    softmax,
    previous_row,
    next_row,
    previous_element,
    next_element,
    truncated,
    away,
    unwritten_rows,  // the last eighth is 0; these two are written, not found (see write)
    unwritten_tail
  };
  Result result = Result::formula;
  double (*activation)(double) = nullptr;  // of y; kMostSlope is the most that it is steep
  static constexpr double kMostSlope = 1.13;
  std::optional<OutputFormat> y_in = {};  // y is rounded to it before the output
  double y_factor = 1;                    // and is multiplied by that then

  // Rows are lost where this leaves float16: x^2, its sum, its mean, or the sum of x.
  enum class Overflow { none, square, sum_of_squares, mean_square, sum };
  Overflow overflow = Overflow::none;

  // What is normalized, where a residual is added to x.
  enum class Input {
    sum,
    x_alone,
    residual_alone,
    residual_twice,
    difference,
    rounded_sum,
    unrounded_sum
  };
  Input input = Input::sum;
  std::optional<DType> x_in = {};  // x is rounded to it
  std::int64_t x_block = 0;  // its first elements are those of each so many, but for the statistics
  std::int64_t blocks = 0;   // each so many elements are normalized by themselves
  bool is_of_xhat = false;   // of the norm of the norm: the first one has no weight and bias
  bool adds_input = false;   // x is added to y
  bool adds_residual = false;  // so is the residual

  Backward backward = {};

  // What becomes of bytes.
  enum class Bytes { as_they_are, other_dtype, swapped, swapped_input };
  Bytes bytes = Bytes::as_they_are;

  // Whether y is what statistics, weight and bias make of a row, or an activation of that.
  bool is_norm() const noexcept {
    return bytes == Bytes::as_they_are && overflow == Overflow::none && !arithmetic && !y_in &&
           !saturates && !has_own_sums() && result != Result::truncated && result != Result::away &&
           result != Result::unwritten_rows && result != Result::unwritten_tail;
  }

  bool rereads_output() const noexcept {
    return bytes == Bytes::other_dtype || bytes == Bytes::swapped;
  }
};

// What a kernel was asked for: options and shapes, no values. It decides whether a wrong kernel is another formula than that.
struct KernelContext {
  const JudgeSetting& setting;  // output: of the quantity
  Quantity of = Quantity::y;
  bool has_weight = false;
  bool has_bias = false;
  bool has_residual = false;
  bool has_rounded_sum = false;  // with the residual
  DType x_dtype = DType::float64;
  DType weight_dtype = DType::float64;
  DType dy_dtype = DType::float64;
  std::int64_t rows = 0;          // of the tensor
  bool has_groups = false;        // whose channels have their own weights
  bool weight_is_number = false;  // one for all elements of a row
  bool bias_is_number = false;
  // If weight and bias run along other axes, a row has no order of its own that a kernel could reverse or shift.
  bool has_own_order = true;
  bool is_written = false;  // the variant's results are wanted, not what explains others
  // Statistics are given: of rows, and in place of the divisor. Those that a forward pass has saved are none.
  bool has_given = false;
  bool has_given_rstd = false;
  bool has_saved = false;
  // Of a backward pass.
  AffineLayout layout = {};  // which parameter an element has
  bool rounds_dy = false;    // dy is wider than the arithmetic
  bool is_uniform = false;   // one parameter serves all elements

  std::int64_t row_length() const { return element_count(setting.normalized_shape); }
  // How many elements have the same parameter, on average.
  std::int64_t terms() const {
    const std::int64_t parameters = is_uniform ? 1 : element_count(layout.shape);
    return rows * row_length() / std::max<std::int64_t>(1, parameters);
  }
  // Rows of one element: x - mean is 0, whatever it is divided by and multiplied with.
  bool has_no_deviations() const { return row_length() == 1 && setting.formula.has_mean(); }
  // Whether it depends on the divisor.
  bool has_statistics() const {
    return of != Quantity::dbias && !has_saved && !has_no_deviations();
  }
  // dx is also 0 for rows of two elements without eps, whose xhat is 1 and -1 whatever x is.
  bool dx_is_zero() const {
    return has_no_deviations() ||
           (row_length() == 2 && setting.formula.has_mean() && setting.formula.eps == 0);
  }
};

// A row's statistics by some formulas, which many variants share.
class KnownStatistics {
 public:
  struct One {
    Formula formula;
    RowStatistics statistics;
    StatisticErrors errors;
    double s = 1;
  };
  // Takes the place of what was found before.
  void find(std::span<const double> x, const SumLosses& losses, const KernelModel& kernel,
            std::span<const Formula> formulas);
  // Null of other formulas.
  const One* by(const Formula& formula) const;

 private:
  std::vector<One> known_;
};

// What a kernel was given of a row, and what it made of it.
struct SampleRow {
  std::int64_t number = 0;
  std::vector<double> x;
  std::vector<double> actual;
  std::vector<double> exact = {};
  std::vector<double> alone = {};     // x without the residual, if there is one
  std::vector<double> residual = {};  // where their sum is rounded
  std::vector<char> kept = {};        // which elements are judged, as of a JudgedRow; empty: all
  // The rows beside it; empty where there is none.
  std::vector<double> previous_x = {};
  std::vector<double> next_x = {};
  std::optional<GivenNumbers> given = {};                 // as of a JudgedRow
  std::shared_ptr<const AffineNumbers> affine = nullptr;  // of its own; null: those of all rows
  // The same, if those of groups are tiled, not repeated.
  std::shared_ptr<const AffineNumbers> tiled = nullptr;
  SumLosses losses = {};  // of its own sums, where the bound takes them
  // Of a backward pass.
  std::vector<double> dy = {};
  std::optional<SavedStatistics> saved = {};    // nothing: statistics are computed
  const KnownStatistics* statistics = nullptr;  // null: they are found each time

  // Statistics of some of its elements, or of another row's, about their mean and divided by their number. They are kept.
  struct Part {
    StatisticOf::Row row;
    std::int64_t first;
    std::int64_t block;
    RowStatistics statistics;
  };
  mutable std::vector<Part> parts = {};

  // What its sums lose with padding behind it. They are kept.
  struct PaddedLosses {
    std::int64_t padded_to;
    bool reads_on;
    double padding;
    Formula formula;
    SumLosses losses;
  };
  mutable std::vector<PaddedLosses> padded = {};

  JudgedRow judged() const { return {number, x, actual, exact, kept, given, affine.get()}; }
  bool is_kept(std::size_t i) const { return kept.empty() || kept[i] != 0; }
};

inline const AffineNumbers& affine_of(const SampleRow& row, const JudgeSetting& setting) {
  return row.affine != nullptr ? *row.affine : setting.affine;
}

// What the statistics of rows lose, by the formula asked for.
std::vector<SumLosses> losses_of(const JudgeSetting& setting, std::span<const SampleRow> rows);

struct Sample {
  const JudgeSetting* setting = nullptr;
  DType x_dtype = DType::float64;
  std::vector<SampleRow> rows = {};  // by number
  std::vector<double> first_x;
  std::vector<double> last_x;
  std::optional<RowStatistics> of_all = {};  // of all rows together; nothing where not known
  std::int64_t all_rows = 0;                 // of the tensor, where variants are written
  std::int64_t block_rows = 0;  // what follows the last row of so many is not known; 0: of none
  std::int64_t row_length() const { return std::ssize(setting->affine.weight); }
};

// What a variant makes of a row: exact values, and how far off a kernel may be, with its last rounding.
struct VariantRow : RowBounds {
  std::span<const double> actual = {};  // the output as the variant reads it: the row's, or reread
  std::vector<double> reread = {};
  std::span<const char> kept = {};  // the row's
  bool saturates = false;           // no finite y becomes infinity or NaN

  bool is_reread() const { return actual.data() == reread.data(); }
};

// The mean and the divisor by which a variant normalizes a row.
struct UsedStatistics {
  RowStatistics row;
  StatisticErrors errors = {};
  double mean = 0;  // what is subtracted from x
  double s = 1;
  bool is_bounded = false;
};
// Nothing where the variant has none, as of the row before the first one. Requires no sums of its own.
// has_errors: whether the errors of any variant are found, for which sums over padding are run; otherwise those of statistics that are
// kept in a dtype, and is_bounded says nothing.
std::optional<UsedStatistics> used_statistics(const Variant& variant, const Sample& sample,
                                              const SampleRow& row, std::span<const double> x,
                                              bool has_errors = false);

// False where the variant has no result for the row.
bool evaluate(const Variant& variant, const Sample& sample, const SampleRow& row,
              VariantRow& result);

// y is what a kernel writes that computes the variant: results in float64, rounded once to the output dtype, and what
// becomes of their bytes then. Requires the rows beside the row: the last one is before the first.
void write(const Variant& variant, const Sample& sample, const SampleRow& row, VariantRow& result);

// Whether an output row holds what is no number, zeros alone, or the bias alone.
bool is_lost(const SampleRow& row, const JudgeSetting& setting);

// Whether something of the row leaves float16.
bool overflows(Variant::Overflow what, const RowStatistics& row, std::span<const double> x);

// Weight and bias of a row, as the variant has them. They may be those of the variant or the row, which must outlive them.
std::shared_ptr<const AffineNumbers> affine_of(const Variant& variant, const SampleRow& row);

// The formula that was asked for.
Variant asked_for(const JudgeSetting& setting);

}  // namespace lnorm
