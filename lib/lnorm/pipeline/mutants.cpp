#include "lnorm/pipeline/mutants.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/interruption.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/check_rows.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/other_readings.hpp"
#include "lnorm/pipeline/quantized_mutants.hpp"

namespace lnorm {

namespace {

// xhat over other axes, by way of a temporary file.
struct OtherRows {
  std::unique_ptr<TensorSource> xhat;
  std::unique_ptr<CheckRows> rows;
};

// A wrong kernel that shows in any row is tried on so many elements first, where no more need be known of it.
constexpr std::int64_t kTriedFirst = 2048;

// What is tried on every block: a variant, xhat over other axes, or how y is quantized.
struct Attempt {
  const Variant& variant;
  const CheckRows* xhat;
  const NamedQuantizedKernel* quantized;
  std::vector<Comparison>& comparisons;  // of all blocks that have been seen, one a tensor
  bool is_right = false;                 // no wrong kernel: the right result
  std::vector<double> amaxes = {};       // of each scale that rows share
};

// The rows of a block. Where they are quantized, also their steps, the scales that are given, and what right kernels and apply make
// of them.
struct RowsOfBlock {
  std::vector<SampleRow> rows;
  std::vector<RowOfKernel> steps = {};
  std::vector<std::vector<double>> given = {};
  std::vector<WrittenRow> right = {};
  std::vector<WrittenRow> exact = {};
};

DType dtype_of(const Variant& variant, DType out) {
  if (variant.bytes != Variant::Bytes::other_dtype) return out;
  if (item_size(out) > 2) return DType::float64;  // that has the integers
  return out == DType::float16 ? DType::bfloat16 : DType::float16;
}

class MutantTrials {
 public:
  MutantTrials(const MutantInputs& inputs, const AskedQuantization* asked, const Plan& plan,
               const Backend& backend, const MutantOptions& options, const RunOptions& run_options)
      : inputs_(inputs),
        plan_(plan),
        options_(options),
        run_options_(run_options),
        setting_(judge_setting(
            plan, backend,
            {.arithmetic = plan.out == DType::float64 ? DType::float64 : DType::float32,
             .zero_centered_weight = options.zero_centered_weight,
             .rounding = options.rounding},
            inputs.weight, inputs.bias, false, false, written_dtype(asked, plan))) {
    if (asked == nullptr) return;
    setting_.steps = OutputFormat(asked->quantization.rounding);
    quantizer_.emplace(inputs, *asked, plan, setting_, run_options.threads);
  }

  std::vector<TriedMutant> run() {
    add_quantized();
    add_norms();
    other_rows_.resize(mutants_.size());
    // Other axes are tried on a whole tensor with one weight a normalized element, as check does.
    const TensorInfo& x = inputs_.x.info();
    const Variant asked = asked_for(setting_);
    if (!x.slice && plan_.affine.is_plain() && !x.split) add_other_axes();
    std::vector<Attempt> attempts;
    auto quantized = quantized_.begin();
    for (std::size_t m = 0; m < mutants_.size(); ++m) {
      const CheckRows* const xhat = other_rows_[m] ? other_rows_[m]->rows.get() : nullptr;
      for (TriedMutant::Trial& trial : mutants_[m].trials) {
        const bool is_norm = !trial.formulas.empty();
        const Variant& formula = is_norm ? trial.formulas.front().second : asked;
        trial.comparisons = comparisons(formula);
        trial.has_scales = trial.comparisons.size() > 1;
        attempts.push_back({formula, xhat, is_norm ? nullptr : &*quantized++, trial.comparisons});
      }
    }
    std::vector<Comparison> right = comparisons(asked);
    attempts.push_back({asked, nullptr, nullptr, right, true});
    if (plan_.rows > 0 && plan_.row_length > 0) observe(attempts);
    for (const Comparison& of_tensor : right) require_passing(of_tensor, inputs_.x.info());
    return std::move(mutants_);
  }

 private:
  KernelContext context() const {
    KernelContext context = context_of(setting_, Quantity::y, inputs_.weight, inputs_.bias, plan_);
    context.has_residual = inputs_.alone != nullptr;
    context.x_dtype = x_dtype();
    context.is_written = true;
    return context;
  }

