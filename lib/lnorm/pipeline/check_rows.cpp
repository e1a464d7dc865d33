#include "lnorm/pipeline/check_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/row_errors.hpp"
#include "lnorm/measure/row_runs.hpp"
#include "lnorm/measure/where.hpp"
#include "lnorm/pipeline/compared_rows.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

namespace {

Plan plan_of(const TensorInfo& info, const Axes& axes) {
  LayerNormOptions options;
  options.axes = AxisList{{axes.begin(), axes.end()}};
  // Elements go along the axes of weight and bias first, where these are some of a row's (order_elements in pipeline/plan.cpp).
  const auto rest = std::is_sorted_until(axes.begin(), axes.end());
  if (rest != axes.end()) {
    AxisList& affine = options.affine_axes.emplace();
    std::transform(axes.begin(), rest, std::back_inserter(affine.axes), [&](std::size_t axis) {
      return static_cast<std::int64_t>(info.slice ? info.slice->axes[axis - 1] : axis);
    });
  }
  if (info.split) {
    options.axes = Groups{.groups = whole_of(info).shape[*info.split],
                          .channel_axis = static_cast<std::int64_t>(*info.split)};
  }
  return make_plan(info, options, DType::float64, {.whole = true, .ordered = true});
}

RowsIn as_one_row(const RowsIn& rows) {
  return {rows.data, rows.dtype, rows.byte_order, 1, rows.rows * rows.row_length};
}

}  // namespace

CheckRows::CheckRows(TensorSource& source, const Axes& axes, int threads)
    : source_(source), plan_(plan_of(source.info(), axes)) {
  rows_.emplace(source_, plan_.in_view, plan_.route.in, for_each_tile(threads));
}

RowsIn CheckRows::read(std::int64_t first, std::int64_t count, TileBuffer& buffer) const {
  rows_->read({first, count, 0, plan_.row_length}, buffer);
  const TensorInfo& info = rows_->info();
  return {.data = buffer.found,
          .dtype = info.dtype,
          .byte_order = info.byte_order,
          .rows = count,
          .row_length = plan_.row_length,
          .first_row = first};
}

std::vector<double> decoded(const Backend& backend, const RowsIn& row) {
  std::vector<double> numbers;
  const std::size_t count = decode(backend, row, numbers).size();
  numbers.resize(count);
  return numbers;
}

RowsIn row_of_doubles(const std::vector<double>& numbers) {
  return {reinterpret_cast<const std::byte*>(numbers.data()), DType::float64, std::endian::native,
          1, std::ssize(numbers)};
}

std::vector<std::byte> encoded(const std::vector<double>& numbers, DType dtype) {
  std::vector<std::byte> bytes(numbers.size() * item_size(dtype));
  store(numbers.data(), std::ssize(numbers), dtype, bytes.data());
  return bytes;
}

std::vector<double> all_numbers(const Backend& backend, TensorSource& source, int threads) {
  const TensorInfo& info = source.info();
  if (info.shape.empty()) {
    const std::vector<std::byte> number = read_all(source);
    return decoded(backend, {number.data(), info.dtype, info.byte_order, 1, 1});
  }
  const CheckRows rows(source, info.slice ? info.slice->axes : kept_axes(info.shape, {}), threads);
  TileBuffer buffer;
  return decoded(backend, as_one_row(rows.read(0, rows.count(), buffer)));
}

std::vector<double> numbers_of(const AffineTerm& term, std::int64_t count, double otherwise,
                               const AffineLayout& layout, std::int64_t row) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  const std::int64_t first = layout.first(row);
  for (std::int64_t i = 0; i < count; ++i) {
    numbers[static_cast<std::size_t>(i)] = term.number_or(otherwise, layout.number(first, i)).high;
  }
  return numbers;
}

AffineNumbers affine_numbers(const AffineTerm& weight, const AffineTerm& bias, const Plan& plan,
                             std::int64_t row, double scale) {
  AffineNumbers numbers{numbers_of(weight, plan.row_length, 1, plan.affine, row),
                        numbers_of(bias, plan.row_length, 0, plan.affine, row)};
  numbers.scale(scale);
  return numbers;
}

