#include "lnorm/diagnosis/wrong_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <set>
#include <utility>

#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

using Context = KernelContext;
using Result = Variant::Result;

template <EpsOn place>
bool eps_place(Variant& v, const Context& c, double) {
  v.formula.eps_on = place;
  return c.setting.formula.eps_on != v.formula.eps_on && c.setting.formula.eps != 0 &&
         c.has_statistics();
}

bool eps_on_both(Variant& v, const Context& c, double) {
  v.eps_on_both = true;
  v.formula.eps_on = EpsOn::variance;
  return c.setting.formula.eps != 0 && !c.has_no_deviations();
}

bool eps_value(Variant& v, const Context& c, double eps) {
  v.formula.eps = eps;
  const double asked = c.setting.formula.eps;
  const bool is_nan = c.of == Quantity::y && (asked == 0 || eps == 0);  // y, without deviations
  return asked != eps && (c.has_statistics() || is_nan);
}

// What a sum of squares is divided by.
double freedom_of(const Context& c) {
  return static_cast<double>(std::max<std::int64_t>(1, c.setting.formula.freedom(c.row_length())));
}

// eps is added to the sum of squares, which is divided then.
bool eps_on_sum(Variant& v, const Context& c, double) {
  const Formula& asked = c.setting.formula;
  return asked.eps_on == EpsOn::variance && eps_value(v, c, asked.eps / freedom_of(c));
}

// eps is added to the norm of the deviations, which is divided then.
bool eps_on_norm(Variant& v, const Context& c, double) {
  v.formula.eps_on = EpsOn::std;
  return eps_value(v, c, c.setting.formula.eps / std::sqrt(freedom_of(c)));
}

// eps counts in parts of the square of the row's largest |x|.
bool eps_of_max(Variant& v, const Context& c, double) {
  v.eps_times_max = true;
  return c.setting.formula.eps != 0 && c.setting.formula.eps_on == EpsOn::variance &&
         c.has_statistics() && !c.has_given_rstd;
}

bool ddof(Variant& v, const Context& c, double ddof) {
  v.formula.ddof = static_cast<std::int64_t>(ddof);
  return c.setting.formula.ddof != v.formula.ddof && v.formula.ddof < c.row_length();
}

bool rms(Variant& v, const Context& c, double is_rms) {
  v.formula.rms = is_rms != 0;
  const bool is_other = c.setting.formula.rms != v.formula.rms;
  return is_other && (c.of == Quantity::y || (c.row_length() > 1 && c.has_statistics()));
}

bool mean_in_variance(Variant& v, const Context& c, double) {
  v.squares_about_zero = true;
  return c.setting.formula.has_mean() && c.row_length() > 1;
}

// Of one element x - mean and the variance are 0.
bool mean_times(Variant& v, const Context& c, double factor) {
  v.mean_factor = factor;
  return c.setting.formula.has_mean();
}

template <Variant::Divisor by>
bool divide_by(Variant& v, const Context& c, double) {
  v.divisor = by;
  return !c.has_no_deviations();
}

bool no_reduction(Variant& v, const Context& c, double) {
  v.without = true;
  return c.setting.formula.eps > 0;
}

// Beside an rstd eps is not known: it is the usual one.
bool own_statistics(Variant& v, const Context& c, double usual_eps) {
  v.own_statistics = true;
  if (c.has_given_rstd) v.formula.eps = usual_eps;
  return c.has_given && c.of != Quantity::dbias;
}

// The variance that is given, by the other divisor.
template <bool is_biased>
bool given_variance(Variant& v, const Context& c, double) {
  const auto n = static_cast<double>(c.row_length());
  v.variance_factor = is_biased ? (n - 1) / n : n / (n - 1);
  return c.has_given && !c.has_given_rstd && n > 1;
}

// A standard deviation is given, or is taken for what is given.
bool given_deviation(Variant& v, const Context& c, double power) {
  v.given_power = power;
  return c.has_given && !c.has_given_rstd;
}

bool rounded_sum(Variant& v, const Context& c, double) {
  v.input = Variant::Input::rounded_sum;
  return c.has_residual && !c.has_rounded_sum;
}

template <Variant::Input of>
bool residual(Variant& v, const Context& c, double) {
  v.input = of;
  return c.has_residual;
}

// Gives the variant weight and bias of its own. The change sees them without the output scale.
template <class Change>
bool change_affine(Variant& v, const Context& c, Change change) {
  const double output_scale = c.setting.output_scale;
  const auto change_numbers = [output_scale, change](AffineNumbers& numbers) {
    if (output_scale != 1) numbers.scale(1 / output_scale);
    change(numbers.weight, numbers.bias);
    if (output_scale != 1) numbers.scale(output_scale);
  };
  AffineNumbers numbers = *v.affine;
  change_numbers(numbers);
  v.affine = std::make_shared<AffineNumbers>(std::move(numbers));
  v.affine_changes.emplace_back(change_numbers);
  return true;
}

using Numbers = std::vector<double>;

enum class Parameter { weight, bias };

template <Parameter of, class Change>
bool change_one(Variant& v, const Context& c, Change change) {
  constexpr bool kIsWeight = of == Parameter::weight;
  // Sums over rows are of dy, and dx has no bias.
  if (c.of != Quantity::y && (!kIsWeight || c.of != Quantity::dx || c.dx_is_zero())) return false;
  return (kIsWeight ? c.has_weight && !c.has_no_deviations() : c.has_bias) &&
         change_affine(
             v, c, [change](Numbers& weight, Numbers& bias) { change(kIsWeight ? weight : bias); });
}

void add(Numbers& numbers, double term) {
  for (double& number : numbers) number += term;
}

bool no_weight(Variant& v, const Context& c, double) {
  return change_one<Parameter::weight>(v, c, [](Numbers& w) { w.assign(w.size(), 1); });
}
bool no_bias(Variant& v, const Context& c, double) {
  return change_one<Parameter::bias>(v, c, [](Numbers& b) { b.assign(b.size(), 0); });
}
bool weight_twice(Variant& v, const Context& c, double) {
  return change_one<Parameter::weight>(v, c, [](Numbers& w) {
    for (double& number : w) number *= number;
  });
}
bool bias_twice(Variant& v, const Context& c, double) {
  return change_one<Parameter::bias>(v, c, [](Numbers& b) {
    for (double& number : b) number *= 2;
  });
}

bool swapped_affine(Variant& v, const Context& c, double) {
  const double one = c.setting.kernel.adds_one ? 1 : 0;
  return c.has_weight && c.has_bias && change_affine(v, c, [one](Numbers& weight, Numbers& bias) {
           weight.swap(bias);
           add(weight, one);
           add(bias, -one);
         });
}

bool bias_first(Variant& v, const Context& c, double) {
  return c.has_weight && c.has_bias && change_affine(v, c, [](Numbers& weight, Numbers& bias) {
           for (std::size_t i = 0; i < bias.size(); ++i) bias[i] *= weight[i];
         });
}

// 1 is added again, or twice.
bool weight_plus_two(Variant& v, const Context& c, double) {
  const double more = c.setting.kernel.adds_one ? 1 : 2;
  return change_one<Parameter::weight>(v, c, [more](Numbers& w) { add(w, more); });
}

bool tiled(Variant& v, const Context& c, double) {
  v.is_tiled = true;
  return c.has_groups && !c.is_written && (c.has_weight || c.has_bias);
}

template <DType dtype>
bool weight_in(Variant& v, const Context& c, double) {
  const OutputFormat format(dtype);
  return format.half_unit() > c.setting.kernel.arithmetic.unit &&
         (format.precision() < OutputFormat(c.weight_dtype).precision() ||
          c.setting.kernel.adds_one) &&
         change_one<Parameter::weight>(v, c, [format](Numbers& w) {
           for (double& number : w) number = format.rounded(number);
         });
}

bool negated(Variant& v, const Context& c, double) {
  return (!c.has_no_deviations() || c.has_bias) &&
         change_affine(v, c, [](Numbers& weight, Numbers& bias) {
           for (Numbers* const numbers : {&weight, &bias}) {
             for (double& number : *numbers) number = -number;
           }
         });
}

