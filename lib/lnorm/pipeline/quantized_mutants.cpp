#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "lnorm/core/interruption.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/pipeline/check_rows.hpp"
#include "lnorm/pipeline/mutants.hpp"
#include "lnorm/pipeline/quantized_rules.hpp"
#include "lnorm/pipeline/shared_scales.hpp"

namespace lnorm {

namespace {

// The largest size of some numbers; NaN if one is.
double largest(std::span<const double> numbers) {
  double most = 0;
  for (const double number : numbers) {
    if (std::isnan(number)) return kNan;
    most = std::max(most, std::fabs(number));
  }
  return most;
}

// All wrong kernels, and before them the right one.
class QuantizedTrial {
 public:
  QuantizedTrial(const MutantInputs& inputs, const AskedQuantization& asked, const Plan& plan,
                 const Backend& backend, const MutantOptions& options,
                 const RunOptions& run_options)
      : inputs_(inputs),
        asked_(asked),
        plan_(plan),
        run_options_(run_options),
        setting_(judge_setting(
            plan, backend,
            {.zero_centered_weight = options.zero_centered_weight, .rounding = options.rounding},
            inputs.weight, inputs.bias, false, false, DType::float32)),
        grid_(plan.out),
        group_(asked.quantization.group != 0 ? asked.quantization.group : plan.row_length),
        mutants_(named_quantized_kernels({.quantization = asked.quantization,
                                          .rows = plan.rows,
                                          .row_length = plan.row_length,
                                          .shared_scales = plan.shared_scales,
                                          .is_given = asked.given_scale != nullptr,
                                          .has_residual = inputs.alone != nullptr,
                                          .has_weight = !inputs.weight.empty(),
                                          .has_bias = !inputs.bias.empty()},
                                         options.choose)) {
    for (const NamedQuantizedKernel& mutant : mutants_) {
      if (mutant.is_other) kernels_.push_back(&mutant);
    }
    if (inputs.alone != nullptr) alone_.emplace(*inputs.alone, plan.axes, run_options.threads);
    comparisons_.assign(1 + kernels_.size(), begin_trial(plan.result(), options.criteria));
  }

  std::vector<TriedMutant> run() {
    const RowQuantizer computed = quantizer(nullptr);
    AffineTerm shared;
    const AffineTerm* scales = asked_.given_scale;
    const RunOptions alone{.threads = run_options_.threads};
    std::vector<double> of_rows;
    if (plan_.shared_scales > 0) {
      of_rows = shared_scales(inputs_.x, plan_, computed, asked_.quantization, alone);
      scales = &(shared = AffineTerm(of_rows, {}));
      take_amaxes();
    }
    if (of_rows.size() == 1) {
      scale_of_tensor_ = of_rows.front();
    } else if (asked_.given_scale == nullptr) {
      scale_of_tensor_ = scale_of_tensor(inputs_.x, plan_, computed, asked_.quantization, alone);
    }
    const RowQuantizer exact = quantizer(scales);
    each_row([&](const RowsIn& x, const RowOfKernel& row) { compare(exact, x, row); });
    require_passing(comparisons_.front(), inputs_.x.info());
    auto next = comparisons_.begin();
    std::vector<TriedMutant> result;
    for (const NamedQuantizedKernel& mutant : mutants_) {
      if (result.empty() || result.back().id != mutant.id) {
        result.push_back({mutant.id, mutant.words, mutant.options});
      }
      if (!mutant.is_other) continue;
      result.back().trials.push_back({.comparisons = {std::move(*++next)}, .words = mutant.words});
    }
    return result;
  }

 private:
  RowQuantizer quantizer(const AffineTerm* scales) const {
    return {setting_.backend,
            nullptr,
            inputs_.affine,
            plan_.formula,
            asked_.quantization,
            scales,
            plan_.shared_scales > 0 ? plan_.scales : plan_.affine};
  }

  // use: takes each row as it lies there, and as kernels have it.
  template <class Use>
  void each_row(Use use) const {
    const CheckRows rows(inputs_.x, plan_.axes, run_options_.threads);
    TileBuffer buffer;
    TileBuffer buffer_alone;
    for (std::int64_t r = 0; r < plan_.rows; ++r) {
      check_interruption();
      RowsIn row = rows.read(r, 1, buffer);
      row.first_row = r;
      const std::vector<double> x = decoded(setting_.backend, row);
      std::vector<double> alone;
      if (alone_) alone = decoded(setting_.backend, alone_->read(r, 1, buffer_alone));
      const auto affine = own_affine(inputs_.weight, inputs_.bias, plan_, r);
      use(row, RowOfKernel(setting_, affine ? *affine : setting_.affine, asked_.quantization, x,
                           alone, {}, scale_of_tensor_));
    }
  }

