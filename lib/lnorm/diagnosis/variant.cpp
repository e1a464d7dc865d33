#include "lnorm/diagnosis/variant.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/core/formula.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/diagnosis/own_sums.hpp"

namespace lnorm {

namespace {

constexpr double kAny = kInfinity;

// The numbers that the bytes of these are, read as another dtype, or in the other order.
std::vector<double> reread(std::span<const double> numbers, DType dtype, DType as, bool swaps) {
  std::vector<double> result(numbers.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(kChunk) * item_size(dtype));
  const std::endian order = swaps == (std::endian::native == std::endian::little)
                                ? std::endian::big
                                : std::endian::little;
  Chunk chunk;
  for (std::size_t first = 0; first < numbers.size(); first += kChunk) {
    const std::size_t count = std::min<std::size_t>(kChunk, numbers.size() - first);
    store(numbers.data() + first, static_cast<std::int64_t>(count), dtype, bytes.data());
    load(bytes.data(), as, order, static_cast<std::int64_t>(count), chunk);
    std::copy_n(chunk.high, count, result.begin() + static_cast<std::ptrdiff_t>(first));
  }
  return result;
}

std::span<const double> elements_of(StatisticOf::Row row, const Sample& sample,
                                    const SampleRow& sampled) {
  switch (row) {
    case StatisticOf::Row::own:
      return sampled.x;
    case StatisticOf::Row::previous:
      return sampled.previous_x;
    case StatisticOf::Row::next:
      return sampled.next_x;
    case StatisticOf::Row::first:
      return sample.first_x;
    case StatisticOf::Row::last:
      return sample.last_x;
    case StatisticOf::Row::all:
      break;
  }
  return {};
}

// Nothing where there are no such elements. first and block: 0 for all.
std::optional<RowStatistics> part_of(StatisticOf::Row row, std::int64_t first, std::int64_t block,
                                     const Sample& sample, const SampleRow& sampled,
                                     std::span<const double> own) {
  if (row == StatisticOf::Row::all) return sample.of_all;
  std::span<const double> x =
      row == StatisticOf::Row::own ? own : elements_of(row, sample, sampled);
  if (x.empty() || first > std::ssize(x)) return {};
  if (first > 0) x = x.first(static_cast<std::size_t>(first));
  const auto found = [&] {
    std::vector<double> some;
    for (std::int64_t i = 0; block > 0 && i < std::ssize(x); ++i) {
      if (i % block < StatisticOf::kWarp) some.push_back(x[static_cast<std::size_t>(i)]);
    }
    return statistics_of(block > 0 ? some : x, Formula{.eps = 0});
  };
  // What is normalized in place of x has statistics of its own.
  if (row == StatisticOf::Row::own && own.data() != sampled.x.data()) {
    return found();
  }
  for (const SampleRow::Part& part : sampled.parts) {
    if (part.row == row && part.first == first && part.block == block) return part.statistics;
  }
  sampled.parts.push_back({row, first, block, found()});
  return sampled.parts.back().statistics;
}

double sum_about(const RowStatistics& part, double center) {
  const double shift = part.mean - center;
  return part.count * (part.variance + shift * shift);
}

// What sums of the variant lose on the row; nothing where the bound takes none.
SumLosses losses_of(const Variant& variant, const Sample& sample, const SampleRow& row,
                    std::span<const double> x, const RowStatistics& exact,
                    const Arithmetic& arithmetic) {
  const SummedShape shape = sample.setting->summed_shape();
  const auto of = [&](std::span<const double> terms, const RowStatistics& statistics,
                      const SummedShape& axes) {
    return lnorm::losses_of({terms, statistics}, variant.formula, arithmetic, axes);
  };
  if (variant.arithmetic) return of(x, exact, shape);
  const std::int64_t padded_to = std::max(variant.mean.padded_to, variant.variance.padded_to);
  if (row.losses.variance == 0) return row.losses;
  const bool has_other_sums = variant.formula.has_mean() != sample.setting->formula.has_mean();
  const bool has_other_x = x.data() != row.x.data();
  // What is normalized in place of x has losses of its own.
  if (padded_to == 0 && has_other_x) return of(x, exact, shape);
  if (padded_to == 0 && !has_other_sums) return row.losses;
  const bool reads_on = variant.mean.reads_on && !row.next_x.empty();
  const double padding = variant.mean.padding;
  const auto scaled = [&](const SumLosses& losses) -> SumLosses {
    const double scale =
        static_cast<double>(std::max(padded_to, std::ssize(x))) / static_cast<double>(x.size());
    return {scale * std::max(losses.mean, row.losses.mean),
            scale * std::max(losses.variance, row.losses.variance)};
  };
  // Of many zeros each deviates by the mean.
  const auto found = [&] {
    std::vector<double> padded(x.begin(), x.end());
    for (std::int64_t i = std::ssize(x); i < padded_to; ++i) {
      const auto beyond = static_cast<std::size_t>(i - std::ssize(x));
      padded.push_back(reads_on && beyond < row.next_x.size() ? row.next_x[beyond] : padding);
    }
    return of(padded, lnorm::statistics_of(padded, variant.formula),
              padded_to > 0 ? SummedShape() : shape);
  };
  if (has_other_x) return scaled(found());
  Formula formula = variant.formula;
  formula.eps = 0;  // sums do not have it
  formula.eps_on = EpsOn::variance;
  for (const SampleRow::PaddedLosses& one : row.padded) {
    const bool is_same = one.padded_to == padded_to && one.reads_on == reads_on &&
                         one.padding == padding && one.formula == formula;
    if (is_same) return scaled(one.losses);
  }
  row.padded.push_back({padded_to, reads_on, padding, formula, found()});
  return scaled(row.padded.back().losses);
}

KernelModel kernel_of(const Variant& variant, const JudgeSetting& setting) {
  KernelModel kernel = setting.kernel;
  if (variant.input == Variant::Input::unrounded_sum) kernel.rounds_x = true;
  if (variant.arithmetic) {
    kernel.arithmetic = arithmetic_of(*variant.arithmetic);
    kernel.rounds_x = true;
  }
  return kernel;
}

// mean and variance as the variant has them; nothing where there are none. mean: before it is rounded.
std::optional<RowStatistics> statistics_of(const Variant& variant, const Sample& sample,
                                           const SampleRow& sampled, std::span<const double> x,
                                           double& mean) {
  if (sampled.given && !variant.own_statistics) {
    GivenNumbers given = *sampled.given;
    given.variance = variant.variance_factor * std::pow(given.variance, variant.given_power);
    return statistics_of(x, variant.formula, given);
  }
  // What follows the row, where a statistic reads on.
  const auto rest = [&](const StatisticOf& of) {
    return of.reads_on ? part_of(StatisticOf::Row::next, of.padded_to - std::ssize(x), 0, sample,
                                 sampled, x)
                       : std::optional<RowStatistics>();
  };
  const auto part = [&](const StatisticOf& of) -> std::optional<RowStatistics> {
    const bool is_last = sample.block_rows > 0 && (sampled.number + 1) % sample.block_rows == 0;
    if (of.reads_on && is_last) return {};
    if (of.reads_on && !rest(of)) return {};
    return part_of(of.row, of.first, of.block, sample, sampled, x);
  };
  const auto of_mean = part(variant.mean);
  const auto of_variance = part(variant.variance);
  if (!of_mean || !of_variance) return {};
  const auto padding = [](const StatisticOf& of, const RowStatistics& elements) {
    return static_cast<double>(of.padded_to) - elements.count;
  };
  const auto divisor = [](const StatisticOf& of, const RowStatistics& elements) {
    return of.by_padded ? static_cast<double>(of.padded_to) : elements.count;
  };
  RowStatistics row = *of_variance;
  const bool is_about_zero = !variant.formula.has_mean() || variant.squares_about_zero;
  if (!variant.formula.has_mean()) {
    row.mean = 0;
  } else {
    const StatisticOf& of = variant.mean;
    double sum = of_mean->count * of_mean->mean;
    if (const auto more = rest(of)) {
      sum += more->count * more->mean;
    } else if (of.padded_to > 0) {
      sum += padding(of, *of_mean) * of.padding;
    }
    row.mean = mean = sum / divisor(of, *of_mean);
    if (variant.mean_in) row.mean = OutputFormat(*variant.mean_in).rounded(row.mean);
  }
  const StatisticOf& of = variant.variance;
  const bool is_about_own =
      of.row != StatisticOf::Row::own || variant.center == Variant::Center::own;
  const double factor = variant.center == Variant::Center::subtracted ? variant.mean_factor : 1;
  const double center = is_about_zero ? 0 : is_about_own ? of_variance->mean : factor * row.mean;
  double sum = sum_about(*of_variance, center);
  if (of.padded_to > 0 && !of.is_masked) {
    const auto more = rest(of);
    sum += more ? sum_about(*more, center)
                : padding(of, *of_variance) * std::pow(of.padding - center, 2);
  }
  row.variance = variant.variance_factor * std::max(sum, 0.0) /
                 variant.formula.freedom(divisor(of, *of_variance));
  if (variant.without) row.mean = row.variance = row.mean_abs = 0;
  return row;
}

// The variant's line. Nothing where it has none.
std::optional<VariantLine> line_of(const Variant& variant, const Sample& sample,
                                   const SampleRow& row, std::span<const double> x) {
  const auto used = used_statistics(variant, sample, row, x, true);
  if (!used) return {};
  RowStatistics of_line = used->row;
  StatisticErrors errors = used->errors;
  of_line.mean = used->mean;
  errors.mean *= std::fabs(variant.mean_factor);
  return VariantLine{lnorm::line_of(of_line, used->s, errors, kernel_of(variant, *sample.setting)),
                     used->is_bounded};
}

void fill_softmax(std::span<const double> x, const KernelModel& kernel, VariantRow& result) {
  const double max = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += result.y[i] = std::exp(x[i] - max);
  const double unit = kernel.arithmetic.unit;
  // A term goes through so many additions at most.
  const double loss = unit * static_cast<double>(kernel.depth.value_or(std::ssize(x)));
  for (std::size_t i = 0; i < x.size(); ++i) {
    result.y[i] /= sum;
    result.bound[i] = (loss + (8 + 2 * std::fabs(x[i] - max)) * unit) * result.y[i] +
                      kernel.arithmetic.smallest_normal;
  }
}

// The variant's formula for a row of x. Its bound is without the last rounding.
bool fill_formula(const Variant& variant, const Sample& sample, const SampleRow& row,
                  std::span<const double> x, VariantRow& result) {
  const JudgeSetting& setting = *sample.setting;
  if (x.empty()) return false;
  const auto found = variant.has_own_sums() ? line_by_own_sums(variant, setting, row)
                                            : line_of(variant, sample, row, x);
  if (!found) return false;
  const RowLine& line = found->line;
  result.is_bounded = found->is_bounded;
  const auto affine = affine_of(variant, row);
  std::vector<double> again;
  for (std::int64_t i = 0; variant.x_block > 0 && i < std::ssize(x); ++i) {
    again.push_back(x[static_cast<std::size_t>(i % variant.x_block)]);
  }
  fill_rounded_line(line, variant.rounding, setting.steps.value_or(setting.output),
                    again.empty() ? x : again, *affine, result.y, result.bound);
  return true;
}

// Each block of a row by itself.
bool fill_blocks(Variant variant, const Sample& sample, const SampleRow& row,
                 std::span<const double> x, VariantRow& result) {
  const auto length = static_cast<std::size_t>(std::exchange(variant.blocks, 0));
  const auto affine = affine_of(variant, row);
  variant.affine_changes.clear();
  variant.weight_by_row = variant.bias_by_row = variant.is_tiled = false;
  std::vector<double> y;
  std::vector<double> bound;
  bool is_bounded = true;
  for (std::size_t first = 0; first < x.size(); first += length) {
    const std::size_t count = std::min(length, x.size() - first);
    const auto part = [&](const std::vector<double>& numbers) {
      const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(first);
      return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    const SampleRow block{.number = row.number,
                          .x = {x.begin() + static_cast<std::ptrdiff_t>(first),
                                x.begin() + static_cast<std::ptrdiff_t>(first + count)},
                          .actual = {}};
    variant.affine =
        std::make_shared<AffineNumbers>(AffineNumbers{part(affine->weight), part(affine->bias)});
    if (!fill_formula(variant, sample, block, block.x, result)) return false;
    y.insert(y.end(), result.y.begin(), result.y.end());
    bound.insert(bound.end(), result.bound.begin(), result.bound.end());
    is_bounded = is_bounded && result.is_bounded;
  }
  result.y = std::move(y);
  result.bound = std::move(bound);
  result.is_bounded = is_bounded;
  return true;
}

// Adds what the kernel adds to the norm.
void add_terms(const Variant& variant, const Sample& sample, const SampleRow& row,
               VariantRow& result) {
  const double unit = sample.setting->kernel.arithmetic.unit;
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    const double term = variant.adds_residual ? row.x[i] - row.alone[i] : row.x[i];
    result.y[i] += term;
    result.bound[i] += 2 * unit * (std::fabs(result.y[i]) + std::fabs(term));
  }
}

// The norm of the norm.
bool fill_twice(const Variant& variant, const Sample& sample, const SampleRow& row,
                std::span<const double> x, VariantRow& result) {
  if (variant.is_of_xhat) {
    const auto first = line_of(variant, sample, row, x);
    if (!first) return false;
    const AffineNumbers none{std::vector<double>(x.size(), 1), std::vector<double>(x.size(), 0)};
    fill_line(first->line, x, none, result.y, result.bound);
    result.is_bounded = first->is_bounded;
  } else if (!fill_formula(variant, sample, row, x, result)) {
    return false;
  }
  const double most = *std::max_element(result.bound.begin(), result.bound.end());
  const std::vector<double> once = result.y;
  const auto second = line_of(variant, sample, row, once);
  if (!second) return false;
  const auto& [line, is_bounded] = *second;
  const auto affine = affine_of(variant, row);
  fill_line(line, once, *affine, result.y, result.bound);
  for (std::size_t i = 0; i < once.size(); ++i) {
    result.bound[i] += 4 * most * line.inverse_high * std::fabs(affine->weight[i]);
  }
  result.is_bounded = result.is_bounded && is_bounded;
  return true;
}

// Each element is the one before it, or after it; what comes to the end may be anything.
void shift(std::int64_t by, std::vector<double>& y, std::vector<double>& bound) {
  for (std::vector<double>* numbers : {&y, &bound}) {
    const auto middle = by > 0 ? numbers->end() - 1 : numbers->begin() + 1;
    std::rotate(numbers->begin(), middle, numbers->end());
  }
  (by > 0 ? bound.front() : bound.back()) = kAny;
}

void fill_exact(double y, VariantRow& result) {
  std::ranges::fill(result.y, y);
  std::ranges::fill(result.bound, 0.0);
}

// A row that is lost holds what is no number, zeros or the bias.
void fill_lost(const Variant& variant, const OutputFormat& output, const SampleRow& row,
               VariantRow& result) {
  fill_exact(0, result);
  const auto affine = affine_of(variant, row);
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    const double actual = row.actual.empty() ? kNan : row.actual[i];
    const bool is_lost = !std::isfinite(actual) || actual == 0;
    result.y[i] = is_lost ? actual : output.rounded(affine->bias[i]);
  }
  result.is_bounded = false;
}

bool fill(const Variant& variant, const Sample& sample, const SampleRow& row,
          std::span<const double> x, VariantRow& result) {
  using Result = Variant::Result;
  if (variant.overflow != Variant::Overflow::none &&
      overflows(variant.overflow, statistics_of(x, variant.formula), x)) {
    fill_lost(variant, sample.setting->output, row, result);
    return true;
  }
  switch (variant.result) {
    case Result::input:
      fill_exact(0, result);
      std::copy(x.begin(), x.end(), result.y.begin());
      return true;
    case Result::zeros:
      fill_exact(0, result);
      return true;
    case Result::softmax:
      fill_softmax(x, sample.setting->kernel, result);
      return true;
    case Result::twice:
      return fill_twice(variant, sample, row, x, result);
    case Result::previous_row:
      return fill_formula(variant, sample, row, row.previous_x, result);
    case Result::next_row:
      return fill_formula(variant, sample, row, row.next_x, result);
    case Result::previous_element:
    case Result::next_element:
      if (!fill_formula(variant, sample, row, x, result)) return false;
      shift(variant.result == Result::previous_element ? 1 : -1, result.y, result.bound);
      return true;
    case Result::formula:
    case Result::truncated:
    case Result::away:
      return variant.blocks > 0 ? fill_blocks(variant, sample, row, x, result)
                                : fill_formula(variant, sample, row, x, result);
    case Result::unwritten_rows:
    case Result::unwritten_tail:
      return false;
  }
  return false;
}

// What is normalized: x, or something else in its place, in the buffer.
std::span<const double> input_of(const Variant& variant, const Sample& sample, const SampleRow& row,
                                 std::vector<double>& buffer) {
  if (variant.input == Variant::Input::x_alone) return row.alone;
  // row.x is the sum with the residual. Where it is rounded, the row has the residual as well.
  const JudgeSetting& setting = *sample.setting;
  const OutputFormat format =
      variant.x_in ? OutputFormat(*variant.x_in) : setting.steps.value_or(setting.output);
  const auto combined = [&](double of_residual, double of_x) {
    const bool is_rounded = !row.residual.empty();
    for (std::size_t i = 0; i < row.alone.size(); ++i) {
      const double residual = is_rounded ? row.residual[i] : row.x[i] - row.alone[i];
      const double sum = of_residual * residual + of_x * row.alone[i];
      buffer.push_back(is_rounded && of_x != 0 ? format.rounded(sum) : sum);
    }
    return std::span<const double>(buffer);
  };
  if (variant.input == Variant::Input::residual_twice) return combined(2, 1);
  if (variant.input == Variant::Input::residual_alone) return combined(1, 0);
  if (variant.input == Variant::Input::difference) return combined(-1, 1);
  if (variant.input == Variant::Input::rounded_sum || variant.x_in) {
    // The arithmetic has rounded the sum before.
    const OutputFormat sum(setting.kernel.arithmetic.dtype);
    for (const double x : row.x) buffer.push_back(format.rounded(sum.rounded(x)));
    return buffer;
  }
  if (variant.input == Variant::Input::unrounded_sum) {
    for (std::size_t i = 0; i < row.residual.size(); ++i) {
      buffer.push_back(row.alone[i] + row.residual[i]);
    }
    return buffer;
  }
  if (variant.bytes != Variant::Bytes::swapped_input) return row.x;
  buffer = reread(row.alone.empty() ? row.x : row.alone, sample.x_dtype, sample.x_dtype, true);
  for (std::size_t i = 0; i < row.alone.size(); ++i) buffer[i] += row.x[i] - row.alone[i];
  return buffer;
}

// The kernel may round y to the output before the activation, whose exponential is off by some units.
void activate(const Variant& variant, const JudgeSetting& setting, VariantRow& result) {
  constexpr double kUnits = 8;
  const double unit = kUnits * setting.kernel.arithmetic.unit;
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    const double y = std::exchange(result.y[i], variant.activation(result.y[i]));
    const double off = result.bound[i] + setting.output.half_ulp(std::fabs(y) + result.bound[i]);
    result.bound[i] = Variant::kMostSlope * off +
                      unit * std::max(std::fabs(result.y[i]), std::min(std::fabs(y), 1.0));
  }
}

