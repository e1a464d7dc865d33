#include "lnorm/pipeline/judged_quantized.hpp"

#include <algorithm>
#include <any>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/judge.hpp"
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
  bool is_finite;  // x, and every scale

  std::size_t group() const { return x.size() / scales.size(); }
  bool is_exact() const { return is_finite && q == exact_q && scales == exact_scales; }
};

// All that a quantized tensor's rows are judged by.
class QuantizedJudge {
 public:
  QuantizedJudge(const QuantizedInputs& inputs, const Plan& plan, const JudgeSetting& setting,
                 const CheckOptions& options, const RunOptions& run_options)
      : inputs_(inputs),
        plan_(plan),
        options_(options),
        setting_(setting),
        grid_(plan.out),
        groups_(inputs.given_scale || plan.shared_scales > 0
                    ? 1
                    : inputs.quantization.scales(plan.row_length)),
        group_(plan.row_length / std::max<std::int64_t>(1, groups_)) {
    if (inputs.alone != nullptr) alone_.emplace(*inputs.alone, plan.axes, run_options.threads);
    if (inputs.scale == nullptr) return;
    numbers_ = all_numbers(setting.backend, *inputs.scale, run_options.threads);
  }

  const JudgeSetting& setting() const { return setting_; }
  std::int64_t groups() const { return groups_; }
  bool has_scales() const { return inputs_.scale != nullptr; }

  void set_numbers(std::int64_t row, JudgeSetting& of_row) const {
    of_row.weight = numbers_of(inputs_.weight, plan_.row_length, 1, plan_.affine, row);
    of_row.bias = numbers_of(inputs_.bias, plan_.row_length, 0, plan_.affine, row);
  }

  // The kernel's scale of a group.
  double scale(std::int64_t row, std::int64_t g) const {
    return scale_at(row, g, inputs_.is_transposed);
  }

  // x without the residual; empty if there is none.
  std::vector<double> alone(std::int64_t row) const {
    if (!alone_) return {};
    TileBuffer buffer;
    return decoded(setting_.backend, alone_->read(row, 1, buffer));
  }

  // Where the kernel's scale lies, in elements.
  std::int64_t position(std::int64_t row, std::int64_t g) const {
    return position(row, g, inputs_.is_transposed);
  }

  // y of a row, and how far off a kernel's may be.
  bool fill(const JudgeSetting& of_row, std::int64_t row, std::span<const double> x,
            bool is_measured, std::vector<double>& y, std::vector<double>& error) const {
    return fill_results(of_row, plan_.rounding, inputs_.quantization.rounds_y, x, given(row),
                        is_measured, y, error);
  }
  std::optional<GivenNumbers> given(std::int64_t row) const {
    return given_numbers(inputs_.given, row);
  }

  ScaleInterval amax(std::span<const double> y, std::span<const double> error) const {
    ScaleInterval most;
    for (std::size_t i = 0; i < y.size(); ++i) {
      most.low = std::max(most.low, std::fabs(y[i]) - error[i]);
      most.high = std::max(most.high, std::fabs(y[i]) + error[i]);
    }
    return most;
  }

  ScaleInterval scales_of(const ScaleInterval& amax, const QuantizedRule& rule) const {
    const double unit = 3 * setting_.kernel.arithmetic.unit;
    const bool is_zero = amax.high == 0;
    return {rule.scale_of(amax.low * (1 - unit), is_zero),
            rule.scale_of(amax.high * (1 + unit), is_zero)};
  }