  DType x_dtype() const {
    return inputs_.alone != nullptr ? inputs_.alone->info().dtype : plan_.in;
  }

  // Of y; or of q, and of the scales.
  std::vector<Comparison> comparisons(const Variant& variant) const {
    std::vector<Comparison> found{begin_trial(plan_.result(), options_.criteria)};
    found.front().actual.dtype = dtype_of(variant, plan_.out);
    const std::int64_t scales = quantizer_ ? quantizer_->scales_before(plan_.rows) : 0;
    if (scales > 0) {
      found.push_back(
          begin_trial({"scale", DType::float32, {scales}},
                      {.tolerance = default_tolerance(DType::float32, DType::float32)}));
    }
    return found;
  }

  // What right kernels have before the last rounding.
  static DType written_dtype(const AskedQuantization* asked, const Plan& plan) {
    if (asked == nullptr) return plan.out;
    return asked->quantization.rounds_y ? asked->quantization.rounding : DType::float64;
  }

  void add_quantized() {
    if (!quantizer_) return;
    for (NamedQuantizedKernel& kernel :
         named_quantized_kernels(quantizer_->context(), options_.choose)) {
      if (mutants_.empty() || mutants_.back().id != kernel.id) {
        mutants_.push_back({kernel.id, kernel.words, kernel.options});
      }
      if (!kernel.is_other) continue;
      mutants_.back().trials.push_back({.words = kernel.words});
      quantized_.push_back(std::move(kernel));
    }
  }

  // Where y is quantized, those of the table whose y may be quantized as asked for.
  void add_norms() {
    const KernelContext contexts[] = {context()};
    std::vector<TriedMutant> norms = mutants_of(contexts, options_.choose);
    for (TriedMutant& mutant : norms) {
      const auto is_of_y = [&](const TriedMutant::Trial& trial) {
        const Variant& variant = trial.formulas.front().second;
        return variant.bytes != Variant::Bytes::as_they_are || variant.y_in ||
               variant.rounding != setting_.rounding;
      };
      const bool is_known =
          std::ranges::find(mutants_, mutant.id, &TriedMutant::id) != mutants_.end();
      if (quantizer_ && (is_known || std::ranges::any_of(mutant.trials, is_of_y))) continue;
      mutants_.push_back(std::move(mutant));
    }
  }

  // Axes that differ from those given by axes of one index are the same.
  bool is_same(const Axes& axes) const {
    const auto longer = [&](Axes some) {
      std::erase_if(some, [&](std::size_t axis) { return plan_.shape[axis] == 1; });
      std::ranges::sort(some);
      return some;
    };
    return longer(axes) == longer(plan_.axes);
  }

  void add_other_axes() {
    for (const OtherAxes& other :
         other_axes(plan_, !inputs_.weight.empty() || !inputs_.bias.empty())) {
      if (options_.choose && !options_.choose(other.id)) continue;
      TriedMutant& mutant =
          mutants_.emplace_back(TriedMutant{other.id, std::string(kAxesWords), other.option});
      other_rows_.emplace_back();
      const std::int64_t length = element_count(extents(plan_.shape, other.axes));
      if (is_same(other.axes) || length == 0 || plan_.formula.ddof >= length) continue;
      mutant.trials.push_back({.formulas = {{Quantity::y, asked_for(setting_)}}});
      other_rows_.back() = rows_along(other.axes);
    }
  }

  OtherRows rows_along(const Axes& axes) const {
    LayerNormOptions options{.formula = plan_.formula};
    options.axes = AxisList{{axes.begin(), axes.end()}};
    const TensorInfo& x = inputs_.x.info();
    const Plan plan = make_plan(x, options, DType::float64, {.whole = true, .ordered = true});
    TensorSpool spool({x.name, DType::float64, x.shape});
    LentSource source(inputs_.x);
    lnorm::run(source, plan,
               [&](const RowsIn& rows, const RowsOut& y, const RowNumbersOut& statistics) {
                 setting_.backend.layer_norm(rows, y, {}, plan.formula, statistics);
               },
               {}, &spool, {.threads = run_options_.threads});
    OtherRows other{spool.source(), nullptr};
    other.rows = std::make_unique<CheckRows>(*other.xhat, plan_.axes, run_options_.threads);
    return other;
  }

