#include "lnorm/diagnosis/gradient_variant.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "lnorm/diagnosis/sum_losses.hpp"

namespace lnorm {

namespace {

// How a row's elements become xhat, and what its sums are divided by.
struct GradientLine {
  RowLine x;
  double inverse_t = 0;        // 1 / t
  double inverse_t_error = 0;  // relative
  double inverse_error = 0;    // of 1 / s, relative
  double freedom = 1;          // f
  bool is_bounded = false;
  bool is_in_range = false;
};

GradientLine line_of(const Variant& variant, const KernelModel& kernel, const SampleRow& row) {
  const double u = kernel.arithmetic.unit;
  const Formula& formula = variant.formula;
  const auto n = static_cast<double>(row.x.size());
  RowStatistics statistics;
  StatisticErrors errors;
  double s = 1;
  const bool has_saved = row.saved && !variant.own_statistics;
  if (has_saved && !row.saved->variance) {
    statistics.mean = formula.has_mean() ? row.saved->mean.high : 0;
    s = 1 / row.saved->rstd.high;
    errors.mean = u * std::fabs(statistics.mean);
    errors.s_low = s * (1 - 2 * u);
    errors.is_bounded = std::isfinite(s) && s > 0;
  } else {
    std::optional<GivenNumbers> given;
    if (has_saved) given = {row.saved->mean.high, row.saved->variance->high};
    const bool may_be_known = row.statistics != nullptr && !given;
    if (const auto* const known = may_be_known ? row.statistics->by(formula) : nullptr) {
      statistics = known->statistics;
      errors = known->errors;
      s = known->s;
    } else {
      statistics = statistics_of(row.x, formula, given);
      errors = errors_of(statistics, formula, kernel, row.losses);
      s = divisor_of(statistics.variance, formula);
    }
  }
  GradientLine line;
  line.is_bounded = errors.is_bounded;
  // What the other root is off by, beside its part in s.
  const bool has_root = formula.eps_on != EpsOn::variance && !has_saved && !variant.backward.t_is_s;
  const double root = has_root ? std::sqrt(statistics.variance) : s;
  const bool is_max = has_root && formula.eps_on == EpsOn::max;
  const bool is_eps =
      is_max && std::sqrt(statistics.variance + errors.variance) * (1 + 4 * u) < formula.eps;
  if (has_root && !is_eps) {
    const double low =
        std::sqrt(std::max(statistics.variance - errors.variance, 0.0)) * (1 - 4 * u);
    line.is_bounded = line.is_bounded && low >= root / 3 && root > 0;
    // So near to eps a kernel may take either for s: 1 / t is that of the root, or 0.
    const bool may_be_eps = is_max && low <= formula.eps;
    line.inverse_t_error = root / low - 1 + (may_be_eps ? 1 : 0);
  }
  if (variant.statistics_in) {
    line.is_bounded = keep_statistics_in(*variant.statistics_in, statistics, s, errors);
  }
  line.is_in_range = (errors.is_in_range && errors.may_divide) || has_saved;
  line.x = lnorm::line_of(statistics, s, errors, kernel);
  // Of a constant row s may be larger, but not smaller.
  line.inverse_error = std::max(s / errors.s_low - 1, errors.s / s);
  line.inverse_t = is_eps ? 0 : 1 / (has_root ? root : s);
  if (!has_root) line.inverse_t_error = line.inverse_error;
  line.freedom = variant.backward.freedom ? static_cast<double>(*variant.backward.freedom)
                                          : formula.freedom(n);
  return line;
}

// The row as the variant reads it: itself, or one in the storage.
const SampleRow& read_by(const Variant& variant, const SampleRow& row,
                         std::optional<SampleRow>& storage) {
  if (!variant.x_in && !variant.backward.dy_in) return row;
  SampleRow& read = storage.emplace(row);
  const auto round_to = [](DType dtype, std::vector<double>& numbers) {
    const OutputFormat format(dtype);
    for (double& number : numbers) number = format.rounded(number);
  };
  if (variant.x_in) {
    round_to(*variant.x_in, read.x);
    read.statistics = nullptr;
  }
  if (variant.backward.dy_in) round_to(*variant.backward.dy_in, read.dy);
  return read;
}

BoundedNumber xhat_of(const Variant& variant, const JudgeSetting& setting, const SampleRow& row,
                      const RowLine& line, std::size_t i) {
  if (variant.backward.xhat != Backward::Xhat::xhat) {
    const double u = setting.kernel.arithmetic.unit;
    const bool is_x = variant.backward.xhat == Backward::Xhat::x;
    const double value = is_x ? row.x[i] : row.x[i] - line.center;
    return {value, is_x ? 0 : line.center_error + u * (std::fabs(value) + std::fabs(row.x[i]))};
  }
  const BoundedNumber xhat = xhat_of(line, row.x[i]);
  if (!variant.backward.xhat_has_affine) return xhat;
  const double weight = affine_of(row, setting).weight[i];
  const double bias = affine_of(row, setting).bias[i];
  const double product = xhat.value * weight;
  return {product + bias, std::fabs(weight) * xhat.error +
                              line.affine_unit * (std::fabs(product) + std::fabs(bias))};
}

void add_last_rounding(const Variant& variant, const OutputFormat& output, RowBounds& result) {
  if (const auto& dtype = variant.backward.result_in) {
    const OutputFormat between(*dtype);
    for (std::size_t i = 0; i < result.y.size(); ++i) {
      result.bound[i] += keep_in(between, result.y[i], result.bound[i]);
    }
  }
  // Numbers here are off as well, by as much as a float64 kernel's.
  const double kernels = output.dtype() == DType::float64 ? 2 : 1;
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    double& bound = result.bound[i];
    // What has overflowed on the way is infinite, and nothing near it.
    if (variant.backward.result_in && std::isinf(result.y[i])) continue;
    bound = kernels * (bound + output.half_ulp(std::fabs(result.y[i]) + bound));
  }
}

}  // namespace