  // Which scale q of a group was divided by: the kernel's own, or one that suits all elements, or else the exact one.
  double divisor(double own, double exact, const ScaleInterval& scales, std::span<const double> y,
                 std::span<const double> error, std::span<const double> q) const {
    if (has_scales()) return own > 0 && std::isfinite(own) ? own : exact;
    if (shares_scales()) return exact;
    const double unit = 4 * setting_.kernel.arithmetic.unit;
    ScaleInterval suits = scales;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const ScaleInterval of_q = grid_.rounds_to(q[i]);
      const double size = std::fabs(y[i]);
      if (of_q.low > 0) {
        suits.high = std::min(suits.high, (size + error[i]) * (1 + unit) / of_q.low);
      }
      suits.low = std::max(suits.low, (size - error[i]) * (1 - unit) / of_q.high);
    }
    if (!inputs_.quantization.power_of_two) {
      return suits.low <= suits.high ? std::clamp(exact, suits.low, suits.high) : exact;
    }
    for (const double one : {exact, scales.low, scales.high}) {
      if (suits.has(one)) return one;
    }
    return exact;
  }

  // How far y may be off from what q stands for.
  double bound(double y, double error, double q, double scale) const {
    const ScaleInterval of_q = grid_.rounds_to(q);
    const double size = std::fabs(q);
    const bool is_above = std::signbit(y) == std::signbit(q) && std::fabs(y) > size * scale;
    const double half = q == 0 || is_above ? of_q.high - size : size - of_q.low;
    return error + 4 * setting_.kernel.arithmetic.unit * std::fabs(y) + half * scale;
  }

  // Whether a rule gives a row's scales and q. given: the scale of each element, if they are given.
  bool explains(const QuantizedRule& rule, const KernelRow& row,
                std::span<const double> given) const {
    for (std::int64_t first = 0; first < std::ssize(rule.y); first += group_) {
      const std::int64_t g = first / group_;
      ScaleInterval scales = scales_of(
          amax(rule.part(rule.amax_of, first, group_), rule.part(rule.error, first, group_)), rule);
      if (shares_scales()) scales = {0, kInfinity};
      if (rule.scale) scales = {*rule.scale * (1 - 0x1p-20), *rule.scale * (1 + 0x1p-20)};
      double divisor = computed(row.number);
      if (has_scales()) {
        divisor = scale_at(row.number, g, inputs_.is_transposed != rule.is_transposed);
        if (rule.multiplies) divisor = 1 / divisor;
        if (!rule.has_no_scale && !scales.has(divisor)) return false;
      } else if (inputs_.given_scale == nullptr && (rule.scale || !shares_scales())) {
        divisor = (scales.low + scales.high) / 2;
        if (rule.quantization.power_of_two || rule.rounds_down) divisor = scales.high;
      }
      for (std::int64_t i = first; i < first + group_; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double by = rule.has_no_scale                ? 1
                          : inputs_.given_scale != nullptr ? given[at]
                                                           : divisor;
        if (!rounds_to(rule, row.q[at], at, by)) return false;
      }
    }
    return true;
  }

  // Whether the kernel's scales that rows share are right, where |y| is at most that.
  JudgedRows of_shared(std::span<const ScaleInterval> most) const {
    JudgedRows found;
    RowJudge judge(setting_, 1);
    for (std::size_t i = 0; i < most.size(); ++i) {
      const ScaleInterval may_be = scales_of(most[i], QuantizedRule{inputs_.quantization});
      judge.judge_and_settle_by(
          {static_cast<std::int64_t>(i), {}, {&numbers_[i], 1}, {&shared_[i], 1}},
          [&](bool) {
            return RowBounds{{(may_be.low + may_be.high) / 2},
                             {(may_be.high - may_be.low) / 2 + may_be.high * 0x1p-40},
                             true,
                             true};
          },
          found);
    }
    return found;
  }

  bool shares_scales() const { return plan_.shared_scales > 0; }
  // Whether each group has a scale of its own that the kernel has saved.
  bool has_scales_of_rows() const { return has_scales() && !shares_scales(); }

  const QuantizedInputs& inputs() const { return inputs_; }
  const Plan& plan() const { return plan_; }

  // The causes that are tried.
  std::vector<NamedQuantizedKernel> causes() const {
    if (!options_.kernels) return {};
    auto kernels = named_quantized_kernels({.quantization = inputs_.quantization,
                                            .rows = plan_.rows,
                                            .row_length = plan_.row_length,
                                            .shared_scales = plan_.shared_scales,
                                            .is_given = inputs_.given_scale != nullptr,
                                            .has_saved_scales = has_scales(),
                                            .has_residual = alone_.has_value(),
                                            .has_weight = !inputs_.weight.empty(),
                                            .has_bias = !inputs_.bias.empty()},
                                           options_.kernels);
    std::erase_if(kernels, [](const NamedQuantizedKernel& one) { return !one.is_other; });
    return kernels;
  }

  // The exact scale of the tensor, or the first of those that are given; and the exact ones that rows share.
  void set_given(double scale) { given_ = scale; }
  void set_shared(std::vector<double> scales) { shared_ = std::move(scales); }
  double given() const { return given_; }
  double computed(std::int64_t row) const {
    return shares_scales() ? shared_[static_cast<std::size_t>(plan_.scales.first(row))] : given_;
  }
  double given_scale(std::int64_t row, std::int64_t i) const {
    const AffineTerm& scales = *inputs_.given_scale;
    if (scales.is_uniform()) return scales.number(0).high;
    return scales.number(plan_.affine.number(plan_.affine.first(row), i)).high;
  }

 private:
  double scale_at(std::int64_t row, std::int64_t g, bool is_transposed) const {
    return numbers_[static_cast<std::size_t>(position(row, g, is_transposed))];
  }
  std::int64_t position(std::int64_t row, std::int64_t g, bool is_transposed) const {
    if (shares_scales()) return plan_.scales.first(row);
    return is_transposed ? g * plan_.rows + row : row * groups_ + g;
  }

  bool rounds_to(const QuantizedRule& rule, double q, std::size_t i, double divisor) const {
    const double unit = 4 * setting_.kernel.arithmetic.unit;
    const double error = rule.error[i] + unit * std::fabs(rule.y[i]);
    const double one = rule.result(grid_, rule.y[i] - error, divisor);
    const double other = rule.result(grid_, rule.y[i] + error, divisor);
    return q >= std::min(one, other) && q <= std::max(one, other);
  }

  const QuantizedInputs& inputs_;
  const Plan& plan_;
  const CheckOptions& options_;
  JudgeSetting setting_;
  QuantizedGrid grid_;
  std::int64_t groups_;
  std::int64_t group_;
  double given_ = kNan;
  std::vector<double> shared_;
  std::vector<double> numbers_;  // the kernel's scales
  std::optional<CheckRows> alone_;
};