  // Tries all of them on one block of rows after another.
  void observe(std::vector<Attempt>& attempts) const {
    const CheckRows x(inputs_.x, plan_.axes, run_options_.threads);
    std::optional<CheckRows> alone;
    if (inputs_.alone != nullptr) alone.emplace(*inputs_.alone, plan_.axes, run_options_.threads);
    const Sample tensor{
        .setting = &setting_,
        .x_dtype = x_dtype(),
        .first_x = row_of_x(x, 0),
        .last_x = row_of_x(x, -1),
        .of_all = statistics_of_all(inputs_.x, plan_, setting_.backend, run_options_.threads),
        .all_rows = plan_.rows};
    const CheckRows* const residual = alone ? &*alone : nullptr;
    const Transform exact =
        quantizer_ ? quantization(quantizer_->exact())
                   : normalization(setting_.backend, nullptr, inputs_.affine, plan_.formula);
    if (quantizer_ && quantizer_->shared_scales() > 0) {
      take_amaxes(exact, x, residual, tensor, attempts);
    }
    using Found = std::vector<std::vector<Comparison>>;
    std::vector<std::atomic<bool>> done(attempts.size());
    examine_rows(
        inputs_.x, plan_, exact,
        [&](const RowBlock& block) {
          return compared(block, rows_of(block, x, residual), tensor, attempts, done);
        },
        [&](const Found& found) {
          for (std::size_t i = 0; i < found.size(); ++i) {
            for (std::size_t t = 0; t < found[i].size(); ++t) {
              attempts[i].comparisons[t].append(found[i][t], 0);
              if (options_.is_done(found[i][t])) done[i] = true;
            }
          }
        },
        run_options_);
  }

  // Of the scales that rows share, by each attempt.
  void take_amaxes(const Transform& exact, const CheckRows& x, const CheckRows* alone,
                   const Sample& tensor, std::vector<Attempt>& attempts) const {
    // Of each row of a block, by each attempt.
    using Found = std::vector<std::pair<std::int64_t, std::vector<double>>>;
    for (Attempt& attempt : attempts) {
      attempt.amaxes.resize(static_cast<std::size_t>(quantizer_->shared_scales()));
    }
    examine_rows(
        inputs_.x, plan_, exact,
        [&](const RowBlock& block) {
          const RowsOfBlock rows = rows_of(block, x, alone);
          Found found;
          VariantRow made;
          for (std::size_t r = 0; r < rows.rows.size(); ++r) {
            std::vector<double>& amaxes =
                found.emplace_back(rows.rows[r].number, std::vector<double>()).second;
            for (const Attempt& attempt : attempts) {
              const QuantizedRule rule =
                  rule_of(attempt, rows.rows[r], rows.steps[r], tensor, made);
              amaxes.push_back(rule.largest(rule.amax_of));
            }
          }
          return found;
        },
        [&](const Found& found) {
          for (const auto& [row, amaxes] : found) {
            for (std::size_t i = 0; i < attempts.size(); ++i) {
              double& most = attempts[i].amaxes[quantizer_->shared_scale(row)];
              most = amaxes[i] > most || std::isnan(amaxes[i]) ? amaxes[i] : most;
            }
          }
        },
        run_options_);
  }

  // How an attempt quantizes a row. It refers to what it made of the row.
  QuantizedRule rule_of(const Attempt& attempt, const SampleRow& row, const RowOfKernel& steps,
                        const Sample& tensor, VariantRow& made) const {
    if (attempt.quantized != nullptr) return attempt.quantized->rule(quantizer_->asked(), steps);
    QuantizedRule rule = asked_rule(quantizer_->asked(), steps);
    if (attempt.is_right) return rule;
    make(attempt, row, tensor, made);
    rule.y = rule.amax_of = made.y;
    return rule;
  }

  // The row before the first one is the last.
  std::vector<double> row_of_x(const CheckRows& x, std::int64_t number) const {
    TileBuffer buffer;
    return decoded(setting_.backend, x.read((number + plan_.rows) % plan_.rows, 1, buffer));
  }

