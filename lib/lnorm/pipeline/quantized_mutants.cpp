#include "lnorm/pipeline/quantized_mutants.hpp"

#include <algorithm>
#include <any>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "lnorm/core/interruption.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/pipeline/check_rows.hpp"
#include "lnorm/pipeline/quantized_rules.hpp"
#include "lnorm/pipeline/tensor_scale.hpp"

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
        setting_(judge_setting(plan, backend,
                               {.depth = {},
                                .zero_centered_weight = options.zero_centered_weight,
                                .rounding = options.rounding,
                                .kernels = {},
                                .criteria = {}},
                               false, false, DType::float32)),
        grid_(plan.out),
        group_(asked.quantization.group != 0 ? asked.quantization.group : plan.row_length),
        mutants_(named_quantized_kernels({.quantization = asked.quantization,
                                          .rows = plan.rows,
                                          .row_length = plan.row_length,
                                          .is_of_tensor = asked.is_of_tensor,
                                          .is_given = asked.given_scale != nullptr,
                                          .has_residual = inputs.alone != nullptr,
                                          .has_weight = !inputs.weight.empty(),
                                          .has_bias = !inputs.bias.empty()},
                                         options.choose)) {
    for (const NamedQuantizedKernel& mutant : mutants_) {
      if (mutant.is_other) kernels_.push_back(&mutant);
    }
    if (inputs.alone != nullptr) alone_.emplace(*inputs.alone, plan.axes, run_options.threads);
    comparisons_.assign(1 + kernels_.size(), begin_comparison(plan.result(), options.criteria));
  }

  std::vector<TriedMutant> run() {
    const RowQuantizer computed = quantizer(nullptr);
    AffineTerm of_tensor;
    const AffineTerm* scales = asked_.given_scale;
    if (scales == nullptr) {
      scale_of_tensor_ = scale_of_tensor(inputs_.x, plan_, computed, asked_.quantization,
                                         {.threads = run_options_.threads});
    }
    if (asked_.is_of_tensor) {
      scales = &(of_tensor = AffineTerm({scale_of_tensor_}, {}));
      amaxes_ = amaxes_of_tensor();
    }
    const RowQuantizer exact = quantizer(scales);
    pass(
        quantization(exact), run_options_,
        [this](const RowBlock& block) { return compared(block); },
        [this](const std::vector<Comparison>& found) {
          for (std::size_t k = 0; k < found.size(); ++k) comparisons_[k].append(found[k], 0);
        });
    require_passing(comparisons_.front(), inputs_.x.info());
    auto next = comparisons_.begin();
    std::vector<TriedMutant> result;
    for (const NamedQuantizedKernel& mutant : mutants_) {
      if (result.empty() || result.back().id != mutant.id) {
        result.push_back({mutant.id, mutant.words, mutant.options, {}});
      }
      if (!mutant.is_other) continue;
      result.back().trials.push_back({nullptr, false, {std::move(*++next)}, mutant.words});
    }
    return result;
  }

 private:
  // Shows all rows to examine, and what it returns to see, in order.
  template <class Examine, class See>
  void pass(const Transform& transform, const RunOptions& options, Examine examine, See see) const {
    class Observer final : public RowObserver {
     public:
      Observer(Examine& finds, See& sees) : finds_(finds), sees_(sees) {}
      BlockFindings examine(const RowBlock& block) const override { return finds_(block); }
      void see(const RowBlock&, const BlockFindings& findings) override {
        sees_(std::any_cast<const decltype(finds_(std::declval<RowBlock>()))&>(findings));
      }

     private:
      Examine& finds_;
      See& sees_;
    };
    Observer observer(examine, see);
    RowObserver* const observers[] = {&observer};
    LentSource source(inputs_.x);
    lnorm::run(source, plan_, transform, observers, nullptr, options);
  }

  RowQuantizer quantizer(const AffineTerm* scales) const {
    return RowQuantizer(setting_.backend, nullptr, inputs_.affine, plan_.formula,
                        asked_.quantization, scales, plan_.affine);
  }

  // use: takes the number of each row of a block in it, and the row.
  template <class Use>
  void each_row(const RowBlock& block, Use use) const {
    constexpr double kOffset = 1;  // of a kernel that adds a whole number
    JudgeSetting setting = setting_;
    RowOfKernelRoom room;
    TileBuffer buffer;
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      check_interruption();
      const std::int64_t number = block.first_row + r;
      const std::vector<double> x = decoded(setting.backend, row_of(block.x, r));
      std::vector<double> alone;
      if (alone_) alone = decoded(setting.backend, alone_->read(number, 1, buffer));
      if (setting.weight.empty() || !plan_.affine.rows.empty()) {
        setting.weight = numbers_of(inputs_.weight, plan_.row_length, 1, plan_.affine, number);
        setting.bias = numbers_of(inputs_.bias, plan_.row_length, 0, plan_.affine, number);
      }
      room.fill(setting, asked_.quantization, x, alone, {});
      use(r, room.row(x, scale_of_tensor_, kOffset));
    }
  }

  QuantizedRule rule(std::size_t k, const RowOfKernel& row, RuleRoom& room) const {
    return k == 0 ? QuantizedRule{asked_.quantization, row.y, row.y, row.error}
                  : kernels_[k - 1]->rule(asked_.quantization, row, room);
  }

  // Of each kernel.
  std::vector<double> amaxes_of_tensor() const {
    std::vector<double> all(1 + kernels_.size());
    pass(
        {}, {.threads = run_options_.threads},
        [this, none = all](const RowBlock& block) {
          std::vector<double> found = none;
          RuleRoom room;
          each_row(block, [&](std::int64_t, const RowOfKernel& row) {
            for (std::size_t k = 0; k < found.size(); ++k) {
              const double both[] = {found[k], largest(rule(k, row, room).amax_of)};
              found[k] = largest(both);
            }
          });
          return found;
        },
        [&](const std::vector<double>& found) {
          for (std::size_t k = 0; k < found.size(); ++k) {
            const double both[] = {all[k], found[k]};
            all[k] = largest(both);
          }
        });
    return all;
  }

  // What the block's rows are by each kernel, compared.
  std::vector<Comparison> compared(const RowBlock& block) const {
    const RowsIn exact_rows = output_rows(block);
    std::vector<Comparison> found = comparisons_;
    for (Comparison& one : found) one.clear(block.first_row * plan_.row_length, 0);
    RuleRoom room;
    std::vector<double> q(static_cast<std::size_t>(plan_.row_length));
    std::vector<double> right = q;
    each_row(block, [&](std::int64_t r, const RowOfKernel& row) {
      const std::int64_t number = block.first_row + r;
      const std::vector<double> exact = decoded(setting_.backend, row_of(exact_rows, r));
      std::vector<double> given;
      if (asked_.given_scale != nullptr) {
        given = numbers_of(*asked_.given_scale, plan_.row_length, 1, plan_.affine, number);
      }
      for (std::size_t k = 0; k < found.size(); ++k) {
        write(rule(k, row, room), k, given, q);
        if (k == 0) right = q;
        for (std::size_t i = 0; i < q.size(); ++i) {
          if (q[i] == right[i] || (std::isnan(q[i]) && std::isnan(right[i]))) q[i] = exact[i];
        }
        compare_rows(row_of(exact_rows, r), row_of_doubles(q), found[k]);
      }
    });
    return found;
  }

  // given: the scale of each element, if they are given.
  void write(QuantizedRule rule, std::size_t k, std::span<const double> given,
             std::vector<double>& q) const {
    const auto scale_of = [&](double amax) { return rule.scale_of(amax, amax == 0); };
    if (!amaxes_.empty()) rule.scale = scale_of(amaxes_[k]);
    for (std::int64_t first = 0; first < std::ssize(q); first += group_) {
      const double scale =
          rule.scale ? *rule.scale : scale_of(largest(rule.part(rule.amax_of, first, group_)));
      for (std::int64_t i = first; i < first + group_; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double by = rule.has_no_scale ? 1 : given.empty() ? scale : given[at];
        q[at] = rule.result(grid_, rule.y[at], by);
      }
    }
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
  std::vector<double> amaxes_;           // of each kernel, if one scale is computed
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
