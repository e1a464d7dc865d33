#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/contents.hpp"
#include "lnorm/diagnosis/judge.hpp"
#include "lnorm/pipeline/check.hpp"
#include "lnorm/pipeline/check_rows.hpp"
#include "lnorm/pipeline/quantized_rules.hpp"
#include "lnorm/pipeline/shared_scales.hpp"

namespace lnorm {

namespace {

// What a kernel made of a row, and what is right.
struct KernelRow {
  std::int64_t number;
  std::vector<double> x;
  std::vector<double> q;
  std::vector<double> exact_q;
  std::vector<double> scales;  // the exact ones, if the kernel has saved none
  std::vector<double> exact_scales;
  bool is_finite;                               // x, and every scale
  std::shared_ptr<const AffineNumbers> affine;  // of its own; null: those of all rows

  std::size_t group() const { return x.size() / scales.size(); }
  bool is_exact() const { return is_finite && q == exact_q && scales == exact_scales; }
};

// The largest |y|.
ScaleInterval amax_of(std::span<const double> y, std::span<const double> error) {
  ScaleInterval most;
  for (std::size_t i = 0; i < y.size(); ++i) {
    most.low = std::max(most.low, std::fabs(y[i]) - error[i]);
    most.high = std::max(most.high, std::fabs(y[i]) + error[i]);
  }
  return most;
}

// All that a quantized tensor's rows are judged by.
class QuantizedJudge {
 public:
  QuantizedJudge(const CheckInputs& of_kernel, const AskedQuantization& quantized,
                 const SavedScales& scales, const Plan& plan_of_x, const JudgeSetting& of_rows,
                 int threads)
      : inputs(of_kernel),
        asked(quantized),
        saved(scales),
        plan(plan_of_x),
        setting(of_rows),
        groups(asked.given_scale || plan.shared_scales > 0
                   ? 1
                   : asked.quantization.scales(plan.row_length)),
        grid_(plan.out),
        group_(plan.row_length / std::max<std::int64_t>(1, groups)) {
    if (inputs.alone != nullptr) alone_.emplace(*inputs.alone, plan.axes, threads);
    if (inputs.residual != nullptr) residual_.emplace(*inputs.residual, plan.axes, threads);
    if (has_scales()) numbers_ = all_numbers(setting.backend, *saved.source, threads);
    const TensorInfo& x = inputs.x.info();
    if (x.slice) first_row_ = x.slice->first;
    const Shape& shape = x.slice ? x.slice->shape : plan.shape;
    const Axes& axes = x.slice ? x.slice->axes : plan.axes;
    all_rows_ = element_count(row_shape(shape, axes));
    const std::size_t last = axes.empty() ? shape.size() : *std::ranges::max_element(axes);
    for (std::size_t axis = last + 1; axis < shape.size(); ++axis) inner_rows_ *= shape[axis];
  }

  bool has_scales() const { return saved.source != nullptr; }
  // Whether each group has a scale of its own that the kernel has saved.
  bool has_scales_of_rows() const { return has_scales() && !shares_scales(); }
  bool shares_scales() const { return plan.shared_scales > 0; }
  // The exact scale of a row that has none of its own.
  double exact_scale(std::int64_t row) const {
    return shares_scales() ? shared[static_cast<std::size_t>(plan.scales.first(row))] : given_scale;
  }

  // How far off a shared scale may be that the kernel has not saved, in parts of itself; 0 until it is asked.
  double shared_error(std::int64_t row) const {
    return shared_errors.empty() ? 0
                                 : shared_errors[static_cast<std::size_t>(plan.scales.first(row))];
  }
  // most: the largest |y| of the rows.
  void take_shared_errors(std::span<const ScaleInterval> most) {
    for (const ScaleInterval& one : most) {
      const auto [low, high] = scales_of(one, QuantizedRule{asked.quantization});
      // A power of two is one of two numbers: nothing lies between.
      const bool is_near = low > 0 && !asked.quantization.power_of_two;
      shared_errors.push_back(is_near ? high / low - 1 : 0);
    }
  }

  // Where the kernel's scale of a group lies, in elements; and the scale.
  std::int64_t position(std::int64_t row, std::int64_t g, bool is_transposed) const {
    if (shares_scales()) return plan.scales.first(row);
    row += first_row_;
    if (is_transposed) return g * all_rows_ + row;
    return (row / inner_rows_ * groups + g) * inner_rows_ + row % inner_rows_;
  }
  double scale(std::int64_t row, std::int64_t g, bool is_transposed) const {
    return numbers_[static_cast<std::size_t>(position(row, g, is_transposed))];
  }

  // x without the residual; empty if there is none.
  std::vector<double> alone(std::int64_t row) const { return row_of(alone_, row); }

  std::vector<double> row_of(const std::optional<CheckRows>& rows, std::int64_t row) const {
    if (!rows) return {};
    TileBuffer buffer;
    return decoded(setting.backend, rows->read(row, 1, buffer));
  }