// y and bound, the latter without the last rounding. False where the variant has no result for the row.
bool fill_results(const Variant& variant, const Sample& sample, const SampleRow& row,
                  VariantRow& result) {
  result.is_bounded = true;
  result.y.resize(row.x.size());
  result.bound.resize(row.x.size());
  std::vector<double> buffer;
  const std::span<const double> x = input_of(variant, sample, row, buffer);
  if (x.empty()) return false;
  const bool has_statistics =
      variant.result != Variant::Result::input && variant.result != Variant::Result::zeros;
  if (!has_statistics || are_finite(x)) {
    const bool is_filled = fill(variant, sample, row, x, result);
    if (variant.adds_input || variant.adds_residual) add_terms(variant, sample, row, result);
    if (variant.activation != nullptr) activate(variant, *sample.setting, result);
    return is_filled;
  }
  fill_exact(kNan, result);
  return true;
}

// The dtype that the bits of another one are taken for, of the same width.
DType mistaken_for(DType dtype) {
  switch (item_size(dtype)) {
    case 2:
      return dtype == DType::float16 ? DType::bfloat16 : DType::float16;
    case 4:
      return DType::int32;
    default:
      return DType::int64;
  }
}

// The results of the formula to twice the precision of float64: the last bit of that is known by them.
std::vector<DoubleDouble> precise_results(const Variant& variant, const SampleRow& row) {
  const std::vector<double>& x = row.x;
  const auto affine = affine_of(variant, row);
  const auto n = static_cast<double>(x.size());
  const Formula& formula = variant.formula;
  DoubleDouble sum;
  for (const double value : x) sum = sum + DoubleDouble{value};
  const DoubleDouble mean = formula.has_mean() ? sum / DoubleDouble{n} : DoubleDouble{};
  DoubleDouble squares;
  for (const double value : x) {
    const DoubleDouble d = DoubleDouble{value} - mean;
    squares = squares + d * d;
  }
  const DoubleDouble variance = squares / DoubleDouble{formula.freedom(n)};
  const DoubleDouble s = Divisors(variance, formula).s;
  std::vector<DoubleDouble> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = (DoubleDouble{x[i]} - mean) / s * DoubleDouble{affine->weight[i]} +
           DoubleDouble{affine->bias[i]};
  }
  return y;
}