std::vector<SumLosses> losses_of_dx(const KernelContext& context, std::span<const SampleRow> rows) {
  const JudgeSetting& setting = context.setting;
  std::vector<SumLosses> losses = losses_of(setting, rows);
  const Variant variant = asked_for(setting);
  std::vector<std::vector<double>> terms;
  for (const SampleRow& row : rows) {
    std::vector<double> products = xhat_of(variant, context, row);
    std::vector<double>& g = terms.emplace_back();
    for (std::size_t i = 0; i < row.x.size(); ++i) {
      g.push_back(row.dy[i] * affine_of(row, setting).weight[i]);
      products[i] *= g[i];
    }
    terms.push_back(std::move(products));
  }
  const std::vector<std::span<const double>> views(terms.begin(), terms.end());
  const std::vector<double> sums =
      losses_of_sums(views, setting.kernel.arithmetic, setting.summed_shape());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].saved) losses[r] = {};
    losses[r].g = sums[2 * r];
    losses[r].products = sums[2 * r + 1];
  }
  return losses;
}

RowBounds evaluate_dx(const Variant& variant, const KernelContext& context,
                      const SampleRow& as_given) {
  std::optional<SampleRow> storage;
  const SampleRow& row = read_by(variant, as_given, storage);
  const JudgeSetting& setting = context.setting;
  const KernelModel& kernel = setting.kernel;
  const auto affine = affine_of(variant, row);
  const std::vector<double>& weight = affine->weight;
  const auto& [u, t, greatest, dtype] = kernel.arithmetic;
  const GradientLine line = line_of(variant, kernel, row);
  const auto count = row.x.size();
  const auto n = static_cast<double>(count);
  const double g_unit = (variant.backward.has_weight ? 1 : 0) * u + (context.rounds_dy ? u : 0) +
                        (kernel.adds_one ? u : 0);
  double sum = 0;        // of g
  double size = 0;       // of |g|
  double products = 0;   // of g xhat
  double magnitude = 0;  // of |g xhat|
  double carried = 0;    // of |g| times the error of xhat
  const auto summed = static_cast<std::size_t>(variant.backward.summed.value_or(std::ssize(row.x)));
  const Backward& v = variant.backward;
  const bool has_weight = v.has_weight && !v.weight_is_last;
  std::vector<BoundedNumber> xhats(count);
  for (std::size_t i = 0; i < count; ++i) xhats[i] = xhat_of(variant, setting, row, line.x, i);
  for (std::size_t i = 0; i < (v.summed_of_warp ? count : summed); ++i) {
    if (v.summed_of_warp && i % summed >= static_cast<std::size_t>(StatisticOf::kWarp)) continue;
    const double of_mean = row.dy[i] * (has_weight && v.mean_has_weight ? weight[i] : 1);
    const double of_variance = row.dy[i] * (has_weight && v.variance_has_weight ? weight[i] : 1);
    const auto& [xhat, error] = xhats[i];
    sum += of_mean;
    size += std::fabs(of_mean);
    products += of_variance * xhat;
    magnitude += std::fabs(of_variance * xhat);
    carried += std::fabs(of_variance) * error;
  }
  const double tree = summation_error(n, u, kernel.depth);
  const bool is_constant = context.has_given && !variant.own_statistics;
  const double of_mean = !variant.formula.has_mean() || is_constant ? 0 : variant.backward.of_mean;
  const double c1 = of_mean * (sum / n);
  const double c1_error =
      std::fabs(of_mean) * ((tree + kLossFactor * row.losses.g + u + g_unit) * size / n + t);
  const double of_variance = is_constant ? 0 : variant.backward.of_variance;
  const double c2 = of_variance * (products / line.freedom);
  const double c2_error =
      std::fabs(of_variance) *
      (((tree + kLossFactor * row.losses.products + 2 * u + g_unit) * magnitude + carried) /
           line.freedom +
       t);
  RowBounds result;
  result.is_in_range = line.is_in_range && std::max(size, magnitude) < greatest;
  result.is_bounded = line.is_bounded && result.is_in_range;
  result.y.resize(count);
  result.bound.resize(count);
  const double t_high = line.inverse_t * (1 + line.inverse_t_error);
  const double divided = v.factor * std::pow(line.x.inverse, v.divisions - 1);
  for (std::size_t i = 0; i < count; ++i) {
    const double g = variant.backward.of_g * row.dy[i] * (has_weight ? weight[i] : 1);
    const auto& [xhat, error] = xhats[i];
    const double centered = (g - c1) * line.x.inverse;
    const double projected = xhat * c2 * line.inverse_t;
    result.y[i] = centered - projected;
    const bool is_one_factor =
        line.inverse_t == line.x.inverse && line.inverse_t_error == line.inverse_error;
    const double scale = is_one_factor ? std::fabs(result.y[i]) * line.inverse_error
                                       : std::fabs(centered) * line.inverse_error +
                                             std::fabs(projected) * line.inverse_t_error;
    result.bound[i] =
        (c1_error + (2 * u + g_unit) * (std::fabs(g) + std::fabs(c1))) * line.x.inverse_high +
        (std::fabs(xhat) * c2_error + (std::fabs(c2) + c2_error) * error +
         3 * u * std::fabs(xhat * c2)) *
            t_high +
        scale + 2 * u * std::fabs(result.y[i]) + t;
    const double factor = divided * (v.weight_is_last ? weight[i] : 1);
    if (v.divisions > 1) result.bound[i] += std::fabs(result.y[i]) * (line.inverse_error + 2 * u);
    result.y[i] *= factor;
    result.bound[i] *= std::fabs(factor);
    if (v.weight_is_last) result.bound[i] += 2 * u * std::fabs(result.y[i]);
    if (!variant.backward.adds_dy) continue;
    result.y[i] += row.dy[i];
    result.bound[i] += 2 * u * (std::fabs(row.dy[i]) + std::fabs(result.y[i]));
  }
  add_last_rounding(variant, setting.output, result);
  return result;
}

