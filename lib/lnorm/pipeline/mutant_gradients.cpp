#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

#include "lnorm/pipeline/exact_gradients.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/mutants.hpp"

namespace lnorm {

namespace {

// A gradient that one of the wrong kernels gets wrong.
struct WrongGradient {
  const KernelContext& context;
  const Variant& variant;
  Comparison& comparison;
  const Comparison* of_dx;  // of the same kernel; null: it gets dx right
};

// Adds results, each rounded once, to a comparison with exact ones.
void compare_rounded(const OutputFormat& output, std::vector<double> results, const RowsIn& exact,
                     bool until_caught, Comparison& comparison) {
  output.round(results);
  compare_rows(exact, row_of_doubles(results), comparison, {}, until_caught);
}

class GradientTrials {
 public:
  GradientTrials(const GradientMutantInputs& inputs, const GradPlan& plan, const Backend& backend,
                 const MutantOptions& options, const RunOptions& run_options)
      : inputs_(inputs),
        plan_(plan),
        options_(options),
        run_options_(run_options),
        is_uniform_(inputs.parameters.shape.empty()),
        exact_gradients_(inputs.sources, plan, backend, inputs.weight, inputs.bias, plan.rows.out,
                         is_uniform_, run_options.threads),
        of_dx_(setting(plan.rows.out, backend)),
        of_parameters_(setting(inputs.parameters.dtype, backend)),
        contexts_{context(Quantity::dx), context(Quantity::dweight), context(Quantity::dbias)} {}

  std::vector<TriedMutant> run() {
    std::vector<TriedMutant> mutants = mutants_of(contexts_, options_.choose);
    std::vector<WrongGradient> of_dx;
    std::vector<WrongGradient> of_parameters;
    for (TriedMutant& mutant : mutants) {
      for (TriedMutant::Trial& trial : mutant.trials) {
        for (const auto& formula : trial.formulas) {
          trial.comparisons.push_back(comparison(formula.first));
        }
        const bool has_dx = trial.formulas.front().first == Quantity::dx;
        const Comparison* const comparison_of_dx = has_dx ? &trial.comparisons.front() : nullptr;
        for (std::size_t i = 0; i < trial.formulas.size(); ++i) {
          const auto& [of, variant] = trial.formulas[i];
          (of == Quantity::dx ? of_dx : of_parameters)
              .push_back({context_of(of), variant, trial.comparisons[i], comparison_of_dx});
        }
      }
    }
    if (!of_dx.empty() || !of_parameters.empty()) compare(of_dx, of_parameters);
    return mutants;
  }

 private:
  JudgeSetting setting(DType output, const Backend& backend) const {
    return judge_setting(
        plan_.rows, backend,
        {.arithmetic = DType::float64, .zero_centered_weight = options_.zero_centered_weight},
        inputs_.weight, inputs_.bias, false, false, output);
  }

  KernelContext context(Quantity of) const {
    KernelContext context = lnorm::context_of(of == Quantity::dx ? of_dx_ : of_parameters_, of,
                                              inputs_.weight, inputs_.bias, plan_.rows);
    context.is_uniform = is_uniform_;
    context.is_written = true;
    context.dy_dtype = inputs_.sources.dy.info().dtype;
    return context;
  }

  const KernelContext& context_of(Quantity of) const {
    return *std::ranges::find(contexts_, of, &KernelContext::of);
  }

  Comparison comparison(Quantity of) const {
    if (of == Quantity::dx) return begin_trial(plan_.rows.result(), options_.criteria);
    return begin_trial(inputs_.parameters, options_.parameter_criteria);
  }

  struct Slot : ExactGradients::Buffers {
    std::vector<Comparison> found;  // of those of dx
  };

  // dx block by block; the parameters' gradients one after another, from all rows each.
  void compare(std::vector<WrongGradient>& of_dx, std::vector<WrongGradient>& of_parameters) {
    std::vector<Slot> slots;
    std::vector<std::atomic<bool>> done(of_dx.size());
    exact_gradients_.for_each_block(
        run_options_, slots,
        [&](const Block& block, Slot& slot) {
          compare_dx(block, of_dx, done, !of_parameters.empty(), slot);
        },
        [&](Slot& slot) {
          for (std::size_t i = 0; i < of_dx.size(); ++i) {
            of_dx[i].comparison.append(slot.found[i], 0);
            if (options_.is_done(slot.found[i])) done[i] = true;
          }
        });
    if (of_parameters.empty()) return;
    const auto columns = exact_gradients_.gathered();
    for (const Quantity of : {Quantity::dweight, Quantity::dbias}) {
      const DType dtype = inputs_.parameters.dtype;
      exact_[of == Quantity::dbias] = exact_gradients_.parameters(of, *columns, dtype);
    }
    in_parallel(run_options_.threads)(std::ssize(of_parameters), [&](std::int64_t i) {
      compare_parameters(of_parameters[static_cast<std::size_t>(i)]);
    });
  }

  void compare_dx(const Block& block, const std::vector<WrongGradient>& wrong,
                  const std::vector<std::atomic<bool>>& done, bool wants_columns,
                  Slot& slot) const {
    exact_gradients_.find(block, slot, !wrong.empty(), wants_columns);
    // No copies of what wrong has: other blocks are appended to these meanwhile.
    Comparison begun = comparison(Quantity::dx);
    begun.clear(block.first * plan_.rows.row_length, 0);
    slot.found.assign(wrong.size(), begun);
    if (wrong.empty()) return;
    exact_gradients_.for_each_row(block, slot.in, [&](const SampleRow& row) {
      const RowsIn exact = row_of(exact_gradients_.dx(block, slot), row.number - block.first);
      for (std::size_t i = 0; i < wrong.size(); ++i) {
        if (done[i] || options_.is_done(slot.found[i])) continue;
        compare_rounded(wrong[i].context.setting.output,
                        evaluate_dx(wrong[i].variant, wrong[i].context, row).y, exact,
                        options_.until_caught, slot.found[i]);
      }
    });
  }

  void compare_parameters(WrongGradient& wrong) const {
    if (wrong.of_dx != nullptr && options_.is_done(*wrong.of_dx)) return;
    ParameterSums sums(wrong.variant, wrong.context);
    exact_gradients_.for_each_row([&](const SampleRow& row) { sums.add(row); });
    compare_rounded(wrong.context.setting.output, sums.finish().y,
                    row_of_doubles(exact_[wrong.context.of == Quantity::dbias]),
                    options_.until_caught, wrong.comparison);
  }

  const GradientMutantInputs& inputs_;
  const GradPlan& plan_;
  const MutantOptions& options_;
  const RunOptions& run_options_;
  bool is_uniform_;
  ExactGradients exact_gradients_;
  JudgeSetting of_dx_;
  JudgeSetting of_parameters_;
  const KernelContext contexts_[3];
  std::vector<double> exact_[2];  // dweight, dbias
};

}  // namespace

std::vector<TriedMutant> try_gradient_mutants(const GradientMutantInputs& inputs,
                                              const GradPlan& plan, const Backend& backend,
                                              const MutantOptions& options,
                                              const RunOptions& run_options) {
  return GradientTrials(inputs, plan, backend, options, run_options).run();
}

}  // namespace lnorm
