#include "lnorm/pipeline/check_gradients.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "lnorm/core/axes.hpp"
#include "lnorm/diagnosis/gradient_diagnosis.hpp"
#include "lnorm/diagnosis/gradient_variant.hpp"
#include "lnorm/kernel/row_errors.hpp"
#include "lnorm/pipeline/exact_gradients.hpp"

namespace lnorm {

namespace {

// A gradient that is judged.
class JudgedGradient {
 public:
  JudgedGradient(Gradient of, TensorSource& actual, const GradientCheckInputs& inputs,
                 const GradPlan& plan, const Backend& backend, const CheckOptions& options,
                 int threads)
      : of_(of),
        actual_(actual),
        setting_(setting(inputs, plan.rows, backend, options, actual.info().dtype)),
        model_{.setting = setting_,
               .rows = plan.rows.rows,
               .row_length = plan.rows.row_length,
               .layout = plan.rows.affine,
               .rounds_dy = is_wider(inputs.sources.dy.info().dtype, options.arithmetic),
               .is_uniform = inputs.is_uniform,
               .has_constants = inputs.sources.are_constants},
        context_{model_, of, options.has_weight, options.has_bias} {
    if (of == Gradient::dx) {
      rows_.emplace(actual, plan.rows.axes, threads);
      check.slice = inputs.sources.x.info().slice;
      check.axes = check.slice ? check.slice->axes : plan.rows.axes;
    } else {
      numbers_ = all_numbers(backend, actual, threads);
      check.axes = kept_axes(actual.info().shape, {});
    }
    check.x = whole_of(inputs.sources.x.info());
    check.actual = whole_of(actual.info());
    check.part = name(of);
    check.formula = plan.rows.formula;
    check.arithmetic = options.arithmetic;
    if (options.criteria) check.comparison = begin_comparison(actual.info(), *options.criteria);
    check.row_length = rows_ ? rows_->row_length() : std::ssize(numbers_);
  }

  Gradient of() const noexcept { return of_; }
  DType dtype() const { return actual_.info().dtype; }
  const GradientModel& model() const noexcept { return model_; }
  const GradientContext& context() const noexcept { return context_; }
  const JudgeSetting& setting() const noexcept { return setting_; }

  std::vector<double> actual_row(std::int64_t row) const {
    if (!rows_) return numbers_;
    TileBuffer buffer;
    return decoded(setting_.backend, rows_->read(row, 1, buffer));
  }

  // Rows of dx, beside the exact ones; by criteria, if there are any.
  std::optional<Comparison> compared(std::int64_t first, const RowsIn& exact) const {
    if (!check.comparison) return {};
    TileBuffer buffer;
    return compared_part(*check.comparison, first, rows_->read(first, exact.rows, buffer), exact);
  }

  void take(const std::optional<Comparison>& part) {
    if (part) check.comparison->append(*part, 0);
  }

  // The same of dweight or dbias. exact: numbers of its dtype.
  void compare(const std::vector<double>& exact) {
    if (!check.comparison) return;
    const std::vector<std::byte> bytes = encoded(exact, dtype());
    take(compared_part(*check.comparison, 0, row_of_doubles(numbers_),
                       {bytes.data(), dtype(), std::endian::native, 1, std::ssize(exact)}));
  }

  Check check;

 private:
  static bool is_wider(DType dtype, DType arithmetic) {
    return is_floating(dtype) && arithmetic_of(dtype).unit < arithmetic_of(arithmetic).unit;
  }

  static JudgeSetting setting(const GradientCheckInputs& inputs, const Plan& plan,
                              const Backend& backend, const CheckOptions& options, DType output) {
    return {.backend = backend,
            .formula = plan.formula,
            .kernel = {arithmetic_of(options.arithmetic), options.depth,
                       inputs.is_sum || is_wider(plan.in, options.arithmetic),
                       options.zero_centered_weight},
            .output = OutputFormat(output)};
  }

  Gradient of_;
  TensorSource& actual_;
  JudgeSetting setting_;
  GradientModel model_;
  GradientContext context_;
  std::optional<CheckRows> rows_;  // of dx
  std::vector<double> numbers_;    // of dweight or dbias
};

// Both bounds of dweight or dbias.
struct TwoSums {
  TwoSums(const GradientModel& model, Gradient of)
      : tree(asked_for(model), model, of, Summation::tree),
        loop(asked_for(model), model, of, Summation::loop) {}

