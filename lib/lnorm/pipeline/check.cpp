#include "lnorm/pipeline/check.hpp"

#include <algorithm>
#include <any>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/pool.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/diagnosis/contents.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "lnorm/kernel/row_errors.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/pipeline/check_rows.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/other_readings.hpp"

namespace lnorm {

namespace {

// What a kernel may save in place of a statistic. s: by the formula; n: of the row.
struct SavedCause {
  std::string_view id;
  std::string_view words;
  bool is_of_mean;
  bool is_of_rstd;
  double (*value)(const RowStatistics& row, double s, const Formula& formula);
};
constexpr SavedCause kSavedCauses[] = {
    {"saved-std", "it is the standard deviation s, not 1 / s", false, true,
     [](const RowStatistics&, double s, const Formula&) { return s; }},
    {"saved-std", "it is the standard deviation, without eps, not 1 / s", false, true,
     [](const RowStatistics& row, double, const Formula&) { return std::sqrt(row.variance); }},
    {"saved-variance", "it is the variance, not 1 / s", false, true,
     [](const RowStatistics& row, double, const Formula&) { return row.variance; }},
    {"saved-variance", "it is the variance plus eps, not 1 / s", false, true,
     [](const RowStatistics&, double s, const Formula&) { return s * s; }},
    {"saved-reciprocal-variance", "it is 1 / (var + eps), without the root", false, true,
     [](const RowStatistics&, double s, const Formula&) { return 1 / (s * s); }},
    {"saved-no-eps", "it is 1 / s without eps", false, true,
     [](const RowStatistics& row, double, const Formula&) { return 1 / std::sqrt(row.variance); }},
    {"saved-ddof-1", "it is 1 / s by the variance divided by n - 1", false, true,
     [](const RowStatistics& row, double, const Formula& formula) {
       return 1 / divisor_of(row.variance * formula.freedom(row.count) / (row.count - 1), formula);
     }},
    {"saved-exchanged", "mean and rstd are exchanged", false, true,
     [](const RowStatistics& row, double, const Formula&) { return row.mean; }},
    {"saved-exchanged", "mean and rstd are exchanged", true, false,
     [](const RowStatistics&, double s, const Formula&) { return 1 / s; }},
    {"saved-float16", "it is rounded to float16", true, false,
     [](const RowStatistics& row, double, const Formula&) {
       return OutputFormat(DType::float16).rounded(row.mean);
     }},
    {"saved-float16", "it is rounded to float16", false, true,
     [](const RowStatistics&, double s, const Formula&) {
       return OutputFormat(DType::float16).rounded(1 / s);
     }},
    {"saved-bfloat16", "it is rounded to bfloat16", true, false,
     [](const RowStatistics& row, double, const Formula&) {
       return OutputFormat(DType::bfloat16).rounded(row.mean);
     }},
    {"saved-bfloat16", "it is rounded to bfloat16", false, true,
     [](const RowStatistics&, double s, const Formula&) {
       return OutputFormat(DType::bfloat16).rounded(1 / s);
     }},
};

// Compares the exact statistics of rows, as the loop brings them, with those that a kernel has saved: mean within E_mean,
// rstd = 1 / s within what E_s makes of it, and half an ulp. The plan wants mean and rstd.
class StatisticObserver final : public RowObserver {
 public:
  // setting: that of the forward pass. choose: which causes are tried; empty: none. Reads all numbers of actual, one a row.
  StatisticObserver(Quantity of, const JudgeSetting& setting, TensorSource& actual,
                    const ChooseKernel& choose, int threads)
      : of_(of),
        setting_(setting),
        actual_(actual.info()),
        choose_(choose),
        numbers_(all_numbers(setting.backend, actual, threads)) {
    setting_.output = OutputFormat(actual_.dtype);
  }

