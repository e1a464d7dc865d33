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
#include "lnorm/diagnosis/diagnosis.hpp"
#include "lnorm/diagnosis/gradient_variant.hpp"
#include "lnorm/diagnosis/sum_losses.hpp"
#include "lnorm/kernel/row_errors.hpp"
#include "lnorm/pipeline/check.hpp"
#include "lnorm/pipeline/exact_gradients.hpp"

namespace lnorm {

namespace {

// A gradient that is judged.
class JudgedGradient {
 public:
  JudgedGradient(Quantity of, TensorSource& actual, const GradientCheckInputs& inputs,
                 const GradPlan& plan, const Backend& backend, const CheckOptions& options,
                 int threads)
      : setting(judge_setting(plan.rows, backend, options, inputs.weight, inputs.bias,
                              inputs.is_sum, false, actual.info().dtype)),
        context(context_of(setting, of, inputs.weight, inputs.bias, plan.rows)),
        asked(asked_for(setting)),
        check(begin_check(inputs.sources.x.info(), actual.info(), plan.rows, setting)) {
    context.has_given = inputs.sources.are_constants;
    context.has_saved = inputs.sources.rstd != nullptr;
    context.dy_dtype = inputs.sources.dy.info().dtype;
    context.rounds_dy = has_more_digits(inputs.sources.dy.info().dtype, options.arithmetic);
    context.is_uniform = inputs.is_uniform;
    check.part = name(of);
    if (of == Quantity::dx) {
      rows_.emplace(actual, plan.rows.axes, threads);
    } else {
      numbers_ = all_numbers(backend, actual, threads);
      check.slice.reset();
      check.axes = kept_axes(actual.info().shape, {});
      check.row_length = std::ssize(numbers_);
    }
    if (options.criteria) {
      check.comparison =
          std::make_shared<Comparison>(begin_comparison(actual.info(), *options.criteria));
    }
  }
  JudgedGradient(const JudgedGradient&) = delete;
  JudgedGradient& operator=(const JudgedGradient&) = delete;

  // Of dx so many rows; otherwise all numbers.
  RowsIn actual_rows(std::int64_t first, std::int64_t count, TileBuffer& buffer) const {
    return rows_ ? rows_->read(first, count, buffer) : row_of_doubles(numbers_);
  }
  std::vector<double> actual_row(std::int64_t row) const {
    TileBuffer buffer;
    return decoded(setting.backend, actual_rows(row, 1, buffer));
  }

  ParameterSums no_sums() const { return {asked, context}; }

  // Rows beside the exact ones; by criteria, if there are any.
  std::optional<Comparison> compared(std::int64_t first, const RowsIn& exact,
                                     const RowsIn& actual) const {
    if (!check.comparison) return {};
    return compared_part(*check.comparison, first, actual, exact);
  }
  void take(const std::optional<Comparison>& part) {
    if (part) check.comparison->append(*part, 0);
  }

  const JudgeSetting setting;
  KernelContext context;
  const Variant asked;
  Check check;
  // The most that the orders lose: of a measured column of dweight or dbias (products), and of a row's statistics, in parts of mean |x|
  // and of the variance.
  SumLosses losses;

 private:
  std::optional<CheckRows> rows_;  // of dx
  std::vector<double> numbers_;    // of dweight or dbias
};

class GradientChecker {
 public:
  GradientChecker(const GradientCheckInputs& inputs, const GradPlan& plan, const Backend& backend,
                  const CheckOptions& options, const RunOptions& run_options)
      : plan_(plan),
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
      describe_places(check, gradient->context.of == Quantity::dx ? plan_.rows.rows : 1,
                      row_shape(check.actual.shape, check.axes));
      checks.push_back(std::move(check));
    }
    drop_contradicted(checks);
    return checks;
  }

 private:
  // Narrow sums over rows are those of dweight and of dbias: one that is right speaks against them.
  void drop_contradicted(std::vector<Check>& checks) const {
    constexpr std::int64_t kFewest = 8;  // of rows, and of parameters
    if (plan_.rows.rows < kFewest) return;
    const auto is_sum = [](const Check& check) { return check.part != name(Quantity::dx); };
    const bool is_one_right = std::ranges::any_of(checks, [&](const Check& check) {
      return is_sum(check) && check.verdict == Verdict::correctly_rounded &&
             check.judged.elements >= kFewest;
    });
    for (Check& check : checks) {
      auto& explanations = check.diagnosis.explanations;
      if (is_sum(check) && is_one_right) {
        std::erase_if(explanations, [](const FormulaFit& fit) {
          return fit.explains_all && fit.variant.backward.is_noise();
        });
      }
    }
  }