  // Nothing where there is no such row, or it is not finite.
  std::vector<double> finite_row(const CheckRows& rows, std::int64_t row) const {
    if (row < 0 || row >= plan.rows) return {};
    TileBuffer buffer;
    std::vector<double> found = decoded(setting.backend, rows.read(row, 1, buffer));
    return are_finite(found) ? std::move(found) : std::vector<double>();
  }

  // What a kernel was given of a row, and its q.
  SampleRow sample_row(std::int64_t row, const CheckRows& x, const CheckRows& actual) const {
    return {.number = row,
            .x = finite_row(x, row),
            .actual = finite_row(actual, row),
            .alone = alone(row),
            .residual = row_of(residual_, row),
            .previous_x = finite_row(x, row - 1),
            .next_x = finite_row(x, row + 1),
            .given = given_numbers(inputs.given, row),
            .affine = affine(row)};
  }

  // Calls see(row) with what the rules of wrong kernels need of a row; it refers to what lives no longer than the call.
  template <class See>
  void see_as_kernels_do(const KernelRow& row, const See& see) const {
    const std::vector<double> without_residual = alone(row.number);
    RowOfKernel seen(setting, affine_or(row.affine.get()), asked.quantization, row.x,
                     without_residual, given_numbers(inputs.given, row.number), given_scale);
    see(seen);
  }

  // Weight and bias that a row has of its own; null: those of all rows.
  std::shared_ptr<const AffineNumbers> affine(std::int64_t row) const {
    return own_affine(inputs.weight, inputs.bias, plan, row);
  }
  const AffineNumbers& affine_or(const AffineNumbers* own) const {
    return own != nullptr ? *own : setting.affine;
  }

  // y of a row, and how far off a kernel's may be.
  RowBounds results(const AffineNumbers* affine, std::int64_t row, std::span<const double> x,
                    bool is_measured) const {
    return results_of(setting, affine_or(affine), plan.rounding, asked.quantization.rounds_y, x,
                      given_numbers(inputs.given, row), is_measured);
  }

  ScaleInterval scales_of(const ScaleInterval& amax, const QuantizedRule& rule) const {
    const double unit = 3 * setting.kernel.arithmetic.unit;
    const bool is_zero = amax.high == 0;
    return {rule.scale_of(amax.low * (1 - unit), is_zero),
            rule.scale_of(amax.high * (1 + unit), is_zero)};
  }

  // Each element's scale, if scales are given.
  std::vector<double> given_scales(std::int64_t row) const {
    if (asked.given_scale == nullptr) return {};
    return numbers_of(*asked.given_scale, plan.row_length, 1, plan.affine, row);
  }

  // Which scale q of a group was divided by: the kernel's own, or one that suits all elements, or else the exact one.
  double divisor(double own, double exact, const ScaleInterval& scales, std::span<const double> y,
                 std::span<const double> error, std::span<const double> q) const {
    if (has_scales()) return own > 0 && std::isfinite(own) ? own : exact;
    if (shares_scales()) return exact;
    // A little less than in the bound: the very end of what suits would be beyond it by its own rounding.
    const double unit = (4 - 0x1p-20) * setting.kernel.arithmetic.unit;
    ScaleInterval suits = scales;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const ScaleInterval of_q = grid_.rounds_to(q[i]);
      const double size = std::fabs(y[i]);
      if (of_q.low > 0) {
        suits.high = std::min(suits.high, (size + error[i]) * (1 + unit) / of_q.low);
      }
      suits.low = std::max(suits.low, (size - error[i]) * (1 - unit) / of_q.high);
    }
    if (!asked.quantization.power_of_two) {
      return suits.low <= suits.high ? std::clamp(exact, suits.low, suits.high) : exact;
    }
    for (const double one : {exact, scales.low, scales.high}) {
      if (suits.has(one)) return one;
    }
    return exact;
  }

  // How far y may be off from what q stands for. scale_error: how far off the scale may be, in parts of itself.
  double bound(double y, double error, double q, double scale, double scale_error) const {
    const ScaleInterval of_q = grid_.rounds_to(q);
    const double size = std::fabs(q);
    const bool is_above = std::signbit(y) == std::signbit(q) && std::fabs(y) > size * scale;
    const double half = q == 0 || is_above ? of_q.high - size : size - of_q.low;
    const double off = error + (quotient_error(scale) + scale_error) * std::fabs(y);
    // An exact tie rounds to one number; the other one is just beyond the bound.
    const bool is_other =
        off == 0 && std::fabs(y - q * scale) == half * scale && grid_.rounded(y / scale) != q;
    return off + half * scale * (is_other ? 1 - 0x1p-12 : 1);
  }

