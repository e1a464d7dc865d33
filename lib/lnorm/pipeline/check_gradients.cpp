#include "lnorm/pipeline/check_gradients.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "lnorm/core/axes.hpp"
#include "lnorm/diagnosis/gradient_diagnosis.hpp"
#include "lnorm/diagnosis/gradient_variant.hpp"
#include "lnorm/diagnosis/sum_losses.hpp"
#include "lnorm/kernel/row_errors.hpp"
#include "lnorm/pipeline/exact_gradients.hpp"

namespace lnorm {

namespace {

// A gradient that is judged.
class JudgedGradient {
 public:
  JudgedGradient(Quantity of, TensorSource& actual, const GradientCheckInputs& inputs,
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
               .has_saved = inputs.sources.rstd != nullptr,
               .has_constants = inputs.sources.are_constants},
        context_(context_of(model_, of, options.has_weight, options.has_bias)),
        asked_(asked_for(setting_)) {
    if (of == Quantity::dx) {
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
    if (options.criteria) {
      check.comparison =
          std::make_shared<Comparison>(begin_comparison(actual.info(), *options.criteria));
    }
    check.row_length = rows_ ? rows_->row_length() : std::ssize(numbers_);
  }

  Quantity of() const noexcept { return of_; }
  DType dtype() const { return actual_.info().dtype; }
  const GradientModel& model() const noexcept { return model_; }
  const KernelContext& context() const noexcept { return context_; }
  const Variant& asked() const noexcept { return asked_; }
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
  // The most that the orders lose: of a measured column of dweight or dbias, and of a row's statistics, in parts of mean |x| and of the
  // variance.
  GradientLosses losses;

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
            .output = OutputFormat(output),
            .normalized_shape = plan.normalized_shape()};
  }

