#include "lnorm/diagnosis/variant.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
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

std::span<const double> row_of_statistics(const Variant& variant, const Sample& sample,
                                          const SampleRow& row, std::span<const double> own) {
  switch (variant.of) {
    case Variant::Of::own_row:
      return own;
    case Variant::Of::previous_row:
      return row.previous_x;
    case Variant::Of::first_row:
      return sample.first_x;
    case Variant::Of::last_row:
      return sample.last_x;
  }
  return own;
}

RowStatistics statistics_of(const Variant& variant, std::span<const double> x,
                            const std::optional<GivenNumbers>& given) {
  if (variant.of_first > 0) x = x.first(static_cast<std::size_t>(variant.of_first));
  RowStatistics row =
      statistics_of(x, variant.formula, variant.own_statistics ? std::nullopt : given);
  const auto ddof = static_cast<double>(variant.formula.ddof);
  if (variant.padded_to > 0) {
    const auto n = row.count;
    const auto all = static_cast<double>(variant.padded_to);
    // About the mean with the zeros, which deviate by it.
    const double mean = row.mean * n / all;
    const double shift = row.mean - mean;
    row.variance =
        (row.variance * (n - ddof) + n * shift * shift + (all - n) * mean * mean) / (all - ddof);
    row.mean = mean;
    row.mean_abs *= n / all;
    row.count = all;
  }
  if (variant.squares_about_zero) {
    const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    row.variance = squares / (row.count - ddof);
  }
  if (variant.without) row.mean = row.variance = row.mean_abs = 0;
  return row;
}

VariantLine line_of(const Variant& variant, const KernelModel& kernel, std::span<const double> x,
                    const std::optional<GivenNumbers>& given) {
  RowStatistics row = statistics_of(variant, x, given);
  const Formula& formula = variant.formula;
  StatisticErrors errors = errors_of(row, formula, kernel, Summation::loop);
  if (variant.without) errors.mean = errors.variance = 0;
  double s = divisor_of(row.variance, formula);
  if (variant.divisor == Variant::Divisor::variance) {
    s = row.variance + formula.eps;
    errors.s_low = (std::max(row.variance - errors.variance, 0.0) + formula.eps) *
                   (1 - 4 * kernel.arithmetic.unit);
  } else if (variant.divisor == Variant::Divisor::one) {
    s = errors.s_low = 1;
  } else if (variant.without) {
    errors.s_low = s * (1 - 4 * kernel.arithmetic.unit);
  }
  bool is_bounded = errors.is_in_range && s > 0 && errors.s_low >= s / 3;
  if (variant.rounded_to) is_bounded = keep_statistics_in(*variant.rounded_to, row, s, errors);
  row.mean *= variant.mean_factor;
  errors.mean *= variant.mean_factor;
  return {lnorm::line_of(row, s, errors, kernel), is_bounded};
}

void fill_softmax(std::span<const double> x, const KernelModel& kernel, VariantRow& result) {
  const double max = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += result.y[i] = std::exp(x[i] - max);
  const double unit = kernel.arithmetic.unit;
  const double loss =
      summation_error(Summation::loop, static_cast<double>(x.size()), unit, kernel.depth);
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
  const std::span<const double> of = row_of_statistics(variant, sample, row, x);
  if (x.empty() || of.empty()) return false;
  const auto [line, is_bounded] = variant.has_own_sums()
                                      ? line_by_own_sums(variant, setting, row)
                                      : line_of(variant, setting.kernel, of, row.given);
  result.is_bounded = is_bounded;
  const auto affine = affine_of(variant, row);
  fill_rounded_line(line, variant.rounding, setting.output, x.data(), affine->weight.data(),
                    affine->bias.data(), std::ssize(x), result.y.data(), result.bound.data());
  return true;
}

