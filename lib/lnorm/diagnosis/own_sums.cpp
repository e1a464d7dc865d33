#include "lnorm/diagnosis/own_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/diagnosis/diagnosis.hpp"
#include "lnorm/diagnosis/totals.hpp"

namespace lnorm {

namespace {

// The dtype of the sums.
DType sums_of(const Variant& variant, const KernelModel& kernel) {
  return variant.summed_in.value_or(kernel.arithmetic.dtype);
}

double pairwise_sum(std::span<const double> terms, const OutputFormat& format) {
  if (terms.size() == 1) return format.rounded(terms[0]);
  const std::size_t half = terms.size() / 2;
  return format.rounded(pairwise_sum(terms.first(half), format) +
                        pairwise_sum(terms.subspan(half), format));
}

// mean and variance as a kernel with pairwise sums has them.
RowStatistics pairwise_statistics(const Variant& variant, const KernelModel& kernel,
                                  std::span<const double> x) {
  const OutputFormat format(sums_of(variant, kernel));
  const OutputFormat arithmetic(kernel.arithmetic.dtype);
  const auto n = static_cast<double>(x.size());
  RowStatistics row = statistics_of(x, variant.formula);
  if (variant.formula.has_mean()) row.mean = arithmetic.rounded(pairwise_sum(x, format) / n);
  std::vector<double> squares(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = variant.one_pass ? x[i] : arithmetic.rounded(x[i] - row.mean);
    squares[i] = d * d;
  }
  const double sum = pairwise_sum(squares, format);
  const double freedom = variant.formula.freedom(n);
  if (!variant.one_pass) {
    row.variance = arithmetic.rounded(sum / freedom);
    return row;
  }
  const double of_mean = arithmetic.rounded(row.mean * row.mean);
  row.variance = arithmetic.rounded(arithmetic.rounded(sum / n) - of_mean) * (n / freedom);
  return row;
}

// What the variant's sums may lose, added up by a tree.
StatisticErrors errors_of(const Variant& variant, const RowStatistics& row,
                          const KernelModel& kernel) {
  KernelModel model = kernel;
  if (variant.summed_in) {
    model.arithmetic = arithmetic_of(*variant.summed_in);
    model.rounds_x = true;
  }
  StatisticErrors errors = lnorm::errors_of(row, variant.formula, model);
  if (!variant.one_pass) return errors;
  const double unit = model.arithmetic.unit;
  const double g = summation_error(row.count, unit, model.depth);
  const double part = variant.formula.freedom(row.count) / row.count;
  errors.variance = ((g + 4 * unit) * (row.variance * part + row.mean * row.mean) +
                     2 * std::fabs(row.mean) * errors.mean) /
                    part;
  carry_to_divisor(row, variant.formula, model.arithmetic, errors);
  return errors;
}

// What a row's output tells of its mean and s, each with three standard errors.
struct Recovered {
  RowStatistics exact;
  double s = 0;  // the exact one
  StatisticErrors errors;
  bool is_known = false;  // and within errors
  bool is_lost = false;   // not finite, as they allow
  double mean = 0;
  double mean_error = 0;
  double divisor = 0;
  double divisor_error = 0;
};

Recovered recover(const Variant& variant, const JudgeSetting& setting, const SampleRow& row) {
  Recovered found;
  found.exact = statistics_of(row.x, variant.formula);
  found.s = divisor_of(found.exact.variance, variant.formula);
  found.errors = errors_of(variant, found.exact, setting.kernel);
  if (variant.one_pass) {
    const SumLosses losses = losses_of({row.x, found.exact}, variant.formula,
                                       setting.kernel.arithmetic, setting.summed_shape(), true);
    found.errors.mean += kLossFactor * losses.mean;
    found.errors.variance += kLossFactor * losses.variance;
    carry_to_divisor(found.exact, variant.formula, setting.kernel.arithmetic, found.errors);
  }
  if (!are_finite(row.actual)) {
    // The variance may come out below 0, and have no root.
    found.is_lost = found.errors.variance >= found.exact.variance + variant.formula.eps;
    return found;
  }
  RowEstimator estimator(setting.kernel, setting.output, variant.rounding);
  const RowEstimate told =
      estimator.estimate(estimated(row, affine_of(row, setting), found.exact.mean, found.s));
  if (!told.is_known || !(told.alpha > 0) || !found.errors.is_in_range) return found;
  found.divisor = found.s / told.alpha;
  found.divisor_error = 3 * found.divisor * told.alpha_error / told.alpha;
  found.mean = found.exact.mean - told.gamma * found.divisor;
  found.mean_error = 3 * told.gamma_error * found.divisor;
  found.is_known =
      std::fabs(found.mean - found.exact.mean) <= found.errors.mean + found.mean_error &&
      found.divisor <= found.s + found.errors.s + found.divisor_error &&
      found.divisor >= found.errors.s_low - found.divisor_error;
  return found;
}

// How many sums are known well enough to tell whether they are numbers of the dtype, and how many of those are. At most half
// are so by accident.
struct OnGrid {
  std::int64_t telling = 0;
  std::int64_t are = 0;

