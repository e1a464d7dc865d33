#include "lnorm/diagnosis/own_sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>

namespace lnorm {

namespace {

DType dtype_of(const Arithmetic& arithmetic) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32}) {
    if (arithmetic_of(dtype).unit == arithmetic.unit) return dtype;
  }
  return DType::float64;
}

// The dtype of the sums.
DType sums_of(const Variant& variant, const KernelModel& kernel) {
  return variant.summed_in.value_or(dtype_of(kernel.arithmetic));
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
  const OutputFormat arithmetic(dtype_of(kernel.arithmetic));
  const auto n = static_cast<double>(x.size());
  RowStatistics row = statistics_of(x, variant.formula);
  if (!variant.formula.rms) row.mean = arithmetic.rounded(pairwise_sum(x, format) / n);
  std::vector<double> squares(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = variant.one_pass ? x[i] : arithmetic.rounded(x[i] - row.mean);
    squares[i] = d * d;
  }
  const double sum = pairwise_sum(squares, format);
  const double freedom = n - static_cast<double>(variant.formula.ddof);
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
  StatisticErrors errors = lnorm::errors_of(row, variant.formula, model, Summation::tree);
  if (!variant.one_pass) return errors;
  const double unit = model.arithmetic.unit;
  const double g = summation_error(Summation::tree, row.count, unit, model.depth);
  const double part = (row.count - static_cast<double>(variant.formula.ddof)) / row.count;
  errors.variance = ((g + 4 * unit) * (row.variance * part + row.mean * row.mean) +
                     2 * std::fabs(row.mean) * errors.mean) /
                    part;
  carry_to_divisor(row, variant.formula, unit, errors);
  return errors;
}

// What a row's output tells of its mean and s, each with three standard errors.
struct Recovered {
  RowStatistics exact;
  double s = 0;  // the exact one
  StatisticErrors errors;
  bool is_known = false;  // and within errors
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
  const StatisticErrors none{.s_low = found.s};
  std::vector<double> y(row.x.size());
  std::vector<double> bound(row.x.size());
  fill_rounded_line(line_of(found.exact, found.s, none, setting.kernel), variant.rounding,
                    setting.output, row.x.data(), weight_of(row, setting).data(),
                    bias_of(row, setting).data(), std::ssize(row.x), y.data(), bound.data());
  const RowFit fit = fit_errors(row.x, weight_of(row, setting), found.exact.mean, found.s,
                                row.actual, y, row.kept);
  if (!fit.is_known || !(fit.scale > -1) || !found.errors.is_bounded) return found;
  double shift_squares = 0;
  double scale_squares = 0;
  for (std::size_t i = 0; i < row.x.size(); ++i) {
    if (!row.is_kept(i)) continue;
    const double w = weight_of(row, setting)[i];
    const double p = w * (row.x[i] - found.exact.mean) / found.s;
    const double own = bound[i] + setting.output.half_ulp(y[i]);
    shift_squares += std::pow(fit.shift_by(w, p) * own, 2);
    scale_squares += std::pow(fit.scale_by(w, p) * own, 2);
  }
  // The mean square of an error that may be anywhere within own is a third of own's square.
  const double shift_error = std::sqrt(3 * shift_squares);
  const double scale_error = std::sqrt(3 * scale_squares);
  found.divisor = found.s / (1 + fit.scale);
  found.divisor_error = found.divisor * scale_error;
  found.mean = found.exact.mean - fit.shift * found.divisor;
  found.mean_error = shift_error * found.divisor;
  found.is_known =
      std::fabs(found.mean - found.exact.mean) <= found.errors.mean + found.mean_error &&
      found.divisor <= found.s + found.errors.s + found.divisor_error &&
      found.divisor >= found.errors.s_low - found.divisor_error;
  return found;
}

double variance_of(double divisor, const Formula& formula) {
  return formula.eps_on == EpsOn::std ? std::pow(divisor - formula.eps, 2)
                                      : divisor * divisor - formula.eps;
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

}  // namespace

VariantLine line_by_own_sums(const Variant& variant, const JudgeSetting& setting,
                             const SampleRow& row) {
  if (row.actual.empty()) {
    const RowStatistics statistics = pairwise_statistics(variant, setting.kernel, row.x);
    const double s = divisor_of(statistics.variance, variant.formula);
    return {line_of(statistics, s, {.s_low = s}, setting.kernel), false};
  }
  Recovered found = recover(variant, setting, row);
  if (found.is_known) {
    found.exact.mean = found.mean;
    found.s = found.divisor;
    found.errors.mean = found.mean_error;
    found.errors.s_low = found.divisor - found.divisor_error;
  }
  return {line_of(found.exact, found.s, found.errors, setting.kernel), found.errors.is_bounded};
}

bool is_evident(const Variant& variant, const Sample& sample) {
  const JudgeSetting& setting = *sample.setting;
  const OutputFormat format(sums_of(variant, setting.kernel));
  std::set<std::vector<double>> contents;
  OnGrid sums;
  double reach = 0;
  std::int64_t above = 0;  // rows whose variance comes out too large
  for (const SampleRow& row : sample.rows) {
    const Recovered found = recover(variant, setting, row);
    if (!found.is_known || !contents.insert(row.x).second) continue;
    const double n = found.exact.count;
    const double variance = variance_of(found.divisor, variant.formula);
    reach = std::max(reach, std::fabs(variance - found.exact.variance) / found.errors.variance);
    above += static_cast<std::int64_t>(variance > found.exact.variance);
    // The arithmetic rounds what it makes of the sums.
    const double unit = 4 * setting.kernel.arithmetic.unit;
    if (!variant.formula.rms) {
      sums.take(n * found.mean, n * (found.mean_error + unit * std::fabs(found.mean)), format);
    }
    const double freedom = n - static_cast<double>(variant.formula.ddof);
    sums.take(freedom * variance,
              freedom * 2 * (found.divisor * found.divisor_error + unit * variance), format);
  }
  if (contents.size() < kFewestToTell) return false;
  if (!variant.one_pass && sums.telling >= kFewestSums) return 10 * sums.are > 9 * sums.telling;
  // Rounding goes either way; what changes all rows in the same direction is another formula.
  const auto rows = static_cast<std::int64_t>(contents.size());
  return reach >= kLeastReach && 5 * above > rows && 5 * above < 4 * rows;
}

}  // namespace lnorm