bool weight_plus(Variant& v, const Context& c, double one) {
  return c.setting.kernel.adds_one == (one < 0) &&
         change_one<Parameter::weight>(v, c, [one](Numbers& w) { add(w, one); });
}

// Whether there is an order to mistake.
template <Parameter of>
bool has_order(const Context& c) {
  const bool is_number = of == Parameter::weight ? c.weight_is_number : c.bias_is_number;
  return c.row_length() > 1 && c.has_own_order && !is_number;
}

template <Parameter of>
bool reversed(Variant& v, const Context& c, double) {
  return has_order<of>(c) && change_one<of>(v, c, [](Numbers& numbers) {
           std::reverse(numbers.begin(), numbers.end());
         });
}

// by: 1 and -1 wrap around, 2 and -2 keep the element at the end.
template <Parameter of>
bool shifted(Variant& v, const Context& c, double by) {
  return has_order<of>(c) && (std::fabs(by) < 2 || c.row_length() > 2) &&
         change_one<of>(v, c, [by](Numbers& numbers) {
           const double end = by > 0 ? numbers.back() : numbers.front();
           const auto middle = by > 0 ? numbers.begin() + 1 : numbers.end() - 1;
           std::rotate(numbers.begin(), middle, numbers.end());
           if (std::fabs(by) == 2) (by > 0 ? numbers.back() : numbers.front()) = end;
         });
}

// A loop over blocks of the row reads the first block again, if its pointer stays.
template <Parameter of>
bool first_again(Variant& v, const Context& c, double block) {
  const auto count = static_cast<std::size_t>(block);
  return has_order<of>(c) && block < static_cast<double>(c.row_length()) &&
         change_one<of>(v, c, [count](Numbers& numbers) {
           for (std::size_t i = count; i < numbers.size(); ++i) numbers[i] = numbers[i % count];
         });
}

template <Parameter of>
bool by_row(Variant& v, const Context& c, double) {
  constexpr bool kIsWeight = of == Parameter::weight;
  (kIsWeight ? v.weight_by_row : v.bias_by_row) = true;
  return (kIsWeight ? c.has_weight && !c.has_no_deviations() : c.has_bias) && has_order<of>(c) &&
         c.rows != 1;
}

// As if the numbers lay in Fortran order; or back, as if they had lain so.
template <Parameter of>
bool transposed(Variant& v, const Context& c, double back) {
  const Shape& shape = c.setting.normalized_shape;
  if (shape.size() != 2 || shape[0] < 2 || shape[1] < 2) return false;
  return has_order<of>(c) && change_one<of>(v, c, [shape, back](Numbers& numbers) {
           const Numbers from = numbers;
           const auto rows = static_cast<std::size_t>(shape[0]);
           const auto columns = static_cast<std::size_t>(shape[1]);
           for (std::size_t i = 0; i < rows; ++i) {
             for (std::size_t j = 0; j < columns; ++j) {
               const std::size_t here = i * columns + j;
               const std::size_t there = j * rows + i;
               numbers[back != 0 ? there : here] = from[back != 0 ? here : there];
             }
           }
         });
}

// The sums of some elements are divided by the row's length.
void divide_by_row(Variant& v, const Context& c) {
  v.mean.padded_to = v.variance.padded_to = c.row_length();
  for (StatisticOf* of : {&v.mean, &v.variance}) of->is_masked = of->by_padded = true;
}

bool no_tail(Variant& v, const Context& c, double multiple) {
  const std::int64_t n = c.row_length();
  const auto k = static_cast<std::int64_t>(multiple);
  v.mean.first = v.variance.first = n - n % k;
  return k < n && n % k != 0 && c.setting.formula.ddof < n - n % k;
}

bool no_tail_by_row(Variant& v, const Context& c, double multiple) {
  divide_by_row(v, c);
  return no_tail(v, c, multiple);
}

bool first_elements(Variant& v, const Context& c, double count) {
  v.mean.first = v.variance.first = static_cast<std::int64_t>(count);
  return c.setting.formula.ddof < v.mean.first && v.mean.first < c.row_length();
}
bool first_elements_by_row(Variant& v, const Context& c, double count) {
  divide_by_row(v, c);
  return first_elements(v, c, count);
}

// A block of threads of which one warp counts.
bool one_warp(Variant& v, const Context& c, double threads) {
  v.mean.block = v.variance.block = static_cast<std::int64_t>(threads);
  divide_by_row(v, c);
  return c.setting.formula.ddof == 0;
}

bool x_again(Variant& v, const Context& c, double block) {
  v.x_block = static_cast<std::int64_t>(block);
  return v.x_block < c.row_length();
}

bool blocks(Variant& v, const Context& c, double length) {
  v.blocks = static_cast<std::int64_t>(length);
  // Blocks of whole channels are other groups, which have an option.
  const bool are_groups = c.has_groups && c.row_length() % v.blocks == 0 &&
                          v.blocks % (c.row_length() / c.setting.normalized_shape.front()) == 0;
  return v.blocks < c.row_length() && c.setting.formula.ddof == 0 && c.has_statistics() &&
         !are_groups;
}

bool plus_input(Variant& v, const Context&, double) {
  v.adds_input = true;
  return true;
}

bool residual_after(Variant& v, const Context& c, double) {
  v.adds_residual = true;
  return residual<Variant::Input::x_alone>(v, c, 0);
}

bool plus_residual(Variant& v, const Context& c, double) {
  v.adds_residual = true;
  return c.has_residual;
}

// What the sums of a row do that go on to P elements.
bool pads(Variant& v, const Context& c, double padded_to, const StatisticOf& of) {
  v.mean = v.variance = of;
  v.mean.padded_to = v.variance.padded_to = static_cast<std::int64_t>(padded_to);
  return padded_to > static_cast<double>(c.row_length());
}
bool padded(Variant& v, const Context& c, double to) { return pads(v, c, to, {.by_padded = true}); }
bool padded_masked(Variant& v, const Context& c, double to) {
  return pads(v, c, to, {.is_masked = true, .by_padded = true});
}
bool padded_ones(Variant& v, const Context& c, double to) {
  return pads(v, c, to, {.padding = 1, .by_padded = true});
}
// The mean is right. RMS norm has no mean for the padding to deviate from.
bool unmasked(Variant& v, const Context& c, double to) {
  const bool is_other = pads(v, c, to, {});
  v.mean = {};
  return is_other && c.setting.formula.has_mean() && !c.has_no_deviations();
}
bool unmasked_by(Variant& v, const Context& c, double to) {
  const bool is_other = pads(v, c, to, {.by_padded = true});
  v.mean = {};
  return is_other && c.setting.formula.has_mean() && !c.has_no_deviations();
}
bool reads_on(Variant& v, const Context& c, double to) {
  const bool is_other = pads(v, c, to, {.reads_on = true, .is_masked = true});
  return is_other && c.rows > 1 && to <= static_cast<double>(2 * c.row_length()) &&
         c.setting.formula.has_mean();
}
bool reads_on_by(Variant& v, const Context& c, double to) {
  const bool is_other = reads_on(v, c, to);
  v.mean.by_padded = true;
  return is_other;
}
bool reads_on_unmasked(Variant& v, const Context& c, double to) {
  reads_on(v, c, to);
  v.variance.is_masked = false;
  return to > static_cast<double>(c.row_length()) && c.rows > 1 &&
         to <= static_cast<double>(2 * c.row_length());
}

template <StatisticOf::Row row>
bool of_row(Variant& v, const Context& c, double) {
  v.mean.row = v.variance.row = row;
  return c.rows != 1;
}