std::vector<double> xhat_of(const Variant& variant, const KernelContext& context,
                            const SampleRow& row) {
  const JudgeSetting& setting = context.setting;
  const GradientLine line = line_of(variant, setting.kernel, row);
  std::vector<double> xhat;
  for (std::size_t i = 0; i < row.x.size(); ++i) {
    xhat.push_back(xhat_of(variant, setting, row, line.x, i).value);
  }
  return xhat;
}

ParameterSums::ParameterSums(const Variant& variant, const KernelContext& context,
                             std::vector<char> wanted)
    : variant_(variant),
      context_(context),
      of_(variant.backward.exchanged == (context.of == Quantity::dweight) ? Quantity::dbias
                                                                          : Quantity::dweight),
      wanted_(std::move(wanted)),
      format_(variant.backward.sums.value_or(DType::float64)),
      sums_(static_cast<std::size_t>(element_count(context.layout.shape))),
      counts_(sums_.size()),
      sizes_(sums_.size()),
      errors_(sums_.size()),
      noise_(variant.backward.is_noise() ? sums_.size() : 0) {
  if (wanted_.empty() || !context.layout.rows.empty()) return;
  for (std::int64_t i = 0; i < context.row_length(); ++i) {
    if (wanted_[static_cast<std::size_t>(context.layout.number(0, i))] != 0) {
      elements_.push_back(static_cast<std::size_t>(i));
    }
  }
}