  // Whether a rule gives a row's scales and q. given: the scale of each element, if they are given. shared: the largest of the
  // rule's numbers in all rows that share the scale, if rows do.
  bool explains(const QuantizedRule& rule, std::int64_t row, std::span<const double> q,
                std::span<const double> given, const ScaleInterval* shared_amax) const {
    const std::int64_t step = rule.step(group_);
    for (std::int64_t first = 0; first < std::ssize(rule.y); first += step) {
      const std::int64_t g = first / group_;
      const bool is_own = shared_amax == nullptr || rule.group > 0;
      ScaleInterval scales = scales_of(is_own ? amax_of(rule.part(rule.amax_of, first, group_),
                                                        rule.part(rule.error, first, group_))
                                              : *shared_amax,
                                       rule);
      if (rule.scale) scales = {*rule.scale * (1 - 0x1p-20), *rule.scale * (1 + 0x1p-20)};
      double divisor = exact_scale(row);
      if (has_scales()) {
        divisor = scale(row, g, saved.is_transposed != rule.is_transposed);
        if (rule.multiplies) divisor = 1 / divisor;
        if (!rule.has_no_scale && !scales.has(divisor)) return false;
      } else if (asked.given_scale == nullptr) {
        divisor = (scales.low + scales.high) / 2;
        if (rule.quantization.power_of_two || rule.rounds_down) divisor = scales.high;
      }
      for (std::int64_t i = first; i < first + step; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double by = rule.has_no_scale              ? 1
                          : asked.given_scale != nullptr ? given[at]
                                                         : divisor;
        if (!rounds_to(rule, q[at], at, by)) return false;
      }
    }
    return true;
  }

  // Whether the kernel's scales that rows share are right, where |y| is at most that, by the tree bound and by the measured one.
  JudgedRows of_shared(std::span<const ScaleInterval> most,
                       std::span<const ScaleInterval> measured) const {
    JudgedRows found;
    RowJudge judge(setting);
    for (std::size_t i = 0; i < most.size(); ++i) {
      judge.judge_and_settle_by(
          {static_cast<std::int64_t>(i), {}, {&numbers_[i], 1}, {&shared[i], 1}},
          [&](bool is_measured, RowBounds& bounds) {
            const ScaleInterval may_be =
                scales_of(is_measured ? measured[i] : most[i], QuantizedRule{asked.quantization});
            double bound = (may_be.high - may_be.low) / 2 + may_be.high * 0x1p-40;
            if ((is_measured ? measured[i] : most[i]).low == 0) bound = kInfinity;
            bounds = {{(may_be.low + may_be.high) / 2}, {bound}, true};
          },
          found);
    }
    return found;
  }

  const CheckInputs& inputs;
  const AskedQuantization& asked;
  const SavedScales& saved;
  const Plan& plan;
  const JudgeSetting& setting;
  const std::int64_t groups;  // of a row
  double given_scale = kNan;  // the exact one of the tensor, or the first of those that are given
  std::vector<double> shared = {};  // the exact ones that rows share
  std::vector<double> shared_errors = {};

 private:
  // How far off a quotient by a scale may be, in parts of itself. By a power of two it is exact, if that is the kernel's very scale.
  double quotient_error(double divisor) const {
    const bool is_known =
        has_scales() || asked.given_scale != nullptr || asked.quantization.power_of_two;
    int exponent = 0;
    const bool is_exact = is_known && std::frexp(divisor, &exponent) == 0.5;
    return is_exact ? 0 : 4 * setting.kernel.arithmetic.unit;
  }

  bool rounds_to(const QuantizedRule& rule, double q, std::size_t i, double divisor) const {
    const double error = rule.error[i] + quotient_error(divisor) * std::fabs(rule.y[i]);
    const double one = rule.result(grid_, rule.y[i] - error, divisor);
    const double other = rule.result(grid_, rule.y[i] + error, divisor);
    // Kernels whose largest becomes 128 may saturate at -127.
    const bool is_symmetric = rule.quantization.qmax == 128 && q == -127 && one <= -127;
    if (std::isnan(q)) return std::isnan(one) || std::isnan(other);
    return is_symmetric || (q >= std::fmin(one, other) && q <= std::fmax(one, other));
  }

  QuantizedGrid grid_;
  std::int64_t group_;
  std::vector<double> numbers_;  // the kernel's scales
  // Rows of the tensor that x may be a slice of.
  std::int64_t first_row_ = 0;
  std::int64_t all_rows_ = 1;
  std::int64_t inner_rows_ = 1;  // along axes after the last normalized one, which has the groups
  std::optional<CheckRows> alone_;
  std::optional<CheckRows> residual_;  // where the sum is rounded
};

// y of a row, and what its scales may be: by the tree bound, or the measured one.
class QuantizedBounds {
 public:
  QuantizedBounds(const QuantizedJudge& judge, const KernelRow& row)
      : judge_(judge),
        row_(row),
        results_{std::vector<double>(row.x.size(), kNan), std::vector<double>(row.x.size())},
        scales_(row.scales.size()) {
    fill(false);
    divisors_ = divisors();
  }