// A kernel that computes in it has nothing else.
bool is_narrow(const Context& c, DType dtype) {
  return arithmetic_of(dtype).unit > c.setting.kernel.arithmetic.unit;
}
template <DType dtype>
bool statistics_in(Variant& v, const Context& c, double) {
  v.statistics_in = dtype;
  return is_narrow(c, dtype) && c.of != Quantity::dbias;
}
template <DType dtype>
bool mean_in(Variant& v, const Context& c, double) {
  v.mean_in = dtype;
  return is_narrow(c, dtype) && c.setting.formula.has_mean();
}
template <DType dtype>
bool rstd_in(Variant& v, const Context& c, double) {
  v.rstd_in = dtype;
  return is_narrow(c, dtype) && !c.has_no_deviations();
}
bool y_in(Variant& v, const Context& c, const OutputFormat& format) {
  v.y_in = format;
  // A dtype wider than the output's shows in ties alone: check finds it, mutants asks no test to catch it.
  const int precision = c.setting.output.precision();
  const int most = float_format(c.setting.kernel.arithmetic.dtype).precision;
  const bool is_other =
      format.precision() < precision || (!c.is_written && format.precision() != precision);
  return is_other && format.precision() < most && !c.has_no_deviations();
}
template <DType dtype>
bool y_in(Variant& v, const Context& c, double) {
  return y_in(v, c, OutputFormat(dtype));
}
bool y_in_tf32(Variant& v, const Context& c, double) { return y_in(v, c, OutputFormat::tf32()); }

template <bool saturates>
bool with_saturation(Variant& v, const Context& c, double) {
  v.saturates = saturates;
  return is_float8(c.setting.output.dtype()) && c.setting.saturates != saturates;
}

// A residual that is added to x is another tensor: rounded_sum has their sum.
template <DType dtype>
bool x_in(Variant& v, const Context& c, double) {
  v.x_in = dtype;
  return is_floating(c.x_dtype) && !c.has_residual && c.of != Quantity::dbias &&
         !c.has_no_deviations() &&
         OutputFormat(dtype).precision() < OutputFormat(c.x_dtype).precision();
}

template <Variant::Overflow what>
bool overflow(Variant& v, const Context& c, double) {
  v.overflow = what;
  return !(v.overflow == Variant::Overflow::sum && !c.setting.formula.has_mean());
}

bool one_pass(Variant& v, const Context& c, double) {
  v.one_pass = true;
  return c.setting.formula.has_mean() && c.row_length() > 1;
}

template <DType dtype>
bool own_sums_in(Variant& v, const Context& c, double) {
  v.summed_in = dtype;
  return is_narrow(c, dtype);
}

template <DType dtype>
bool arithmetic_in(Variant& v, const Context& c, double) {
  v.arithmetic = dtype;
  return is_narrow(c, dtype);
}

bool has_affine(const Context& c) { return c.has_weight || c.has_bias; }

// Rounding to float64 is within the bounds of a kernel that computes in it. A row of two elements without eps has an xhat of 1
// and -1, which no rounding changes.
bool rounds_visibly(const Context& c) {
  const Formula& formula = c.setting.formula;
  const bool is_sign =
      c.row_length() == 2 && formula.has_mean() && formula.ddof == 0 && formula.eps == 0;
  return !is_sign && (c.is_written || c.setting.output.dtype() != DType::float64);
}

bool rounded_xhat(Variant& v, const Context& c, double) {
  return has_affine(c) && !c.has_no_deviations() && !std::exchange(v.rounding.xhat, true) &&
         rounds_visibly(c);
}
bool rounded_product(Variant& v, const Context& c, double) {
  return c.has_weight && c.has_bias && !c.has_no_deviations() &&
         !std::exchange(v.rounding.product, true) && rounds_visibly(c);
}
bool unrounded(Variant& v, const Context& c, double) {
  if (c.has_rounded_sum) v.input = Variant::Input::unrounded_sum;
  return std::exchange(v.rounding, {}) != Rounding{} || c.has_rounded_sum;
}

// Where one step of several is left out it has a name of its own.
bool rounds_more_than_once(const Context& c) {
  const Rounding& asked = c.setting.rounding;
  return int{asked.xhat} + int{asked.product} + int{c.has_rounded_sum} > 1;
}
template <bool Rounding::*step>
bool unrounded_step(Variant& v, const Context& c, double) {
  return std::exchange(v.rounding.*step, false) && rounds_more_than_once(c);
}
bool unrounded_sum(Variant& v, const Context& c, double) {
  v.input = Variant::Input::unrounded_sum;
  return c.has_rounded_sum && rounds_more_than_once(c);
}

template <Result kind>
bool result(Variant& v, const Context&, double) {
  v.result = kind;
  return true;
}

bool zeros(Variant& v, const Context& c, double) {
  return result<Result::zeros>(v, c, 0) && (!c.has_no_deviations() || c.has_bias);
}

// With eps = 0 and nothing after it, the norm of the norm is the norm.
bool twice(Variant& v, const Context& c, double) {
  return result<Result::twice>(v, c, 0) && !c.has_no_deviations() &&
         (c.setting.formula.eps != 0 || has_affine(c));
}

bool norm_of_xhat(Variant& v, const Context& c, double) {
  v.is_of_xhat = true;
  return result<Result::twice>(v, c, 0) && !c.has_no_deviations() && c.setting.formula.eps != 0 &&
         has_affine(c);
}

double relu(double y) { return std::max(y, 0.0); }
double sigmoid(double y) { return 1 / (1 + std::exp(-y)); }
double silu(double y) { return y * sigmoid(y); }
double gelu(double y) { return y / 2 * std::erfc(-y / std::numbers::sqrt2); }
double gelu_tanh(double y) {
  return y * sigmoid(std::sqrt(8 / std::numbers::pi) * (y + 0.044715 * y * y * y));
}
double tanh_of(double y) { return std::tanh(y); }

template <double (*of)(double)>
bool activation(Variant& v, const Context& c, double) {
  v.activation = of;
  return !c.has_no_deviations() || c.has_bias;
}

template <Result kind>
bool shifted_rows(Variant& v, const Context& c, double) {
  return result<kind>(v, c, 0) && c.rows != 1;
}

template <Result kind>
bool unwritten(Variant& v, const Context& c, double) {
  return result<kind>(v, c, 0) && c.is_written;
}

template <Result kind>
bool shifted_columns(Variant& v, const Context& c, double) {
  return result<kind>(v, c, 0) && c.row_length() > 1;
}

bool other_dtype(Variant& v, const Context& c, double) {
  v.bytes = Variant::Bytes::other_dtype;
  // Nothing says the scale of the integers that wider ones are.
  return item_size(c.setting.output.dtype()) == 2 ||
         (c.is_written && item_size(c.setting.output.dtype()) > 2);
}

template <Variant::Bytes swapped>
bool byte_order(Variant& v, const Context& c, double) {
  v.bytes = swapped;
  const bool is_input = swapped == Variant::Bytes::swapped_input;
  const DType dtype = is_input ? c.x_dtype : c.setting.output.dtype();
  return item_size(dtype) > 1 && is_floating(dtype);
}

// ---- The backward pass.

bool is_of_dx(const Context& c) { return c.of == Quantity::dx; }

// part: of dx; 0: both.
bool without_term(Variant& v, const Context& c, double part) {
  if (part != 2) v.backward.of_mean = 0;
  if (part != 1) v.backward.of_variance = 0;
  return is_of_dx(c) && !c.has_given && (part != 1 || c.setting.formula.has_mean()) &&
         (part != 2 || !c.has_no_deviations());
}

bool no_tail_backward(Variant& v, const Context& c, double multiple) {
  const std::int64_t n = c.row_length();
  const auto k = static_cast<std::int64_t>(multiple);
  v.backward.summed = n - n % k;
  return is_of_dx(c) && !c.has_given && k < n && n % k != 0;
}

// A block of threads of which one warp counts, or the first block.
template <bool is_of_warp>
bool sums_of_some(Variant& v, const Context& c, double count) {
  v.backward.summed = static_cast<std::int64_t>(count);
  v.backward.summed_of_warp = is_of_warp;
  return is_of_dx(c) && !c.has_given && count < static_cast<double>(c.row_length());
}

template <bool of_mean, bool of_variance>
bool sums_of_dy(Variant& v, const Context& c, double) {
  v.backward.mean_has_weight = !of_mean;
  v.backward.variance_has_weight = !of_variance;
  return is_of_dx(c) && c.has_weight && !c.weight_is_number && !c.has_given && !c.dx_is_zero() &&
         (!of_mean || c.setting.formula.has_mean());
}
bool weight_last(Variant& v, const Context& c, double) {
  v.backward.weight_is_last = true;
  return sums_of_dy<false, false>(v, c, 0);
}

