#include "lnorm/pipeline/quantized_rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// How a row of the table changes the rule, and where it is another one than was asked for. parameter: what the row's {} stands for.
struct Change {
  std::string_view id;
  bool (*applies)(const QuantizedContext& asked, double parameter);
  void (*change)(const RowOfKernel& row, double parameter, QuantizedRule& rule);
  std::span<const double> parameters = {};
  std::optional<DType> dtype = {};  // what {} stands for, if it is no number
};

constexpr double kQmax[] = {127, 128, 224, 240, 448, 57344};
constexpr double kGroups[] = {16, 32, 64, 128, 256, 512};
constexpr double kEnds[] = {127, 224, 240};

bool always(const QuantizedContext&, double) { return true; }
bool computes(const QuantizedContext& asked, double) { return !asked.is_given; }
bool saves(const QuantizedContext& asked, double) {
  return asked.has_saved_scales || (asked.is_written && !asked.is_given);
}
bool is_int8(const QuantizedContext& asked, double) {
  return asked.quantization.dtype == DType::int8;
}
// Whether y may be beyond an end of q: a scale that was made for y leaves nothing there.
bool saturates(const QuantizedContext& asked, double end) {
  const Quantization& by = asked.quantization;
  return asked.is_given || asked.has_saved_scales || by.qmax > end ||
         std::min(by.scale_max, by.amax_max) < kInfinity;
}

template <QuantizedRule::Last last>
void change_last(const RowOfKernel&, double, QuantizedRule& rule) {
  rule.last = last;
}

template <DType dtype>
constexpr Change kRoundedY{
    "rounded-y",
    [](const QuantizedContext& asked, double) {
      const DType of_x = asked.quantization.rounding;
      return !asked.quantization.rounds_y && (item_size(of_x) > 2 || of_x == dtype);
    },
    [](const RowOfKernel&, double, QuantizedRule& rule) {
      const OutputFormat format(dtype);
      auto rounded = std::make_unique<RowBounds>(
          RowBounds{{rule.y.begin(), rule.y.end()}, {rule.error.begin(), rule.error.end()}});
      for (std::size_t i = 0; i < rounded->y.size(); ++i) {
        rounded->bound[i] = round_in(format, rounded->y[i], rounded->bound[i]);
      }
      rule.y = rule.amax_of = rounded->y;
      rule.error = rounded->bound;
      rule.kept = std::move(rounded);
    },
    {},
    dtype};