  void take(double sum, double error, const OutputFormat& format) {
    if (!std::isfinite(sum) || !(2 * error < format.half_ulp(sum))) return;
    ++telling;
    are += static_cast<std::int64_t>(std::fabs(sum - format.rounded(sum)) <= error);
  }
};

constexpr std::size_t kFewestToTell = 8;  // rows of different content
constexpr std::int64_t kFewestSums = 16;
constexpr double kLeastReach = 0.05;  // of the bound
constexpr double kLeastShown = 0.3;   // of three standard errors

}  // namespace

EstimatedRow estimated(const SampleRow& row, const AffineNumbers& affine, double mean, double s) {
  return {row.x, row.actual, affine.weight, affine.bias, row.kept, mean, s};
}

std::vector<double> computed_in(DType dtype, const Formula& formula, const JudgeSetting& setting,
                                const SampleRow& row) {
  const OutputFormat format(dtype);
  const auto n = static_cast<double>(row.x.size());
  std::vector<double> y;
  for (const double x : row.x) y.push_back(format.rounded(x));
  const double mean = formula.has_mean() ? format.rounded(pairwise_sum(y, format) / n) : 0;
  std::vector<double> squares;
  for (double& d : y) {
    d = format.rounded(d - mean);
    squares.push_back(format.rounded(d * d));
  }
  const double variance = format.rounded(pairwise_sum(squares, format) / formula.freedom(n));
  const double s = format.rounded(divisor_of(variance, formula));
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double product =
        format.rounded(format.rounded(y[i] / s) * affine_of(row, setting).weight[i]);
    y[i] = format.rounded(product + affine_of(row, setting).bias[i]);
  }
  return y;
}

namespace {

// The sum of squares of a row's errors, less what a line through its elements, times weight, takes of them. What sums lose is such a line.
double off_line(const SampleRow& row, std::span<const double> weight, double mean,
                std::span<const double> off) {
  const auto [pp, pq, qq, op, oq, oo] =
      totals<6>(off.size(), [&](std::size_t i) -> std::array<double, 6> {
        const double p = weight[i];
        const double q = p * (row.x[i] - mean);
        return {p * p, p * q, q * q, off[i] * p, off[i] * q, off[i] * off[i]};
      });
  const double determinant = pp * qq - pq * pq;
  if (!(determinant > 1e-9 * pp * qq)) return oo;
  return std::max(0.0, oo - (op * (op * qq - oq * pq) + oq * (oq * pp - op * pq)) / determinant);
}

// Whether the output is off by what that arithmetic loses on these rows, but for a factor of four, and the rows are lines in it.
bool is_off_as(DType dtype, const Variant& variant, const Sample& sample) {
  constexpr double kOfRow = 100;  // the factor between sums of squares of a row
  // The same of what is beside such a line. All orders of operations lose about as much there: 0.55 of it on a GPU.
  constexpr double kOfNoise = 2;
  const JudgeSetting& setting = *sample.setting;
  KernelModel kernel = setting.kernel;
  kernel.arithmetic = arithmetic_of(dtype);
  RowEstimator estimator(kernel, setting.output, variant.rounding);
  double squares = 0;
  double expected = 0;
  double noise = 0;
  double usual_noise = 0;
  double sum = 0;
  double count = 0;
  std::int64_t differing = 0;  // elements that are not correctly rounded
  std::int64_t usually = 0;    // that many, as a rule
  std::int64_t alike = 0;      // rows that are about as far off as expected
  std::int64_t lines = 0;
  std::int64_t above = 0;  // rows whose 1 / s comes out too large
  for (const SampleRow& row : sample.rows) {
    const RowStatistics exact = statistics_of(row.x, variant.formula, row.given);
    const double s = divisor_of(exact.variance, variant.formula);
    const RowEstimate told =
        estimator.estimate(estimated(row, affine_of(row, setting), exact.mean, s));
    lines += told.residual <= kLine ? 1 : 0;
    above += told.alpha > 1 ? 1 : 0;
    const std::vector<double> computed = computed_in(dtype, variant.formula, setting, row);
    const double squares_before = squares;
    std::vector<double> offs(computed.size(), 0);
    std::vector<double> usual_offs = offs;
    const double expected_before = expected;
    for (std::size_t i = 0; i < computed.size(); ++i) {
      const double off = row.actual[i] - row.exact[i];
      const double usual_off = computed[i] - row.exact[i];
      if (!row.is_kept(i) || !std::isfinite(off) || !std::isfinite(usual_off)) continue;
      const double right = setting.output.rounded(row.exact[i]);
      offs[i] = off;
      usual_offs[i] = usual_off;
      differing += row.actual[i] != right ? 1 : 0;
      usually += setting.output.rounded(computed[i]) != right ? 1 : 0;
      squares += off * off;
      expected += usual_off * usual_off;
      sum += off;
      count += 1;
    }
    const std::vector<double>& weight = affine_of(row, setting).weight;
    noise += off_line(row, weight, exact.mean, offs);
    usual_noise += off_line(row, weight, exact.mean, usual_offs);
    const double of_row = squares - squares_before;
    const double usual_of_row = expected - expected_before;
    alike += of_row * kOfRow >= usual_of_row && of_row <= kOfRow * usual_of_row ? 1 : 0;
  }
  const auto rows = std::ssize(sample.rows);
  // Rounding goes either way; what changes all rows in the same direction is another formula.
  const bool is_either_way = 10 * above >= rows && 10 * above <= 9 * rows;
  const bool is_offset = 4 * sum * sum > count * squares;
  return is_either_way && !is_offset && 4 * differing >= usually && 10 * alike >= 9 * rows &&
         10 * lines >= 9 * rows && squares * 16 >= expected && squares <= 16 * expected &&
         noise <= kOfNoise * usual_noise;
}

}  // namespace