template <Backward::Xhat kind>
bool other_xhat(Variant& v, const Context& c, double) {
  v.backward.xhat = kind;
  return is_of_dx(c) && !c.has_given && !c.dx_is_zero() &&
         !(kind == Backward::Xhat::deviation && !c.setting.formula.has_mean());
}

bool divided_twice(Variant& v, const Context& c, double) {
  v.backward.divisions = 2;
  return is_of_dx(c) && !c.dx_is_zero();
}

bool s_for_t(Variant& v, const Context& c, double) {
  const Formula& formula = c.setting.formula;
  v.backward.t_is_s = true;
  return is_of_dx(c) && formula.eps_on != EpsOn::variance && formula.eps > 0 && !c.has_given &&
         !c.has_saved && !c.dx_is_zero();
}

template <DType dtype>
bool dy_in(Variant& v, const Context& c, double) {
  v.backward.dy_in = dtype;
  return is_floating(c.dy_dtype) && !(is_of_dx(c) && c.dx_is_zero()) &&
         OutputFormat(dtype).precision() < OutputFormat(c.dy_dtype).precision();
}

bool rows_with_step(Variant& v, const Context& c, double step) {
  v.backward.row_step = static_cast<std::int64_t>(step);
  return !is_of_dx(c) && c.rows > 1;
}

bool no_division_backward(Variant& v, const Context& c, double of_dx) {
  v.backward.divisions = 0;
  return of_dx != 0 ? is_of_dx(c) && !c.dx_is_zero()
                    : c.of == Quantity::dweight && !c.has_no_deviations();
}

bool weight_in_sums(Variant& v, const Context& c, double) {
  v.backward.weight_in_sums = true;
  return !is_of_dx(c) && c.has_weight;
}

bool plus_dy(Variant& v, const Context& c, double) {
  v.backward.adds_dy = true;
  return is_of_dx(c);
}

bool of_x(Variant& v, const Context& c, double) {
  v.backward.is_of_x = true;
  return c.of == Quantity::dweight;
}

template <DType dtype>
bool result_in(Variant& v, const Context& c, double) {
  v.backward.result_in = dtype;
  return OutputFormat(dtype).precision() < c.setting.output.precision() &&
         !(is_of_dx(c) && c.dx_is_zero());
}

bool weight_forgotten(Variant& v, const Context& c, double) {
  v.backward.has_weight = false;
  return is_of_dx(c) && c.has_weight && !c.dx_is_zero();
}

template <bool of_sums_alone>
bool other_ddof(Variant& v, const Context& c, double other) {
  const std::int64_t n = c.row_length();
  const auto ddof = static_cast<std::int64_t>(other);
  if (ddof == v.formula.ddof || ddof >= n) return false;
  if (of_sums_alone) {
    v.backward.freedom = n - ddof;
  } else {
    v.formula.ddof = ddof;
  }
  if (!is_of_dx(c)) return !of_sums_alone && c.has_statistics();
  return !c.has_given && (of_sums_alone || !c.dx_is_zero());
}

// rstd alone has the other variance.
bool ddof_of_rstd(Variant& v, const Context& c, double other) {
  v.backward.freedom = v.formula.freedom(c.row_length());
  return is_of_dx(c) && other_ddof<false>(v, c, other);
}

bool last_row_lost(Variant& v, const Context& c, double power) {
  const auto multiple = std::int64_t{1} << static_cast<int>(power);
  v.backward.lost_rows = c.rows % multiple;
  return !is_of_dx(c) && v.backward.lost_rows < c.rows &&
         v.backward.lost_rows != c.rows % (multiple / 2);
}

bool last_one_lost(Variant& v, const Context& c, double) {
  v.backward.lost_rows = 1;
  return !is_of_dx(c) && c.rows > 1 && c.rows % 2 == 0;
}

bool gradient_zeros(Variant& v, const Context& c, double) {
  v.backward.factor = 0;
  return !is_of_dx(c) || !c.dx_is_zero();
}

bool exchanged(Variant& v, const Context& c, double) {
  v.backward.exchanged = true;
  return !is_of_dx(c);
}

template <DType dtype>
bool sums_in(Variant& v, const Context& c, double) {
  v.backward.sums = dtype;
  // The sum of one term is that term, which is rounded once.
  const bool is_one_term = c.terms() == 1;
  return !is_of_dx(c) && !(is_one_term && dtype == c.setting.output.dtype()) && is_narrow(c, dtype);
}

// A kernel that writes one of the narrow dtypes does not sum in the other.
template <DType dtype>
bool is_of_output(const Context& c) {
  const DType output = c.setting.output.dtype();
  return output == dtype || item_size(output) > item_size(dtype);
}

// As a kernel does that sums up blocks of rows.
template <DType dtype>
bool sums_in_any_order(Variant& v, const Context& c, double) {
  v.backward.rounded = Backward::Rounded::terms;
  return sums_in<dtype>(v, c, 0) && is_of_output<dtype>(c);
}
template <DType dtype>
bool partials_in(Variant& v, const Context& c, double) {
  v.backward.rounded = Backward::Rounded::partials;
  return sums_in<dtype>(v, c, 0) && is_of_output<dtype>(c) &&
         c.rows > (c.is_written ? kRowsOfPartials : 1);
}

bool xhat_with_affine(Variant& v, const Context& c, double) {
  v.backward.xhat_has_affine = true;
  return c.of != Quantity::dbias && ((c.has_weight && !c.has_no_deviations()) || c.has_bias);
}

constexpr std::string_view kWithoutWeight = "without --weight";
constexpr std::string_view kWithoutMean = "without --mean";