  // q in the units of y, and what it should stand for.
  std::vector<double> of_kernel() const {
    std::vector<double> numbers(row_.x.size(), kNan);
    for (std::size_t i = 0; i < numbers.size() && row_.is_finite; ++i) {
      numbers[i] = row_.q[i] * divisors_[i];
    }
    return numbers;
  }
  std::vector<double> expected(std::span<const double> of_kernel) const {
    std::vector<double> numbers = results_.y;
    for (std::size_t i = 0; i < numbers.size() && row_.is_finite; ++i) {
      if (row_.q[i] == row_.exact_q[i] && std::isfinite(of_kernel[i])) numbers[i] = of_kernel[i];
    }
    return numbers;
  }

  void of_q(bool is_measured, RowBounds& bounds) {
    fill(is_measured);
    bounds = results_;
    for (std::size_t i = 0; i < bounds.y.size(); ++i) {
      bounds.bound[i] = judge_.bound(bounds.y[i], bounds.bound[i], row_.q[i], divisors_[i],
                                     judge_.shared_error(row_.number));
    }
  }
  void of_scales(bool is_measured, RowBounds& bounds) {
    constexpr double kOwnRounding = 0x1p-40;  // of the middle
    fill(is_measured);
    bounds = {{}, {}, results_.is_bounded, results_.is_in_range};
    for (const ScaleOfGroup& of : scales_) {
      bounds.y.push_back((of.low + of.high) / 2);
      bounds.bound.push_back(of.is_any ? kInfinity
                                       : (of.high - of.low) / 2 + of.high * kOwnRounding);
    }
  }

  // Which causes explain the row, by the tree bound. amaxes: of each cause, if rows share scales.
  void explain(const std::vector<NamedQuantizedKernel>& causes,
               std::span<const ScaleInterval> amaxes, CauseCounts& counts) const {
    ++counts.wrong;
    counts.explained.resize(causes.size());
    if (!row_.is_finite) return;
    judge_.see_as_kernels_do(row_, [&](RowOfKernel& row) {
      row.offset = std::nearbyint(row_.q[0] - results_.y[0] / divisors_[0]);
      for (std::size_t k = 0; k < causes.size(); ++k) {
        const QuantizedRule rule = causes[k].rule(judge_.asked.quantization, row);
        const ScaleInterval* const shared = amaxes.empty() ? nullptr : &amaxes[k];
        counts.explained[k] +=
            judge_.explains(rule, row_.number, row_.q, divisors_, shared) ? 1 : 0;
      }
    });
  }

 private:
  // What the scale of a group may be.
  struct ScaleOfGroup : ScaleInterval {
    bool is_any = false;  // of a group that may be zeros it does not matter
  };

  std::span<const double> part(std::span<const double> all, std::size_t g) const {
    return all.subspan(g * row_.group(), row_.group());
  }

  void fill(bool is_measured) {
    if (!row_.is_finite) return;
    results_ = judge_.results(row_.affine.get(), row_.number, row_.x, is_measured);
    for (std::size_t g = 0; g < scales_.size(); ++g) {
      const ScaleInterval amax = amax_of(part(results_.y, g), part(results_.bound, g));
      const QuantizedRule asked{judge_.asked.quantization};
      scales_[g] = {judge_.scales_of(amax, asked), amax.low == 0};
    }
  }

  // Of each element.
  std::vector<double> divisors() const {
    if (judge_.asked.given_scale != nullptr) return judge_.given_scales(row_.number);
    std::vector<double> all(row_.x.size(), judge_.exact_scale(row_.number));
    for (std::size_t g = 0; g < scales_.size() && row_.is_finite; ++g) {
      const double by =
          judge_.divisor(row_.scales[g], row_.exact_scales[g], scales_[g], part(results_.y, g),
                         part(results_.bound, g), part(row_.q, g));
      std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(g * row_.group()), row_.group(), by);
    }
    return all;
  }

  const QuantizedJudge& judge_;
  const KernelRow& row_;
  RowBounds results_;
  std::vector<ScaleOfGroup> scales_;
  std::vector<double> divisors_;
};

// Compares q and the scales with the exact rows, as the loop brings them.
class QuantizedChecker {
 public:
  QuantizedChecker(const QuantizedJudge& judge, const CheckOptions& options,
                   const CheckRows& actual)
      : judge_(judge), actual_(actual) {
    if (!options.kernels) return;
    const CheckInputs& inputs = judge.inputs;
    const AskedQuantization& asked = judge.asked;
    causes_ = named_quantized_kernels({.quantization = asked.quantization,
                                       .rows = judge.plan.rows,
                                       .row_length = judge.plan.row_length,
                                       .shared_scales = judge.plan.shared_scales,
                                       .is_given = asked.given_scale != nullptr,
                                       .has_saved_scales = judge.has_scales(),
                                       .has_residual = inputs.alone != nullptr,
                                       .has_weight = !inputs.weight.empty(),
                                       .has_bias = !inputs.bias.empty()},
                                      options.kernels);
    std::erase_if(causes_, [](const NamedQuantizedKernel& one) { return !one.is_other; });
  }

  struct Found {
    JudgedRows q;
    JudgedRows scale;
    CauseCounts causes = {};

    void merge(const Found& other) {
      q.merge(other.q);
      scale.merge(other.scale);
      causes.merge(other.causes);
    }

