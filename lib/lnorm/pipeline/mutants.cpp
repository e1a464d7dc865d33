#include "lnorm/pipeline/mutants.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
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

// Tries all of them on one block of rows after another.
class MutantObserver final : public RowObserver {
 public:
  MutantObserver(const Sample& tensor, const MutantInputs& inputs, const Plan& plan,
                 const CheckRows& x, const CheckRows* alone, std::vector<Attempt>& attempts)
      : tensor_(tensor), inputs_(inputs), plan_(plan), x_(x), alone_(alone), attempts_(attempts) {}

  BlockFindings examine(const RowBlock& block) const override {
    const std::vector<SampleRow> rows = rows_of(block);
    const RowsIn all = output_rows(block);
    std::vector<Comparison> found;
    std::vector<double> y(static_cast<std::size_t>(all.rows * all.row_length));
    for (const Attempt& attempt : attempts_) {
      check_interruption();
      write_rows(attempt, rows, y);
      Comparison& comparison = found.emplace_back(attempt.comparison);
      comparison.clear(block.first_row * all.row_length, 0);
      compare_rows(all, row_of_doubles(y), comparison);
    }
    return found;
  }

  void see(const RowBlock&, const BlockFindings& findings) override {
    const auto& found = std::any_cast<const std::vector<Comparison>&>(findings);
    for (std::size_t i = 0; i < found.size(); ++i) {
      attempts_[i].comparison.append(found[i], 0);
    }
  }

 private:
  const Backend& backend() const { return tensor_.setting->backend; }

  // The row before the first one is the last.
  std::vector<double> row_of_x(std::int64_t number, TileBuffer& buffer) const {
    const std::int64_t row = (number + tensor_.all_rows) % tensor_.all_rows;
    return decoded(backend(), x_.read(row, 1, buffer));
  }

  std::vector<SampleRow> rows_of(const RowBlock& block) const {
    std::vector<SampleRow> rows(static_cast<std::size_t>(block.x.rows));
    const RowsIn exact = output_rows(block);
    TileBuffer buffer;
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      SampleRow& row = rows[static_cast<std::size_t>(r)];
      row.number = block.first_row + r;
      row.affine = own_affine(inputs_.weight, inputs_.bias, plan_, row.number);
      row.x = decoded(backend(), row_of(block.x, r));
      row.exact = decoded(backend(), row_of(exact, r));
      if (alone_ != nullptr) row.alone = decoded(backend(), alone_->read(row.number, 1, buffer));
      row.previous_x =
          r > 0 ? rows[static_cast<std::size_t>(r - 1)].x : row_of_x(row.number - 1, buffer);
      if (r > 0) rows[static_cast<std::size_t>(r - 1)].next_x = row.x;
    }
    if (!rows.empty()) rows.back().next_x = row_of_x(rows.back().number + 1, buffer);
    return rows;
  }

  void write_rows(const Attempt& attempt, const std::vector<SampleRow>& rows,
                  std::vector<double>& y) const {
    VariantRow result;
    TileBuffer buffer;
    auto to = y.begin();
    for (const SampleRow& row : rows) {
      if (attempt.is_right) {
        result.y = row.exact;
      } else if (attempt.xhat != nullptr) {
        result.y = decoded(backend(), attempt.xhat->read(row.number, 1, buffer));
        follow_affine(attempt.variant, result.y);
      } else {
        write(attempt.variant, tensor_, row, result);
      }
      to = std::copy(result.y.begin(), result.y.end(), to);
    }
  }

  void follow_affine(const Variant& variant, std::vector<double>& y) const {
    const OutputFormat& output = tensor_.setting->output;
    const Rounding& rounding = variant.rounding;
    for (std::size_t i = 0; i < y.size(); ++i) {
      double product = variant.affine->weight[i] * (rounding.xhat ? output.rounded(y[i]) : y[i]);
      if (rounding.product) product = output.rounded(product);
      y[i] = output.rounded(product + variant.affine->bias[i]);
    }
  }

  const Sample& tensor_;
  const MutantInputs& inputs_;
  const Plan& plan_;
  const CheckRows& x_;
  const CheckRows* alone_;
  std::vector<Attempt>& attempts_;
};

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
    if (!inputs_.x.info().slice && has_own_order() && !inputs_.x.info().split) add_other_axes();
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
  // If weight and bias run along other axes, a row has no order of its own that a kernel could reverse or shift.
  bool has_own_order() const { return plan_.affine.is_plain(); }

  KernelContext context() const {
    return {.setting = setting_,
            .has_weight = !inputs_.weight.empty(),
            .has_bias = !inputs_.bias.empty(),
            .has_residual = inputs_.alone != nullptr,
            .x_dtype = x_dtype(),
            .weight_dtype = inputs_.weight.dtype(),
            .rows = plan_.rows,
            .weight_is_number = !has_own_order() || inputs_.weight.is_uniform(),
            .bias_is_number = !has_own_order() || inputs_.bias.is_uniform(),
            .is_written = true};
  }

  DType x_dtype() const {
    return inputs_.alone != nullptr ? inputs_.alone->info().dtype : plan_.in;
  }

  Comparison comparison(const Variant& variant) const {
    Comparison comparison = begin_comparison(plan_.result(), options_.criteria);
    comparison.actual.dtype = dtype_of(variant, plan_.out);
    return comparison;
  }

  // Axes that differ from those given by axes of one index are the same.
  bool is_same(const Axes& axes) const {
    const auto longer = [&](Axes some) {
      std::erase_if(some, [&](std::size_t axis) { return plan_.shape[axis] == 1; });
      return some;
    };
    return longer(axes) == longer(plan_.axes);
  }

  void add_other_axes() {
    for (const OtherAxes& other : other_axes(plan_.shape, plan_.axes)) {
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

  void observe(std::vector<Attempt>& attempts) const {
    const CheckRows x(inputs_.x, plan_.axes, run_options_.threads);
    std::optional<CheckRows> alone;
    if (inputs_.alone != nullptr) alone.emplace(*inputs_.alone, plan_.axes, run_options_.threads);
    TileBuffer buffer;
    const Backend& backend = setting_.backend;
    const Sample tensor{.setting = &setting_,
                        .x_dtype = x_dtype(),
                        .first_x = decoded(backend, x.read(0, 1, buffer)),
                        .last_x = decoded(backend, x.read(plan_.rows - 1, 1, buffer)),
                        .all_rows = plan_.rows};
    MutantObserver observer(tensor, inputs_, plan_, x, alone ? &*alone : nullptr, attempts);
    RowObserver* const observers[] = {&observer};
    LentSource source(inputs_.x);
    lnorm::run(
        source, plan_,
        [&](const RowsIn& rows, const RowsOut& y, const RowNumbersOut& statistics) {
          backend.layer_norm(rows, y, inputs_.affine, plan_.formula, statistics);
        },
        observers, nullptr, run_options_);
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