// clang-format off
constexpr WrongKernel kWrongKernels[] = {
    {"eps-on-std", "eps is added to the standard deviation", "--eps-on std", KernelPart::eps_place, eps_place<EpsOn::std>, 0, Pass::both},
    {"eps-on-variance", "eps is added to the variance", "--eps-on variance", KernelPart::eps_place, eps_place<EpsOn::variance>, 0, Pass::both},
    {"eps-on-both", "eps is added to the variance and to its root", "", KernelPart::eps_place, eps_on_both},
    {"eps-1e-5", "eps is 1e-5", "--eps 1e-5", KernelPart::eps_value, eps_value, 1e-5, Pass::both},
    {"eps-1e-6", "eps is 1e-6", "--eps 1e-6", KernelPart::eps_value, eps_value, 1e-6, Pass::both},
    {"eps-0", "eps is 0", "--eps 0", KernelPart::eps_value, eps_value, 0, Pass::both},
    {"eps-1e-12", "eps is 1e-12", "--eps 1e-12", KernelPart::eps_value, eps_value, 1e-12, Pass::both},
    {"eps-1e-8", "eps is 1e-8", "--eps 1e-8", KernelPart::eps_value, eps_value, 1e-8, Pass::both},
    {"eps-1e-3", "eps is 1e-3", "--eps 1e-3", KernelPart::eps_value, eps_value, 1e-3, Pass::both},
    {"eps-sum", "eps is added to the sum of squares", "", KernelPart::eps_value, eps_on_sum},
    {"eps-on-norm", "eps is added to the norm of the deviations", "", KernelPart::eps_place, eps_on_norm},
    {"eps-max", "eps is multiplied by the square of the row's greatest magnitude", "", KernelPart::eps_value, eps_of_max},
    {"eps-on-max", "the divisor is the standard deviation, or eps where that is larger", "--eps-on max", KernelPart::eps_place, eps_place<EpsOn::max>, 0, Pass::both},
    {"ddof-1", "the variance is divided by n - 1", "--unbiased", KernelPart::ddof, ddof, 1},
    {"ddof-0", "the variance is divided by n", "--ddof 0", KernelPart::ddof, ddof, 0},
    {"rms", "RMS norm: the mean is not subtracted", "--rms", KernelPart::mean_or_division, rms, 1, Pass::both},
    {"layer-norm", "layer norm: the mean is subtracted", "without --rms", KernelPart::mean_or_division, rms, 0, Pass::both},
    {"mean-in-variance", "the mean is subtracted from x, but the variance is mean(x^2)", "", KernelPart::mean_or_division, mean_in_variance},
    {"variance-only", "the variance is right, but the mean is not subtracted from x", "", KernelPart::mean_or_division, mean_times, 0},
    {"mean-twice", "the mean is subtracted twice", "", KernelPart::mean_or_division, mean_times, 2},
    {"no-division", "x - mean is not divided", "", KernelPart::mean_or_division, divide_by<Variant::Divisor::one>},
    {"divide-by-variance", "x - mean is divided by var + eps, without the root", "", KernelPart::mean_or_division, divide_by<Variant::Divisor::variance>},
    {"divide-by-variance-squared", "x - mean is divided by the square of var + eps", "", KernelPart::mean_or_division, divide_by<Variant::Divisor::variance_squared>},
    {"no-reduction", "mean and variance are 0: x / sqrt(eps)", "", KernelPart::mean_or_division, no_reduction},
    {"no-weight", "the weight is forgotten", kWithoutWeight, KernelPart::weight, no_weight},
    {"no-bias", "the bias is forgotten", "without --bias", KernelPart::bias, no_bias},
    {"rounded-sum", "the sum with the residual is rounded before the norm", "--round sum", KernelPart::alone, rounded_sum},
    {"no-residual", "the residual is forgotten", "without --residual", KernelPart::alone, residual<Variant::Input::x_alone>},
    {"residual-negated", "the residual is subtracted", "", KernelPart::alone, residual<Variant::Input::difference>},
    {"residual-alone", "the residual is normalized, without x", "", KernelPart::alone, residual<Variant::Input::residual_alone>},
    {"residual-after", "the residual is added to the norm, not to x", "", KernelPart::alone, residual_after},
    {"plus-residual", "the residual is added to the norm as well", "", KernelPart::alone, plus_residual},
    {"residual-twice", "the residual is added twice", "", KernelPart::alone, residual<Variant::Input::residual_twice>},
    {"weight-twice", "the weight is applied twice", "", KernelPart::weight, weight_twice, 0, Pass::both},
    {"bias-twice", "the bias is applied twice", "", KernelPart::bias, bias_twice},
    {"swapped-affine", "weight and bias stand for each other", "", KernelPart::weight, swapped_affine},
    {"bias-first", "the bias is added before the weight multiplies", "", KernelPart::weight, bias_first},
    {"weight-plus-one", "1 + weight multiplies", "--zero-centered-weight", KernelPart::weight, weight_plus, 1, Pass::both},
    {"weight-plus-two", "2 + weight multiplies", "", KernelPart::weight, weight_plus_two, 0, Pass::both},
    {"weight-without-one", "weight multiplies, not 1 + weight", "without --zero-centered-weight", KernelPart::weight, weight_plus, -1, Pass::both},
    {"weight-tiled", "the weights of groups are tiled, not repeated", "", KernelPart::weight, tiled},
    {"float16-weight", "the weight is rounded to float16", "", KernelPart::weight, weight_in<DType::float16>, 0, Pass::both},
    {"bfloat16-weight", "the weight is rounded to bfloat16", "", KernelPart::weight, weight_in<DType::bfloat16>, 0, Pass::both},
    {"negated", "y has the other sign", "", KernelPart::weight, negated},
    {"weight-reversed", "the weight is in reverse order", "", KernelPart::weight, reversed<Parameter::weight>, 0, Pass::both},
    {"bias-reversed", "the bias is in reverse order", "", KernelPart::bias, reversed<Parameter::bias>},
    {"weight-shifted", "the weight is off by one element", "", KernelPart::weight, shifted<Parameter::weight>, 1, Pass::both},
    {"weight-shifted", "the weight is off by one element", "", KernelPart::weight, shifted<Parameter::weight>, -1, Pass::both},
    {"weight-shifted", "the weight is off by one element", "", KernelPart::weight, shifted<Parameter::weight>, 2, Pass::both},
    {"weight-shifted", "the weight is off by one element", "", KernelPart::weight, shifted<Parameter::weight>, -2, Pass::both},
    {"bias-shifted", "the bias is off by one element", "", KernelPart::bias, shifted<Parameter::bias>, 1},
    {"bias-shifted", "the bias is off by one element", "", KernelPart::bias, shifted<Parameter::bias>, -1},
    {"bias-shifted", "the bias is off by one element", "", KernelPart::bias, shifted<Parameter::bias>, 2},
    {"bias-shifted", "the bias is off by one element", "", KernelPart::bias, shifted<Parameter::bias>, -2},
    {"weight-transposed", "the weight is transposed", "", KernelPart::weight, transposed<Parameter::weight>, 0, Pass::both},
    {"weight-transposed", "the weight is transposed", "", KernelPart::weight, transposed<Parameter::weight>, 1, Pass::both},
    {"bias-transposed", "the bias is transposed", "", KernelPart::bias, transposed<Parameter::bias>, 0},
    {"bias-transposed", "the bias is transposed", "", KernelPart::bias, transposed<Parameter::bias>, 1},
    {"weight-first-K", "the weight of the first K elements is that of all others", "", KernelPart::weight, first_again<Parameter::weight>, 0, Pass::both},
    {"bias-first-K", "the bias of the first K elements is that of all others", "", KernelPart::bias, first_again<Parameter::bias>},
    {"weight-by-row", "the weight is that of the row's number, not of the element's", "", KernelPart::weight, by_row<Parameter::weight>},
    {"bias-by-row", "the bias is that of the row's number, not of the element's", "", KernelPart::bias, by_row<Parameter::bias>},
    {"no-tail-K", "the statistics leave out the n mod K last elements", "", KernelPart::elements, no_tail, 256},
    {"no-tail-K-by-n", "the sums leave out the n mod K last elements, and are divided by n", "", KernelPart::elements, no_tail_by_row, 256},
    {"first-K", "the statistics are those of the first K elements", "", KernelPart::elements, first_elements},
    {"first-K-by-n", "the sums are those of the first K elements, and are divided by n", "", KernelPart::elements, first_elements_by_row},
    {"warp-K", "the sums take in the first 32 of each K elements, and are divided by n", "", KernelPart::elements, one_warp},
    {"padded-P", "sums go on to P elements, zeros, and are divided by their number", "", KernelPart::elements, padded},
    {"padded-P-masked", "sums are divided by P, not by n", "", KernelPart::elements, padded_masked},
    {"padded-ones-P", "sums go on to P elements, ones, and are divided by their number", "", KernelPart::elements, padded_ones},
    {"unmasked-P", "the padding is not masked: its deviations 0 - mean, up to P elements, are in the variance", "", KernelPart::elements, unmasked},
    {"unmasked-P-by-P", "the padding is not masked: its deviations 0 - mean, up to P elements, are in the variance, which is divided by their number", "", KernelPart::elements, unmasked_by},
    {"reads-on-P", "the mean takes in what follows the row, up to P elements", "", KernelPart::elements, reads_on},
    {"reads-on-P-by-P", "the mean takes in what follows the row, up to P elements, and is divided by their number", "", KernelPart::elements, reads_on_by},
    {"reads-on-P-unmasked", "mean and variance take in what follows the row, up to P elements", "", KernelPart::elements, reads_on_unmasked},
    {"neighbor-row", "the statistics are those of the row before", "", KernelPart::elements, of_row<StatisticOf::Row::previous>},
    {"next-row", "the statistics are those of the row after", "", KernelPart::elements, of_row<StatisticOf::Row::next>},
    {"first-row", "the statistics are those of the first row", "", KernelPart::elements, of_row<StatisticOf::Row::first>},
    {"last-row", "the statistics are those of the last row", "", KernelPart::elements, of_row<StatisticOf::Row::last>},
    {"all-rows", "the statistics are those of all rows together", "", KernelPart::elements, of_row<StatisticOf::Row::all>},
    {"own-statistics", "the statistics are the rows' own, not those that are given", kWithoutMean, KernelPart::mean_or_division, own_statistics, 1e-5, Pass::both},
    {"given-variance-biased", "the variance that is given is multiplied by (n - 1) / n", "", KernelPart::ddof, given_variance<true>},
    {"given-variance-unbiased", "the variance that is given is multiplied by n / (n - 1)", "", KernelPart::ddof, given_variance<false>},
    {"given-variance-root", "the root of the variance that is given stands for it", "", KernelPart::ddof, given_deviation, 0.5},
    {"given-variance-squared", "the square of the variance that is given stands for it, as of a standard deviation", "", KernelPart::ddof, given_deviation, 2},
    {"one-pass", "the variance is mean(x^2) - mean^2", "", KernelPart::own_sums, one_pass},
    {"float16-sums", "the row's sums are in float16", "", KernelPart::own_sums, own_sums_in<DType::float16>},
    {"bfloat16-sums", "the row's sums are in bfloat16", "", KernelPart::own_sums, own_sums_in<DType::bfloat16>},
    {"float16-arithmetic", "the kernel computes in float16", "--arithmetic float16", KernelPart::own_sums, arithmetic_in<DType::float16>},
    {"bfloat16-arithmetic", "the kernel computes in bfloat16", "--arithmetic bfloat16", KernelPart::own_sums, arithmetic_in<DType::bfloat16>},
    {"identity", "y is x", "", KernelPart::alone, result<Result::input>},
    {"float16-mean", "the mean is rounded to float16", "", KernelPart::rounding, mean_in<DType::float16>},
    {"bfloat16-mean", "the mean is rounded to bfloat16", "", KernelPart::rounding, mean_in<DType::bfloat16>},
    {"float16-rstd", "1 / s is rounded to float16", "", KernelPart::rounding, rstd_in<DType::float16>},
    {"bfloat16-rstd", "1 / s is rounded to bfloat16", "", KernelPart::rounding, rstd_in<DType::bfloat16>},
    {"float16-statistics", "mean and rstd are rounded to float16", "", KernelPart::rounding, statistics_in<DType::float16>, 0, Pass::both},
    {"bfloat16-statistics", "mean and rstd are rounded to bfloat16", "", KernelPart::rounding, statistics_in<DType::bfloat16>, 0, Pass::both},
    {"rounded-xhat", "xhat is rounded to the output dtype before the weight", "--round xhat", KernelPart::alone, rounded_xhat},
    {"rounded-product", "the product is rounded to the output dtype before the bias", "--round product", KernelPart::alone, rounded_product},
    {"unrounded", "nothing is rounded before the end", "without --round", KernelPart::alone, unrounded},
    {"unrounded-sum", "the sum with the residual is not rounded before the norm", "", KernelPart::alone, unrounded_sum},
    {"unrounded-xhat", "xhat is not rounded before the weight", "", KernelPart::alone, unrounded_step<&Rounding::xhat>},
    {"unrounded-product", "the product is not rounded before the bias", "", KernelPart::alone, unrounded_step<&Rounding::product>},
    {"float16-x", "x is rounded to float16 before the norm", "", KernelPart::alone, x_in<DType::float16>, 0, Pass::both},
    {"bfloat16-x", "x is rounded to bfloat16 before the norm", "", KernelPart::alone, x_in<DType::bfloat16>, 0, Pass::both},
    {"float16-y", "y is rounded to float16 before the output", "", KernelPart::alone, y_in<DType::float16>},
    {"bfloat16-y", "y is rounded to bfloat16 before the output", "", KernelPart::alone, y_in<DType::bfloat16>},
    {"tf32-y", "y is rounded to tf32 before the output", "", KernelPart::alone, y_in_tf32},
    {"float16-overflow", "rows are lost whose squares leave float16", "", KernelPart::alone, overflow<Variant::Overflow::square>},
    {"float16-overflow", "rows are lost whose sums of squares leave float16", "", KernelPart::alone, overflow<Variant::Overflow::sum_of_squares>},
    {"float16-overflow", "rows are lost whose mean squares leave float16", "", KernelPart::alone, overflow<Variant::Overflow::mean_square>},
    {"float16-overflow", "rows are lost whose sums leave float16", "", KernelPart::alone, overflow<Variant::Overflow::sum>},
    {"truncated", "the last rounding is toward zero", "", KernelPart::alone, result<Result::truncated>},
    {"away", "the last rounding is away from zero", "", KernelPart::alone, result<Result::away>},
    {"saturated", "what is beyond the dtype becomes its greatest number", "--saturate", KernelPart::alone, with_saturation<true>},
    {"not-saturated", "what is beyond the dtype becomes NaN or infinity", "without --saturate", KernelPart::alone, with_saturation<false>},
    {"other-dtype", "y is right, but labeled as another dtype of its width", "", KernelPart::alone, other_dtype},
    {"byte-order", "the bytes of y are swapped", "", KernelPart::alone, byte_order<Variant::Bytes::swapped>},
    {"byte-order-x", "the bytes of x were swapped", "", KernelPart::alone, byte_order<Variant::Bytes::swapped_input>},
    {"zeros", "y is 0", "", KernelPart::alone, zeros},
    {"plus-input", "x is added to the norm", "", KernelPart::alone, plus_input},
    {"blocks-K", "each K elements are normalized by themselves", "", KernelPart::alone, blocks},
    {"x-first-K", "the first K elements of x are those of all others, but for the statistics", "", KernelPart::alone, x_again},
    {"twice", "y is the norm of the norm", "", KernelPart::alone, twice},
    {"norm-of-xhat", "y is the norm of xhat, which has no weight and bias", "", KernelPart::alone, norm_of_xhat},
    {"softmax", "y is softmax of x", "lnorm softmax", KernelPart::alone, result<Result::softmax>},
    {"relu", "y is relu of the norm", "", KernelPart::alone, activation<relu>},
    {"gelu", "y is gelu of the norm", "", KernelPart::alone, activation<gelu>},
    {"gelu-tanh", "y is gelu of the norm, in the approximation by tanh", "", KernelPart::alone, activation<gelu_tanh>},
    {"silu", "y is silu of the norm", "", KernelPart::alone, activation<silu>},
    {"sigmoid", "y is sigmoid of the norm", "", KernelPart::alone, activation<sigmoid>},
    {"tanh", "y is tanh of the norm", "", KernelPart::alone, activation<tanh_of>},
    {"shifted-rows", "y is one row further", "", KernelPart::alone, shifted_rows<Result::previous_row>},
    {"shifted-rows", "y is one row further", "", KernelPart::alone, shifted_rows<Result::next_row>},
    {"shifted-columns", "y is one element further", "", KernelPart::alone, shifted_columns<Result::previous_element>},
    {"shifted-columns", "y is one element further", "", KernelPart::alone, shifted_columns<Result::next_element>},
    {"unwritten-rows", "rows are not written: they are 0, x, NaN or infinity (tried: the last eighth is 0)", "", KernelPart::alone, unwritten<Result::unwritten_rows>},
    {"unwritten-tail", "the last elements are not written: they are 0, x, NaN or infinity (tried: the last eighth is 0)", "", KernelPart::alone, unwritten<Result::unwritten_tail>},
    // backward
    {"no-mean-terms", "dx is g / s, without both means", "", KernelPart::mean_or_division, without_term, 0, Pass::backward},
    {"no-mean-of-g", "the mean of g is not subtracted in dx", "", KernelPart::mean_or_division, without_term, 1, Pass::backward},
    {"no-variance-term", "dx lacks the term of the variance", "", KernelPart::mean_or_division, without_term, 2, Pass::backward},
    {"dx-no-division", "dx is not divided by s", "", KernelPart::mean_or_division, no_division_backward, 1, Pass::backward},
    {"dx-no-tail-K", "the sums of dx leave out the n mod K last elements", "", KernelPart::elements, no_tail_backward, 256, Pass::backward},
    {"float16-gradient", "the gradient is rounded to float16 before the output", "", KernelPart::rounding, result_in<DType::float16>, 0, Pass::backward},
    {"bfloat16-gradient", "the gradient is rounded to bfloat16 before the output", "", KernelPart::rounding, result_in<DType::bfloat16>, 0, Pass::backward},
    {"dx-first-K", "the sums of dx are those of the first K elements", "", KernelPart::elements, sums_of_some<false>, 0, Pass::backward},
    {"dx-warp-K", "the sums of dx take in the first 32 of each K elements", "", KernelPart::elements, sums_of_some<true>, 0, Pass::backward},
    {"dx-mean-of-dy", "the mean in dx is that of dy, without the weight", "", KernelPart::weight, sums_of_dy<true, false>, 0, Pass::backward},
    {"dx-projection-of-dy", "the mean with xhat in dx is that of dy xhat, without the weight", "", KernelPart::weight, sums_of_dy<false, true>, 0, Pass::backward},
    {"dx-means-of-dy", "both means in dx are those of dy, without the weight", "", KernelPart::weight, sums_of_dy<true, true>, 0, Pass::backward},
    {"dx-weight-last", "the weight multiplies dx, not dy", "", KernelPart::weight, weight_last, 0, Pass::backward},
    {"dx-of-x", "x stands for xhat in dx", "", KernelPart::mean_or_division, other_xhat<Backward::Xhat::x>, 0, Pass::backward},
    {"dx-of-deviations", "x - mean stands for xhat in dx", "", KernelPart::mean_or_division, other_xhat<Backward::Xhat::deviation>, 0, Pass::backward},
    {"dx-divided-twice", "dx is divided by s twice", "", KernelPart::mean_or_division, divided_twice, 0, Pass::backward},
    {"dx-by-s", "the term of the variance in dx is divided by s, as with eps in the variance", "", KernelPart::mean_or_division, s_for_t, 0, Pass::backward},
    {"float16-dy", "dy is rounded to float16", "", KernelPart::rounding, dy_in<DType::float16>, 0, Pass::backward},
    {"bfloat16-dy", "dy is rounded to bfloat16", "", KernelPart::rounding, dy_in<DType::bfloat16>, 0, Pass::backward},
    {"every-2nd-row", "dweight and dbias are sums over every second row", "", KernelPart::alone, rows_with_step, 2, Pass::backward},
    {"every-4th-row", "dweight and dbias are sums over every fourth row", "", KernelPart::alone, rows_with_step, 4, Pass::backward},
    {"dx-plus-dy", "dy is added to dx", "", KernelPart::rounding, plus_dy, 0, Pass::backward},
    {"dweight-no-division", "dweight is the sum of dy (x - mean), not divided by s", "", KernelPart::mean_or_division, no_division_backward, 0, Pass::backward},
    {"weight-in-sums", "dweight and dbias are sums of g, with the weight in it", "", KernelPart::weight, weight_in_sums, 0, Pass::backward},
    {"dweight-of-x", "dweight is the sum of dy x, not of dy xhat", "", KernelPart::mean_or_division, of_x, 0, Pass::backward},
    {"weight-forgotten", "g is dy, without the weight", kWithoutWeight, KernelPart::weight, weight_forgotten, 0, Pass::backward},
    {"other-ddof", "the variance is divided by n - 1 in the backward pass", "--unbiased", KernelPart::ddof, other_ddof<false>, 1, Pass::backward},
    {"other-ddof", "the variance is divided by n in the backward pass", "--ddof 0", KernelPart::ddof, other_ddof<false>, 0, Pass::backward},
    {"other-ddof", "the variance is divided by n - 1 in the backward pass, but for the sum with xhat", "", KernelPart::ddof, ddof_of_rstd, 1, Pass::backward},
    {"other-ddof", "the sum with xhat in dx is divided by n - 1", "", KernelPart::ddof, other_ddof<true>, 1, Pass::backward},
    {"other-ddof", "the sum with xhat in dx is divided by n", "", KernelPart::ddof, other_ddof<true>, 0, Pass::backward},
    {"gradient-zeros", "the gradient is 0", "", KernelPart::alone, gradient_zeros, 0, Pass::backward},
    {"last-row-lost", "dweight and dbias lack the last row", "", KernelPart::alone, last_one_lost, 0, Pass::backward},
    {"last-row-lost", "dweight and dbias lack the last R mod 2 of R rows", "", KernelPart::alone, last_row_lost, 1, Pass::backward},
    {"last-row-lost", "dweight and dbias lack the last R mod 4 of R rows", "", KernelPart::alone, last_row_lost, 2, Pass::backward},
    {"last-row-lost", "dweight and dbias lack the last R mod 8 of R rows", "", KernelPart::alone, last_row_lost, 3, Pass::backward},
    {"last-row-lost", "dweight and dbias lack the last R mod 16 of R rows", "", KernelPart::alone, last_row_lost, 4, Pass::backward},
    {"last-row-lost", "dweight and dbias lack the last R mod 32 of R rows", "", KernelPart::alone, last_row_lost, 5, Pass::backward},
    {"last-row-lost", "dweight and dbias lack the last R mod 64 of R rows", "", KernelPart::alone, last_row_lost, 6, Pass::backward},
    {"last-row-lost", "dweight and dbias lack the last R mod 128 of R rows", "", KernelPart::alone, last_row_lost, 7, Pass::backward},
    {"last-row-lost", "dweight and dbias lack the last R mod 256 of R rows", "", KernelPart::alone, last_row_lost, 8, Pass::backward},
    {"dweight-dbias-exchanged", "dweight and dbias are exchanged", "", KernelPart::alone, exchanged, 0, Pass::backward},
    {"float16-dweight", "dweight and dbias are summed in float16", "", KernelPart::sums, sums_in<DType::float16>, 0, Pass::backward},
    {"float16-dweight", "dweight and dbias are summed in float16", "", KernelPart::sums, sums_in_any_order<DType::float16>, 0, Pass::backward},
    {"bfloat16-dweight", "dweight and dbias are summed in bfloat16", "", KernelPart::sums, sums_in<DType::bfloat16>, 0, Pass::backward},
    {"bfloat16-dweight", "dweight and dbias are summed in bfloat16", "", KernelPart::sums, sums_in_any_order<DType::bfloat16>, 0, Pass::backward},
    {"float16-partials", "partial sums over rows are rounded to float16", "", KernelPart::sums, partials_in<DType::float16>, 0, Pass::backward},
    {"bfloat16-partials", "partial sums over rows are rounded to bfloat16", "", KernelPart::sums, partials_in<DType::bfloat16>, 0, Pass::backward},
    {"xhat-with-affine", "xhat is y, with weight and bias in it", "", KernelPart::alone, xhat_with_affine, 0, Pass::backward},
};
// clang-format on

}  // namespace