    // Few elements that are hardly beyond their bounds tell no cause: they are near a tie.
    bool is_told() const {
      constexpr std::int64_t kFew = 4;
      constexpr double kHardly = 1.1;
      return q.beyond + scale.beyond > kFew || std::max(q.tree.ratio, scale.tree.ratio) > kHardly;
    }
  };

  Found examine(const RowBlock& block) const {
    Found found;
    RowJudge of_row(judge_.setting);
    for_each_row(block, [&](const KernelRow& row) {
      if (!row.is_exact()) return judge(row, of_row, found);
      RowJudge::count_exact(std::ssize(row.q), found.q);
      if (judge_.has_scales_of_rows()) RowJudge::count_exact(judge_.groups, found.scale);
    });
    return found;
  }

  // Of each cause, by the number of the scale: the largest of a block's numbers.
  using Amaxes = std::map<std::int64_t, std::vector<ScaleInterval>>;

  Amaxes amaxes(const RowBlock& block) const {
    Amaxes most;
    for_each_row(block, [&](const KernelRow& row) {
      if (!row.is_finite) return;
      std::vector<ScaleInterval>& of_scale = most[judge_.plan.scales.first(row.number)];
      of_scale.resize(causes_.size());
      judge_.see_as_kernels_do(row, [&](const RowOfKernel& seen) {
        for (std::size_t k = 0; k < causes_.size(); ++k) {
          const QuantizedRule rule = causes_[k].rule(judge_.asked.quantization, seen);
          of_scale[k].take(amax_of(rule.amax_of, rule.error));
        }
      });
    });
    return most;
  }

  // Which causes explain rows that share scales, and right ones beside them.
  Found explain(const RowBlock& block, const Amaxes& of_all, bool is_scale_wrong) const {
    Found all;
    CauseCounts& counts = all.causes;
    RowJudge of_row(judge_.setting);
    for_each_row(block, [&](const KernelRow& row) {
      if (!row.is_finite || row.is_exact() || counts.wrong == kTried) return;
      QuantizedBounds bounds(judge_, row);
      JudgedRows found;
      judge_q(row, bounds, of_row, found);
      if (found.beyond == 0 && !is_scale_wrong) return;
      bounds.explain(causes_, of_all.at(judge_.plan.scales.first(row.number)), counts);
    });
    return all;
  }

  // Which causes explain rows that are right. of_all: null, unless rows share scales.
  CauseCounts explain_right(const RowBlock& block, const Amaxes* of_all, const Found& found) const {
    constexpr std::int64_t kRight = 4;  // rows of a block
    const bool has_wrong_scale = judge_.shares_scales() && found.scale.beyond > 0;
    CauseCounts right;
    for_each_row(block, [&](const KernelRow& row) {
      const bool is_wrong = has_wrong_scale || found.q.affected_rows.contains(row.number) ||
                            found.scale.affected_rows.contains(row.number);
      if (!row.is_finite || right.wrong == kRight || (is_wrong && !row.is_exact())) return;
      const QuantizedBounds bounds(judge_, row);
      std::span<const ScaleInterval> amaxes;
      if (of_all != nullptr) amaxes = of_all->at(judge_.plan.scales.first(row.number));
      bounds.explain(causes_, amaxes, right);
    });
    return right;
  }

  // Norms of wrong kernels that explain q.
  struct Norms {
    std::vector<FormulaFit> fits = {};
    bool is_sampled = false;  // on some of the rows
  };