// y cut off at the last digit of the output, or what follows that, away from zero.
double rounded_toward(DoubleDouble y, bool away, const OutputFormat& output) {
  constexpr double kNoise = 0x1p-90;
  const double high = y.high;
  if (!std::isfinite(high) || high == 0) return high;
  const double low = std::fabs(y.low) < kNoise * std::fabs(high) ? 0 : y.low;
  const bool is_beyond = low != 0 && std::signbit(low) == std::signbit(high);
  const double zero = 0;
  // A number on the way that cuts off as y does.
  const double inside =
      low == 0 || is_beyond ? high : std::nextafter(high, std::copysign(zero, high));
  const double cut = output.truncated(inside);
  if (!away || (cut == inside && !is_beyond && low == 0)) return cut;
  if (output.dtype() == DType::float64) {
    return is_beyond ? std::nextafter(high, std::copysign(INFINITY, high)) : high;
  }
  const double next = cut + std::copysign(2 * output.half_ulp(inside), high);
  return std::fabs(next) > output.greatest() ? std::copysign(INFINITY, high) : next;
}

void saturate(const Variant& variant, const Sample& sample, VariantRow& result) {
  result.saturates = variant.saturates.value_or(sample.setting->saturates);
  if (!result.saturates) return;
  const double greatest = sample.setting->output.greatest();
  for (double& y : result.y) {
    if (std::fabs(y) > greatest) y = std::copysign(greatest, y);
  }
}

