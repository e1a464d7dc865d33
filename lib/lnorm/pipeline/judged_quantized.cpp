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
#include "lnorm/pipeline/tensor_scale.hpp"

namespace lnorm {

namespace {

// What a scale, or a quotient, may be.
struct ScaleInterval {
  double low = 0;
  double high = 0;
  bool has(double value) const { return value >= low && value <= high; }
};

// The numbers of q's dtype.
class QuantizedGrid {
 public:
  explicit QuantizedGrid(DType dtype) : is_int8_(dtype == DType::int8), format_(dtype) {}

  // What rounds to a number, but for its sign: between the points halfway to its neighbors.
  ScaleInterval rounds_to(double q) const {
    const double size = std::fabs(q);
    const bool is_last = size >= (is_int8_ && q > 0 ? 127 : format_.greatest());
    return {size == 0 ? 0 : size - format_.half_ulp(std::nextafter(size, 0)),
            is_last ? kInfinity : size + format_.half_ulp(size)};
  }
  double rounded(double v) const { return saturated(format_.rounded(v)); }
  double saturated(double v) const {
    return std::clamp(v, -format_.greatest(), is_int8_ ? 127 : format_.greatest());
  }
  // Toward zero, or away from it.
  double truncated(double v) const { return saturated(format_.truncated(v)); }
  double away(double v) const {
    const double below = format_.truncated(v);
    if (below == v) return saturated(v);
    return saturated(below + std::copysign(2 * format_.half_ulp(v), v));
  }