  BlockFindings examine(const RowBlock& block) const override {
    Found all;
    RowJudge judge(setting_);
    const std::span<const double> exact = of_ == Quantity::mean ? block.mean : block.rstd;
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      const double value = exact[static_cast<std::size_t>(r)];
      const double rounded = setting_.output.rounded(value);
      const double actual = numbers_[static_cast<std::size_t>(block.first_row + r)];
      if (actual == rounded) {
        RowJudge::count_exact(1, all.judged);
        continue;
      }
      const std::vector<double> x = decoded(setting_.backend, row_of(block.x, r));
      const RowStatistics row = statistics_of(x, setting_.formula);
      const auto find_bounds = [&](bool is_measured, RowBounds& of_row) {
        SumLosses losses;
        if (is_measured) {
          losses = losses_of({x, row}, setting_.formula, setting_.kernel.arithmetic,
                             setting_.summed_shape());
        }
        of_row = bounds(row, value, losses);
      };
      judge.judge_and_settle_by({block.first_row + r, x, {&actual, 1}, {&rounded, 1}}, find_bounds,
                                all.judged);
      if (!choose_ || !std::isfinite(actual)) continue;
      const RowBounds own = bounds(row, value, {});
      try_causes(row, actual, own.bound.front() / std::fabs(value), all.causes);
    }
    return all;
  }

  void see(const RowBlock&, const BlockFindings& findings) override {
    const auto& found = std::any_cast<const Found&>(findings);
    found_.judged.merge(found.judged);
    found_.causes.merge(found.causes);
  }

  // What was found in the rows of x.
  Check check(const TensorInfo& x, const Plan& plan) const {
    Check result = begin_check(x, actual_, plan, setting_);
    const Shape shape = row_shape(result.x.shape, result.axes);
    result.axes = {};  // of a number a row none is normalized
    result.part = name(of_);
    result.is_statistic = true;
    result.judged = found_.judged;
    result.verdict = verdict_of(found_.judged);
    for (std::size_t k = 0; k < found_.causes.explained.size(); ++k) {
      const SavedCause& found = kSavedCauses[k];
      const bool is_cause = result.verdict == Verdict::differs && found_.causes.is_cause(k);
      if (!is_cause || !choose_(found.id)) continue;
      result.diagnosis.explanations.push_back(
          cause(std::string(found.id), std::string(found.words), kInfinity));
      break;
    }
    describe_places(result, std::ssize(numbers_), shape);
    return result;
  }

 private:
  // What was found in some rows. causes: of the table.
  struct Found {
    JudgedRows judged;
    CauseCounts causes;
  };

  RowBounds bounds(const RowStatistics& row, double exact, const SumLosses& losses) const {
    const StatisticErrors errors = errors_of(row, setting_.formula, setting_.kernel, losses);
    const double error = of_ == Quantity::mean ? errors.mean
                                               : std::max(1 / errors.s_low - exact,
                                                          exact - 1 / (1 / exact + errors.s));
    const double roundings = setting_.output.dtype() == DType::float64 ? 2 : 1;
    return {{exact},
            {error + roundings * setting_.output.half_ulp(std::fabs(exact) + error)},
            of_ == Quantity::mean ? errors.is_in_range : errors.is_bounded,
            of_ == Quantity::mean || errors.may_divide};
  }

  // relative: how far off the statistic may be, in parts of itself.
  void try_causes(const RowStatistics& row, double actual, double relative,
                  CauseCounts& counts) const {
    ++counts.wrong;
    counts.explained.resize(std::size(kSavedCauses));
    const double s = divisor_of(row.variance, setting_.formula);
    for (std::size_t k = 0; k < std::size(kSavedCauses); ++k) {
      const SavedCause& saved = kSavedCauses[k];
      if (!(of_ == Quantity::mean ? saved.is_of_mean : saved.is_of_rstd)) continue;
      const double value = saved.value(row, s, setting_.formula);
      // Of a square twice as far off.
      const double bound = 2 * relative * std::fabs(value) +
                           2 * setting_.kernel.arithmetic.smallest_normal +
                           setting_.output.half_ulp(value);
      counts.explained[k] += std::fabs(actual - value) <= bound ? 1 : 0;
    }
  }