// The norm of the norm.
bool fill_twice(const Variant& variant, const Sample& sample, const SampleRow& row,
                std::span<const double> x, VariantRow& result) {
  if (!fill_formula(variant, sample, row, x, result)) return false;
  const double most = *std::max_element(result.bound.begin(), result.bound.end());
  const std::vector<double> once = result.y;
  const auto [line, is_bounded] = line_of(variant, sample.setting->kernel, once, row.given);
  const auto affine = affine_of(variant, row);
  fill_line(line, once.data(), affine->weight.data(), affine->bias.data(), std::ssize(once),
            result.y.data(), result.bound.data());
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

bool fill(const Variant& variant, const Sample& sample, const SampleRow& row,
          std::span<const double> x, VariantRow& result) {
  using Result = Variant::Result;
  switch (variant.result) {
    case Result::input:
      std::copy(x.begin(), x.end(), result.y.begin());
      return true;
    case Result::zeros:
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
      return fill_formula(variant, sample, row, x, result);
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
  if (variant.input == Variant::Input::residual_twice) {
    for (std::size_t i = 0; i < row.alone.size(); ++i) {
      buffer.push_back(2 * row.x[i] - row.alone[i]);
    }
    return buffer;
  }
  if (variant.bytes != Variant::Bytes::swapped_input) return row.x;
  buffer = reread(row.alone.empty() ? row.x : row.alone, sample.x_dtype, sample.x_dtype, true);
  for (std::size_t i = 0; i < row.alone.size(); ++i) buffer[i] += row.x[i] - row.alone[i];
  return buffer;
}

// y and bound, the latter without the last rounding. False where the variant has no result for the row.
bool fill_results(const Variant& variant, const Sample& sample, const SampleRow& row,
                  VariantRow& result) {
  result.y.assign(row.x.size(), 0);
  result.bound.assign(row.x.size(), 0);
  result.is_bounded = true;
  std::vector<double> buffer;
  const std::span<const double> x = input_of(variant, sample, row, buffer);
  if (x.empty()) return false;
  const bool is_finite =
      std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); });
  const bool has_statistics =
      variant.result != Variant::Result::input && variant.result != Variant::Result::zeros;
  if (is_finite || !has_statistics) return fill(variant, sample, row, x, result);
  std::fill(result.y.begin(), result.y.end(), kNan);
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
  const DoubleDouble mean = formula.rms ? DoubleDouble{} : sum / DoubleDouble{n};
  DoubleDouble squares;
  for (const double value : x) {
    const DoubleDouble d = DoubleDouble{value} - mean;
    squares = squares + d * d;
  }
  const DoubleDouble variance = squares / DoubleDouble{n - static_cast<double>(formula.ddof)};
  const DoubleDouble eps{formula.eps};
  const DoubleDouble s = formula.eps_on == EpsOn::std ? sqrt(variance) + eps : sqrt(variance + eps);
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

void round_results(const Variant& variant, const Sample& sample, const SampleRow& row,
                   VariantRow& result) {
  const OutputFormat& output = sample.setting->output;
  const bool is_away = variant.result == Variant::Result::away;
  if (!is_away && variant.result != Variant::Result::truncated) {
    for (double& y : result.y) {
      y = sample.setting->saturates && std::fabs(y) > output.greatest()
              ? std::copysign(output.greatest(), y)
              : output.rounded(y);
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

std::shared_ptr<const AffineNumbers> affine_of(const Variant& variant, const SampleRow& row) {
  if (row.affine == nullptr) return variant.affine;
  if (variant.affine_changes.empty()) return row.affine;
  auto numbers = std::make_shared<AffineNumbers>(*row.affine);
  for (const auto& change : variant.affine_changes) change(*numbers);
  return numbers;
}

Variant asked_for(const JudgeSetting& setting) {
  return {.formula = setting.formula,
          .rounding = setting.rounding,
          .affine = std::make_shared<AffineNumbers>(AffineNumbers{setting.weight, setting.bias})};
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
  result.is_reread = variant.rereads_output();
  if (variant.bytes == Variant::Bytes::swapped) {
    result.actual = reread(row.actual, dtype, dtype, true);
  } else if (is_other) {
    result.actual = reread(row.actual, dtype, other, false);
  }
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    double& y = result.y[i];
    double& bound = result.bound[i];
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
  } else {
    fill_results(variant, sample, row, result);
    round_results(variant, sample, row, result);
  }
}

}  // namespace lnorm