 private:
  bool is_int8_;
  OutputFormat format_;
};

// How a wrong kernel quantizes: what it does instead.
struct QuantizedRule {
  Quantization quantization;
  std::span<const double> amax_of;  // whose largest is amax
  std::span<const double> y;
  std::span<const double> error;
  enum class Last { nearest, truncated, away, wraps } last = Last::nearest;
  bool multiplies = false;  // the scale that is saved is 1 / scale
  bool has_no_scale = false;
  std::int64_t group = 0;            // elements whose largest |y| is a scale's
  std::optional<double> scale = {};  // of all
  bool is_transposed = false;
  double offset = 0;  // of q
};

// A row, as far as causes need it.
struct RowOfKernel {
  const JudgeSetting& setting;
  std::int64_t number;
  std::span<const double> x;
  std::span<const double> y;
  std::span<const double> error;
  std::span<const double> q;
  std::span<const double> unrounded_y;  // without the last rounding of y, if that is asked for
  std::span<const double> unrounded_error;
  std::span<const double> y_alone;   // of x without the residual, if there is one
  std::span<const double> divisors;  // of each element, as far as the kernel's scales are known
  double scale_of_tensor;
};

// Numbers that a rule needs of a row.
struct RuleRoom {
  std::vector<double> values;
  std::vector<double> errors;
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
        groups_(inputs.given_scale || inputs.is_of_tensor
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
  bool has_alone() const { return alone_.has_value(); }

  // Where the kernel's scale lies, in elements.
  std::int64_t position(std::int64_t row, std::int64_t g) const {
    return position(row, g, inputs_.is_transposed);
  }

  // y of a row, and how far off a kernel's may be.
  bool fill(const JudgeSetting& of_row, std::int64_t row, std::span<const double> x,
            bool is_measured, bool rounds_y, std::vector<double>& y,
            std::vector<double>& error) const {
    const RowStatistics statistics =
        statistics_of(x, of_row.formula, given_numbers(inputs_.given, row));
    SumLosses losses;
    if (is_measured && inputs_.given == nullptr) {
      const MeasuredRow measured{x, statistics};
      losses = losses_of({&measured, 1}, of_row.formula, of_row.kernel.arithmetic,
                         of_row.normalized_shape)
                   .front();
    }
    const StatisticErrors errors = errors_of(statistics, of_row.formula, of_row.kernel, losses);
    y.resize(x.size());
    error.resize(x.size());
    const OutputFormat steps(plan_.rounding);
    const RowLine line =
        line_of(statistics, divisor_of(statistics.variance, of_row.formula), errors, of_row.kernel);
    fill_rounded_line(line, of_row.rounding, steps, x.data(), of_row.weight.data(),
                      of_row.bias.data(), std::ssize(x), y.data(), error.data());
    for (std::size_t i = 0; rounds_y && i < y.size(); ++i) {
      error[i] = keep_in(steps, y[i], error[i]);
    }
    return errors.is_bounded;
  }

  ScaleInterval amax(std::span<const double> y, std::span<const double> error) const {
    ScaleInterval most;
    for (std::size_t i = 0; i < y.size(); ++i) {
      most.low = std::max(most.low, std::fabs(y[i]) - error[i]);
      most.high = std::max(most.high, std::fabs(y[i]) + error[i]);
    }
    return most;
  }

  ScaleInterval scales_of(const ScaleInterval& amax, const Quantization& quantization) const {
    const double unit = 3 * setting_.kernel.arithmetic.unit;
    const auto scale = [&](double most) {
      const double quotient = OutputFormat(DType::float32).rounded(most / quantization.qmax);
      return quantization.scale(quotient, amax.high == 0);
    };
    return {scale(amax.low * (1 - unit)), scale(amax.high * (1 + unit))};
  }

  // Which scale q of a group was divided by: the kernel's own, or one that suits all elements, or else the exact one.
  double divisor(double own, double exact, const ScaleInterval& scales, std::span<const double> y,
                 std::span<const double> error, std::span<const double> q) const {
    if (has_scales()) return own > 0 && std::isfinite(own) ? own : exact;
    if (inputs_.is_of_tensor) return exact;
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

  // Whether a rule gives a row's scales and q.
  bool explains(const QuantizedRule& rule, const RowOfKernel& row) const {
    const Quantization& quantization = rule.quantization;
    const auto n = std::ssize(row.y);
    for (std::int64_t g = 0; g < groups_; ++g) {
      const std::int64_t first = g * group_;
      const std::int64_t own = std::max(rule.group, group_);
      const auto part = [&](auto all) {
        const std::int64_t begin = first / own * own;
        return all.subspan(static_cast<std::size_t>(begin),
                           static_cast<std::size_t>(std::min(own, n - begin)));
      };
      ScaleInterval scales = scales_of(amax(part(rule.amax_of), part(rule.error)), quantization);
      if (rule.scale) scales = {*rule.scale * (1 - 0x1p-20), *rule.scale * (1 + 0x1p-20)};
      if (inputs_.is_of_tensor) scales = {0, kInfinity};
      double divisor = given_;
      if (has_scales()) {
        divisor = scale_at(row.number, g, inputs_.is_transposed != rule.is_transposed);
        if (rule.multiplies) divisor = 1 / divisor;
        if (!rule.has_no_scale && !scales.has(divisor)) return false;
      } else if (inputs_.given_scale == nullptr && !inputs_.is_of_tensor) {
        divisor = (scales.low + scales.high) / 2;
        if (quantization.power_of_two) divisor = scales.high;
      }
      for (std::int64_t i = first; i < first + group_; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double by = rule.has_no_scale                ? 1
                          : inputs_.given_scale != nullptr ? row.divisors[at]
                                                           : divisor;
        if (!rounds_to(rule, row, at, by)) return false;
      }
    }
    return true;
  }

  // Whether the kernel's one scale is right, where |y| is at most that.
  JudgedRows of_tensor(const ScaleInterval& most) const {
    const ScaleInterval may_be = scales_of(most, inputs_.quantization);
    const double actual = scale(0, 0);
    JudgedRows found;
    RowJudge judge(setting_, 1);
    judge.judge_and_settle_by(
        {0, {}, {&actual, 1}, {&given_, 1}},
        [&](bool) {
          return RowBounds{{(may_be.low + may_be.high) / 2},
                           {(may_be.high - may_be.low) / 2 + may_be.high * 0x1p-40},
                           true,
                           true};
        },
        found);
    return found;
  }

  // Whether each group has a scale of its own that the kernel has saved.
  bool has_scales_of_rows() const { return has_scales() && !inputs_.is_of_tensor; }

  const QuantizedInputs& inputs() const { return inputs_; }
  const Plan& plan() const { return plan_; }
  const CheckOptions& options() const { return options_; }

  // The exact scale of the tensor, or the first of those that are given.
  void set_given(double scale) { given_ = scale; }
  double given() const { return given_; }
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
    if (numbers_.size() == 1) return 0;
    return is_transposed ? g * plan_.rows + row : row * groups_ + g;
  }

  bool rounds_to(const QuantizedRule& rule, const RowOfKernel& row, std::size_t i,
                 double divisor) const {
    const double unit = 4 * setting_.kernel.arithmetic.unit;
    const double error = rule.error[i] + unit * std::fabs(rule.y[i]);
    const auto result = [&](double y) {
      const double v = y / divisor;
      switch (rule.last) {
        case QuantizedRule::Last::truncated:
          return grid_.truncated(v);
        case QuantizedRule::Last::away:
          return grid_.away(v);
        case QuantizedRule::Last::wraps: {
          const double integer = std::nearbyint(v);
          return integer - 256 * std::floor((integer + 128) / 256);
        }
        case QuantizedRule::Last::nearest:
          break;
      }
      return grid_.saturated(grid_.rounded(v) + rule.offset);
    };
    const double one = result(rule.y[i] - error);
    const double other = result(rule.y[i] + error);
    return row.q[i] >= std::min(one, other) && row.q[i] <= std::max(one, other);
  }

  const QuantizedInputs& inputs_;
  const Plan& plan_;
  const CheckOptions& options_;
  JudgeSetting setting_;
  QuantizedGrid grid_;
  std::int64_t groups_;
  std::int64_t group_;
  double given_ = kNan;
  std::vector<double> numbers_;  // the kernel's scales
  std::optional<CheckRows> alone_;
};

// How a row of the table of quantized kernels changes the rule, and where it is another one than was asked for. parameter: what the
// row's {} stands for.
struct QuantizedChange {
  std::string_view id;
  bool (*applies)(const QuantizedJudge& judge, double parameter);
  void (*change)(const RowOfKernel& row, double parameter, QuantizedRule& rule, RuleRoom& room);
  std::span<const double> parameters = {};
};

constexpr double kQmax[] = {127, 128, 224, 240, 448, 57344};
constexpr double kGroups[] = {16, 32, 64, 128, 256, 512};
constexpr double kDTypesOfY[] = {static_cast<double>(DType::float16),
                                 static_cast<double>(DType::bfloat16)};

bool always(const QuantizedJudge&, double) { return true; }
bool computes(const QuantizedJudge& judge, double) { return judge.inputs().given_scale == nullptr; }
bool saves(const QuantizedJudge& judge, double) { return judge.has_scales(); }
bool is_int8(const QuantizedJudge& judge, double) { return judge.plan().out == DType::int8; }
const Quantization& asked_of(const QuantizedJudge& judge) { return judge.inputs().quantization; }

template <QuantizedRule::Last last>
void change_last(const RowOfKernel&, double, QuantizedRule& rule, RuleRoom&) {
  rule.last = last;
}

// The largest of other numbers makes the scale.
template <class ValueOf>
void take_amax_of(const RowOfKernel& row, QuantizedRule& rule, RuleRoom& room, ValueOf value_of) {
  for (std::size_t i = 0; i < row.y.size(); ++i) room.values[i] = value_of(i);
  rule.amax_of = room.values;
}

const QuantizedChange kChanges[] = {
    {"scale-reciprocal", saves,
     [](const RowOfKernel&, double, QuantizedRule& rule, RuleRoom&) { rule.multiplies = true; }},
    {"scale-transposed", saves,
     [](const RowOfKernel&, double, QuantizedRule& rule, RuleRoom&) { rule.is_transposed = true; }},
    {"scale-of-tensor",
     [](const QuantizedJudge& judge, double) {
       return computes(judge, 0) && !judge.inputs().is_of_tensor;
     },
     [](const RowOfKernel& row, double, QuantizedRule& rule, RuleRoom&) {
       rule.scale = row.scale_of_tensor;
     }},
    {"scale-of-row", [](const QuantizedJudge& judge, double) { return asked_of(judge).group != 0; },
     [](const RowOfKernel& row, double, QuantizedRule& rule, RuleRoom&) {
       rule.group = std::ssize(row.x);
     }},
    {"group-{}",
     [](const QuantizedJudge& judge, double size) {
       const std::int64_t group = asked_of(judge).group;
       return group != 0 && static_cast<double>(group) < size &&
              judge.plan().row_length % static_cast<std::int64_t>(size) == 0;
     },
     [](const RowOfKernel&, double size, QuantizedRule& rule, RuleRoom&) {
       rule.group = static_cast<std::int64_t>(size);
     },
     kGroups},
    {"qmax-{}",
     [](const QuantizedJudge& judge, double qmax) {
       return computes(judge, 0) && asked_of(judge).qmax != qmax;
     },
     [](const RowOfKernel&, double qmax, QuantizedRule& rule, RuleRoom&) {
       rule.quantization.qmax = qmax;
     },
     kQmax},
    {"no-scale-max",
     [](const QuantizedJudge& judge, double) {
       return std::min(asked_of(judge).scale_max, asked_of(judge).amax_max) < kInfinity;
     },
     [](const RowOfKernel&, double, QuantizedRule& rule, RuleRoom&) {
       rule.quantization.scale_max = rule.quantization.amax_max = kInfinity;
     }},
    {"no-scale-min",
     [](const QuantizedJudge& judge, double) {
       return std::max(asked_of(judge).scale_min, asked_of(judge).amax_min) > 0;
     },
     [](const RowOfKernel&, double, QuantizedRule& rule, RuleRoom&) {
       rule.quantization.scale_min = rule.quantization.amax_min = 0;
     }},
    {"scale-not-power-of-two",
     [](const QuantizedJudge& judge, double) { return asked_of(judge).power_of_two; },
     [](const RowOfKernel&, double, QuantizedRule& rule, RuleRoom&) {
       rule.quantization.power_of_two = false;
       rule.quantization.scale_dtype = DType::float32;
     }},
    {"scale-power-of-two-down",
     [](const QuantizedJudge& judge, double) { return asked_of(judge).power_of_two; },
     // Half of what is rounded up, but for a power of two itself.
     [](const RowOfKernel&, double, QuantizedRule& rule, RuleRoom&) {
       rule.quantization.qmax *= 2;
     }},
    {"amax-of-x", computes,
     [](const RowOfKernel& row, double, QuantizedRule& rule, RuleRoom&) { rule.amax_of = row.x; }},
    {"amax-of-xhat", computes,
     [](const RowOfKernel& row, double, QuantizedRule& rule, RuleRoom& room) {
       take_amax_of(row, rule, room, [&](std::size_t i) {
         return (row.y[i] - row.setting.bias[i]) / row.setting.weight[i];
       });
     }},
    {"amax-before-bias", computes,
     [](const RowOfKernel& row, double, QuantizedRule& rule, RuleRoom& room) {
       take_amax_of(row, rule, room, [&](std::size_t i) { return row.y[i] - row.setting.bias[i]; });
     }},
    {"amax-without-residual",
     [](const QuantizedJudge& judge, double parameter) {
       return computes(judge, parameter) && judge.has_alone();
     },
     [](const RowOfKernel& row, double, QuantizedRule& rule, RuleRoom&) {
       rule.amax_of = row.y_alone;
     }},
    {"rounded-y",
     [](const QuantizedJudge& judge, double dtype) {
       const DType of_x = judge.plan().rounding;
       return !asked_of(judge).rounds_y &&
              (of_x == DType::float32 || static_cast<double>(of_x) == dtype);
     },
     [](const RowOfKernel& row, double dtype, QuantizedRule& rule, RuleRoom& room) {
       const OutputFormat format(static_cast<DType>(dtype));
       for (std::size_t i = 0; i < row.y.size(); ++i) {
         room.values[i] = row.y[i];
         room.errors[i] = keep_in(format, room.values[i], row.error[i]);
       }
       rule.y = rule.amax_of = room.values;
       rule.error = room.errors;
     },
     kDTypesOfY},
    {"unrounded-y", [](const QuantizedJudge& judge, double) { return asked_of(judge).rounds_y; },
     [](const RowOfKernel& row, double, QuantizedRule& rule, RuleRoom&) {
       rule.y = rule.amax_of = row.unrounded_y;
       rule.error = row.unrounded_error;
     }},
    {"no-scale", always,
     [](const RowOfKernel&, double, QuantizedRule& rule, RuleRoom&) { rule.has_no_scale = true; }},
    {"truncated", always, change_last<QuantizedRule::Last::truncated>},
    {"away", always, change_last<QuantizedRule::Last::away>},
    {"wraps", is_int8, change_last<QuantizedRule::Last::wraps>},
    {"zero-point", is_int8,
     [](const RowOfKernel& row, double, QuantizedRule& rule, RuleRoom&) {
       rule.offset = std::nearbyint(row.q[0] - row.y[0] / row.divisors[0]);
     }},
};

// A row of the table, and what of it is tried.
struct QuantizedCause {
  const QuantizedChange* change;
  double parameter;
  FormulaFit fit;
};

std::vector<QuantizedCause> causes_of(const QuantizedJudge& judge) {
  std::vector<QuantizedCause> causes;
  constexpr double kNone[] = {0};
  for (const QuantizedChange& change : kChanges) {
    const auto kernels = quantized_kernels();
    const QuantizedKernel& kernel =
        *std::find_if(kernels.begin(), kernels.end(),
                      [&](const QuantizedKernel& one) { return one.id == change.id; });
    for (const double parameter : change.parameters.empty() ? kNone : change.parameters) {
      const bool is_dtype = change.parameters.data() == kDTypesOfY;
      const auto with_parameter = [&](std::string_view text) {
        std::string all(text);
        const std::size_t at = all.find("{}");
        if (at == all.npos) return all;
        return all.replace(
            at, 2, is_dtype ? std::string(name(static_cast<DType>(parameter))) : concat(parameter));
      };
      FormulaFit fit{.id = with_parameter(kernel.id),
                     .words = with_parameter(kernel.words),
                     .explained = 1,
                     .sqnr = kInfinity,
                     .explains_all = true};
      if (!kernel.options.empty()) fit.options.push_back(with_parameter(kernel.options));
      const ChooseKernel& choose = judge.options().kernels;
      if (!choose || !choose(fit.id) || !change.applies(judge, parameter)) continue;
      causes.push_back({&change, parameter, std::move(fit)});
    }
  }
  return causes;
}

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

// y of such a row, and what its scales may be: by the tree bound, or the measured one.
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