char WrongKernel::letter() const noexcept {
  for (const char one : {'P', 'K'}) {
    if (const std::size_t at = id.find(one); at != id.npos && at > 0 && id[at - 1] == '-')
      return one;
  }
  return 0;
}

std::string WrongKernel::with_length(std::string_view text, char before,
                                     std::int64_t length) const {
  std::string out(text);
  const std::string from = concat(before, letter());
  for (std::size_t at = 0; (at = out.find(from, at)) != out.npos; at += from.size()) {
    out.replace(at, from.size(), concat(before, length));
  }
  return out;
}

namespace {

// Powers of two: what K stands for, from 8 to the row's parameter, or else from 32 to the most; and usual lengths P, from 8 on.
std::vector<std::int64_t> block_lengths(const WrongKernel& kernel, std::int64_t most) {
  std::vector<std::int64_t> lengths;
  if (kernel.parameter > 0) most = static_cast<std::int64_t>(kernel.parameter);
  const bool is_short = kernel.parameter > 0 || kernel.letter() == 'P';
  for (std::int64_t k = is_short ? 8 : 32; k <= most; k *= 2) lengths.push_back(k);
  return lengths;
}

// A block that is one warp has no others.
bool is_one_warp(const WrongKernel& kernel, std::int64_t length) {
  const bool is_of_warp = kernel.change == one_warp || kernel.change == sums_of_some<true>;
  return is_of_warp && length == StatisticOf::kWarp;
}

}  // namespace