void round_results(const Variant& variant, const Sample& sample, const SampleRow& row,
                   VariantRow& result) {
  const OutputFormat& output = sample.setting->output;
  const bool is_away = variant.result == Variant::Result::away;
  if (!is_away && variant.result != Variant::Result::truncated) {
    if (variant.y_in) variant.y_in->round(result.y);
    saturate(variant, sample, result);
    output.round(result.y);
    for (double& y : result.y) {
      if (std::isinf(y) && !output.has_infinity()) y = kNan;
    }
    return;
  }
  const bool is_precise = variant.rounding == Rounding{};
  const auto precise =
      is_precise ? precise_results(variant, row) : std::vector<DoubleDouble>(row.x.size());
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    const DoubleDouble y = is_precise ? precise[i] : DoubleDouble{result.y[i]};
    result.y[i] = rounded_toward(y, is_away, output);
  }
}

}  // namespace

void KnownStatistics::find(std::span<const double> x, const SumLosses& losses,
                           const KernelModel& kernel, std::span<const Formula> formulas) {
  known_.clear();
  const RowStatistics of_norms[] = {statistics_of(x, {}), statistics_of(x, {.rms = true})};
  for (const Formula& formula : formulas) {
    RowStatistics row = of_norms[formula.has_mean() ? 0 : 1];
    row.variance *= row.count / formula.freedom(row.count);
    known_.push_back(
        {formula, row, errors_of(row, formula, kernel, losses), divisor_of(row.variance, formula)});
  }
}