  // For causes, by the tree bound.
  template <class Use>
  void with_row(Use use) {
    std::vector<double> unrounded_y;
    std::vector<double> unrounded_error;
    std::vector<double> y_alone;
    std::vector<double> error_alone;
    fill(false);
    if (judge_.inputs().quantization.rounds_y) {
      judge_.fill(setting_, row_.number, row_.x, false, false, unrounded_y, unrounded_error);
    }
    if (const std::vector<double> alone = judge_.alone(row_.number); !alone.empty()) {
      judge_.fill(setting_, row_.number, alone, false, judge_.inputs().quantization.rounds_y,
                  y_alone, error_alone);
    }
    use(RowOfKernel{setting_, row_.number, row_.x, y_, error_, row_.q, unrounded_y, unrounded_error,
                    y_alone, divisors_, judge_.given()});
  }

 private:
  std::span<const double> part(std::span<const double> all, std::size_t g) const {
    return all.subspan(g * row_.group(), row_.group());
  }

  void fill(bool is_measured) {
    if (!row_.is_finite) return;
    const Quantization& quantization = judge_.inputs().quantization;
    is_bounded_ =
        judge_.fill(setting_, row_.number, row_.x, is_measured, quantization.rounds_y, y_, error_);
    for (std::size_t g = 0; g < scales_.size(); ++g) {
      const ScaleInterval amax = judge_.amax(part(y_, g), part(error_, g));
      scales_[g] = judge_.scales_of(amax, quantization);
      is_any_[g] = amax.high == 0 ? 1 : 0;
    }
  }