std::vector<std::string> usual_ids(const WrongKernel& kernel) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 20;
  if (kernel.letter() == 0) return {std::string(kernel.id)};
  std::vector<std::string> ids;
  for (const std::int64_t length : block_lengths(kernel, kLongest)) {
    ids.push_back(kernel.with_length(kernel.id, '-', length));
  }
  return ids;
}

std::span<const WrongKernel> wrong_kernels() noexcept { return kWrongKernels; }

bool NamedKernel::change(Variant& variant, const KernelContext& context) const {
  const Variant before = variant;
  if (!row->change(variant, context, parameter)) return false;
  if (side == Side::mean || side == Side::own) variant.variance = before.variance;
  if (side == Side::own) variant.center = Variant::Center::own;
  if (side == Side::variance) variant.mean = before.mean;
  return true;
}

std::vector<NamedKernel> named_kernels(Quantity of, const Shape& normalized_shape,
                                       const ChooseKernel& choose) {
  const std::int64_t n = element_count(normalized_shape);
  // Where rows of length P come from: their multiples, and what 0.8.0 called them.
  struct Length {
    std::int64_t padded_to;
    std::string former;
  };
  std::vector<Length> lengths;
  for (const std::int64_t k : {8, 16, 32, 64, 128, 256, 512, 1024}) {
    lengths.push_back({(n + k - 1) / k * k, concat("padded-", k)});
  }
  const auto power_of_two = [](std::int64_t count) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)));
  };
  lengths.push_back({power_of_two(std::max<std::int64_t>(1, n)), "padded-pow2"});
  // Blocks of whole channels.
  if (normalized_shape.size() > 1 && n > 0) {
    const std::int64_t channels = normalized_shape.front();
    lengths.push_back({n / channels * power_of_two(channels), ""});
  }
  const auto blocks_of = [&](const WrongKernel& row) {
    std::vector<Length> blocks;
    for (const std::int64_t length : block_lengths(row, n - 1)) blocks.push_back({length, ""});
    const bool is_first = row.change == first_elements || row.change == first_elements_by_row;
    if (is_first && n >= 32) blocks.push_back({n / 2, ""});
    if (is_first && n > 2) blocks.push_back({n - 1, ""});  // a loop that ends one too early
    return blocks;
  };
  std::vector<NamedKernel> result;
  for (const WrongKernel& row : kWrongKernels) {
    if (!row.is_of(of)) continue;
    const auto chosen = [&](std::string_view id) { return !choose || choose(id); };
    const char letter = row.letter();
    if (letter == 0) {
      if (chosen(row.id)) {
        result.push_back({std::string(row.id), std::string(row.words), std::string(row.options),
                          &row, row.parameter});
      }
      continue;
    }
    std::set<std::int64_t> seen;
    for (const Length& length : letter == 'P' ? lengths : blocks_of(row)) {
      if (is_one_warp(row, length.padded_to) || (letter == 'P' && length.padded_to == n)) continue;
      if (!seen.insert(length.padded_to).second) continue;
      const std::string id = row.with_length(row.id, '-', length.padded_to);
      const bool is_former = row.change == padded &&
                             std::any_of(lengths.begin(), lengths.end(), [&](const Length& one) {
                               return one.padded_to == length.padded_to && !one.former.empty() &&
                                      choose && choose(one.former);
                             });
      if (!chosen(id) && !is_former) continue;
      result.push_back({id, row.with_length(row.words, ' ', length.padded_to),
                        std::string(row.options), &row, static_cast<double>(length.padded_to)});
    }
  }
  return result;
}