constexpr Change kChanges[] = {
    {"scale-reciprocal", saves,
     [](const RowOfKernel&, double, QuantizedRule& rule) { rule.multiplies = true; }},
    {"scale-transposed",
     [](const QuantizedContext& asked, double) {
       const std::int64_t group = asked.quantization.group;
       return asked.has_saved_scales && asked.shared_scales == 0 && group != 0 &&
              group < asked.row_length && asked.rows > 1;
     },
     [](const RowOfKernel&, double, QuantizedRule& rule) { rule.is_transposed = true; }},
    {"scale-of-tensor",
     [](const QuantizedContext& asked, double) {
       const bool is_row = asked.rows == 1 && asked.quantization.group == 0;
       return computes(asked, 0) && asked.shared_scales != 1 && !is_row;
     },
     [](const RowOfKernel& row, double, QuantizedRule& rule) { rule.scale = row.scale_of_tensor; }},
    {"scale-of-row",
     [](const QuantizedContext& asked, double) {
       const bool is_of_rows = computes(asked, 0) && asked.shared_scales > 0 && asked.rows > 1 &&
                               asked.shared_scales < asked.rows;
       return is_of_rows ||
              (asked.quantization.group != 0 && asked.quantization.group < asked.row_length);
     },
     [](const RowOfKernel& row, double, QuantizedRule& rule) { rule.group = std::ssize(row.x); }},
    {"group-{}",
     [](const QuantizedContext& asked, double size) {
       const std::int64_t group = asked.quantization.group;
       const auto other = static_cast<std::int64_t>(size);
       const bool is_larger = group != 0 && group < other && other % group == 0;
       // Scales that are saved would be more than were asked for.
       const std::int64_t own = group != 0 ? group : asked.row_length;
       const bool is_smaller =
           computes(asked, 0) && !asked.has_saved_scales && other < own && own % other == 0;
       return (is_larger || is_smaller) && asked.row_length % other == 0;
     },
     [](const RowOfKernel&, double size, QuantizedRule& rule) {
       rule.group = static_cast<std::int64_t>(size);
     },
     kGroups},
    {"qmax-{}",
     [](const QuantizedContext& asked, double qmax) {
       const bool is_of_int8 = qmax <= 128;
       return computes(asked, 0) && asked.quantization.qmax != qmax &&
              is_int8(asked, 0) == is_of_int8;
     },
     [](const RowOfKernel&, double qmax, QuantizedRule& rule) { rule.quantization.qmax = qmax; },
     kQmax},
    {"no-scale-max",
     [](const QuantizedContext& asked, double) {
       return std::min(asked.quantization.scale_max, asked.quantization.amax_max) < kInfinity;
     },
     [](const RowOfKernel&, double, QuantizedRule& rule) {
       rule.quantization.scale_max = rule.quantization.amax_max = kInfinity;
     }},
    {"no-scale-min",
     [](const QuantizedContext& asked, double) {
       return std::max(asked.quantization.scale_min, asked.quantization.amax_min) > 0;
     },
     [](const RowOfKernel&, double, QuantizedRule& rule) {
       rule.quantization.scale_min = rule.quantization.amax_min = 0;
     }},
    {"scale-not-power-of-two",
     [](const QuantizedContext& asked, double) { return asked.quantization.power_of_two; },
     [](const RowOfKernel&, double, QuantizedRule& rule) {
       rule.quantization.power_of_two = false;
       rule.quantization.scale_dtype = DType::float32;
     }},
    {"scale-power-of-two-down",
     [](const QuantizedContext& asked, double) { return asked.quantization.power_of_two; },
     [](const RowOfKernel&, double, QuantizedRule& rule) {
       rule.quantization.power_of_two = false;
       rule.quantization.scale_dtype = DType::float32;
       rule.rounds_down = true;
     }},
    {"amax-of-x", computes,
     [](const RowOfKernel& row, double, QuantizedRule& rule) { rule.amax_of = row.x; }},
    {"amax-of-xhat",
     [](const QuantizedContext& asked, double) {
       return computes(asked, 0) && (asked.has_weight || asked.has_bias);
     },
     [](const RowOfKernel& row, double, QuantizedRule& rule) { rule.amax_of = row.xhat.y; }},
    {"amax-before-bias",
     [](const QuantizedContext& asked, double) { return computes(asked, 0) && asked.has_bias; },
     [](const RowOfKernel& row, double, QuantizedRule& rule) { rule.amax_of = row.before_bias.y; }},
    // It shows where the largest |y| is negative: inputs of mutants need not have that.
    {"amax-without-abs",
     [](const QuantizedContext& asked, double) { return computes(asked, 0) && !asked.is_written; },
     [](const RowOfKernel&, double, QuantizedRule& rule) {
       auto positive = std::make_unique<RowBounds>();
       for (const double y : rule.y) positive->y.push_back(y < 0 ? 0 : y);
       rule.amax_of = positive->y;
       rule.kept = std::move(positive);
     }},
    {"amax-without-residual",
     [](const QuantizedContext& asked, double parameter) {
       return computes(asked, parameter) && asked.has_residual;
     },
     [](const RowOfKernel& row, double, QuantizedRule& rule) { rule.amax_of = row.alone.y; }},
    kRoundedY<DType::float16>,
    kRoundedY<DType::bfloat16>,
    {"unrounded-y",
     [](const QuantizedContext& asked, double) { return asked.quantization.rounds_y; },
     [](const RowOfKernel& row, double, QuantizedRule& rule) {
       rule.y = rule.amax_of = row.unrounded.y;
       rule.error = row.unrounded.bound;
     }},
    // check judges no row whose numbers are not finite.
    {"drops-nan",
     [](const QuantizedContext& asked, double) { return asked.has_nan && computes(asked, 0); },
     [](const RowOfKernel&, double, QuantizedRule& rule) { rule.drops_nan = true; }},
    {"no-scale", always,
     [](const RowOfKernel&, double, QuantizedRule& rule) { rule.has_no_scale = true; }},
    {"zeros", always,
     [](const RowOfKernel&, double, QuantizedRule& rule) {
       rule.last = QuantizedRule::Last::zero;
       rule.has_no_scale = true;  // of zeros it may be any
     }},
    // It shows in exact ties: inputs of mutants need not have any.
    {"half-away", [](const QuantizedContext& asked, double) { return !asked.is_written; },
     change_last<QuantizedRule::Last::half_away>},
    {"truncated", always, change_last<QuantizedRule::Last::truncated>},
    {"away", always, change_last<QuantizedRule::Last::away>},
    {"wraps",
     [](const QuantizedContext& asked, double) {
       return is_int8(asked, 0) && saturates(asked, 127);
     },
     change_last<QuantizedRule::Last::wraps>},
    {"not-saturated",
     [](const QuantizedContext& asked, double) {
       return !is_int8(asked, 0) &&
              saturates(asked, float_format(asked.quantization.dtype).greatest);
     },
     change_last<QuantizedRule::Last::unsaturated>},
    {"saturates-at-{}",
     [](const QuantizedContext& asked, double end) {
       const DType dtype = asked.quantization.dtype;
       const double early = dtype == DType::int8              ? 127
                            : dtype == DType::float8_e4m3fn   ? 240
                            : dtype == DType::float8_e4m3fnuz ? 224
                                                              : 0;
       return end == early && saturates(asked, end);
     },
     [](const RowOfKernel&, double end, QuantizedRule& rule) { rule.end = end; }, kEnds},
    {"zero-point", is_int8,
     [](const RowOfKernel& row, double, QuantizedRule& rule) {
       rule.offset = row.offset != 0 ? row.offset : kNan;  // a right row has none
     }},
};