// y of a row, and what its scales may be: by the tree bound, or the measured one.
class QuantizedBounds {
 public:
  QuantizedBounds(const QuantizedJudge& judge, const JudgeSetting& setting, const KernelRow& row)
      : judge_(judge),
        setting_(setting),
        row_(row),
        y_(row.x.size(), kNan),
        error_(row.x.size()),
        scales_(row.scales.size()),
        is_any_(row.scales.size()) {
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
    std::vector<double> numbers = y_;
    for (std::size_t i = 0; i < numbers.size() && row_.is_finite; ++i) {
      if (row_.q[i] == row_.exact_q[i] && std::isfinite(of_kernel[i])) numbers[i] = of_kernel[i];
    }
    return numbers;
  }

  RowBounds of_q(bool is_measured) {
    fill(is_measured);
    std::vector<double> bounds(y_.size());
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      bounds[i] = judge_.bound(y_[i], error_[i], row_.q[i], divisors_[i]);
    }
    return {y_, std::move(bounds), is_bounded_, is_bounded_};
  }
  RowBounds of_scales(bool is_measured) {
    constexpr double kOwnRounding = 0x1p-40;  // of the middle
    fill(is_measured);
    RowBounds bounds{{}, {}, is_bounded_, is_bounded_};
    for (std::size_t g = 0; g < scales_.size(); ++g) {
      const auto [low, high] = scales_[g];
      bounds.y.push_back((low + high) / 2);
      bounds.bound.push_back(is_any_[g] != 0 ? kInfinity : (high - low) / 2 + high * kOwnRounding);
    }
    return bounds;
  }

  // Which causes explain the row, by the tree bound.
  void explain(const std::vector<NamedQuantizedKernel>& causes,
               std::vector<std::int64_t>& explained) const {
    explained.resize(causes.size());
    if (!row_.is_finite) return;
    const Quantization& asked = judge_.inputs().quantization;
    const std::vector<double> alone = judge_.alone(row_.number);
    RowOfKernel row(setting_, asked, row_.x, alone, judge_.given(row_.number), judge_.given());
    row.offset = std::nearbyint(row_.q[0] - y_[0] / divisors_[0]);
    for (std::size_t k = 0; k < causes.size(); ++k) {
      explained[k] += judge_.explains(causes[k].rule(asked, row), row_, divisors_) ? 1 : 0;
    }
  }

 private:
  std::span<const double> part(std::span<const double> all, std::size_t g) const {
    return all.subspan(g * row_.group(), row_.group());
  }

  void fill(bool is_measured) {
    if (!row_.is_finite) return;
    const Quantization& quantization = judge_.inputs().quantization;
    is_bounded_ = judge_.fill(setting_, row_.number, row_.x, is_measured, y_, error_);
    for (std::size_t g = 0; g < scales_.size(); ++g) {
      const ScaleInterval amax = judge_.amax(part(y_, g), part(error_, g));
      scales_[g] = judge_.scales_of(amax, QuantizedRule{quantization});
      is_any_[g] = amax.high == 0 ? 1 : 0;
    }
  }

  // Of each element.
  std::vector<double> divisors() const {
    std::vector<double> all(row_.x.size(), judge_.computed(row_.number));
    const bool is_given = judge_.inputs().given_scale != nullptr;
    for (std::size_t i = 0; i < all.size() && is_given; ++i) {
      all[i] = judge_.given_scale(row_.number, static_cast<std::int64_t>(i));
    }
    for (std::size_t g = 0; g < scales_.size() && row_.is_finite && !is_given; ++g) {
      const double by = judge_.divisor(row_.scales[g], row_.exact_scales[g], scales_[g],
                                       part(y_, g), part(error_, g), part(row_.q, g));
      std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(g * row_.group()), row_.group(), by);
    }
    return all;
  }

  const QuantizedJudge& judge_;
  const JudgeSetting& setting_;
  const KernelRow& row_;
  std::vector<double> y_;
  std::vector<double> error_;
  std::vector<ScaleInterval> scales_;
  std::vector<char> is_any_;  // a group of zeros, whose scale does not matter
  bool is_bounded_ = false;
  std::vector<double> divisors_;
};