namespace {

// Those that change one of mean and variance alone.
void add_sides(const NamedKernel& kernel, std::vector<NamedKernel>& all) {
  const WrongKernel& row = *kernel.row;
  const auto add = [&](Side side, std::string_view name, std::string_view words) {
    all.push_back({concat(kernel.id, name), concat(kernel.words, words), kernel.options, kernel.row,
                   kernel.parameter, side});
  };
  constexpr std::string_view kIsRight = "; the variance is right";
  if (row.change == mean_in<DType::float16> || row.change == mean_in<DType::bfloat16>) {
    add(Side::own, "", kIsRight);
  }
  // Where padding is not masked only the variance is wrong.
  if (row.part != KernelPart::elements || row.change == unmasked || row.change == unmasked_by) {
    return;
  }
  constexpr std::string_view kMeanAlone = ", in the mean alone";
  add(Side::mean, "-mean", kMeanAlone);
  add(Side::own, "-mean", concat(kMeanAlone, kIsRight));
  // What is masked leaves the variance as it is.
  if (row.change == reads_on || row.change == reads_on_by) return;
  add(Side::variance, "-variance", ", in the variance alone");
}

}  // namespace

std::vector<NamedKernel> padded_kernels(std::int64_t length) {
  std::vector<NamedKernel> result;
  for (const WrongKernel& row : kWrongKernels) {
    if (row.letter() != 'P' || !row.is_forward()) continue;
    const NamedKernel kernel{row.with_length(row.id, '-', length),
                             row.with_length(row.words, ' ', length), std::string(row.options),
                             &row, static_cast<double>(length)};
    result.push_back(kernel);
    add_sides(kernel, result);
  }
  return result;
}

std::shared_ptr<const std::vector<NamedKernel>> ChooseKernel::kernels(
    Quantity of, const Shape& normalized_shape) const {
  const std::lock_guard lock(kept_->mutex);
  auto& [shape, last] = kept_->last[of];
  if (last != nullptr && shape == normalized_shape) return last;
  std::vector<NamedKernel> all;
  for (const NamedKernel& kernel : named_kernels(of, normalized_shape, *this)) {
    all.push_back(kernel);
    if (of == Quantity::y) add_sides(kernel, all);
  }
  shape = normalized_shape;
  last = std::make_shared<const std::vector<NamedKernel>>(std::move(all));
  return last;
}

std::span<const QuantizedKernel> quantized_kernels() {
  static constexpr QuantizedKernel kAll[] = {
      {"scale-reciprocal", "what is saved is 1 / scale"},
      {"scale-transposed", "the scales are saved with the groups first", "--scale-transposed"},
      {"scale-of-tensor", "the scale is that of the whole tensor", "--quantize tensor"},
      {"scale-of-row", "the scale is that of the whole row", "--quantize row"},
      {"group-{}", "a scale is that of {} elements", "--quantize group:{}"},
      {"qmax-{}", "the largest |y| becomes {}", "--qmax {}"},
      {"no-scale-max", "the greatest scale is forgotten"},
      {"no-scale-min", "the least scale is forgotten"},
      {"scale-not-power-of-two", "the scale is not rounded to a power of two"},
      {"scale-power-of-two-down", "the scale is rounded down to a power of two"},
      {"amax-of-x", "the scale is that of x"},
      {"amax-of-xhat", "the scale is that of xhat, before the weight"},
      {"amax-before-bias", "the scale is that of y before the bias"},
      {"amax-without-abs", "the scale is that of the largest y, not of the largest |y|"},
      {"amax-without-residual", "the scale is that of INPUT alone, without the residual"},
      {"rounded-y", "y is rounded to {} before it is divided", "--round y"},
      {"unrounded-y", "y is not rounded before it is divided", "without --round y"},
      {"drops-nan", "NaN is left out of the largest |y|"},
      {"no-scale", "q is y rounded, without the scale"},
      {"zeros", "q is 0"},
      {"half-away", "ties are rounded away from zero, not to even"},
      {"truncated", "the last rounding is toward zero"},
      {"away", "the last rounding is away from zero"},
      {"wraps", "q wraps around where it should saturate"},
      {"not-saturated", "what is beyond the dtype becomes NaN or infinity"},
      {"saturates-at-{}", "q saturates where |q| is {}"},
      {"zero-point", "a whole number is added to q"},
  };
  return kAll;
}

std::string option_of(const NamedKernel& kernel, const KernelContext& context) {
  const std::string_view option = kernel.row != nullptr ? kernel.row->options : kernel.options;
  // Nothing is left that 1 could be added to.
  const bool leaves_one = option == kWithoutWeight && context.setting.kernel.adds_one;
  if (leaves_one) return concat(option, " without --zero-centered-weight");
  if (option != kWithoutMean) return kernel.options;
  return concat(context.setting.formula.has_mean() ? concat(option, ' ') : "", "without ",
                context.has_given_rstd ? "--rstd" : "--variance");
}

std::string eps_option(const std::string& eps) { return "--eps " + eps; }

std::string_view float32_advice() noexcept {
  return "it is as far off as float32 is: --arithmetic float32 judges a kernel that computes in "
         "it, and JSON is read as float32 by --as float32";
}

std::string groups_option(std::int64_t groups) { return concat("--groups ", groups); }

std::string axes_option(const std::string& axes, const std::string& affine_axes) {
  return "--axes " + axes + (affine_axes.empty() ? "" : " --affine-axes " + affine_axes);
}

}  // namespace lnorm