  Quantity of_;
  JudgeSetting setting_;
  TensorInfo actual_;
  const ChooseKernel& choose_;
  std::vector<double> numbers_;
  Found found_;
};

// Elements that are not judged get their exact values.
void put_exact(std::span<const char> kept, std::span<const double> exact,
               std::vector<double>& actual) {
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] == 0) actual[i] = exact[i];
  }
}

class Checker {
 public:
  Checker(const CheckInputs& inputs, const Plan& plan, const Backend& backend,
          const CheckOptions& options, const RunOptions& run_options)
      : inputs_(inputs),
        plan_(plan),
        backend_(backend),
        options_(options),
        run_options_(run_options),
        setting_(judge_setting(plan, backend, options, inputs.weight, inputs.bias, inputs.is_sum,
                               inputs.given != nullptr && inputs.given->variance.empty(),
                               plan.out)),
        actual_(inputs.actual, plan.axes, run_options.threads) {
    if (inputs.mask) mask_.emplace(inputs.mask, inputs.x.info(), plan.axes);
    setting_.output_scale = options.output_scale;
    setting_.affine = affine_numbers(inputs.weight, inputs.bias, plan, 0, options.output_scale);
  }

  Check run() {
    Check result = begin_check(inputs_.x.info(), inputs_.actual.info(), plan_, setting_);
    result.has_mask = mask_.has_value();
    if (options_.criteria) {
      result.comparison =
          std::make_shared<Comparison>(begin_comparison(inputs_.actual.info(), *options_.criteria));
    }
    judge_rows(result);
    if (!options_.depth && inputs_.given == nullptr) settle(result.judged);
    const bool is_exact = result.judged.correctly_rounded == result.judged.elements;
    result.is_too_long = plan_.row_length > kMostTried;
    if (!is_exact && options_.kernels && !result.is_too_long) diagnose(result);
    result.verdict = verdict_of(result.judged);
    describe_places(result, plan_.rows, row_shape(result.x.shape, result.axes));
    return result;
  }

 private:
  class JudgeObserver;

  // Rows that follow each other in memory: all, or the groups of a sample.
  std::int64_t block_rows() const {
    const TensorInfo& info = inputs_.x.info();
    return info.split ? whole_of(info).shape[*info.split] : plan_.rows;
  }

  Transform normalization() const {
    return lnorm::normalization(backend_, inputs_.given, inputs_.affine, plan_.formula);
  }

  std::shared_ptr<const AffineNumbers> affine_of_row(std::int64_t row) const {
    return own_affine(inputs_.weight, inputs_.bias, plan_, row, options_.output_scale);
  }