  struct Slot : ExactGradients::Buffers {
    JudgedRows found;
    std::optional<Comparison> compared;  // of dx
    TileBuffer actual;
    std::vector<ParameterSums> sums;
  };

  using Parameters = std::span<const std::unique_ptr<JudgedGradient>>;

  static std::vector<ParameterSums> no_sums(Parameters parameters) {
    std::vector<ParameterSums> sums;
    for (const auto& one : parameters) sums.push_back(one->no_sums());
    return sums;
  }

  // Judges the rows of a block, and adds them to the sums of the parameters.
  void judge_block(const Block& block, const JudgedGradient* dx, Parameters parameters,
                   Slot& slot) const {
    exact_gradients_.find(block, slot, dx != nullptr, !parameters.empty());
    const RowsIn exact = exact_gradients_.dx(block, slot);
    RowsIn actual{};
    std::optional<RowJudge> judge;
    if (dx != nullptr) {
      actual = dx->actual_rows(block.first, block.count, slot.actual);
      slot.compared = dx->compared(block.first, exact, actual);
      judge.emplace(dx->setting);
    }
    const auto decode_to = [&](std::vector<double>& numbers, const RowsIn& row) {
      numbers.resize(decode(backend_, row, numbers).size());
    };
    slot.sums = no_sums(parameters);
    exact_gradients_.for_each_row(block, slot.in, [&](SampleRow& row) {
      if (dx != nullptr) {
        decode_to(row.actual, row_of(actual, row.number - block.first));
        decode_to(row.exact, row_of(exact, row.number - block.first));
        const auto bounds = [&](bool, RowBounds& of_row) {
          of_row = evaluate_dx(dx->asked, dx->context, row);
        };
        judge->judge_by(row.judged(), bounds, slot.found);
      }
      for (ParameterSums& sums : slot.sums) sums.add(row);
    });
  }