const KnownStatistics::One* KnownStatistics::by(const Formula& formula) const {
  const auto found = std::ranges::find(known_, formula, &One::formula);
  return found != known_.end() ? &*found : nullptr;
}

std::vector<SumLosses> losses_of(const JudgeSetting& setting, std::span<const SampleRow> rows) {
  std::vector<MeasuredRow> sums;
  for (const SampleRow& row : rows) sums.push_back({row.x, statistics_of(row.x, setting.formula)});
  return losses_of(sums, setting.formula, setting.kernel.arithmetic, setting.summed_shape());
}

bool is_lost(const SampleRow& row, const JudgeSetting& setting) {
  bool is_zero = true;
  bool is_bias = true;
  const std::vector<double>& bias = affine_of(row, setting).bias;
  for (std::size_t i = 0; i < row.actual.size(); ++i) {
    if (!row.is_kept(i)) continue;
    if (!std::isfinite(row.actual[i])) return true;
    is_zero = is_zero && row.actual[i] == 0;
    is_bias = is_bias && row.actual[i] == setting.output.rounded(bias[i]);
  }
  return is_zero || is_bias;
}

bool overflows(Variant::Overflow what, const RowStatistics& row, std::span<const double> x) {
  const OutputFormat half(DType::float16);
  switch (what) {
    case Variant::Overflow::none:
      return false;
    case Variant::Overflow::square:
      return std::any_of(x.begin(), x.end(), [&](double value) {
        return half.overflows(std::pow(value - row.mean, 2));
      });
    case Variant::Overflow::sum_of_squares:
      return half.overflows(row.count * row.variance);
    case Variant::Overflow::mean_square:
      return half.overflows(row.variance);
    case Variant::Overflow::sum:
      return half.overflows(row.count * std::fabs(row.mean));
  }
  return false;
}