std::string with_parameter(std::string_view text, const Change& change, double parameter) {
  std::string all(text);
  const std::size_t at = all.find("{}");
  if (at == all.npos) return all;
  return all.replace(at, 2, change.dtype ? std::string(name(*change.dtype)) : concat(parameter));
}

}  // namespace

ScaleInterval QuantizedGrid::rounds_to(double q) const {
  const double size = std::fabs(q);
  const bool is_last = size >= (is_int8_ && q > 0 ? 127 : format_.greatest());
  return {size == 0 ? 0 : size - format_.half_ulp(std::nextafter(size, 0)),
          is_last ? kInfinity : size + format_.half_ulp(size)};
}

double QuantizedGrid::saturated(double v) const {
  if (std::isnan(v)) return is_int8_ ? 0 : v;
  return std::clamp(v, -format_.greatest(), is_int8_ ? 127 : format_.greatest());
}

double QuantizedGrid::half_away(double v) const {
  const double below = format_.truncated(v);
  const bool is_tie = std::fabs(v - below) == format_.half_ulp(v);
  return is_tie && std::isfinite(v) ? away(v) : rounded(v);
}

double QuantizedGrid::away(double v) const {
  const double below = format_.truncated(v);
  if (below == v || !std::isfinite(v)) return saturated(v);
  return saturated(below + std::copysign(2 * format_.half_ulp(v), v));
}

std::span<const double> QuantizedRule::part(std::span<const double> all, std::int64_t first,
                                            std::int64_t asked) const {
  const std::int64_t own = group > 0 ? group : asked;
  const std::int64_t begin = first / own * own;
  return all.subspan(static_cast<std::size_t>(begin),
                     static_cast<std::size_t>(std::min(own, std::ssize(all) - begin)));
}

double QuantizedRule::largest(std::span<const double> numbers) const {
  double most = 0;
  for (const double number : numbers) {
    if (std::isnan(number) && !drops_nan) return kNan;
    most = std::fmax(most, std::fabs(number));
  }
  return most;
}