  // What a row has of its own.
  void set_row(SampleRow& row) const {
    row.given = given_numbers(inputs_.given, row.number);
    if (inputs_.weight.empty() && inputs_.bias.empty()) return;
    row.affine = affine_of_row(row.number);
    if (row.affine == nullptr || !inputs_.x.info().split) return;
    // Channel c of group g has the number of group (g channels + c) mod groups.
    const std::int64_t groups = block_rows();
    const std::int64_t group = row.number % groups;
    const std::int64_t channels = plan_.normalized_shape().front();
    const std::int64_t inner = plan_.row_length / channels;
    AffineNumbers tiled = *row.affine;
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t from = row.number - group + (group * channels + c) % groups;
      const std::int64_t number = plan_.affine.number(plan_.affine.first(from), 0);
      const auto put = [&](const AffineTerm& term, double otherwise, std::vector<double>& numbers) {
        const double one = options_.output_scale * term.number_or(otherwise, number).high;
        std::fill_n(numbers.begin() + c * inner, inner, one);
      };
      put(inputs_.weight, 1, tiled.weight);
      put(inputs_.bias, 0, tiled.bias);
    }
    row.tiled = std::make_shared<AffineNumbers>(std::move(tiled));
  }

  void judge_rows(Check& result);
  void settle(JudgedRows& judged) const;
  void explain_all(const Sample& sample, FormulaFit& fit) const;
  FormulaSums fit_of(const Variant& variant, const Sample& tensor, const CheckRows& all,
                     const RowBlock& block) const;

  const RowMask* mask() const { return mask_ ? &*mask_ : nullptr; }

  // ---- What explains the errors.

  void diagnose(Check& result) {
    Sample sample = this->sample(result.judged);
    if (sample.rows.empty()) return;
    const bool differs = verdict_of(result.judged) == Verdict::differs;
    if (differs && !options_.depth && inputs_.given == nullptr) {
      const std::vector<SumLosses> losses = losses_of(setting_, sample.rows);
      for (std::size_t r = 0; r < losses.size(); ++r) sample.rows[r].losses = losses[r];
    }
    if (differs && !result.slice) {
      sample.of_all = statistics_of_all(inputs_.x, plan_, backend_, run_options_.threads);
    }
    KernelContext context = context_of(setting_, Quantity::y, inputs_.weight, inputs_.bias, plan_);
    context.has_residual = inputs_.alone != nullptr;
    context.has_rounded_sum = inputs_.residual != nullptr;
    context.has_groups = inputs_.x.info().split.has_value();
    context.has_given = inputs_.given != nullptr;
    context.has_given_rstd = inputs_.given != nullptr && inputs_.given->variance.empty();
    result.diagnosis = lnorm::diagnose(sample, context, options_.kernels, differs);
    // Other axes are tried on a whole tensor with one weight a normalized element.
    const bool is_whole =
        !result.slice && plan_.affine.is_plain() && !context.has_groups && inputs_.given == nullptr;
    // The noise of a narrow arithmetic covers another weight as well, and that of its sums other groups. Statistics of all rows
    // are those of other axes, which have an option.
    const auto is_open_beside = [](const Variant& found) {
      return found.arithmetic || found.summed_in || found.variance.row == StatisticOf::Row::all;
    };
    // What was never written is no norm of anything.
    describe_contents(sample, result);
    const bool is_open = !result.diagnosis.explains_all() ||
                         is_open_beside(result.diagnosis.explanations.front().variant);
    if (differs && is_open && inputs_.given == nullptr) {
      explain_otherwise(sample, context, is_whole, result);
    }
    if (result.diagnosis.explanations.empty()) return;
    FormulaFit& best = result.diagnosis.explanations.front();
    if (!best.explains_all || !best.variant.affine) return;
    if (needs_more_than_row(best.variant)) {
      result.is_sampled = true;
      return;
    }
    explain_all(sample, best);
  }

  void explain_otherwise(const Sample& sample, const KernelContext& context, bool is_whole,
                         Check& result) const {
    auto found = explain_by_other_reading(inputs_.x, plan_, sample, context, is_whole,
                                          options_.kernels, run_options_.threads);
    if (!found) return;
    std::vector<FormulaFit>& explanations = result.diagnosis.explanations;
    explanations.insert(explanations.begin(), *std::move(found));
    result.where.clear();
    result.is_sampled = true;
  }

  Sample sample(const JudgedRows& judged) const {
    const CheckRows x(inputs_.x, plan_.axes, run_options_.threads);
    std::optional<CheckRows> alone;
    if (inputs_.alone != nullptr) alone.emplace(*inputs_.alone, plan_.axes, run_options_.threads);
    std::optional<CheckRows> residual;
    if (inputs_.residual != nullptr) {
      residual.emplace(*inputs_.residual, plan_.axes, run_options_.threads);
    }
    Sample sample;
    sample.setting = &setting_;
    sample.x_dtype = plan_.in;
    sample.block_rows = block_rows();
    sample.first_x = neighbor(x, 0);
    sample.last_x = neighbor(x, plan_.rows - 1);
    for (const std::int64_t r : sampled_rows(judged, plan_.rows, plan_.row_length)) {
      SampleRow row = read_row(x, r);
      const bool has_any = row.kept.empty() || std::count(row.kept.begin(), row.kept.end(), 1) > 0;
      if (row.x.empty() || !has_any) continue;
      row.previous_x = neighbor(x, r - 1);
      row.next_x = neighbor(x, r + 1);
      if (alone) row.alone = neighbor(*alone, r);
      if (residual) row.residual = neighbor(*residual, r);
      sample.rows.push_back(std::move(row));
    }
    return sample;
  }

  std::vector<double> numbers(const CheckRows& rows, std::int64_t r) const {
    TileBuffer buffer;
    return decoded(backend_, rows.read(r, 1, buffer));
  }
  // Nothing where there is no such row, or it is not finite.
  std::vector<double> neighbor(const CheckRows& rows, std::int64_t r) const {
    return r >= 0 && r < plan_.rows ? finite_or_none(numbers(rows, r)) : std::vector<double>();
  }

  // x is empty where it is not finite.
  SampleRow read_row(const CheckRows& x, std::int64_t r) const {
    SampleRow row{.number = r,
                  .x = finite_or_none(numbers(x, r)),
                  .actual = numbers(actual_, r),
                  .kept = kept_of(mask(), r, plan_.row_length)};
    set_row(row);
    if (row.x.empty()) return row;
    std::vector<std::byte> exact(static_cast<std::size_t>(plan_.row_length) * item_size(plan_.out));
    TileBuffer buffer;
    normalization()(x.read(r, 1, buffer), {.data = exact.data(), .dtype = plan_.out}, {});
    row.exact =
        decoded(backend_, {exact.data(), plan_.out, std::endian::native, 1, plan_.row_length});
    put_exact(row.kept, row.exact, row.actual);
    return row;
  }

  static std::vector<double> finite_or_none(std::vector<double> row) {
    return are_finite(row) ? std::move(row) : std::vector<double>();
  }

  // ---- Where the errors are.

  // What the affected elements of the sample hold, and what their rows are like.
  void describe_contents(const Sample& sample, Check& result) const {
    if (result.diagnosis.explains_all() || result.judged.beyond == 0) return;
    const Shape kept = row_shape(result.x.shape, result.axes);
    Contents contents = contents_of(sample, [&](std::int64_t row) {
      return row_name(row + (result.slice ? result.slice->first : 0), kept);
    });
    result.where = std::move(contents.lines);
    if (!contents.unwritten || !options_.kernels(contents.unwritten->id())) return;
    std::vector<FormulaFit>& found = result.diagnosis.explanations;
    found.insert(found.begin(), *std::move(contents.unwritten));
  }

  const CheckInputs& inputs_;
  Plan plan_;
  const Backend& backend_;
  const CheckOptions& options_;
  const RunOptions& run_options_;
  JudgeSetting setting_;
  CheckRows actual_;
  std::optional<RowMask> mask_;
};