// Compares q and the scales with the exact rows, as the loop brings them.
class QuantizedObserver final : public RowObserver {
 public:
  QuantizedObserver(const QuantizedJudge& judge, const CheckRows& actual)
      : judge_(judge), causes_(judge.causes()), actual_(actual) {}

  BlockFindings examine(const RowBlock& block) const override {
    Found found;
    TileBuffer buffer;
    JudgeSetting setting = judge_.setting();
    RowJudge of_q(setting, block.x.row_length);
    RowJudge of_scale(setting, judge_.groups());
    const RowsIn actual = actual_.read(block.first_row, block.x.rows, buffer);
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      const KernelRow row = read(block, r, row_of(actual, r));
      if (row.is_exact()) {
        RowJudge::count_exact(std::ssize(row.q), found.q);
        if (judge_.has_scales_of_rows()) RowJudge::count_exact(judge_.groups(), found.scale);
        continue;
      }
      if (setting.weight.empty() || !judge_.plan().affine.rows.empty()) {
        judge_.set_numbers(row.number, setting);
      }
      judge(row, setting, of_q, of_scale, found);
    }
    return found;
  }
  void see(const RowBlock&, const BlockFindings& findings) override {
    found_.merge(std::any_cast<const Found&>(findings));
  }

  Check check(Check like, bool is_scale) const {
    like.judged = is_scale ? found_.scale : found_.q;
    like.verdict = verdict_of(like.judged);
    std::vector<FormulaFit>& explanations = like.diagnosis.explanations;
    const bool is_explained = like.verdict == Verdict::differs && found_.wrong > 0;
    for (std::size_t k = 0; k < found_.explained.size() && is_explained; ++k) {
      if (found_.explained[k] < found_.wrong) continue;
      if (explanations.empty()) {
        const NamedQuantizedKernel& cause = causes_[k];
        explanations.push_back({.id = cause.id,
                                .words = cause.words,
                                .explained = 1,
                                .sqnr = kInfinity,
                                .explains_all = true});
        if (!cause.options.empty()) explanations.back().options.push_back(cause.options);
      } else {
        explanations.front().same_as.push_back(causes_[k].id);
      }
    }
    return like;
  }

 private:
  struct Found {
    JudgedRows q;
    JudgedRows scale;
    std::vector<std::int64_t> explained = {};  // rows that are wrong, by each cause
    std::int64_t wrong = 0;                    // rows that causes were tried on

    void merge(const Found& other) {
      q.merge(other.q);
      scale.merge(other.scale);
      wrong += other.wrong;
      explained.resize(std::max(explained.size(), other.explained.size()));
      for (std::size_t k = 0; k < other.explained.size(); ++k) {
        explained[k] += other.explained[k];
      }
    }
  };

  KernelRow read(const RowBlock& block, std::int64_t r, const RowsIn& actual) const {
    const Backend& backend = judge_.setting().backend;
    const std::int64_t groups = judge_.groups();
    KernelRow row{.number = block.first_row + r,
                  .x = decoded(backend, row_of(block.x, r)),
                  .q = decoded(backend, actual),
                  .exact_q = decoded(backend, row_of(output_rows(block), r)),
                  .scales = {},
                  .exact_scales = {},
                  .is_finite = true};
    for (std::int64_t g = 0; g < groups; ++g) {
      const double exact = block.scale.empty()
                               ? judge_.computed(row.number)
                               : block.scale[static_cast<std::size_t>(r * groups + g)];
      row.exact_scales.push_back(exact);
      row.scales.push_back(judge_.has_scales() ? judge_.scale(row.number, g) : exact);
      row.is_finite = row.is_finite && !std::isnan(exact);
    }
    row.is_finite = row.is_finite && std::all_of(row.x.begin(), row.x.end(),
                                                 [](double v) { return std::isfinite(v); });
    return row;
  }

  void judge(const KernelRow& row, const JudgeSetting& setting, RowJudge& of_q, RowJudge& of_scale,
             Found& found) const {
    constexpr std::int64_t kTried = 16;  // of a block
    QuantizedBounds bounds(judge_, setting, row);
    const std::vector<double> of_kernel = bounds.of_kernel();
    const std::vector<double> expected = bounds.expected(of_kernel);
    const std::int64_t wrong = found.q.beyond + found.scale.beyond;
    of_q.judge_and_settle_by(
        {row.number, row.x, of_kernel, expected},
        [&](bool is_measured) { return bounds.of_q(is_measured); }, found.q);
    if (judge_.has_scales_of_rows()) {
      of_scale.judge_and_settle_by(
          {row.number, row.x, row.scales, row.exact_scales},
          [&](bool is_measured) { return bounds.of_scales(is_measured); }, found.scale);
    }
    if (found.q.beyond + found.scale.beyond == wrong || found.wrong == kTried) return;
    ++found.wrong;
    bounds.explain(causes_, found.explained);
  }

  const QuantizedJudge& judge_;
  std::vector<NamedQuantizedKernel> causes_;
  const CheckRows& actual_;
  Found found_;
};

