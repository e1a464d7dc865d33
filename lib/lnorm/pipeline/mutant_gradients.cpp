#include "lnorm/pipeline/mutant_gradients.hpp"

#include <cstddef>
#include <utility>

#include "lnorm/pipeline/exact_gradients.hpp"
#include "lnorm/pipeline/executor.hpp"

namespace lnorm {

namespace {

constexpr Quantity kGradients[] = {Quantity::dx, Quantity::dweight, Quantity::dbias};

// A gradient that one of the wrong kernels gets wrong.
struct WrongGradient {
  const GradientModel& model;
  Quantity of;
  Variant variant;
  Comparison comparison;
};

// Adds results, each rounded once, to a comparison with exact ones.
void compare_rounded(const OutputFormat& output, std::vector<double> results, const RowsIn& exact,
                     Comparison& comparison) {
  for (double& result : results) result = output.rounded(result);
  compare_rows(exact, row_of_doubles(results), comparison);
}

class GradientTrials {
 public:
  GradientTrials(const GradientMutantInputs& inputs, const GradPlan& plan, const Backend& backend,
                 const GradientMutantOptions& options, const RunOptions& run_options)
      : inputs_(inputs),
        plan_(plan),
        options_(options),
        run_options_(run_options),
        is_uniform_(inputs.parameters.shape.empty()),
        exact_gradients_(inputs.sources, plan, backend, inputs.weight, inputs.bias, plan.rows.out,
                         is_uniform_, run_options.threads),
        of_dx_(setting(plan.rows.out, backend)),
        of_parameters_(setting(inputs.parameters.dtype, backend)),
        models_{model(of_dx_), model(of_parameters_)} {}

  std::vector<TriedMutant> run() {
    std::vector<KernelContext> contexts;
    for (const Quantity of : kGradients) {
      contexts.push_back(
          context_of(model_of(of), of, !inputs_.weight.empty(), !inputs_.bias.empty()));
    }
    const auto mutants = mutants_of(contexts, options_.choose);
    for (const auto& mutant : mutants) {
      for (const auto& variant : mutant.variants) {
        for (const auto& [of, formula] : variant.of) {
          wrong_.push_back({model_of(of), of, formula, comparison(of)});
        }
      }
    }
    compare();
    auto next = wrong_.begin();
    return tried_of(mutants, [&] { return std::move((next++)->comparison); });
  }

 private:
  JudgeSetting setting(DType output, const Backend& backend) const {
    return {.backend = backend,
            .formula = plan_.rows.formula,
            .kernel = {arithmetic_of(DType::float64), {}, false, options_.zero_centered_weight},
            .output = OutputFormat(output),
            .normalized_shape = plan_.rows.normalized_shape()};
  }

  GradientModel model(const JudgeSetting& setting) const {
    return {.setting = setting,
            .rows = plan_.rows.rows,
            .row_length = plan_.rows.row_length,
            .layout = plan_.rows.affine,
            .is_uniform = is_uniform_};
  }

  const GradientModel& model_of(Quantity of) const { return models_[of == Quantity::dx ? 0 : 1]; }

  Comparison comparison(Quantity of) const {
    if (of == Quantity::dx) return begin_comparison(plan_.rows.result(), options_.criteria);
    return begin_comparison(inputs_.parameters, options_.parameter_criteria);
  }

  struct Slot {
    ExactGradients::Buffers buffers;
    std::vector<Comparison> found;  // of those of dx
  };

  // dx block by block; the parameters' gradients one after another, from all rows each.
  void compare() {
    if (wrong_.empty()) return;
    std::vector<WrongGradient*> of_dx;
    std::vector<WrongGradient*> of_parameters;
    for (WrongGradient& one : wrong_) {
      (one.of == Quantity::dx ? of_dx : of_parameters).push_back(&one);
    }
    const LoopExtent all = exact_gradients_.extent();
    const Executor executor(run_options_.threads, all.blocks());
    std::vector<Slot> slots;
    for_each_block(
        all, executor, run_options_, slots,
        [&](const Block& block, Slot& slot) { exact_gradients_.begin(block, slot.buffers.in); },
        [&](const Block& block, Slot& slot) {
          compare_dx(block, of_dx, !of_parameters.empty(), slot);
        },
        [&](const Block&, Slot& slot) {
          for (std::size_t i = 0; i < of_dx.size(); ++i) {
            of_dx[i]->comparison.append(slot.found[i], 0);
          }
        });
    if (of_parameters.empty()) return;
    const auto columns = exact_gradients_.gathered();
    for (const Quantity of : {Quantity::dweight, Quantity::dbias}) {
      const DType dtype = inputs_.parameters.dtype;
      exact_[of == Quantity::dbias] = exact_gradients_.parameters(of, *columns, dtype);
    }
    in_parallel(run_options_.threads)(std::ssize(of_parameters), [&](std::int64_t i) {
      compare_parameters(*of_parameters[static_cast<std::size_t>(i)]);
    });
  }

  void compare_dx(const Block& block, const std::vector<WrongGradient*>& wrong, bool wants_columns,
                  Slot& slot) const {
    exact_gradients_.read(block, slot.buffers.in);
    exact_gradients_.find(block, slot.buffers, !wrong.empty(), wants_columns);
    slot.found.clear();
    for (const WrongGradient* const one : wrong) {
      slot.found.push_back(one->comparison);
      slot.found.back().clear(block.first * plan_.rows.row_length, 0);
    }
    if (wrong.empty()) return;
    exact_gradients_.for_each_row(
        block, slot.buffers.in, [&](const GradientRow& row, std::int64_t r) {
          const RowsIn exact = row_of(exact_gradients_.dx(block, slot.buffers), r);
          for (std::size_t i = 0; i < wrong.size(); ++i) {
            const auto& [model, of, variant, comparison] = *wrong[i];
            compare_rounded(model.setting.output, evaluate_dx(variant, model, row).y, exact,
                            slot.found[i]);
          }
        });
  }

  void compare_parameters(WrongGradient& wrong) const {
    ParameterSums sums(wrong.variant, wrong.model, wrong.of);
    exact_gradients_.for_each_row([&](const GradientRow& row) { sums.add(row); });
    compare_rounded(wrong.model.setting.output, sums.finish().y,
                    row_of_doubles(exact_[wrong.of == Quantity::dbias]), wrong.comparison);
  }

  const GradientMutantInputs& inputs_;
  const GradPlan& plan_;
  const GradientMutantOptions& options_;
  const RunOptions& run_options_;
  bool is_uniform_;
  ExactGradients exact_gradients_;
  JudgeSetting of_dx_;
  JudgeSetting of_parameters_;
  GradientModel models_[2];  // of dx, and of the parameters' gradients
  std::vector<WrongGradient> wrong_;
  std::vector<double> exact_[2];  // dweight, dbias
};

}  // namespace

std::vector<TriedMutant> try_gradient_mutants(const GradientMutantInputs& inputs,
                                              const GradPlan& plan, const Backend& backend,
                                              const GradientMutantOptions& options,
                                              const RunOptions& run_options) {
  return GradientTrials(inputs, plan, backend, options, run_options).run();
}

}  // namespace lnorm