VariantLine line_by_own_sums(const Variant& variant, const JudgeSetting& setting,
                             const SampleRow& row) {
  if (row.actual.empty()) {
    const RowStatistics statistics = pairwise_statistics(variant, setting.kernel, row.x);
    const double s = divisor_of(statistics.variance, variant.formula);
    return {line_of(statistics, s, {.s_low = s}, setting.kernel), false};
  }
  Recovered found = recover(variant, setting, row);
  if (found.is_lost) found.s = kNan;
  if (found.is_known) {
    found.exact.mean = found.mean;
    found.s = found.divisor;
    found.errors.mean = found.mean_error;
    found.errors.s_low = found.divisor - found.divisor_error;
  }
  return {line_of(found.exact, found.s, found.errors, setting.kernel),
          found.is_known || found.errors.is_bounded};
}

namespace {

// Whether a row is not what was asked for.
bool is_wrong(const Sample& sample, const SampleRow& row) {
  VariantRow asked;
  FormulaSums sums;
  add_fit(asked_for(*sample.setting), sample, row, asked, sums);
  return asked.is_bounded && !sums.explains_all();
}

}  // namespace

bool is_evident(const Variant& variant, const Sample& sample) {
  if (variant.arithmetic) {
    const OutputFormat format(*variant.arithmetic);
    const auto is_number = [&](double y) { return !std::isfinite(y) || format.rounded(y) == y; };
    const bool is_its_own = sample.x_dtype == *variant.arithmetic ||
                            (OutputFormat(sample.x_dtype).precision() > format.precision() &&
                             std::ranges::all_of(sample.rows, [&](const SampleRow& row) {
                               return std::ranges::all_of(row.actual, is_number);
                             }));
    return is_its_own && is_off_as(*variant.arithmetic, variant, sample);
  }
  const JudgeSetting& setting = *sample.setting;
  const OutputFormat format(sums_of(variant, setting.kernel));
  std::set<std::vector<double>> contents;
  OnGrid sums;
  double reach = 0;
  double shown = 0;        // what sums may lose of s, in parts of what the output's rounding hides
  std::int64_t above = 0;  // rows whose variance comes out too large
  std::int64_t fits = 0;
  for (const SampleRow& row : sample.rows) {
    const Recovered found = recover(variant, setting, row);
    // What sums lose moves a row as a whole: one that is wrong in an element or two has another fault.
    const bool is_fit = found.is_known || found.is_lost;
    if (!is_fit && is_wrong(sample, row)) return false;
    fits += is_fit ? 1 : 0;
    if (!found.is_known || !contents.insert(row.x).second) continue;
    const double n = found.exact.count;
    const double variance = variance_of(found.divisor, variant.formula);
    reach = std::max(reach, std::fabs(variance - found.exact.variance) / found.errors.variance);
    above += static_cast<std::int64_t>(variance > found.exact.variance);
    shown = std::max(shown, found.errors.s / found.divisor_error);
    // The arithmetic rounds what it makes of the sums.
    const double unit = 4 * setting.kernel.arithmetic.unit;
    if (variant.formula.has_mean()) {
      sums.take(n * found.mean, n * (found.mean_error + unit * std::fabs(found.mean)), format);
    }
    const double freedom = variant.formula.freedom(n);
    sums.take(freedom * variance,
              freedom * 2 * (found.divisor * found.divisor_error + unit * variance), format);
  }
  if (contents.size() < kFewestToTell) return false;
  // Rounding goes either way; what changes all rows in the same direction is another formula.
  const auto rows = static_cast<std::int64_t>(contents.size());
  const bool is_either_way = 5 * above > rows && 5 * above < 4 * rows;
  // Sums lose far less than their bound, as a rule. Rows that lose next to nothing speak against one pass.
  if (variant.one_pass) {
    return is_either_way && reach >= kLeastReach / 50 && shown >= kLeastShown &&
           10 * fits >= 9 * std::ssize(sample.rows);
  }
  if (sums.telling >= kFewestSums) return 10 * sums.are > 9 * sums.telling;
  if (sums.telling > 0 && 4 * sums.are <= 3 * sums.telling) return false;
  // Sums in the other dtype of 16 bits than x's take better evidence.
  const bool is_of_other = item_size(sample.x_dtype) == 2 && item_size(format.dtype()) == 2 &&
                           sample.x_dtype != format.dtype();
  return is_either_way && !is_of_other && reach >= kLeastReach;
}

}  // namespace lnorm