  ParameterSums tree;
  ParameterSums loop;
};

class GradientChecker {
 public:
  GradientChecker(const GradientCheckInputs& inputs, const GradPlan& plan, const Backend& backend,
                  const CheckOptions& options, const RunOptions& run_options)
      : inputs_(inputs),
        plan_(plan),
        backend_(backend),
        options_(options),
        run_options_(run_options),
        exact_gradients_(inputs.sources, plan, backend, inputs.weight, inputs.bias,
                         inputs.dx != nullptr ? inputs.dx->info().dtype : plan.rows.out,
                         inputs.is_uniform, run_options.threads) {
    const auto add = [&](Gradient of, TensorSource* actual) {
      if (actual == nullptr) return;
      judged_.push_back(std::make_unique<JudgedGradient>(of, *actual, inputs, plan, backend,
                                                         options, run_options.threads));
    };
    add(Gradient::dx, inputs.dx);
    add(Gradient::dweight, inputs.dweight);
    add(Gradient::dbias, inputs.dbias);
  }

  std::vector<Check> run() {
    judge();
    std::vector<Check> checks;
    for (const auto& gradient : judged_) {
      Check& check = gradient->check;
      const JudgedRows& judged = check.judged;
      check.is_too_long = plan_.rows.row_length > kMostTried;
      const bool differs = verdict_of(judged) == Verdict::differs;
      if (differs && options_.kernels && !check.is_too_long) diagnose(*gradient);
      check.verdict = verdict_of(judged);
      describe_places(check, gradient->of() == Gradient::dx ? plan_.rows.rows : 1);
      checks.push_back(std::move(check));
    }
    return checks;
  }

 private:
  struct Slot {
    ExactGradients::Buffers buffers;
    JudgedRows found;
    std::optional<Comparison> compared;  // of dx
    std::vector<TwoSums> sums;
  };

  using Parameters = std::span<const std::unique_ptr<JudgedGradient>>;

  static std::vector<TwoSums> no_sums(Parameters parameters) {
    std::vector<TwoSums> sums;
    for (const auto& one : parameters) sums.emplace_back(one->model(), one->of());
    return sums;
  }

  // Judges the rows of a block, and adds them to the sums of the parameters.
  void judge_block(const Block& block, const JudgedGradient* dx, Parameters parameters,
                   Slot& slot) const {
    exact_gradients_.read(block, slot.buffers.in);
    exact_gradients_.find(block, slot.buffers, dx != nullptr, !parameters.empty());
    if (dx != nullptr) {
      slot.compared = dx->compared(block.first, exact_gradients_.dx(block, slot.buffers));
    }
    slot.sums = no_sums(parameters);
    exact_gradients_.for_each_row(
        block, slot.buffers.in, [&](const GradientRow& row, std::int64_t r) {
          if (dx != nullptr) {
            const RowsIn all = exact_gradients_.dx(block, slot.buffers);
            judge_dx(*dx, row, decoded(backend_, row_of(all, r)), slot.found);
          }
          for (TwoSums& both : slot.sums) {
            both.tree.add(row);
            both.loop.add(row);
          }
        });
  }

  void judge() {
    JudgedGradient* const dx = inputs_.dx != nullptr ? judged_.front().get() : nullptr;
    const Parameters parameters = Parameters(judged_).subspan(dx != nullptr ? 1 : 0);
    std::vector<TwoSums> sums = no_sums(parameters);
    const LoopExtent all = exact_gradients_.extent();
    const Executor executor(run_options_.threads, all.blocks());
    std::vector<Slot> slots;
    for_each_block(
        all, executor, run_options_, slots,
        [&](const Block& block, Slot& slot) { exact_gradients_.begin(block, slot.buffers.in); },
        [&](const Block& block, Slot& slot) { judge_block(block, dx, parameters, slot); },
        [&](const Block&, Slot& slot) {
          if (dx != nullptr) dx->take(slot.compared);
          for (std::size_t i = 0; i < sums.size(); ++i) {
            sums[i].tree.append(slot.sums[i].tree);
            sums[i].loop.append(slot.sums[i].loop);
          }
        });
    for (const Slot& slot : slots) {
      if (dx != nullptr) dx->check.judged.merge(slot.found);
    }
    const auto columns = exact_gradients_.gathered();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      judge_parameters(*parameters[i], *columns, sums[i]);
    }
  }

  void judge_dx(const JudgedGradient& dx, const GradientRow& row, const std::vector<double>& exact,
                JudgedRows& found) const {
    const std::vector<double> actual = dx.actual_row(row.number);
    RowJudge judge(dx.setting(), 0);
    judge.judge_by(
        {row.number, row.x, actual, exact},
        [&](Summation order) { return evaluate_dx(asked_for(dx.model()), dx.model(), row, order); },
        found);
  }