  QuantizedRule rule(std::size_t k, const RowOfKernel& row) const {
    return k == 0 ? asked_rule(asked_.quantization, row)
                  : kernels_[k - 1]->rule(asked_.quantization, row);
  }

  void take_amaxes() {
    std::vector<double> amaxes(comparisons_.size() * static_cast<std::size_t>(plan_.shared_scales));
    each_row([&](const RowsIn& x, const RowOfKernel& row) {
      for (std::size_t k = 0; k < comparisons_.size(); ++k) {
        double& amax = amaxes[amax_of(k, x.first_row)];
        const double both[] = {amax, largest(rule(k, row).amax_of)};
        amax = largest(both);
      }
    });
    amaxes_ = std::move(amaxes);
  }
  std::size_t amax_of(std::size_t kernel, std::int64_t row) const {
    return static_cast<std::size_t>(plan_.scales.first(row)) * comparisons_.size() + kernel;
  }

  // What a row is by each kernel, with what is exact.
  void compare(const RowQuantizer& exact, const RowsIn& x, const RowOfKernel& row) {
    std::vector<std::byte> bytes(row.x.size());
    exact.quantize(x, {.data = bytes.data(), .dtype = plan_.out}, {});
    const RowsIn exact_row{bytes.data(), plan_.out, std::endian::native, 1, plan_.row_length};
    const std::vector<double> exact_q = decoded(setting_.backend, exact_row);
    std::vector<double> given;
    if (asked_.given_scale != nullptr) {
      given = numbers_of(*asked_.given_scale, plan_.row_length, 1, plan_.affine, x.first_row);
    }
    std::vector<double> right;
    for (std::size_t k = 0; k < comparisons_.size(); ++k) {
      std::vector<double> q = written(rule(k, row), k, x.first_row, given);
      if (k == 0) right = q;
      for (std::size_t i = 0; i < q.size(); ++i) {
        if (q[i] == right[i] || (std::isnan(q[i]) && std::isnan(right[i]))) q[i] = exact_q[i];
      }
      compare_rows(exact_row, row_of_doubles(q), comparisons_[k]);
    }
  }

  // given: the scale of each element, if they are given.
  std::vector<double> written(QuantizedRule rule, std::size_t k, std::int64_t row,
                              std::span<const double> given) const {
    std::vector<double> q(rule.y.size());
    const auto scale_of = [&](double amax) { return rule.scale_of(amax, amax == 0); };
    if (!amaxes_.empty() && !rule.scale && rule.group == 0)
      rule.scale = scale_of(amaxes_[amax_of(k, row)]);
    const std::int64_t step = rule.step(group_);
    for (std::int64_t first = 0; first < std::ssize(q); first += step) {
      const double scale =
          rule.scale ? *rule.scale : scale_of(largest(rule.part(rule.amax_of, first, group_)));
      for (std::int64_t i = first; i < first + step; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double by = rule.has_no_scale ? 1 : given.empty() ? scale : given[at];
        q[at] = rule.result(grid_, rule.y[at], by);
      }
    }
    return q;
  }

  const MutantInputs& inputs_;
  const AskedQuantization& asked_;
  const Plan& plan_;
  const RunOptions& run_options_;
  JudgeSetting setting_;
  QuantizedGrid grid_;
  std::int64_t group_;
  std::vector<NamedQuantizedKernel> mutants_;
  std::vector<const NamedQuantizedKernel*> kernels_;  // of these: what is tried
  std::optional<CheckRows> alone_;
  double scale_of_tensor_ = kNan;
  std::vector<double> amaxes_;           // of each scale that rows share, by each kernel
  std::vector<Comparison> comparisons_;  // the same, of all blocks that have been seen
};

}  // namespace

std::vector<TriedMutant> try_quantized_mutants(const MutantInputs& inputs,
                                               const AskedQuantization& asked, const Plan& plan,
                                               const Backend& backend, const MutantOptions& options,
                                               const RunOptions& run_options) {
  return QuantizedTrial(inputs, asked, plan, backend, options, run_options).run();
}

}  // namespace lnorm