void ParameterSums::add(const SampleRow& as_given) {
  const Backward& v = variant_.backward;
  if (as_given.number >= context_.rows - v.lost_rows || as_given.number % v.row_step != 0) return;
  std::optional<SampleRow> storage;
  const SampleRow& row = read_by(variant_, as_given, storage);
  const std::int64_t first = context_.layout.first(row.number);
  GradientLine line;
  if (of_ == Quantity::dweight) {
    line = line_of(variant_, context_.setting.kernel, row);
    is_bounded_ = is_bounded_ && line.is_bounded;
    is_in_range_ = is_in_range_ && line.is_in_range;
  }
  const auto add_element = [&](std::size_t i) {
    const auto parameter =
        static_cast<std::size_t>(context_.layout.number(first, static_cast<std::int64_t>(i)));
    if (!wanted_.empty() && wanted_[parameter] == 0) return;
    const double dy =
        row.dy[i] * (v.weight_in_sums ? affine_of(row, context_.setting).weight[i] : 1);
    if (of_ == Quantity::dbias) return add_term(parameter, dy, 0);
    const auto [xhat, error] = v.is_of_x ? BoundedNumber{row.x[i], 0}
                                         : xhat_of(variant_, context_.setting, row, line.x, i);
    const double factor = v.divisions > 0 ? 1 : 1 / line.x.inverse;
    add_term(parameter, dy * factor * xhat, std::fabs(dy) * factor * error);
  };
  if (elements_.empty()) {
    for (std::size_t i = 0; i < row.dy.size(); ++i) add_element(i);
  }
  for (const std::size_t i : elements_) add_element(i);
  const bool has_joint = context_.is_written && v.rounded == Backward::Rounded::partials;
  const bool is_last = row.number + 1 == context_.rows;
  if (has_joint && ((row.number + 1) % kRowsOfPartials == 0 || is_last)) join_partials();
}

void ParameterSums::add_term(std::size_t i, double term, double error) {
  sums_[i] += term;
  counts_[i] += 1;
  sizes_[i] += std::fabs(term);
  errors_[i] += error;
  if (variant_.backward.sums) add_rounding(i, term);
}