  // Those that give all of a sample of rows, if no mistake of quantization is the cause.
  Norms norms(const Found& wrong, const ChooseKernel& choose, int threads) const {
    // A few elements near a tie are rounded otherwise by any norm that is nearly the same.
    constexpr std::int64_t kTelling = 8;
    const bool is_evident = wrong.q.beyond + wrong.scale.beyond >= kTelling;
    const bool has_divisors = !judge_.shares_scales() || judge_.has_scales();
    if (!choose || !is_evident || !has_divisors || wrong.causes.has_cause()) return {};
    const CheckInputs& inputs = judge_.inputs;
    const CheckRows x(inputs.x, judge_.plan.axes, threads);
    const JudgeSetting& setting = judge_.setting;
    Sample sample{.setting = &setting,
                  .x_dtype = judge_.plan.in,
                  .first_x = judge_.finite_row(x, 0),
                  .last_x = judge_.finite_row(x, judge_.plan.rows - 1),
                  .block_rows = judge_.plan.rows};
    const std::vector<std::int64_t> sampled = sampled_rows(
        wrong.q.beyond > 0 ? wrong.q : wrong.scale, judge_.plan.rows, judge_.plan.row_length);
    for (const std::int64_t r : sampled) {
      SampleRow row = judge_.sample_row(r, x, actual_);
      if (row.x.empty()) continue;
      if (row.actual.empty()) return {};  // no norm makes NaN of what is finite
      sample.rows.push_back(std::move(row));
    }
    KernelContext context =
        context_of(setting, Quantity::y, inputs.weight, inputs.bias, judge_.plan);
    context.has_residual = inputs.alone != nullptr;
    context.has_rounded_sum = inputs.residual != nullptr;
    context.has_given = inputs.given != nullptr;
    Norms result{.is_sampled = std::ssize(sampled) < judge_.plan.rows};
    std::vector<FormulaFit>& found = result.fits;
    // The norm asked for does not explain these.
    std::vector<const SampleRow*> wrong_rows;
    for (const SampleRow& row : sample.rows) {
      std::size_t unused = 0;
      if (!explains_by(asked_for(setting), sample, row, unused)) wrong_rows.push_back(&row);
    }
    for (const NamedKernel& kernel : *choose.kernels(Quantity::y, setting.normalized_shape)) {
      Variant variant = asked_for(setting);
      const bool has_part = kernel.side == Side::both || setting.formula.has_mean();
      const bool is_norm = has_part && kernel.change(variant, context) && variant.is_norm();
      if (!is_norm || sample.rows.empty()) continue;
      std::size_t telling = 0;
      const bool explains = std::ranges::all_of(sample.rows, [&](const SampleRow& row) {
        return explains_by(variant, sample, row, telling);
      });
      VariantRow made;
      const bool has_wrong_row = std::ranges::any_of(
          wrong_rows, [&](const SampleRow* row) { return evaluate(variant, sample, *row, made); });
      if (!explains || !has_wrong_row || 2 * telling < sample.rows.size()) continue;
      if (found.empty()) {
        found.push_back(cause(kernel.id, kernel.words, kInfinity));
        const std::string option = option_of(kernel, context);
        if (!option.empty()) found.back().options.push_back(option);
      } else if (kernel.id != found.front().id() &&
                 std::ranges::count(found.front().same_as, kernel.id) == 0) {
        found.front().same_as.push_back(kernel.id);
      }
    }
    if (found.empty()) add_unwritten(sample, wrong_rows, choose, found);
    return result;
  }

  Check check(Check like, const JudgedRows& judged, const CauseCounts& counts,
              const Norms& norms) const {
    like.judged = judged;
    like.is_quantized = true;
    like.verdict = verdict_of(like.judged);
    std::vector<FormulaFit>& explanations = like.diagnosis.explanations;
    for (std::size_t k = 0; k < counts.explained.size(); ++k) {
      if (like.verdict != Verdict::differs || !counts.is_cause(k)) continue;
      const NamedQuantizedKernel& found = causes_[k];
      if (explanations.empty()) {
        explanations.push_back(cause(found.id, found.words, kInfinity));
        if (!found.options.empty()) explanations.back().options.push_back(found.options);
      } else if (found.id != explanations.front().id()) {  // of one id there may be two dtypes
        explanations.front().same_as.push_back(found.id);
      }
    }
    if (explanations.empty() && like.verdict == Verdict::differs && !norms.fits.empty()) {
      explanations = norms.fits;
      like.is_sampled = norms.is_sampled;
    }
    return like;
  }

 private:
  // Rows that are 0, or end in zeros, where others are right.
  void add_unwritten(const Sample& sample, const std::vector<const SampleRow*>& wrong,
                     const ChooseKernel& choose, std::vector<FormulaFit>& found) const {
    std::size_t whole = 0;
    std::size_t tails = 0;
    for (const SampleRow* const row : wrong) {
      std::size_t begin = row->actual.size();
      while (begin > 0 && row->actual[begin - 1] == 0) --begin;
      std::size_t unused = 0;
      whole += begin == 0 ? 1 : 0;
      tails += begin > 0 && explains_by(asked_for(judge_.setting), sample, *row, unused, begin);
    }
    if (wrong.empty() || (whole > 0 && tails > 0) || whole + tails < wrong.size()) return;
    if (whole > 0 && wrong.size() == sample.rows.size()) return;
    FormulaFit fit = unwritten(whole > 0, *wrong.front(), wrong.size(), sample);
    if (choose(fit.id())) found.push_back(std::move(fit));
  }

  // Whether the variant's y, quantized as asked for, is the row, whose elements from written on are 0. A bound that is wide, as of constant
  // rows, tells nothing.
  bool explains_by(const Variant& variant, const Sample& sample, const SampleRow& row,
                   std::size_t& telling, std::optional<std::size_t> written = {}) const {
    const Quantization& asked = judge_.asked.quantization;
    VariantRow result;
    const bool has_result = evaluate(variant, sample, row, result);
    if (!has_result || !result.is_bounded) return true;
    const OutputFormat steps(asked.rounding);
    double most = 0;
    double widest = 0;
    for (std::size_t i = 0; i < result.y.size(); ++i) {
      if (asked.rounds_y) result.bound[i] = round_in(steps, result.y[i], result.bound[i]);
      most = std::max(most, std::fabs(result.y[i]));
      // What may be anything is no bound.
      if (std::isfinite(result.bound[i])) widest = std::max(widest, result.bound[i]);
    }
    // A group of zeros has any scale.
    const bool is_zero = std::ranges::all_of(row.actual, [](double q) { return q == 0; });
    telling += widest <= most / 64 && !is_zero ? 1 : 0;
    if (is_zero && most <= widest) return true;
    // The scale that rows share is that of other rows as well: what the kernel has saved is taken as it is.
    constexpr ScaleInterval kAny{0, kInfinity};
    std::vector<double> y = result.y;
    for (std::size_t i = written.value_or(y.size()); i < y.size(); ++i) y[i] = result.bound[i] = 0;
    const QuantizedRule rule{asked, result.y, y, result.bound};
    return judge_.explains(rule, row.number, row.actual, judge_.given_scales(row.number),
                           judge_.shares_scales() ? &kAny : nullptr);
  }