// The greatest |y| of all rows that share a scale, and how far off it may be.
class AmaxObserver final : public RowObserver {
 public:
  explicit AmaxObserver(const QuantizedJudge& judge)
      : judge_(judge), most_(static_cast<std::size_t>(judge.plan().shared_scales)) {}

  BlockFindings examine(const RowBlock& block) const override {
    std::vector<ScaleInterval> most;
    JudgeSetting setting = judge_.setting();
    std::vector<double> y;
    std::vector<double> error;
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      const std::vector<double> x = decoded(setting.backend, row_of(block.x, r));
      judge_.set_numbers(block.first_row + r, setting);
      judge_.fill(setting, block.first_row + r, x, false, y, error);
      most.push_back(judge_.amax(y, error));
    }
    return most;
  }
  void see(const RowBlock& block, const BlockFindings& findings) override {
    std::int64_t row = block.first_row;
    for (const auto& of_row : std::any_cast<const std::vector<ScaleInterval>&>(findings)) {
      ScaleInterval& most = most_[static_cast<std::size_t>(judge_.plan().scales.first(row++))];
      most = {std::max(most.low, of_row.low), std::max(most.high, of_row.high)};
    }
  }

  std::span<const ScaleInterval> most() const { return most_; }

 private:
  const QuantizedJudge& judge_;
  std::vector<ScaleInterval> most_;
};

}  // namespace