  Quantity of_;
  TensorSource& actual_;
  JudgeSetting setting_;
  GradientModel model_;
  KernelContext context_;
  Variant asked_;
  std::optional<CheckRows> rows_;  // of dx
  std::vector<double> numbers_;    // of dweight or dbias
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
    const auto add = [&](Quantity of, TensorSource* actual) {
      if (actual == nullptr) return;
      judged_.push_back(std::make_unique<JudgedGradient>(of, *actual, inputs, plan, backend,
                                                         options, run_options.threads));
    };
    add(Quantity::dx, inputs.dx);
    add(Quantity::dweight, inputs.dweight);
    add(Quantity::dbias, inputs.dbias);
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
      describe_places(check, gradient->of() == Quantity::dx ? plan_.rows.rows : 1,
                      row_shape(check.actual.shape, check.axes));
      checks.push_back(std::move(check));
    }
    return checks;
  }

 private:
  struct Slot {
    ExactGradients::Buffers buffers;
    JudgedRows found;
    std::optional<Comparison> compared;  // of dx
    std::vector<ParameterSums> sums;
  };

  using Parameters = std::span<const std::unique_ptr<JudgedGradient>>;

  static std::vector<ParameterSums> no_sums(Parameters parameters) {
    std::vector<ParameterSums> sums;
    for (const auto& one : parameters) sums.push_back(no_sums(*one));
    return sums;
  }
  static ParameterSums no_sums(const JudgedGradient& one) {
    return {one.asked(), one.model(), one.of()};
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
          for (ParameterSums& sums : slot.sums) sums.add(row);
        });
  }

  void judge() {
    JudgedGradient* const dx = inputs_.dx != nullptr ? judged_.front().get() : nullptr;
    const Parameters parameters = Parameters(judged_).subspan(dx != nullptr ? 1 : 0);
    std::vector<ParameterSums> sums = no_sums(parameters);
    const LoopExtent all = exact_gradients_.extent();
    const Executor executor(run_options_.threads, all.blocks());
    std::vector<Slot> slots;
    for_each_block(
        all, executor, run_options_, slots,
        [&](const Block& block, Slot& slot) { exact_gradients_.begin(block, slot.buffers.in); },
        [&](const Block& block, Slot& slot) { judge_block(block, dx, parameters, slot); },
        [&](const Block&, Slot& slot) {
          if (dx != nullptr) dx->take(slot.compared);
          for (std::size_t i = 0; i < sums.size(); ++i) sums[i].append(slot.sums[i]);
        });
    for (const Slot& slot : slots) {
      if (dx != nullptr) dx->check.judged.merge(slot.found);
    }
    if (dx != nullptr && !options_.depth) settle_dx(*dx);
    const auto columns = exact_gradients_.gathered();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      judge_parameters(*parameters[i], *columns, sums[i]);
    }
  }

  void judge_dx(const JudgedGradient& dx, const GradientRow& row, const std::vector<double>& exact,
                JudgedRows& found) const {
    const std::vector<double> actual = dx.actual_row(row.number);
    RowJudge judge(dx.setting(), 0);
    judge.judge_by({row.number, row.x, actual, exact}, bounds_of_dx(dx, row, nullptr), found);
  }

  static RowJudge::FindBounds bounds_of_dx(const JudgedGradient& dx, const GradientRow& row,
                                           const GradientLosses* losses) {
    return [&dx, row, losses](bool is_measured) {
      GradientRow of_sums = row;
      of_sums.losses = is_measured ? losses : nullptr;
      return evaluate_dx(dx.asked(), dx.model(), of_sums);
    };
  }

  std::vector<ExactGradients::HeldRow> held(std::span<const std::int64_t> numbers) const {
    std::vector<ExactGradients::HeldRow> rows;
    for (const std::int64_t r : numbers) rows.push_back(exact_gradients_.hold(r));
    return rows;
  }

  static std::vector<GradientLosses> losses_of_rows(
      const JudgedGradient& dx, const std::vector<ExactGradients::HeldRow>& held) {
    std::vector<GradientRow> rows;
    rows.reserve(held.size());
    for (const ExactGradients::HeldRow& one : held) rows.push_back(one.row());
    return losses_of(dx.model(), rows);
  }

  void settle_dx(JudgedGradient& dx) const {
    settle_rows(dx.check.judged, plan_.rows.row_length, run_options_.threads,
                [&](std::span<const std::int64_t> numbers, SettledRows& part) {
                  const auto rows = held(numbers);
                  const std::vector<GradientLosses> losses = losses_of_rows(dx, rows);
                  RowJudge judge(dx.setting(), 0);
                  for (std::size_t r = 0; r < rows.size(); ++r) {
                    const std::vector<double> actual = dx.actual_row(rows[r].number);
                    judge.settle_by({rows[r].number, rows[r].x, actual, rows[r].dx},
                                    bounds_of_dx(dx, rows[r].row(), &losses[r]), part.before,
                                    part.after);
                  }
                });
  }

  void judge_parameters(JudgedGradient& gradient, ColumnGradients& columns,
                        const ParameterSums& sums) {
    const std::vector<double> actual = gradient.actual_row(0);
    const std::vector<double> exact =
        exact_gradients_.parameters(gradient.of(), columns, gradient.dtype());
    gradient.compare(exact);
    RowJudge judge(gradient.setting(), 0);
    const RowBounds tree = sums.finish();
    const JudgedRow row{0, actual, actual, exact};
    const auto bounds = [&](bool is_measured) {
      return is_measured ? measured_sums(gradient, actual, tree) : tree;
    };
    judge.judge_and_settle_by(row, bounds, gradient.check.judged);
  }

  // The terms of some columns, a list each. slots: which list a parameter's terms go to; below 0: none.
  std::vector<std::vector<double>> terms_of(const JudgedGradient& gradient,
                                            const std::vector<std::int64_t>& slots,
                                            std::size_t count) const {
    std::vector<std::vector<double>> terms(count);
    const AffineLayout& layout = plan_.rows.affine;
    exact_gradients_.for_each_row([&](const GradientRow& row) {
      const std::int64_t first = layout.first(row.number);
      std::vector<double> xhat;
      if (gradient.of() == Quantity::dweight)
        xhat = xhat_of(gradient.asked(), gradient.model(), row);
      for (std::size_t i = 0; i < row.dy.size(); ++i) {
        const std::int64_t number = layout.number(first, static_cast<std::int64_t>(i));
        const std::int64_t slot = slots[static_cast<std::size_t>(number)];
        if (slot < 0) continue;
        terms[static_cast<std::size_t>(slot)].push_back(row.dy[i] * (xhat.empty() ? 1 : xhat[i]));
      }
    });
    return terms;
  }

  // The layout's number of each parameter.
  static std::vector<std::size_t> layout_numbers(const GradientModel& model) {
    if (model.is_uniform) return {0};
    std::vector<double> numbers(static_cast<std::size_t>(element_count(model.layout.shape)));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    numbers = in_tensor_order(std::move(numbers), model.layout);
    return {numbers.begin(), numbers.end()};
  }

  // The bounds by what the orders lose on the columns that are beyond the tree bound, until so many of them differ.
  RowBounds measured_sums(JudgedGradient& gradient, const std::vector<double>& actual,
                          const RowBounds& tree) const {
    constexpr std::int64_t kMostTerms = std::int64_t{1} << 22;  // that are held at once
    const GradientModel& model = gradient.model();
    const auto parameters = static_cast<std::size_t>(element_count(model.layout.shape));
    const JudgeSetting& setting = model.setting;
    ParameterSums sums = no_sums(gradient);
    exact_gradients_.for_each_row(
        [&](const GradientRow& row) {
          sums.add(row);
          if (row.losses == nullptr) return;
          const RowStatistics exact = statistics_of(row.x, setting.formula);
          SumLosses& losses = gradient.losses.statistics;
          const SumLosses& of_row = row.losses->statistics;
          if (exact.mean_abs > 0) losses.mean = std::max(losses.mean, of_row.mean / exact.mean_abs);
          if (exact.variance > 0) {
            losses.variance = std::max(losses.variance, of_row.variance / exact.variance);
          }
        },
        gradient.of() == Quantity::dweight ? &setting : nullptr);
    std::vector<double> losses(model.is_uniform ? 1 : parameters);
    const std::int64_t terms = model.terms();
    if (terms > kMostTerms) {
      std::ranges::fill(
          losses, static_cast<double>(terms) * setting.kernel.arithmetic.unit / kColumnLossFactor);
      return sums.finish(losses);
    }
    const std::vector<std::size_t> numbers = layout_numbers(model);
    std::vector<std::size_t> doubtful;  // elements
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (!(std::fabs(actual[i] - tree.y[i]) <= tree.bound[i])) doubtful.push_back(i);
    }
    const std::int64_t of_row = model.layout.repeat;
    const Shape shape = model.is_uniform || of_row == model.row_length
                            ? setting.normalized_shape
                            : Shape{terms / of_row, of_row};
    const auto most = static_cast<std::size_t>(kMostTerms / std::max<std::int64_t>(terms, 1));
    // Where all differ the first ones are enough.
    std::size_t at_once = std::min<std::size_t>(most, kEnoughDiffer);
    RowBounds bounds = sums.finish(losses);
    std::int64_t differing = 0;
    std::span<const std::size_t> rest = doubtful;
    while (!rest.empty() && differing < kEnoughDiffer) {
      const auto some = rest.first(std::min(at_once, rest.size()));
      rest = rest.subspan(some.size());
      at_once = most;
      std::vector<std::int64_t> slots(parameters, model.is_uniform ? 0 : -1);
      for (std::size_t k = 0; k < some.size() && !model.is_uniform; ++k) {
        slots[numbers[some[k]]] = static_cast<std::int64_t>(k);
      }
      const auto lists = terms_of(gradient, slots, some.size());
      const std::vector<std::span<const double>> views(lists.begin(), lists.end());
      const auto found = losses_of_sums(views, setting.kernel.arithmetic, shape, true);
      for (std::size_t k = 0; k < some.size(); ++k) {
        losses[numbers[some[k]]] = found[k];
        gradient.losses.products = std::max(gradient.losses.products, found[k]);
      }
      bounds = sums.finish(losses);
      for (const std::size_t i : some) {
        differing += std::fabs(actual[i] - bounds.y[i]) <= bounds.bound[i] ? 0 : 1;
      }
    }
    return bounds;
  }

  // ---- What explains the errors.

  // Variants are held for so many numbers of rows or parameters.
  static std::size_t at_once(std::size_t numbers) {
    constexpr std::size_t kMostHeld = std::size_t{1} << 20;
    return std::max<std::size_t>(1, kMostHeld / std::max<std::size_t>(1, numbers));
  }

  void diagnose(JudgedGradient& gradient) {
    const auto find = [&](const GradientSample& sample) {
      gradient.check.diagnosis =
          lnorm::diagnose(sample, gradient.model(), gradient.context(), options_.kernels);
    };
    if (gradient.of() != Quantity::dx) return find(sample_of_parameters(gradient));
    const std::vector<std::int64_t> numbers =
        sampled_rows(gradient.check.judged, plan_.rows.rows, plan_.rows.row_length);
    const auto rows = held(numbers);
    std::vector<GradientLosses> losses;
    if (!options_.depth) losses = losses_of_rows(gradient, rows);
    GradientSample sample;
    for (const std::int64_t r : numbers) sample.actual.push_back(gradient.actual_row(r));
    sample.at_once = at_once(static_cast<std::size_t>(plan_.rows.row_length) * numbers.size());
    sample.evaluate = [&](std::span<const Variant> variants, std::size_t r) {
      GradientRow row = rows[r].row();
      if (!losses.empty()) row.losses = &losses[r];
      std::vector<RowBounds> results;
      for (const Variant& variant : variants) {
        results.push_back(evaluate_dx(variant, gradient.model(), row));
      }
      return results;
    };
    find(sample);
    if (!gradient.check.diagnosis.explains_all()) return;
    explain_all(gradient, gradient.check.diagnosis.explanations.front());
  }

  // Of many parameters some that are off and some in between are looked at first.
  GradientSample sample_of_parameters(const JudgedGradient& gradient) const {
    constexpr std::size_t kFirst = 16;  // of either
    const std::vector<double> actual = gradient.actual_row(0);
    std::vector<std::size_t> some;
    std::vector<std::size_t> rest;
    const std::vector<std::int64_t>& affected = gradient.check.judged.affected_elements;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const bool is_off = i < affected.size() && affected[i] > 0 && some.size() < kFirst;
      const bool is_between = i % (actual.size() / kFirst + 1) == 0;
      (is_off || is_between ? some : rest).push_back(i);
    }
    GradientSample sample;
    const std::vector<std::vector<std::size_t>> parts{some, rest};
    for (const std::vector<std::size_t>& part : parts) {
      if (!part.empty()) sample.actual.push_back(numbers_at(part, actual));
    }
    sample.at_once = at_once(actual.size());
    sample.least_share = 0.9;
    sample.evaluate = [this, &gradient, parts](std::span<const Variant> variants, std::size_t r) {
      return sums_of(gradient, variants, parts[r]);
    };
    return sample;
  }

  static std::vector<double> numbers_at(const std::vector<std::size_t>& places,
                                        const std::vector<double>& numbers) {
    std::vector<double> some;
    some.reserve(places.size());
    for (const std::size_t i : places) some.push_back(numbers[i]);
    return some;
  }

  // Some numbers of dweight or dbias by variants, with what the orders lose at most.
  std::vector<RowBounds> sums_of(const JudgedGradient& gradient, std::span<const Variant> variants,
                                 const std::vector<std::size_t>& places) const {
    const std::vector<std::size_t> numbers = layout_numbers(gradient.model());
    std::vector<char> wanted;
    if (!gradient.model().is_uniform) {
      wanted.resize(numbers.size());
      for (const std::size_t i : places) wanted[numbers[i]] = 1;
    }
    std::vector<ParameterSums> sums;
    for (const Variant& variant : variants) {
      sums.emplace_back(variant, gradient.model(), gradient.of(), wanted);
    }
    exact_gradients_.for_each_row([&](const GradientRow& row) {
      const StatisticsOfNorms known(row.x);
      const RowStatistics exact = known.by(gradient.setting().formula);
      const SumLosses& most = gradient.losses.statistics;
      const GradientLosses losses{{most.mean * exact.mean_abs, most.variance * exact.variance}};
      GradientRow of_sums = row;
      of_sums.losses = &losses;
      of_sums.statistics = &known;
      for (ParameterSums& one : sums) one.add(of_sums);
    });
    std::vector<RowBounds> results;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const bool is_coarse = variants[i].backward.is_any_order;
      RowBounds all = sums[i].finish({&gradient.losses.products, is_coarse ? 0U : 1U});
      all.y = numbers_at(places, all.y);
      all.bound = numbers_at(places, all.bound);
      results.push_back(std::move(all));
    }
    return results;
  }

  // How many elements the formula explains, in all rows.
  void explain_all(const JudgedGradient& gradient, FormulaFit& fit) const {
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
            slot.found.add(fit_of(gradient, fit.variant, row));
          });
        },
        [&](const Block&, Sums& slot) { total.add(slot.found); });
    fit.explained = total.share();
    fit.sqnr = total.sqnr();
    fit.explains_all = total.explains_all();
  }

  // By the tree bound, and where that does not hold by the measured one.
  FormulaSums fit_of(const JudgedGradient& gradient, const Variant& variant,
                     const GradientRow& row) const {
    const std::vector<double> actual = gradient.actual_row(row.number);
    const auto fit = [&](const GradientRow& of_sums) {
      FormulaSums found;
      add_results({evaluate_dx(variant, gradient.model(), of_sums), actual},
                  gradient.setting().output, found);
      return found;
    };
    const FormulaSums found = fit(row);
    if (found.explains_all() || options_.depth) return found;
    GradientRow of_sums = row;
    const std::vector<GradientLosses> losses = losses_of(gradient.model(), {&row, 1});
    of_sums.losses = losses.data();
    return fit(of_sums);
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