void ParameterSums::add_rounding(std::size_t i, double term) {
  const double exact = sums_[i];
  const double half = format_.half_ulp(exact);
  switch (variant_.backward.rounded) {
    case Backward::Rounded::terms:
      noise_[i] += half * half / 3;
      return;
    case Backward::Rounded::partials:
      noise_[i] = std::max(noise_[i], half * half / 3);
      return;
    case Backward::Rounded::rows:
      break;
  }
  // What comes in as another number within errors_ may round to another one.
  sums_[i] = format_.rounded(exact);
  const double ulp = 2 * half;
  const double off = errors_[i] + context_.setting.kernel.arithmetic.unit *
                                      (std::fabs(exact) + 2 * std::fabs(term));
  const double of_other = format_.half_ulp(std::fabs(exact) + off);
  const double beyond = off + std::fabs(exact - sums_[i]) - ulp / 2;
  errors_[i] = of_other > half ? beyond + half + of_other
               : beyond >= 0   ? ulp * (std::floor(beyond / ulp) + 1)
                               : 0;
}

void ParameterSums::join_partials() {
  joined_.resize(sums_.size());
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    joined_[i] = format_.rounded(joined_[i] + format_.rounded(std::exchange(sums_[i], 0)));
  }
}

void ParameterSums::append(const ParameterSums& next) {
  is_bounded_ = is_bounded_ && next.is_bounded_;
  is_in_range_ = is_in_range_ && next.is_in_range_;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] += next.sums_[i];
    counts_[i] += next.counts_[i];
    sizes_[i] += next.sizes_[i];
    errors_[i] += next.errors_[i];
  }
}

RowBounds ParameterSums::finish(std::span<const double> losses) const {
  const KernelModel& kernel = context_.setting.kernel;
  const auto& [u, t, greatest, dtype] = kernel.arithmetic;
  RowBounds result;
  result.y = joined_.empty() ? sums_ : joined_;
  std::vector<double> sizes = sizes_;
  result.bound = errors_;
  std::vector<double> counts = counts_;
  const bool is_of_all = losses.size() < sums_.size() || context_.is_uniform;
  std::vector<double> lost(losses.begin(), losses.end());
  if (is_of_all) lost.assign(sums_.size(), losses.empty() ? 0 : losses.front());
  for (std::size_t i = 0; i < lost.size(); ++i) lost[i] *= kColumnLossFactor * sizes_[i];
  std::vector<double> noise = noise_;
  noise.resize(sums_.size());
  for (std::vector<double>* const numbers :
       {&result.y, &counts, &sizes, &result.bound, &lost, &noise}) {
    if (context_.is_uniform) {
      double all = 0;
      for (const double number : *numbers) all += number;
      *numbers = {all};
    } else {
      *numbers = in_tensor_order(std::move(*numbers), context_.layout);
    }
  }
  for (double& sum : result.y) sum *= variant_.backward.factor;
  const OutputFormat& output = context_.setting.output;
  const double own = (of_ == Quantity::dbias ? 0 : 2 * u) + (context_.rounds_dy ? u : 0);
  result.is_in_range = is_in_range_;
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    const double tree = summation_error(counts[i], u, kernel.depth);
    if (!variant_.backward.sums) result.bound[i] += (tree + own) * sizes[i] + lost[i] + t;
    result.bound[i] *= std::fabs(variant_.backward.factor);
    result.is_in_range = result.is_in_range && !(sizes[i] >= greatest);
  }
  result.is_bounded = is_bounded_ && result.is_in_range;
  if (!variant_.backward.is_noise()) {
    add_last_rounding(variant_, output, result);
    return result;
  }
  for (std::size_t i = 0; i < noise.size(); ++i) {
    const double half = output.half_ulp(result.y[i]);
    // A term that is lost must not be taken for noise.
    const bool is_told = 2 * kNoiseTimes * std::sqrt(noise[i]) < sizes[i] / counts[i];
    result.bound[i] = is_told ? kNoise * std::sqrt(noise[i] + half * half / 3) : 0;
  }
  return result;
}

}  // namespace lnorm