  void judge_parameters(JudgedGradient& gradient, ColumnGradients& columns, const TwoSums& sums) {
    const std::vector<double> actual = gradient.actual_row(0);
    const std::vector<double> exact =
        exact_gradients_.parameters(gradient.of(), columns, gradient.dtype());
    gradient.compare(exact);
    RowJudge judge(gradient.setting(), 0);
    judge.judge_by(
        {0, actual, actual, exact},
        [&](Summation order) {
          return (order == Summation::tree ? sums.tree : sums.loop).finish();
        },
        gradient.check.judged);
  }

  // ---- What explains the errors.

  void diagnose(JudgedGradient& gradient) {
    GradientSample sample;
    const bool is_dx = gradient.of() == Gradient::dx;
    std::vector<std::int64_t> numbers{0};
    if (is_dx) {
      numbers = sampled_rows(gradient.check.judged, plan_.rows.rows, plan_.rows.row_length);
    }
    std::vector<GradientTrial> exact{{{}, asked_for(gradient.model())}};
    sample.fill = [&](std::vector<GradientTrial>& trials) {
      is_dx ? fill_dx(gradient, numbers, trials) : fill_sums(gradient, trials);
    };
    for (const std::int64_t r : numbers) sample.actual.push_back(gradient.actual_row(r));
    sample.fill(exact);
    sample.exact = std::move(exact.front().rows);
    GradientDiagnosis found = lnorm::diagnose(sample, gradient.context(), options_.kernels);
    gradient.check.diagnosis = std::move(found.diagnosis);
    if (!is_dx || !gradient.check.diagnosis.explains_all()) return;
    explain_all(gradient, found.best, gradient.check.diagnosis.explanations.front());
  }

  void fill_dx(const JudgedGradient& gradient, const std::vector<std::int64_t>& numbers,
               std::vector<GradientTrial>& trials) const {
    GradientRows::Buffers buffer;
    for (const std::int64_t number : numbers) {
      const Block block{number, 1};
      exact_gradients_.read(block, buffer);
      exact_gradients_.for_each_row(block, buffer, [&](const GradientRow& row, std::int64_t) {
        for (GradientTrial& trial : trials) {
          trial.rows.push_back(evaluate_dx(trial.variant, gradient.model(), row, Summation::loop));
        }
      });
    }
  }

  void fill_sums(const JudgedGradient& gradient, std::vector<GradientTrial>& trials) const {
    std::vector<ParameterSums> sums;
    sums.reserve(trials.size());
    for (const GradientTrial& trial : trials) {
      sums.emplace_back(trial.variant, gradient.model(), gradient.of(),
                        trial.variant.is_any_order ? Summation::tree : Summation::loop);
    }
    exact_gradients_.for_each_row([&](const GradientRow& row) {
      for (ParameterSums& one : sums) one.add(row);
    });
    for (std::size_t i = 0; i < trials.size(); ++i) trials[i].rows.push_back(sums[i].finish());
  }

  // How many elements the formula explains, in all rows.
  void explain_all(const JudgedGradient& gradient, const GradientVariant& variant,
                   FormulaFit& fit) const {
    struct Sums {
      GradientRows::Buffers in;
      FormulaSums found;
    };
    const LoopExtent all = exact_gradients_.extent();
    const Executor executor(run_options_.threads, all.blocks());
    std::vector<Sums> slots;
    FormulaSums total;
    for_each_block(
        all, executor, {run_options_.threads, {}, run_options_.ranks}, slots, nullptr,
        [&](const Block& block, Sums& slot) {
          slot.found = {};
          exact_gradients_.read(block, slot.in);
          exact_gradients_.for_each_row(block, slot.in, [&](const GradientRow& row, std::int64_t) {
            add_results({evaluate_dx(variant, gradient.model(), row, Summation::loop),
                         gradient.actual_row(row.number)},
                        gradient.setting().output, slot.found);
          });
        },
        [&](const Block&, Sums& slot) { total.add(slot.found); });
    fit.explained = total.share();
    fit.sqnr = total.sqnr();
    fit.explains_all = total.explains_all();
  }

  const GradientCheckInputs& inputs_;
  const GradPlan& plan_;
  const Backend& backend_;
  const CheckOptions& options_;
  const RunOptions& run_options_;
  ExactGradients exact_gradients_;
  std::vector<std::unique_ptr<JudgedGradient>> judged_;  // dx first, if it is judged
};

}  // namespace

std::vector<Check> check_gradients(const GradientCheckInputs& inputs, const GradPlan& plan,
                                   const Backend& backend, const CheckOptions& options,
                                   const RunOptions& run_options) {
  if (!run_options.ranks->is_first()) return {};
  const RunOptions alone{run_options.threads, run_options.progress};
  return GradientChecker(inputs, plan, backend, options, alone).run();
}

}  // namespace lnorm