// Compares the exact rows, as the loop brings them, with those of the kernel.
class Checker::JudgeObserver final : public RowObserver {
 public:
  JudgeObserver(const Checker& checker, Comparison* comparison)
      : checker_(checker), row_length_(checker.plan_.row_length), comparison_(comparison) {}

  BlockFindings examine(const RowBlock& block) const override {
    std::unique_ptr<State> state =
        states_.take([&] { return std::make_unique<State>(checker_.setting_); });
    const RowsIn actual = checker_.actual_.read(block.first_row, block.x.rows, state->buffer);
    const RowsIn exact = output_rows(block);
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      judge(block, r, row_of(actual, r), row_of(exact, r), *state);
    }
    BlockFindings findings;
    if (comparison_ != nullptr) {
      findings = compared_part(*comparison_, block.first_row, actual, exact, checker_.mask());
    }
    states_.give(std::move(state));
    return findings;
  }

  void see(const RowBlock&, const BlockFindings& findings) override {
    if (comparison_ == nullptr) return;
    comparison_->append(std::any_cast<const Comparison&>(findings), 0);
  }

  void finish() override {
    for (const std::unique_ptr<State>& state : states_.idle()) found_.merge(state->found);
  }

  JudgedRows& found() noexcept { return found_; }

 private:
  // What a thread needs, and what it has found.
  struct State {
    explicit State(const JudgeSetting& setting) : judge(setting) {}

    RowJudge judge;
    JudgedRows found;
    TileBuffer buffer;
    std::vector<double> x;
    std::vector<double> actual;
    std::vector<double> exact;
    std::vector<char> kept;
  };

  void judge(const RowBlock& block, std::int64_t r, const RowsIn& actual, const RowsIn& exact,
             State& state) const {
    const std::int64_t number = block.first_row + r;
    std::int64_t left = row_length_;
    if (const RowMask* const mask = checker_.mask()) {
      state.kept.resize(static_cast<std::size_t>(row_length_));
      left = mask->fill(number, 0, row_length_, state.kept.data());
      if (left == 0) return;
    }
    const auto bytes = static_cast<std::size_t>(row_length_) * item_size(exact.dtype);
    // A row of NaN is counted as one that is not finite.
    if (is_native(actual, exact.dtype) && !std::isnan(element_of(exact, 0).high) &&
        std::memcmp(actual.data, exact.data, bytes) == 0) {
      return RowJudge::count_exact(left, state.found);
    }
    const Backend& backend = checker_.backend_;
    JudgedRow row{number, decode(backend, row_of(block.x, r), state.x),
                  decode(backend, actual, state.actual), decode(backend, exact, state.exact)};
    if (left < row_length_) {
      put_exact(state.kept, row.exact, state.actual);
      row.actual = std::span(state.actual).first(row.exact.size());  // the buffer is longer
      row.kept = state.kept;
    }
    const auto affine = checker_.affine_of_row(number);
    row.affine = affine.get();
    row.given = given_numbers(checker_.inputs_.given, number);
    state.judge.judge(row, state.found);
  }

  const Checker& checker_;
  std::int64_t row_length_;
  Comparison* comparison_;
  mutable Pool<State> states_;
  JudgedRows found_;
};