std::shared_ptr<const AffineNumbers> affine_of(const Variant& variant, const SampleRow& row) {
  if (variant.weight_by_row || variant.bias_by_row) {
    AffineNumbers numbers = *variant.affine;
    const auto at = static_cast<std::size_t>(row.number) % numbers.weight.size();
    if (variant.weight_by_row) std::ranges::fill(numbers.weight, numbers.weight[at]);
    if (variant.bias_by_row) std::ranges::fill(numbers.bias, numbers.bias[at]);
    return std::make_shared<AffineNumbers>(std::move(numbers));
  }
  // Not owned: threads that count one reference wait for each other.
  const auto unowned = [](const std::shared_ptr<const AffineNumbers>& numbers) {
    return std::shared_ptr<const AffineNumbers>(std::shared_ptr<void>(), numbers.get());
  };
  if (row.affine == nullptr) return unowned(variant.affine);
  const auto& own = variant.is_tiled && row.tiled != nullptr ? row.tiled : row.affine;
  if (variant.affine_changes.empty()) return unowned(own);
  auto numbers = std::make_shared<AffineNumbers>(*own);
  for (const auto& change : variant.affine_changes) change(*numbers);
  return numbers;
}

Variant asked_for(const JudgeSetting& setting) {
  return {.formula = setting.formula,
          .rounding = setting.rounding,
          .affine = std::make_shared<AffineNumbers>(setting.affine)};
}