double QuantizedRule::scale_of(double amax, bool is_zero) const {
  const double quotient = OutputFormat(DType::float32).rounded(amax / quantization.qmax);
  const double found = quantization.scale(quotient, is_zero);
  return rounds_down ? std::exp2(std::logb(found)) : found;
}

double QuantizedRule::result(const QuantizedGrid& grid, double y_of, double divisor) const {
  const double v = y_of / divisor;
  switch (last) {
    case Last::zero:
      return 0;
    case Last::half_away:
      return grid.half_away(v);
    case Last::truncated:
      return grid.truncated(v);
    case Last::away:
      return grid.away(v);
    case Last::wraps: {
      const double integer = std::nearbyint(v);
      return grid.saturated(integer - 256 * std::floor((integer + 128) / 256));
    }
    case Last::unsaturated:
      return grid.unsaturated(v);
    case Last::nearest:
      break;
  }
  return std::clamp(grid.saturated(grid.rounded(v) + offset), -end, end);
}

RowOfKernel::RowOfKernel(const JudgeSetting& setting, const AffineNumbers& affine,
                         const Quantization& asked, std::span<const double> its_x,
                         std::span<const double> x_alone, const std::optional<GivenNumbers>& given,
                         double its_scale_of_tensor)
    : x(its_x), scale_of_tensor(its_scale_of_tensor) {
  const auto of = [&](const AffineNumbers& by, std::span<const double> its, bool rounds_y) {
    return results_of(setting, by, asked.rounding, rounds_y, its, given);
  };
  results = of(affine, x, asked.rounds_y);
  if (asked.rounds_y) unrounded = of(affine, x, false);
  if (!x_alone.empty()) alone = of(affine, x_alone, asked.rounds_y);
  AffineNumbers before{affine.weight, std::vector<double>(x.size(), 0)};
  before_bias = of(before, x, false);
  before.weight.assign(x.size(), 1);
  xhat = of(before, x, false);
}

RowBounds results_of(const JudgeSetting& setting, const AffineNumbers& affine, DType rounding,
                     bool rounds_y, std::span<const double> x,
                     const std::optional<GivenNumbers>& given, bool is_measured) {
  RowBounds found{std::vector<double>(x.size(), kNan), std::vector<double>(x.size()), false, false};
  if (!are_finite(x)) return found;
  const RowStatistics statistics = statistics_of(x, setting.formula, given);
  SumLosses losses;
  if (is_measured && !given) {
    losses = losses_of({x, statistics}, setting.formula, setting.kernel.arithmetic,
                       setting.summed_shape());
  }
  const StatisticErrors errors = errors_of(statistics, setting.formula, setting.kernel, losses);
  const OutputFormat steps(rounding);
  const RowLine line =
      line_of(statistics, divisor_of(statistics.variance, setting.formula), errors, setting.kernel);
  fill_rounded_line(line, setting.rounding, steps, x, affine, found.y, found.bound);
  for (std::size_t i = 0; rounds_y && i < x.size(); ++i) {
    found.bound[i] = round_in(steps, found.y[i], found.bound[i]);
  }
  found.is_bounded = found.is_in_range = errors.is_bounded;
  return found;
}

std::vector<NamedQuantizedKernel> named_quantized_kernels(const QuantizedContext& context,
                                                          const ChooseKernel& choose) {
  constexpr double kNone[] = {0};
  std::vector<NamedQuantizedKernel> result;
  for (const Change& change : kChanges) {
    const auto kernels = quantized_kernels();
    const QuantizedKernel& kernel =
        *std::find_if(kernels.begin(), kernels.end(),
                      [&](const QuantizedKernel& one) { return one.id == change.id; });
    for (const double parameter : change.parameters.empty() ? kNone : change.parameters) {
      const auto with = [&](std::string_view text) {
        return with_parameter(text, change, parameter);
      };
      NamedQuantizedKernel named{with(kernel.id),
                                 with(kernel.words),
                                 with(kernel.options),
                                 change.applies(context, parameter),
                                 parameter,
                                 change.change};
      if (!choose || choose(named.id)) result.push_back(std::move(named));
    }
  }
  return result;
}

}  // namespace lnorm