void Checker::judge_rows(Check& result) {
  JudgeObserver judge(*this, result.comparison ? &*result.comparison : nullptr);
  std::vector<std::unique_ptr<StatisticObserver>> statistics;
  std::vector<RowObserver*> observers{&judge};
  const auto add = [&](Quantity of, TensorSource* actual) {
    if (actual == nullptr) return;
    statistics.push_back(std::make_unique<StatisticObserver>(
        of, setting_, *actual, options_.kernels, run_options_.threads));
    observers.push_back(statistics.back().get());
  };
  add(Quantity::mean, inputs_.mean);
  add(Quantity::rstd, inputs_.rstd);
  Plan plan = plan_;
  plan.wants_mean_and_rstd = !statistics.empty();
  LentSource x(inputs_.x);
  lnorm::run(x, plan, normalization(), observers, nullptr, run_options_);
  result.judged = std::move(judge.found());
  for (const auto& one : statistics) {
    result.statistics.push_back(one->check(inputs_.x.info(), plan_));
  }
}

void Checker::settle(JudgedRows& judged) const {
  const CheckRows x(inputs_.x, plan_.axes, run_options_.threads);
  settle_rows(judged, plan_.row_length, run_options_.threads,
              [&](std::span<const std::int64_t> numbers, SettledRows& part) {
                std::vector<SampleRow> rows;
                for (const std::int64_t r : numbers) rows.push_back(read_row(x, r));
                const std::vector<SumLosses> losses = losses_of(setting_, rows);
                RowJudge judge(setting_);
                for (std::size_t r = 0; r < rows.size(); ++r) {
                  judge.settle(rows[r].judged(), losses[r], part.before, part.after);
                }
              });
}

// How many elements the formula explains, in all rows.
void Checker::explain_all(const Sample& sample, FormulaFit& fit) const {
  const CheckRows x(inputs_.x, plan_.axes, run_options_.threads);
  const Sample tensor{.setting = &setting_,
                      .x_dtype = sample.x_dtype,
                      .first_x = sample.first_x,
                      .last_x = sample.last_x,
                      .of_all = sample.of_all,
                      .block_rows = sample.block_rows};
  FormulaSums all;
  examine_rows(
      inputs_.x, plan_, {},
      [&](const RowBlock& block) { return fit_of(fit.variant, tensor, x, block); },
      [&](const FormulaSums& sums) { all.add(sums); }, run_options_);
  fit.take(all);
}