std::shared_ptr<const AffineNumbers> own_affine(const AffineTerm& weight, const AffineTerm& bias,
                                                const Plan& plan, std::int64_t row, double scale) {
  if (plan.affine.rows.empty()) return nullptr;
  return std::make_shared<AffineNumbers>(affine_numbers(weight, bias, plan, row, scale));
}

bool has_more_digits(DType dtype, DType arithmetic) {
  return is_floating(dtype) && arithmetic_of(dtype).unit < arithmetic_of(arithmetic).unit;
}

std::optional<GivenNumbers> given_numbers(const GivenStatistics* given, std::int64_t row) {
  if (given == nullptr) return {};
  const SavedStatistics saved = given->of(row);
  const double rstd = saved.rstd.high;
  return GivenNumbers{saved.mean.high, saved.variance ? saved.variance->high : 1 / (rstd * rstd)};
}

JudgeSetting judge_setting(const Plan& plan, const Backend& backend, const CheckOptions& options,
                           const AffineTerm& weight, const AffineTerm& bias, bool is_sum,
                           bool has_rstd, DType output) {
  Formula formula = plan.formula;
  if (has_rstd) {
    formula.eps = 0;
    formula.eps_on = EpsOn::variance;
  }
  return {.backend = backend,
          .formula = formula,
          .rounding = options.rounding,
          .kernel = {arithmetic_of(options.arithmetic), options.depth,
                     is_sum || has_more_digits(plan.in, options.arithmetic),
                     options.zero_centered_weight,
                     options.zero_centered_weight &&
                         has_more_digits(weight.dtype(), options.arithmetic)},
          .output = OutputFormat(output),
          .saturates = plan.saturates,
          .affine = affine_numbers(weight, bias, plan),
          .normalized_shape = plan.normalized_shape(),
          .row_axes = plan.axes};
}

KernelContext context_of(const JudgeSetting& setting, Quantity of, const AffineTerm& weight,
                         const AffineTerm& bias, const Plan& plan) {
  const bool are_of_row = plan.affine.repeat >= plan.row_length;
  return {.setting = setting,
          .of = of,
          .has_weight = !weight.empty(),
          .has_bias = !bias.empty(),
          .x_dtype = plan.in,
          .weight_dtype = weight.dtype(),
          .rows = plan.rows,
          .weight_is_number = are_of_row || weight.is_uniform(),
          .bias_is_number = are_of_row || bias.is_uniform(),
          .has_own_order = plan.affine.is_plain(),
          .layout = plan.affine};
}

Check begin_check(const TensorInfo& x, const TensorInfo& actual, const Plan& plan,
                  const JudgeSetting& setting) {
  Check check;
  check.x = whole_of(x);
  check.actual = whole_of(actual);
  check.slice = x.slice;
  check.axes = plan.axes;
  for (std::size_t& axis : check.axes) axis = x.slice ? x.slice->axes[axis - 1] : axis;
  check.formula = setting.formula;
  check.arithmetic = setting.kernel.arithmetic.dtype;
  check.row_length = plan.row_length;
  return check;
}

void CauseCounts::merge(const CauseCounts& other) {
  wrong += other.wrong;
  explained.resize(std::max(explained.size(), other.explained.size()));
  for (std::size_t k = 0; k < other.explained.size(); ++k) explained[k] += other.explained[k];
}

void CauseCounts::refute(const CauseCounts& right) {
  for (std::size_t k = 0; k < right.explained.size(); ++k) {
    if (k < explained.size() && 10 * right.explained[k] < 9 * right.wrong) explained[k] = 0;
  }
}

Comparison begin_comparison(const TensorInfo& actual, const Criteria& criteria) {
  Comparison comparison;
  comparison.actual = whole_of(actual);
  comparison.expected = comparison.actual;
  comparison.slice = actual.slice;
  comparison.criteria = criteria;
  comparison.same_shape = true;
  comparison.worst = WorstElements(0, WorstBy::ulp, {});
  return comparison;
}