std::optional<UsedStatistics> used_statistics(const Variant& variant, const Sample& sample,
                                              const SampleRow& row, std::span<const double> x,
                                              bool has_errors) {
  const KernelModel kernel = kernel_of(variant, *sample.setting);
  double mean = 0;
  const auto found = statistics_of(variant, sample, row, x, mean);
  if (!found) return {};
  Formula formula = variant.formula;
  if (variant.eps_times_max) formula.eps *= found->max_abs * found->max_abs;
  UsedStatistics used{.row = *found};
  StatisticErrors& errors = used.errors;
  if (has_errors) {
    errors = errors_of(used.row, formula, kernel,
                       losses_of(variant, sample, row, x, used.row, kernel.arithmetic));
  } else if (variant.mean_in || variant.rstd_in || variant.statistics_in) {
    errors = errors_of(used.row, formula, kernel, row.losses);
  }
  if (variant.without) errors.mean = errors.variance = 0;
  const double low = std::max(used.row.variance - errors.variance, 0.0) + formula.eps;
  const double unit = kernel.arithmetic.unit;
  used.s = divisor_of(used.row.variance, formula);
  switch (variant.divisor) {
    case Variant::Divisor::deviation:
      if (variant.without) errors.s_low = used.s * (1 - 4 * unit);
      if (variant.eps_on_both) {
        used.s += formula.eps;
        errors.s_low += formula.eps;
      }
      break;
    case Variant::Divisor::variance:
      used.s = used.row.variance + formula.eps;
      errors.s_low = low * (1 - 4 * unit);
      break;
    case Variant::Divisor::variance_squared:
      used.s = std::pow(used.row.variance + formula.eps, 2);
      errors.s_low = low * low * (1 - 4 * unit);
      break;
    case Variant::Divisor::one:
      used.s = errors.s_low = 1;
      break;
  }
  used.is_bounded = errors.is_in_range && used.s > 0 && errors.s_low >= used.s / 3;
  if (variant.mean_in) errors.mean = keep_in(OutputFormat(*variant.mean_in), mean, errors.mean);
  if (variant.rstd_in) {
    RowStatistics as_it_is = used.row;
    const double of_mean = errors.mean;
    used.is_bounded = keep_statistics_in(*variant.rstd_in, as_it_is, used.s, errors);
    errors.mean = of_mean;
  }
  if (variant.statistics_in) {
    used.is_bounded = keep_statistics_in(*variant.statistics_in, used.row, used.s, errors);
  }
  used.mean = used.row.mean * variant.mean_factor;
  return used;
}