// Takes the bound of a tree of additions, and where that does not hold the measured one.
FormulaSums Checker::fit_of(const Variant& variant, const Sample& tensor, const CheckRows& all,
                            const RowBlock& block) const {
  TileBuffer buffer;
  VariantRow result;
  FormulaSums sums;
  const RowsIn actual = actual_.read(block.first_row, block.x.rows, buffer);
  const auto decode_to = [&](std::vector<double>& numbers, const RowsIn& from) {
    numbers.resize(decode(backend_, from, numbers).size());
  };
  // Each row takes the memory of those before.
  SampleRow row;
  row.x = neighbor(all, block.first_row - 1);
  decode_to(row.next_x, row_of(block.x, 0));
  for (std::int64_t r = 0; r < block.x.rows; ++r) {
    row.number = block.first_row + r;
    row.previous_x.swap(row.x);
    row.x.swap(row.next_x);
    if (r + 1 < block.x.rows) {
      decode_to(row.next_x, row_of(block.x, r + 1));
    } else {
      row.next_x = neighbor(all, row.number + 1);
    }
    decode_to(row.actual, row_of(actual, r));
    row.kept = kept_of(mask(), row.number, block.x.row_length);
    row.losses = {};
    row.parts.clear();
    row.padded.clear();
    set_row(row);
    FormulaSums of_row;
    add_fit(variant, tensor, row, result, of_row);
    if (of_row.elements > 0 && !of_row.explains_all() && !options_.depth) {
      row.losses = losses_of(setting_, {&row, 1}).front();
      of_row = {};
      add_fit(variant, tensor, row, result, of_row);
    }
    sums.add(of_row);
  }
  return sums;
}

// The sums of a block, which are within u |sum| and half an ulp.
JudgedRows judged_sums(const JudgeSetting& setting, const CheckRows& saved, const RowBlock& block) {
  JudgedRows found;
  RowJudge judge(setting);
  TileBuffer buffer;
  const RowsIn actual = saved.read(block.first_row, block.x.rows, buffer);
  for (std::int64_t r = 0; r < block.x.rows; ++r) {
    const std::vector<double> sums = decoded(setting.backend, row_of(block.x, r));
    const std::vector<double> of_kernel = decoded(setting.backend, row_of(actual, r));
    std::vector<double> exact;
    exact.reserve(sums.size());
    for_each_element(row_of(block.x, r), [&](std::int64_t, Number sum) {
      exact.push_back(rounded(DoubleDouble{sum.high, sum.low}, setting.output.dtype()));
    });
    if (of_kernel == exact) {
      RowJudge::count_exact(std::ssize(exact), found);
      continue;
    }
    const auto find_bounds = [&](bool, RowBounds& bounds) {
      bounds = {sums, {}, true};
      for (const double sum : sums) {
        const double rounding = setting.kernel.arithmetic.unit * std::fabs(sum);
        bounds.bound.push_back(rounding + setting.output.half_ulp(std::fabs(sum) + rounding));
      }
    };
    judge.judge_and_settle_by({block.first_row + r, sums, of_kernel, exact}, find_bounds, found);
  }
  return found;
}

}  // namespace

Check check(const CheckInputs& inputs, const Plan& plan, const Backend& backend,
            const CheckOptions& options, const RunOptions& run_options) {
  return Checker(inputs, plan, backend, options, run_options).run();
}

Check check_sum(TensorSource& sum, TensorSource& actual, const Plan& plan, const Backend& backend,
                const CheckOptions& options, const RunOptions& run_options) {
  const JudgeSetting setting =
      judge_setting(plan, backend, options, {}, {}, true, false, actual.info().dtype);
  const CheckRows saved(actual, plan.axes, run_options.threads);
  Check result = begin_check(sum.info(), actual.info(), plan, setting);
  result.part = "sum";
  examine_rows(
      sum, plan, {}, [&](const RowBlock& block) { return judged_sums(setting, saved, block); },
      [&](const JudgedRows& found) { result.judged.merge(found); }, run_options);
  result.verdict = verdict_of(result.judged);
  describe_places(result, plan.rows, row_shape(result.x.shape, result.axes));
  return result;
}

}  // namespace lnorm