  static constexpr std::int64_t kTried = 16;  // rows of a block

  template <class See>
  void for_each_row(const RowBlock& block, const See& see) const {
    TileBuffer buffer;
    const RowsIn actual = actual_.read(block.first_row, block.x.rows, buffer);
    for (std::int64_t r = 0; r < block.x.rows; ++r) see(read(block, r, row_of(actual, r)));
  }

  KernelRow read(const RowBlock& block, std::int64_t r, const RowsIn& actual) const {
    const Backend& backend = judge_.setting.backend;
    KernelRow row{.number = block.first_row + r,
                  .x = decoded(backend, row_of(block.x, r)),
                  .q = decoded(backend, actual),
                  .exact_q = decoded(backend, row_of(output_rows(block), r)),
                  .scales = {},
                  .exact_scales = {},
                  .is_finite = true,
                  .affine = judge_.affine(block.first_row + r)};
    for (std::int64_t g = 0; g < judge_.groups; ++g) {
      const double exact = block.scale.empty()
                               ? judge_.exact_scale(row.number)
                               : block.scale[static_cast<std::size_t>(r * judge_.groups + g)];
      row.exact_scales.push_back(exact);
      row.scales.push_back(
          judge_.has_scales() ? judge_.scale(row.number, g, judge_.saved.is_transposed) : exact);
      row.is_finite = row.is_finite && !std::isnan(exact);
    }
    row.is_finite = row.is_finite && are_finite(row.x);
    return row;
  }

  static void judge_q(const KernelRow& row, QuantizedBounds& bounds, RowJudge& of_row,
                      JudgedRows& found) {
    const std::vector<double> of_kernel = bounds.of_kernel();
    const std::vector<double> expected = bounds.expected(of_kernel);
    of_row.judge_and_settle_by(
        {row.number, row.x, of_kernel, expected},
        [&](bool is_measured, RowBounds& of_q) { bounds.of_q(is_measured, of_q); }, found);
  }

  void judge(const KernelRow& row, RowJudge& of_row, Found& found) const {
    QuantizedBounds bounds(judge_, row);
    const std::int64_t wrong = found.q.beyond + found.scale.beyond;
    judge_q(row, bounds, of_row, found.q);
    if (judge_.has_scales_of_rows()) {
      of_row.judge_and_settle_by(
          {row.number, row.x, row.scales, row.exact_scales},
          [&](bool is_measured, RowBounds& of_scales) { bounds.of_scales(is_measured, of_scales); },
          found.scale);
    }
    const bool is_wrong = found.q.beyond + found.scale.beyond > wrong;
    if (!is_wrong || found.causes.wrong == kTried || judge_.shares_scales()) return;
    bounds.explain(causes_, {}, found.causes);
  }

  const QuantizedJudge& judge_;
  std::vector<NamedQuantizedKernel> causes_;
  const CheckRows& actual_;
};

// The greatest |y| of all rows of a block that share a scale, and how far off it may be, by the number of the scale.
std::map<std::int64_t, ScaleInterval> amaxes_of_block(const QuantizedJudge& judge,
                                                      const RowBlock& block, bool is_measured) {
  std::map<std::int64_t, ScaleInterval> most;
  for (std::int64_t r = 0; r < block.x.rows; ++r) {
    const std::vector<double> x = decoded(judge.setting.backend, row_of(block.x, r));
    const std::int64_t number = block.first_row + r;
    const RowBounds results = judge.results(judge.affine(number).get(), number, x, is_measured);
    most[judge.plan.scales.first(number)].take(amax_of(results.y, results.bound));
  }
  return most;
}

}  // namespace