  RowsOfBlock rows_of(const RowBlock& block, const CheckRows& x, const CheckRows* alone) const {
    RowsOfBlock all{std::vector<SampleRow>(static_cast<std::size_t>(block.x.rows))};
    std::vector<SampleRow>& rows = all.rows;
    const RowsIn exact = output_rows(block);
    TileBuffer buffer;
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      SampleRow& row = rows[static_cast<std::size_t>(r)];
      row.number = block.first_row + r;
      row.affine = own_affine(inputs_.weight, inputs_.bias, plan_, row.number);
      row.x = decoded(setting_.backend, row_of(block.x, r));
      row.exact = decoded(setting_.backend, row_of(exact, r));
      if (alone != nullptr) {
        row.alone = decoded(setting_.backend, alone->read(row.number, 1, buffer));
      }
      row.previous_x =
          r > 0 ? rows[static_cast<std::size_t>(r - 1)].x : row_of_x(x, row.number - 1);
      if (r > 0) rows[static_cast<std::size_t>(r - 1)].next_x = row.x;
    }
    if (!rows.empty()) rows.back().next_x = row_of_x(x, rows.back().number + 1);
    for (std::int64_t r = 0; quantizer_ && r < block.x.rows; ++r) {
      SampleRow& row = rows[static_cast<std::size_t>(r)];
      all.steps.push_back(quantizer_->steps_of(row));
      row.exact = all.steps.back().results.y;
      all.given.push_back(quantizer_->given_scales(row.number));
      all.exact.push_back(quantizer_->exact_row(block, r));
    }
    return all;
  }

  // What each attempt writes, compared with the exact rows.
  std::vector<std::vector<Comparison>> compared(const RowBlock& block, RowsOfBlock rows,
                                                const Sample& tensor,
                                                const std::vector<Attempt>& attempts,
                                                const std::vector<std::atomic<bool>>& done) const {
    const RowsIn all = output_rows(block);
    for (std::size_t r = 0; r < rows.steps.size(); ++r) {
      VariantRow unused;
      rows.right.push_back(quantized(attempts.back(), rows, r, tensor, unused));
    }
    // The kernels are computed in float64: their last digits are no mistakes.
    for (std::size_t r = 0; !quantizer_ && plan_.out == DType::float64 && r < rows.rows.size();
         ++r) {
      VariantRow made;
      write(attempts.back().variant, tensor, rows.rows[r], made);
      rows.right.push_back({std::move(made.y), {}});
    }
    std::vector<std::vector<Comparison>> found;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      check_interruption();
      // No copy of what attempts have: other blocks are appended to that meanwhile.
      std::vector<Comparison>& comparisons =
          found.emplace_back(this->comparisons(attempts[i].variant));
      comparisons.front().clear(block.first_row * all.row_length, 0);
      if (comparisons.size() > 1) {
        comparisons.back().clear(quantizer_->scales_before(block.first_row), 0);
      }
      // Most wrong kernels show in a few rows.
      std::int64_t count = options_.until_caught ? 1 + kTriedFirst / all.row_length : all.rows;
      for (std::int64_t first = 0; first < all.rows && !done[i]; first += count, count *= 4) {
        count = std::min(count, all.rows - first);
        compare(attempts[i], rows, rows_from(all, first, count), static_cast<std::size_t>(first),
                tensor, comparisons);
        const auto is_done = [&](const Comparison& one) { return options_.is_done(one); };
        if (std::ranges::any_of(comparisons, is_done)) break;
      }
    }
    return found;
  }

  // Compares some rows that an attempt writes. exact: as many from the first on.
  void compare(const Attempt& attempt, const RowsOfBlock& rows, const RowsIn& exact,
               std::size_t first, const Sample& tensor,
               std::vector<Comparison>& comparisons) const {
    std::vector<double> all;
    std::vector<double> scales;
    std::vector<double> exact_scales;
    VariantRow made;
    for (std::size_t r = first; r < first + static_cast<std::size_t>(exact.rows); ++r) {
      if (quantizer_) {
        WrittenRow row = quantized(attempt, rows, r, tensor, made);
        take_exact(rows.right[r].scales, rows.exact[r].scales, row.scales);
        take_exact(rows.right[r].q, rows.exact[r].q, row.q);
        made.y = std::move(row.q);
        append(rows.exact[r].scales, exact_scales);
        append(row.scales.empty() ? rows.exact[r].scales : row.scales, scales);
      } else {
        make(attempt, rows.rows[r], tensor, made);
        const bool is_step = attempt.variant.rounding != setting_.rounding;
        if (!rows.right.empty() && !is_step) {
          take_exact(rows.right[r].q, rows.rows[r].exact, made.y);
        }
      }
      append(made.y, all);
    }
    compare_rows(exact, row_of_doubles(all), comparisons.front(), {}, options_.until_caught);
    if (scales.empty()) return;
    compare_rows(row_of_doubles(exact_scales), row_of_doubles(scales), comparisons.back(), {},
                 options_.until_caught);
  }