Comparison compared_part(const Comparison& whole, std::int64_t first_row, const RowsIn& actual,
                         const RowsIn& exact, const RowMask* mask) {
  // No copy of the whole: other parts are appended to it meanwhile.
  Comparison found = begin_comparison(whole.actual, whole.criteria);
  found.slice = whole.slice;
  found.clear(first_row * exact.row_length, 0);
  std::vector<char> kept;
  if (mask != nullptr) {
    kept.resize(static_cast<std::size_t>(exact.rows * exact.row_length));
    for (std::int64_t r = 0; r < exact.rows; ++r) {
      mask->fill(first_row + r, 0, exact.row_length, kept.data() + r * exact.row_length);
    }
  }
  compare_rows(exact, actual, found, kept);
  return found;
}

void compare_rows(const RowsIn& exact, const RowsIn& actual, Comparison& comparison,
                  std::span<const char> kept, bool until_mismatch) {
  const std::int64_t n = exact.row_length;
  std::vector<RowScale> scales;
  for (std::int64_t r = 0; r < exact.rows; ++r) {
    const RowsIn row = row_of(exact, r);
    scales.push_back(
        scale_of_row(greatest_finite({row.data, n, row.dtype, row.byte_order}), row.dtype));
  }
  const RowLayout layout({exact.rows, n}, {1});
  const RowsIn all_exact = as_one_row(exact);
  const RowsIn all_actual = as_one_row(actual);
  const auto chunks = std::make_unique<Chunk[]>(2);
  std::vector<RowRun> runs;
  for (std::int64_t start = 0; start < all_exact.row_length; start += kChunk) {
    const std::int64_t count = load_chunk(all_exact, start, chunks[1]);
    load_chunk(all_actual, start, chunks[0]);
    layout.cut(
        start, count, [&](std::int64_t r) { return scales[static_cast<std::size_t>(r)]; }, runs);
    if (!kept.empty()) leave_out(kept.data() + start, chunks[0], chunks[1], runs);
    compare_elements(chunks[0], chunks[1], runs, 0, comparison);
    if (until_mismatch && comparison.mismatched > 0) return;
  }
}

std::optional<RowStatistics> statistics_of_all(TensorSource& x, const Plan& plan,
                                               const Backend& backend, int threads) {
  using Found = std::vector<RowStatistics>;
  DoubleDouble sum;
  DoubleDouble squares;
  RowStatistics all;
  const auto find = [&](const RowBlock& block) {
    Found rows;
    std::vector<double> storage;
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      rows.push_back(statistics_of(decode(backend, row_of(block.x, r), storage), Formula{}));
    }
    return rows;
  };
  const auto take = [&](const Found& rows) {
    for (const RowStatistics& row : rows) {
      const DoubleDouble n{row.count};
      sum = sum + DoubleDouble{row.mean} * n;
      squares = squares +
                (DoubleDouble{row.mean} * DoubleDouble{row.mean} + DoubleDouble{row.variance}) * n;
      all.mean_abs += row.mean_abs * row.count;
      all.max_abs = std::max(all.max_abs, row.max_abs);
      all.count += row.count;
    }
  };
  LentSource lent(x);
  examine_rows(lent, plan, {}, find, take, {.threads = threads});
  const DoubleDouble n{all.count};
  const DoubleDouble mean = sum / n;
  all.mean = mean.high;
  all.variance = std::max((squares / n - mean * mean).high, 0.0);
  all.mean_abs /= all.count;
  return std::isfinite(all.variance) ? std::optional(all) : std::nullopt;
}