Check check_quantized(const CheckInputs& inputs, const AskedQuantization& asked,
                      const SavedScales& saved, const Plan& plan, const Backend& backend,
                      const CheckOptions& options, const RunOptions& run_options) {
  const bool has_rstd = inputs.given != nullptr && inputs.given->variance.empty();
  JudgeSetting setting = judge_setting(plan, backend, options, inputs.weight, inputs.bias,
                                       inputs.is_sum, has_rstd, DType::float32);
  setting.steps = OutputFormat(plan.rounding);
  QuantizedJudge judge(inputs, asked, saved, plan, setting, run_options.threads);
  const CheckRows actual(inputs.actual, plan.axes, run_options.threads);
  const auto quantizer = [&](const AffineTerm* scales) {
    return RowQuantizer(setting.backend, inputs.given, inputs.affine, plan.formula,
                        asked.quantization, scales,
                        judge.shares_scales() ? plan.scales : plan.affine);
  };
  AffineTerm shared;
  if (asked.given_scale == nullptr && plan.row_length > 0) {
    const RunOptions alone{.threads = run_options.threads, .ranks = run_options.ranks};
    if (judge.shares_scales()) {
      judge.shared = shared_scales(inputs.x, plan, quantizer(nullptr), asked.quantization, alone);
      shared = AffineTerm(judge.shared, {});
    }
    judge.given_scale =
        judge.shared.size() == 1
            ? judge.shared.front()
            : scale_of_tensor(inputs.x, plan, quantizer(nullptr), asked.quantization, alone);
  } else if (asked.given_scale != nullptr) {
    judge.given_scale = asked.given_scale->number(0).high;
  }
  const RowQuantizer exact = quantizer(judge.shares_scales() ? &shared : asked.given_scale);
  const QuantizedChecker checker(judge, options, actual);
  QuantizedChecker::Found found;
  QuantizedChecker::Amaxes amaxes;
  const bool has_elements = plan.row_length > 0;
  const auto examine = [&] {
    found = {};
    examine_rows(
        inputs.x, plan, quantization(exact),
        [&](const RowBlock& block) { return checker.examine(block); },
        [&](const QuantizedChecker::Found& of_block) { found.merge(of_block); }, run_options);
  };
  if (has_elements) examine();
  if (has_elements && judge.shares_scales()) {
    const auto largest_by = [&](bool is_measured) {
      std::vector<ScaleInterval> largest(judge.shared.size());
      examine_rows(
          inputs.x, plan, {},
          [&](const RowBlock& block) { return amaxes_of_block(judge, block, is_measured); },
          [&](const std::map<std::int64_t, ScaleInterval>& of_block) {
            for (const auto& [i, most] : of_block) {
              largest[static_cast<std::size_t>(i)].take(most);
            }
          },
          run_options);
      return largest;
    };
    if (!judge.has_scales() && found.q.beyond > 0) {
      judge.take_shared_errors(largest_by(true));
      examine();
    } else if (judge.has_scales()) {
      const std::vector<ScaleInterval> largest = largest_by(false);
      found.scale = judge.of_shared(largest, largest);
      // What loops lose is measured where the tree bound does not explain all of the scales.
      if (found.scale.beyond > 0) found.scale = judge.of_shared(largest, largest_by(true));
    }
    if (found.q.beyond + found.scale.beyond > 0) {
      examine_rows(
          inputs.x, plan, quantization(exact),
          [&](const RowBlock& block) { return checker.amaxes(block); },
          [&](const QuantizedChecker::Amaxes& of_block) {
            for (const auto& [i, of_scale] : of_block) {
              std::vector<ScaleInterval>& most = amaxes[i];
              most.resize(of_scale.size());
              for (std::size_t k = 0; k < of_scale.size(); ++k) most[k].take(of_scale[k]);
            }
          },
          run_options);
      examine_rows(
          inputs.x, plan, quantization(exact),
          [&](const RowBlock& block) {
            return checker.explain(block, amaxes, found.scale.beyond > 0);
          },
          [&](const QuantizedChecker::Found& of_block) { found.merge(of_block); }, run_options);
    }
  }
  if (!found.is_told()) found.causes = {};
  if (found.causes.has_cause()) {
    CauseCounts right;
    examine_rows(
        inputs.x, plan, quantization(exact),
        [&](const RowBlock& block) {
          return checker.explain_right(block, judge.shares_scales() ? &amaxes : nullptr, found);
        },
        [&](const CauseCounts& of_block) { right.merge(of_block); }, run_options);
    found.causes.refute(right);
  }
  Check like = begin_check(inputs.x.info(), inputs.actual.info(), plan, setting);
  const QuantizedChecker::Norms norms = checker.norms(found, options.kernels, run_options.threads);
  Check result = checker.check(like, found.q, found.causes, norms);
  const Shape shape = row_shape(like.x.shape, like.axes);
  describe_places(result, plan.rows, shape);
  if (saved.source == nullptr) return result;
  like.actual = whole_of(saved.source->info());
  like.axes = {};  // of the scales' own shape none is normalized: a position in it is a row
  like.part = "scale";
  like.is_statistic = true;
  Check scale = checker.check(like, found.scale, found.causes, norms);
  const std::int64_t first = like.slice ? like.slice->first : 0;
  for (WorstRatio* worst : {&scale.judged.tree, &scale.judged.loop, &scale.judged.scale}) {
    if (!judge.shares_scales()) {
      worst->row = judge.position(worst->row, worst->element, saved.is_transposed) - first;
    }
    worst->element = 0;
  }
  describe_places(scale, judge.shares_scales() ? plan.shared_scales : plan.rows,
                  judge.shares_scales() ? plan.scale_shape(false) : shape);
  result.statistics.push_back(std::move(scale));
  return result;
}

}  // namespace lnorm