  void judge() {
    const bool has_dx = !judged_.empty() && judged_.front()->context.of == Quantity::dx;
    JudgedGradient* const dx = has_dx ? judged_.front().get() : nullptr;
    const Parameters parameters = Parameters(judged_).subspan(has_dx ? 1 : 0);
    std::vector<ParameterSums> sums = no_sums(parameters);
    std::vector<Slot> slots;
    exact_gradients_.for_each_block(
        run_options_, slots,
        [&](const Block& block, Slot& slot) { judge_block(block, dx, parameters, slot); },
        [&](Slot& slot) {
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

  // Rows by themselves. The losses of their sums are measured, unless the depth says what they are.
  std::vector<SampleRow> sampled(const JudgedGradient& dx,
                                 std::span<const std::int64_t> numbers) const {
    std::vector<SampleRow> rows;
    for (const std::int64_t r : numbers) {
      rows.push_back(exact_gradients_.row(r));
      rows.back().actual = dx.actual_row(r);
    }
    if (options_.depth) return rows;
    const std::vector<SumLosses> losses = losses_of_dx(dx.context, rows);
    for (std::size_t r = 0; r < rows.size(); ++r) rows[r].losses = losses[r];
    return rows;
  }

  void settle_dx(JudgedGradient& dx) const {
    settle_rows(dx.check.judged, plan_.rows.row_length, run_options_.threads,
                [&](std::span<const std::int64_t> numbers, SettledRows& part) {
                  RowJudge judge(dx.setting);
                  for (SampleRow& row : sampled(dx, numbers)) {
                    const SumLosses losses = row.losses;
                    const auto bounds = [&](bool is_measured, RowBounds& of_row) {
                      row.losses = is_measured ? losses : SumLosses{};
                      of_row = evaluate_dx(dx.asked, dx.context, row);
                    };
                    judge.settle_by(row.judged(), bounds, part.before, part.after);
                  }
                });
  }

  void judge_parameters(JudgedGradient& gradient, ColumnGradients& columns,
                        const ParameterSums& sums) {
    const DType dtype = gradient.setting.output.dtype();
    const std::vector<double> actual = gradient.actual_row(0);
    const std::vector<double> exact =
        exact_gradients_.parameters(gradient.context.of, columns, dtype);
    const std::vector<std::byte> bytes = encoded(exact, dtype);
    gradient.take(
        gradient.compared(0, {bytes.data(), dtype, std::endian::native, 1, std::ssize(exact)},
                          row_of_doubles(actual)));
    const RowBounds tree = sums.finish();
    RowJudge(gradient.setting)
        .judge_and_settle_by(
            {0, actual, actual, exact},
            [&](bool is_measured, RowBounds& bounds) {
              bounds = is_measured ? measured_sums(gradient, actual, tree) : tree;
            },
            gradient.check.judged);
  }

  // The terms of some columns, a list each. slots: which list a parameter's terms go to; below 0: none.
  std::vector<std::vector<double>> terms_of(const JudgedGradient& gradient,
                                            const std::vector<std::int64_t>& slots,
                                            std::size_t count) const {
    struct Part : ExactGradients::Buffers {
      std::vector<std::vector<double>> terms;
    };
    std::vector<std::vector<double>> terms(count);
    std::vector<Part> parts;
    const AffineLayout& layout = plan_.rows.affine;
    exact_gradients_.for_each_block(
        RunOptions{run_options_.threads}, parts,
        [&](const Block& block, Part& part) {
          part.terms.assign(count, {});
          exact_gradients_.for_each_row(block, part.in, [&](const SampleRow& row) {
            const std::int64_t first = layout.first(row.number);
            std::vector<double> xhat(row.x.size(), 1);
            if (gradient.context.of == Quantity::dweight) {
              xhat = xhat_of(gradient.asked, gradient.context, row);
            }
            for (std::size_t i = 0; i < row.dy.size(); ++i) {
              const std::int64_t number = layout.number(first, static_cast<std::int64_t>(i));
              const std::int64_t slot = slots[static_cast<std::size_t>(number)];
              if (slot < 0) continue;
              part.terms[static_cast<std::size_t>(slot)].push_back(row.dy[i] * xhat[i]);
            }
          });
        },
        [&](Part& part) {
          for (std::size_t k = 0; k < count; ++k) {
            terms[k].insert(terms[k].end(), part.terms[k].begin(), part.terms[k].end());
          }
        });
    return terms;
  }

  // The layout's number of each parameter.
  static std::vector<std::size_t> layout_numbers(const KernelContext& context) {
    if (context.is_uniform) return {0};
    std::vector<double> numbers(static_cast<std::size_t>(element_count(context.layout.shape)));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    numbers = in_tensor_order(std::move(numbers), context.layout);
    return {numbers.begin(), numbers.end()};
  }

  // The bounds by what the orders lose on the columns that are beyond the tree bound, until so many of them differ.
  RowBounds measured_sums(JudgedGradient& gradient, const std::vector<double>& actual,
                          const RowBounds& tree) const {
    constexpr std::int64_t kMostTerms = std::int64_t{1} << 22;  // that are held at once
    const KernelContext& model = gradient.context;
    const auto parameters = static_cast<std::size_t>(element_count(model.layout.shape));
    const JudgeSetting& setting = model.setting;
    const bool has_statistics = model.of == Quantity::dweight;
    struct Part : ExactGradients::Buffers {
      std::optional<ParameterSums> sums;
      SumLosses most;
    };
    ParameterSums sums = gradient.no_sums();
    std::vector<Part> parts;
    exact_gradients_.for_each_block(
        RunOptions{run_options_.threads}, parts,
        [&](const Block& block, Part& part) {
          part.sums.emplace(gradient.no_sums());
          const auto see = [&](const SampleRow& row) {
            part.sums->add(row);
            if (!has_statistics) return;
            const RowStatistics exact = statistics_of(row.x, setting.formula);
            SumLosses& most = part.most;
            if (exact.mean_abs > 0)
              most.mean = std::max(most.mean, row.losses.mean / exact.mean_abs);
            if (exact.variance > 0) {
              most.variance = std::max(most.variance, row.losses.variance / exact.variance);
            }
          };
          exact_gradients_.for_each_row(block, part.in, see, has_statistics ? &setting : nullptr);
        },
        [&](Part& part) { sums.append(*part.sums); });
    for (const Part& part : parts) {
      gradient.losses.mean = std::max(gradient.losses.mean, part.most.mean);
      gradient.losses.variance = std::max(gradient.losses.variance, part.most.variance);
    }
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
    const SummedShape shape = model.is_uniform || of_row == model.row_length()
                                  ? setting.summed_shape()
                                  : SummedShape{{terms / of_row, of_row}};
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
    constexpr std::size_t kFewest = 4;  // for threads
    return std::max(kFewest, kMostHeld / std::max<std::size_t>(1, numbers));
  }

  void diagnose(JudgedGradient& gradient) {
    const auto find = [&](const GradientSample& sample) {
      gradient.check.diagnosis = lnorm::diagnose(sample, gradient.context, options_.kernels);
    };
    if (gradient.context.of != Quantity::dx) return find(sample_of_parameters(gradient));
    const std::vector<SampleRow> rows = sampled(
        gradient, sampled_rows(gradient.check.judged, plan_.rows.rows, plan_.rows.row_length));
    GradientSample sample;
    for (const SampleRow& row : rows) sample.actual.push_back(row.actual);
    sample.at_once = at_once(static_cast<std::size_t>(plan_.rows.row_length) * rows.size());
    sample.evaluate = [&](std::span<const Variant> variants, std::size_t r) {
      std::vector<RowBounds> results(variants.size());
      // Threads cost more than a few short rows.
      constexpr std::int64_t kElements = 8192;
      const bool is_small = std::ssize(variants) * plan_.rows.row_length < kElements;
      in_parallel(is_small ? 1 : run_options_.threads)(std::ssize(variants), [&](std::int64_t k) {
        const auto i = static_cast<std::size_t>(k);
        results[i] = evaluate_dx(variants[i], gradient.context, rows[r]);
      });
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
    const KernelContext& context = gradient.context;
    const std::vector<std::size_t> numbers = layout_numbers(context);
    std::vector<char> wanted;
    if (!context.is_uniform) {
      wanted.resize(numbers.size());
      for (const std::size_t i : places) wanted[numbers[i]] = 1;
    }
    std::vector<ParameterSums> sums;
    for (const Variant& variant : variants) sums.emplace_back(variant, context, wanted);
    std::vector<Formula> formulas;
    for (const Variant& variant : variants) {
      if (std::ranges::count(formulas, variant.formula) == 0) formulas.push_back(variant.formula);
    }
    // Some rows at once, by some variants a thread. The next rows take the memory of those before.
    constexpr std::int64_t kElements = 65536;
    const std::int64_t most = std::clamp<std::int64_t>(
        kElements / std::max<std::int64_t>(1, plan_.rows.row_length), 1, 512);
    std::vector<SampleRow> rows(static_cast<std::size_t>(most));
    std::vector<KnownStatistics> known(rows.size());
    std::size_t count = 0;
    const auto find_statistics = [&](std::size_t r) {
      SampleRow& row = rows[r];
      const RowStatistics exact = statistics_of(row.x, gradient.setting.formula);
      row.losses.mean = gradient.losses.mean * exact.mean_abs;
      row.losses.variance = gradient.losses.variance * exact.variance;
      known[r].find(row.x, row.losses, gradient.setting.kernel, formulas);
      row.statistics = &known[r];
    };
    const auto add_rows = [&] {
      constexpr std::size_t kPart = 64;  // rows
      const InParallel threads = in_parallel(run_options_.threads);
      threads(static_cast<std::int64_t>((count + kPart - 1) / kPart), [&](std::int64_t part) {
        const std::size_t first = kPart * static_cast<std::size_t>(part);
        for (std::size_t r = first; r < std::min(count, first + kPart); ++r) find_statistics(r);
      });
      threads(std::ssize(sums), [&](std::int64_t k) {
        for (std::size_t r = 0; r < count; ++r) sums[static_cast<std::size_t>(k)].add(rows[r]);
      });
      count = 0;
    };
    exact_gradients_.for_each_row([&](SampleRow& row) {
      std::swap(rows[count], row);
      if (++count == rows.size()) add_rows();
    });
    add_rows();
    std::vector<RowBounds> results;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const bool is_coarse = variants[i].backward.is_noise();
      RowBounds all = sums[i].finish({&gradient.losses.products, is_coarse ? 0U : 1U});
      all.y = numbers_at(places, all.y);
      all.bound = numbers_at(places, all.bound);
      results.push_back(std::move(all));
    }
    return results;
  }

  // How many elements the formula explains, in all rows.
  void explain_all(const JudgedGradient& gradient, FormulaFit& fit) const {
    struct Sums : ExactGradients::Buffers {
      FormulaSums found;
    };
    std::vector<Sums> slots;
    FormulaSums total;
    exact_gradients_.for_each_block(
        RunOptions{run_options_.threads}, slots,
        [&](const Block& block, Sums& slot) {
          slot.found = {};
          exact_gradients_.for_each_row(block, slot.in, [&](SampleRow& row) {
            slot.found.add(fit_of(gradient, fit.variant, row));
          });
        },
        [&](Sums& slot) { total.add(slot.found); });
    fit.take(total);
  }

  // By the tree bound, and where that does not hold by the measured one.
  FormulaSums fit_of(const JudgedGradient& gradient, const Variant& variant, SampleRow& row) const {
    row.actual = gradient.actual_row(row.number);
    const auto fit = [&] {
      FormulaSums found;
      add_results({evaluate_dx(variant, gradient.context, row), row.actual},
                  gradient.setting.output, found);
      return found;
    };
    const FormulaSums found = fit();
    if (found.explains_all() || options_.depth) return found;
    row.losses = losses_of_dx(gradient.context, {&row, 1}).front();
    return fit();
  }

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