  // Of each element.
  std::vector<double> divisors() const {
    std::vector<double> all(row_.x.size(), judge_.given());
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
      : judge_(judge), causes_(causes_of(judge)), actual_(actual) {}

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
        explanations.push_back(causes_[k].fit);
      } else {
        explanations.front().same_as.push_back(causes_[k].fit.id);
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
                               ? judge_.given()
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
    bounds.with_row([&](const RowOfKernel& of_causes) { try_causes(of_causes, found); });
  }

  void try_causes(const RowOfKernel& row, Found& found) const {
    found.explained.resize(causes_.size());
    RuleRoom room{std::vector<double>(row.x.size()), std::vector<double>(row.x.size())};
    for (std::size_t k = 0; k < causes_.size(); ++k) {
      QuantizedRule rule{judge_.inputs().quantization, row.y, row.y, row.error};
      causes_[k].change->change(row, causes_[k].parameter, rule, room);
      found.explained[k] += judge_.explains(rule, row) ? 1 : 0;
    }
  }

  const QuantizedJudge& judge_;
  std::vector<QuantizedCause> causes_;
  const CheckRows& actual_;
  Found found_;
};

// The greatest |y| of a tensor, and how far off it may be.
class AmaxObserver final : public RowObserver {
 public:
  explicit AmaxObserver(const QuantizedJudge& judge) : judge_(judge) {}