std::vector<std::int64_t> sampled_rows(const JudgedRows& judged, std::int64_t rows,
                                       std::int64_t row_length) {
  constexpr std::int64_t kSpreadRows = 64;
  constexpr std::int64_t kFewestElements = 32768;  // more short rows, up to so many elements
  constexpr std::int64_t kMostElements = 524288;   // fewer long rows, but kAffectedRows at least
  constexpr std::int64_t kAffectedRows = 16;  // so many are affected ones, if there are as many
  constexpr std::int64_t kFewRows = 3;        // however long they are
  const std::int64_t length = std::max<std::int64_t>(1, row_length);
  const std::int64_t by_size = std::max<std::int64_t>(2, kMostTried / length);
  const std::int64_t count =
      std::min({std::max(std::clamp(kMostElements / length, kAffectedRows, kSpreadRows),
                         kFewestElements / length),
                by_size, rows});
  std::set<std::int64_t> numbers;
  for (std::int64_t k = 0; k < count; ++k) numbers.insert(k * rows / count);
  const NumberBits& affected = judged.affected_rows;
  std::int64_t missing =
      std::min(kAffectedRows, std::max(kFewRows, by_size)) -
      std::ranges::count_if(numbers, [&](std::int64_t row) { return affected.contains(row); });
  for (std::int64_t row = affected.next(0); row >= 0 && missing > 0; row = affected.next(row + 1)) {
    missing -= numbers.insert(row).second ? 1 : 0;
  }
  if (judged.tree.ratio > 0) numbers.insert(judged.tree.row);
  return {numbers.begin(), numbers.end()};
}

void settle_rows(
    JudgedRows& judged, std::int64_t row_length, int threads,
    const std::function<void(std::span<const std::int64_t> rows, SettledRows& part)>& some) {
  constexpr std::int64_t kAtOnce = 8;
  const NumberBits doubtful = judged.doubtful_rows;
  // The worst row is one of those that are looked at.
  const std::int64_t worst = judged.tree.row;
  std::int64_t differing = 0;
  const std::int64_t at_once = row_length > kMostTried / kAtOnce ? 1 : kAtOnce;
  std::int64_t next = doubtful.next(0);
  for (bool is_first = true; next >= 0 && differing < kEnoughDiffer; is_first = false) {
    std::vector<std::int64_t> some_rows = doubtful.numbers(next, kEnoughDiffer);
    next = doubtful.next(some_rows.back() + 1);
    std::erase(some_rows, worst);
    if (is_first && doubtful.contains(worst)) some_rows.insert(some_rows.begin(), worst);
    const std::span<const std::int64_t> numbers(some_rows);
    std::vector<SettledRows> parts(
        static_cast<std::size_t>((std::ssize(numbers) + at_once - 1) / at_once));
    in_parallel(threads)(std::ssize(parts), [&](std::int64_t p) {
      const auto begin = static_cast<std::size_t>(p * at_once);
      some(numbers.subspan(begin,
                           std::min(static_cast<std::size_t>(at_once), numbers.size() - begin)),
           parts[static_cast<std::size_t>(p)]);
    });
    differing += std::ssize(numbers);
    for (const SettledRows& part : parts) {
      judged.replace(part.before, part.after);
      differing -= part.after.loop_rows + part.after.unjudged_rows;
    }
  }
}

void describe_places(Check& result, std::int64_t all_rows, const Shape& shape) {
  const JudgedRows& judged = result.judged;
  NumberSet rows{{}, all_rows, result.slice ? result.slice->first : 0, shape};
  // A row has a scale for each of its groups.
  const std::int64_t statistics = std::max<std::int64_t>(1, std::ssize(judged.affected_elements));
  NumberSet columns{{}, result.is_statistic ? statistics : result.row_length, 0};
  if (judged.beyond > 0) rows.numbers = judged.affected_rows;
  for (std::size_t i = 0; i < judged.affected_elements.size(); ++i) {
    if (judged.affected_elements[i] == 0) continue;
    const auto number = static_cast<std::int64_t>(i);
    columns.numbers.add(result.is_statistic ? number
                                            : column_of(result.x.shape, result.axes, number));
  }
  result.rows = affected(rows);
  result.columns = affected(columns);
  // What was never written has its place as well.
  const Diagnosis& diagnosis = result.diagnosis;
  const bool is_formula = diagnosis.explains_all() &&
                          (diagnosis.explanations.front().variant.affine || !result.part.empty());
  const bool is_everywhere = rows.numbers.count() == all_rows;
  const bool is_told =
      is_formula || (diagnosis.explains_all() && result.is_sampled && is_everywhere);
  if (judged.beyond == 0 || is_told) return;
  result.where.insert(result.where.begin(), words_of(judged.beyond, rows, columns));
}

}  // namespace lnorm