bool evaluate(const Variant& variant, const Sample& sample, const SampleRow& row,
              VariantRow& result) {
  const DType dtype = sample.setting->output.dtype();
  const bool is_other = variant.bytes == Variant::Bytes::other_dtype;
  const DType other = mistaken_for(dtype);
  const OutputFormat output(is_other ? other : dtype);
  if (!fill_results(variant, sample, row, result)) return false;
  result.actual = row.actual;
  result.kept = row.kept;
  if (variant.rereads_output()) {
    result.reread = reread(row.actual, dtype, is_other ? other : dtype, !is_other);
    result.actual = result.reread;
  }
  if (variant.y_in) {
    for (std::size_t i = 0; i < result.y.size(); ++i) {
      result.bound[i] += keep_in(*variant.y_in, result.y[i], result.bound[i]);
      result.y[i] *= variant.y_factor;
      result.bound[i] *= std::fabs(variant.y_factor);
    }
  }
  saturate(variant, sample, result);
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    double& y = result.y[i];
    double& bound = result.bound[i];
    // What has overflowed on the way is infinite, and nothing near it.
    if (variant.y_in && std::isinf(y)) continue;
    const double half = output.half_ulp(std::fabs(y) + (bound == kAny ? 0 : bound));
    // Cut off toward zero, results are half an ulp lower in the mean, and at most half an ulp from there.
    if (variant.result == Variant::Result::truncated) y -= std::copysign(half, y);
    if (variant.result == Variant::Result::away) y += std::copysign(half, y);
    bound += half;
    // The bits of NaN are not known any more.
    if (variant.rereads_output() && std::isnan(row.actual[i])) bound = kAny;
  }
  return true;
}

void write(const Variant& variant, const Sample& sample, const SampleRow& row, VariantRow& result) {
  using Result = Variant::Result;
  const DType dtype = sample.setting->output.dtype();
  const auto last_eighth = [](std::int64_t all) {
    return all - std::max<std::int64_t>(1, all / 8);
  };
  if (variant.bytes == Variant::Bytes::other_dtype) {
    result.y = reread(row.exact, dtype, mistaken_for(dtype), false);
  } else if (variant.bytes == Variant::Bytes::swapped) {
    result.y = reread(row.exact, dtype, dtype, true);
  } else if (variant.result == Result::unwritten_tail) {
    result.y = row.exact;
    std::fill(result.y.begin() + last_eighth(std::ssize(result.y)), result.y.end(), 0.0);
  } else if (variant.result == Result::unwritten_rows) {
    result.y = row.exact;
    if (row.number >= last_eighth(sample.all_rows)) result.y.assign(row.x.size(), 0);
  } else if (variant.arithmetic) {
    result.y = computed_in(*variant.arithmetic, variant.formula, *sample.setting, row);
    round_results(variant, sample, row, result);
  } else {
    fill_results(variant, sample, row, result);
    round_results(variant, sample, row, result);
  }
}

}  // namespace lnorm