  BlockFindings examine(const RowBlock& block) const override {
    ScaleInterval most;
    JudgeSetting setting = judge_.setting();
    std::vector<double> y;
    std::vector<double> error;
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      const std::vector<double> x = decoded(setting.backend, row_of(block.x, r));
      judge_.set_numbers(block.first_row + r, setting);
      judge_.fill(setting, block.first_row + r, x, false, judge_.inputs().quantization.rounds_y, y,
                  error);
      const ScaleInterval of_row = judge_.amax(y, error);
      most = {std::max(most.low, of_row.low), std::max(most.high, of_row.high)};
    }
    return most;
  }
  void see(const RowBlock&, const BlockFindings& findings) override {
    const auto& of_block = std::any_cast<const ScaleInterval&>(findings);
    most_ = {std::max(most_.low, of_block.low), std::max(most_.high, of_block.high)};
  }

  const ScaleInterval& most() const { return most_; }

 private:
  const QuantizedJudge& judge_;
  ScaleInterval most_;
};

}  // namespace

Check check_quantized(const QuantizedInputs& inputs, const Plan& plan, const Backend& backend,
                      bool is_sum, const CheckOptions& options, const RunOptions& run_options) {
  const JudgeSetting setting =
      judge_setting(plan, backend, options, is_sum,
                    inputs.given != nullptr && inputs.given->variance.empty(), DType::float32);
  QuantizedJudge judge(inputs, plan, setting, options, run_options);
  const CheckRows actual(inputs.actual, plan.axes, run_options.threads);
  const auto quantizer = [&](const AffineTerm* scales) {
    return RowQuantizer(setting.backend, inputs.given, inputs.affine, plan.formula,
                        inputs.quantization, scales, plan.affine);
  };
  AffineTerm of_tensor;
  if (inputs.given_scale == nullptr && plan.row_length > 0) {
    judge.set_given(scale_of_tensor(inputs.x, plan, quantizer(nullptr), inputs.quantization,
                                    {.threads = run_options.threads, .ranks = run_options.ranks}));
    of_tensor = AffineTerm({judge.given()}, {});
  } else if (inputs.given_scale != nullptr) {
    judge.set_given(inputs.given_scale->number(0).high);
  }
  const auto pass = [&](RowObserver& observer, const Transform& transform) {
    if (plan.row_length == 0) return;  // there is nothing to judge
    RowObserver* const observers[] = {&observer};
    LentSource x(inputs.x);
    run(x, plan, transform, observers, nullptr, run_options);
  };
  const RowQuantizer exact = quantizer(inputs.is_of_tensor ? &of_tensor : inputs.given_scale);
  QuantizedObserver observer(judge, actual);
  pass(observer, quantization(exact));
  Check like;
  like.x = whole_of(inputs.x.info());
  like.actual = whole_of(inputs.actual.info());
  like.slice = inputs.x.info().slice;
  like.axes = like.slice ? like.slice->axes : plan.axes;
  like.formula = setting.formula;
  like.arithmetic = options.arithmetic;
  like.row_length = plan.row_length;
  Check result = observer.check(like, false);
  const Shape shape = row_shape(like.x.shape, like.axes);
  describe_places(result, plan.rows, shape);
  if (inputs.scale == nullptr) return result;
  like.actual = whole_of(inputs.scale->info());
  like.axes = {};  // of the scales' own shape none is normalized: a position in it is a row
  like.part = "scale";
  like.is_statistic = true;
  Check scale = observer.check(like, true);
  if (inputs.is_of_tensor) {
    AmaxObserver largest(judge);
    pass(largest, {});
    scale.judged = judge.of_tensor(largest.most());
    scale.verdict = verdict_of(scale.judged);
  }
  const std::int64_t first = like.slice ? like.slice->first : 0;
  for (WorstRatio* worst : {&scale.judged.tree, &scale.judged.loop, &scale.judged.scale}) {
    worst->row = judge.position(first + worst->row, worst->element) - first;
    worst->element = 0;
  }
  describe_places(scale, inputs.is_of_tensor ? 1 : plan.rows,
                  inputs.is_of_tensor ? Shape{1} : shape);
  result.statistics.push_back(std::move(scale));
  return result;
}

}  // namespace lnorm