Check check_quantized(const QuantizedInputs& inputs, const Plan& plan, const Backend& backend,
                      bool is_sum, const CheckOptions& options, const RunOptions& run_options) {
  const JudgeSetting setting =
      judge_setting(plan, backend, options, is_sum,
                    inputs.given != nullptr && inputs.given->variance.empty(), DType::float32);
  QuantizedJudge judge(inputs, plan, setting, options, run_options);
  const CheckRows actual(inputs.actual, plan.axes, run_options.threads);
  const bool is_shared = judge.shares_scales();
  const auto quantizer = [&](const AffineTerm* scales) {
    return RowQuantizer(setting.backend, inputs.given, inputs.affine, plan.formula,
                        inputs.quantization, scales, is_shared ? plan.scales : plan.affine);
  };
  AffineTerm shared;
  if (inputs.given_scale == nullptr && plan.row_length > 0) {
    const RunOptions alone{.threads = run_options.threads, .ranks = run_options.ranks};
    judge.set_given(
        scale_of_tensor(inputs.x, plan, quantizer(nullptr), inputs.quantization, alone));
    if (is_shared) {
      std::vector<double> scales =
          shared_scales(inputs.x, plan, quantizer(nullptr), inputs.quantization, alone);
      shared = AffineTerm(scales, {});
      judge.set_shared(std::move(scales));
    }
  } else if (inputs.given_scale != nullptr) {
    judge.set_given(inputs.given_scale->number(0).high);
  }
  const auto pass = [&](RowObserver& observer, const Transform& transform) {
    if (plan.row_length == 0) return;  // there is nothing to judge
    RowObserver* const observers[] = {&observer};
    LentSource x(inputs.x);
    run(x, plan, transform, observers, nullptr, run_options);
  };
  const RowQuantizer exact = quantizer(is_shared ? &shared : inputs.given_scale);
  QuantizedObserver observer(judge, actual);
  pass(observer, quantization(exact));
  Check like =
      begin_check(inputs.x.info(), inputs.actual.info(), plan, setting, options.arithmetic);
  Check result = observer.check(like, false);
  const Shape shape = row_shape(like.x.shape, like.axes);
  describe_places(result, plan.rows, shape);
  if (inputs.scale == nullptr) return result;
  like.actual = whole_of(inputs.scale->info());
  like.axes = {};  // of the scales' own shape none is normalized: a position in it is a row
  like.part = "scale";
  like.is_statistic = true;
  Check scale = observer.check(like, true);
  if (is_shared) {
    AmaxObserver largest(judge);
    pass(largest, {});
    scale.judged = judge.of_shared(largest.most());
    scale.verdict = verdict_of(scale.judged);
  }
  const std::int64_t first = like.slice ? like.slice->first : 0;
  for (WorstRatio* worst : {&scale.judged.tree, &scale.judged.loop, &scale.judged.scale}) {
    if (!is_shared) worst->row = judge.position(first + worst->row, worst->element) - first;
    worst->element = 0;
  }
  describe_places(scale, is_shared ? plan.shared_scales : plan.rows,
                  is_shared ? plan.scale_shape(false) : shape);
  result.statistics.push_back(std::move(scale));
  return result;
}

}  // namespace lnorm