  static void append(const std::vector<double>& some, std::vector<double>& all) {
    all.insert(all.end(), some.begin(), some.end());
  }

  // Where a kernel's numbers are the right one's, they are the exact ones.
  static void take_exact(const std::vector<double>& right, const std::vector<double>& exact,
                         std::vector<double>& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const bool is_right =
          numbers[i] == right[i] || (std::isnan(numbers[i]) && std::isnan(right[i]));
      if (is_right) numbers[i] = exact[i];
    }
  }

  WrittenRow quantized(const Attempt& attempt, const RowsOfBlock& rows, std::size_t r,
                       const Sample& tensor, VariantRow& made) const {
    const SampleRow& row = rows.rows[r];
    const double amax =
        attempt.amaxes.empty() ? kNan : attempt.amaxes[quantizer_->shared_scale(row.number)];
    return quantizer_->quantized(rule_of(attempt, row, rows.steps[r], tensor, made), row.number,
                                 rows.given[r], amax);
  }

  // y of a row, before it is quantized.
  void make(const Attempt& attempt, const SampleRow& row, const Sample& tensor,
            VariantRow& made) const {
    if (attempt.is_right) {
      made.y = row.exact;
    } else if (attempt.xhat != nullptr) {
      TileBuffer buffer;
      made.y = decoded(setting_.backend, attempt.xhat->read(row.number, 1, buffer));
      follow_affine(attempt.variant, made.y);
    } else {
      write(attempt.variant, tensor, row, made);
    }
  }

  void follow_affine(const Variant& variant, std::vector<double>& y) const {
    const OutputFormat& output = setting_.output;
    const Rounding& rounding = variant.rounding;
    for (std::size_t i = 0; i < y.size(); ++i) {
      double product = variant.affine->weight[i] * (rounding.xhat ? output.rounded(y[i]) : y[i]);
      if (rounding.product) product = output.rounded(product);
      y[i] = output.rounded(product + variant.affine->bias[i]);
    }
  }

  const MutantInputs& inputs_;
  const Plan& plan_;
  const MutantOptions& options_;
  const RunOptions& run_options_;
  JudgeSetting setting_;
  std::optional<MutantQuantizer> quantizer_;
  std::vector<NamedQuantizedKernel> quantized_;  // of mutants_: those of no formula
  std::vector<TriedMutant> mutants_;
  std::vector<std::optional<OtherRows>> other_rows_;  // of mutants_
};

}  // namespace

Comparison begin_trial(const TensorInfo& written, const Criteria& criteria) {
  Comparison comparison = begin_comparison(written, criteria);
  comparison.has_errors = criteria.bounds_all_together();
  return comparison;
}

void require_passing(const Comparison& right, const TensorInfo& x) {
  const std::vector<Failure> failures = right.failures();
  if (failures.empty()) return;
  throw Error(concat(printable(x.name), ": the right result fails these criteria, too: ",
                     name(failures.front().criterion)));
}

std::vector<TriedMutant> try_mutants(const MutantInputs& inputs, const Plan& plan,
                                     const Backend& backend, const MutantOptions& options,
                                     const RunOptions& run_options) {
  return MutantTrials(inputs, nullptr, plan, backend, options, run_options).run();
}

std::vector<TriedMutant> try_quantized_mutants(const MutantInputs& inputs,
                                               const AskedQuantization& asked, const Plan& plan,
                                               const Backend& backend, const MutantOptions& options,
                                               const RunOptions& run_options) {
  return MutantTrials(inputs, &asked, plan, backend, options, run_options).run();
}

}  // namespace lnorm
