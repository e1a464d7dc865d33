#include "lnorm/pipeline/mutants.hpp"

#include <algorithm>
#include <atomic>
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

namespace lnorm {

namespace {

// xhat over other axes, by way of a temporary file.
struct OtherRows {
  std::unique_ptr<TensorSource> xhat;
  std::unique_ptr<CheckRows> rows;
};

// A wrong kernel that shows in any row is tried on so many elements first, where no more need be known of it.
constexpr std::int64_t kTriedFirst = 2048;

// What is tried on every block: a variant, or xhat over other axes.
struct Attempt {
  const Variant& variant;
  const CheckRows* xhat;
  Comparison& comparison;  // of all blocks that have been seen
  bool is_right = false;   // no wrong kernel: the right result
};

DType dtype_of(const Variant& variant, DType out) {
  if (variant.bytes != Variant::Bytes::other_dtype) return out;
  if (item_size(out) > 2) return DType::float64;  // that has the integers
  return out == DType::float16 ? DType::bfloat16 : DType::float16;
}

class MutantTrials {
 public:
  MutantTrials(const MutantInputs& inputs, const Plan& plan, const Backend& backend,
               const MutantOptions& options, const RunOptions& run_options)
      : inputs_(inputs),
        plan_(plan),
        options_(options),
        run_options_(run_options),
        setting_(judge_setting(
            plan, backend,
            {.arithmetic = plan.out == DType::float64 ? DType::float64 : DType::float32,
             .zero_centered_weight = options.zero_centered_weight,
             .rounding = options.rounding},
            inputs.weight, inputs.bias, false, false, plan.out)) {}

  std::vector<TriedMutant> run() {
    const KernelContext contexts[] = {context()};
    mutants_ = mutants_of(contexts, options_.choose);
    other_rows_.resize(mutants_.size());
    // Other axes are tried on a whole tensor with one weight a normalized element, as check does.
    const TensorInfo& x = inputs_.x.info();
    if (!x.slice && plan_.affine.is_plain() && !x.split) add_other_axes();
    std::vector<Attempt> attempts;
    for (std::size_t m = 0; m < mutants_.size(); ++m) {
      const CheckRows* const xhat = other_rows_[m] ? other_rows_[m]->rows.get() : nullptr;
      for (TriedMutant::Trial& trial : mutants_[m].trials) {
        const Variant& formula = trial.formulas.front().second;
        trial.comparisons = {comparison(formula)};
        attempts.push_back({formula, xhat, trial.comparisons.front()});
      }
    }
    const Variant asked = asked_for(setting_);
    Comparison right = comparison(asked);
    attempts.push_back({asked, nullptr, right, true});
    if (plan_.rows > 0 && plan_.row_length > 0) observe(attempts);
    require_passing(right, inputs_.x.info());
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

  Comparison comparison(const Variant& variant) const {
    Comparison comparison = begin_trial(plan_.result(), options_.criteria);
    comparison.actual.dtype = dtype_of(variant, plan_.out);
    return comparison;
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
    using Found = std::vector<Comparison>;
    std::vector<std::atomic<bool>> done(attempts.size());
    examine_rows(
        inputs_.x, plan_, normalization(setting_.backend, nullptr, inputs_.affine, plan_.formula),
        [&](const RowBlock& block) {
          return compared(block, rows_of(block, x, alone ? &*alone : nullptr), tensor, attempts,
                          done);
        },
        [&](const Found& found) {
          for (std::size_t i = 0; i < found.size(); ++i) {
            attempts[i].comparison.append(found[i], 0);
            if (options_.is_done(found[i])) done[i] = true;
          }
        },
        run_options_);
  }

  // The row before the first one is the last.
  std::vector<double> row_of_x(const CheckRows& x, std::int64_t number) const {
    TileBuffer buffer;
    return decoded(setting_.backend, x.read((number + plan_.rows) % plan_.rows, 1, buffer));
  }

  std::vector<SampleRow> rows_of(const RowBlock& block, const CheckRows& x,
                                 const CheckRows* alone) const {
    std::vector<SampleRow> rows(static_cast<std::size_t>(block.x.rows));
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
    return rows;
  }

  // What each attempt writes, compared with the exact rows.
  std::vector<Comparison> compared(const RowBlock& block, const std::vector<SampleRow>& rows,
                                   const Sample& tensor, const std::vector<Attempt>& attempts,
                                   const std::vector<std::atomic<bool>>& done) const {
    const RowsIn all = output_rows(block);
    std::vector<Comparison> found;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      check_interruption();
      // No copy of what attempts have: other blocks are appended to that meanwhile.
      Comparison& comparison = found.emplace_back(this->comparison(attempts[i].variant));
      comparison.clear(block.first_row * all.row_length, 0);
      // Most wrong kernels show in a few rows.
      std::int64_t count = options_.until_caught ? 1 + kTriedFirst / all.row_length : all.rows;
      for (std::int64_t first = 0; first < all.rows && !done[i]; first += count, count *= 4) {
        count = std::min(count, all.rows - first);
        const auto some = std::span(rows).subspan(static_cast<std::size_t>(first),
                                                  static_cast<std::size_t>(count));
        const std::vector<double> y = written(attempts[i], some, tensor);
        compare_rows(rows_from(all, first, count), row_of_doubles(y), comparison, {},
                     options_.until_caught);
        if (options_.is_done(comparison)) break;
      }
    }
    return found;
  }

  // What it makes of some rows.
  std::vector<double> written(const Attempt& attempt, std::span<const SampleRow> rows,
                              const Sample& tensor) const {
    std::vector<double> all;
    VariantRow result;
    TileBuffer buffer;
    for (const SampleRow& row : rows) {
      if (attempt.is_right) {
        result.y = row.exact;
      } else if (attempt.xhat != nullptr) {
        result.y = decoded(setting_.backend, attempt.xhat->read(row.number, 1, buffer));
        follow_affine(attempt.variant, result.y);
      } else {
        write(attempt.variant, tensor, row, result);
      }
      all.insert(all.end(), result.y.begin(), result.y.end());
    }
    return all;
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
  return MutantTrials(inputs, plan, backend, options, run_options).run();
}

}  // namespace lnorm
