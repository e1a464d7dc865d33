#include "lnorm/diagnosis/wrong_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace lnorm {

namespace {

using Context = KernelContext;
using Result = Variant::Result;

bool eps_place(Variant& v, const Context& c, double on_std) {
  v.formula.eps_on = on_std != 0 ? EpsOn::std : EpsOn::variance;
  return c.setting.formula.eps_on != v.formula.eps_on && c.setting.formula.eps != 0 &&
         !c.has_no_deviations();
}

bool eps_value(Variant& v, const Context& c, double eps) {
  v.formula.eps = eps;
  const double asked = c.setting.formula.eps;
  return asked != eps && (!c.has_no_deviations() || asked == 0 || eps == 0);
}

bool ddof(Variant& v, const Context& c, double ddof) {
  v.formula.ddof = static_cast<std::int64_t>(ddof);
  return c.setting.formula.ddof != v.formula.ddof && v.formula.ddof < c.row_length();
}

bool rms(Variant& v, const Context& c, double is_rms) {
  v.formula.rms = is_rms != 0;
  return c.setting.formula.rms != v.formula.rms;
}

bool mean_in_variance(Variant& v, const Context& c, double) {
  v.squares_about_zero = true;
  return !c.setting.formula.rms && c.row_length() > 1;
}

// Of one element x - mean and the variance are 0.
bool mean_times(Variant& v, const Context& c, double factor) {
  v.mean_factor = factor;
  return !c.setting.formula.rms;
}

bool divide_by(Variant& v, const Context& c, double variance) {
  v.divisor = variance != 0 ? Variant::Divisor::variance : Variant::Divisor::one;
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
  return c.has_given;
}

bool residual(Variant& v, const Context& c, double input) {
  v.input = static_cast<Variant::Input>(input);
  return c.has_residual;
}

// Gives the variant weight and bias of its own. The change sees them without the output scale.
template <class Change>
bool change_affine(Variant& v, const Context& c, Change change) {
  const double output_scale = c.setting.output_scale;
  const auto change_numbers = [output_scale, change](AffineNumbers& numbers) {
    const auto scale = [&](double by) {
      for (std::vector<double>* const some : {&numbers.weight, &numbers.bias}) {
        for (double& number : *some) number *= by;
      }
    };
    if (output_scale != 1) scale(1 / output_scale);
    change(numbers.weight, numbers.bias);
    if (output_scale != 1) scale(output_scale);
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

bool weight_plus(Variant& v, const Context& c, double one) {
  return c.setting.kernel.adds_one == (one < 0) &&
         change_one<Parameter::weight>(v, c, [one](Numbers& w) { add(w, one); });
}

// Whether there is an order to mistake.
template <Parameter of>
bool has_order(const Context& c) {
  const bool is_number = of == Parameter::weight ? c.weight_is_number : c.bias_is_number;
  return c.row_length() > 1 && !is_number;
}

template <Parameter of>
bool reversed(Variant& v, const Context& c, double) {
  return has_order<of>(c) && change_one<of>(v, c, [](Numbers& numbers) {
           std::reverse(numbers.begin(), numbers.end());
         });
}

template <Parameter of>
bool shifted(Variant& v, const Context& c, double by) {
  return has_order<of>(c) && change_one<of>(v, c, [by](Numbers& numbers) {
           const auto middle = by > 0 ? numbers.begin() + 1 : numbers.end() - 1;
           std::rotate(numbers.begin(), middle, numbers.end());
         });
}

// As if the numbers lay in Fortran order; or back, as if they had lain so.
template <Parameter of>
bool transposed(Variant& v, const Context& c, double back) {
  const Shape& shape = c.normalized_shape;
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

bool no_tail(Variant& v, const Context& c, double multiple) {
  const std::int64_t n = c.row_length();
  const auto k = static_cast<std::int64_t>(multiple);
  v.of_first = n - n % k;
  return k < n && n % k != 0 && c.setting.formula.ddof < v.of_first;
}

// multiple: 0 for a power of two.
bool padded(Variant& v, const Context& c, double multiple) {
  const std::int64_t n = c.row_length();
  const auto k = static_cast<std::int64_t>(multiple);
  v.padded_to = k == 0 ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)))
                       : (n + k - 1) / k * k;
  return v.padded_to != n;
}

bool of_row(Variant& v, const Context& c, double of) {
  v.of = static_cast<Variant::Of>(of);
  return c.rows != 1;
}

bool statistics_in(Variant& v, const Context& c, double dtype) {
  v.rounded_to = static_cast<DType>(dtype);
  // A kernel that computes in it has nothing else.
  return arithmetic_of(*v.rounded_to).unit > c.setting.kernel.arithmetic.unit;
}

bool one_pass(Variant& v, const Context& c, double) {
  v.one_pass = true;
  return !c.setting.formula.rms && c.row_length() > 1;
}

bool own_sums_in(Variant& v, const Context& c, double dtype) {
  v.summed_in = static_cast<DType>(dtype);
  return arithmetic_of(*v.summed_in).unit > c.setting.kernel.arithmetic.unit;
}

bool has_affine(const Context& c) { return c.has_weight || c.has_bias; }

// Rounding to float64 is within the bounds of a kernel that computes in it. A row of two elements without eps has an xhat of 1
// and -1, which no rounding changes.
bool rounds_visibly(const Context& c) {
  const Formula& formula = c.setting.formula;
  const bool is_sign = c.row_length() == 2 && !formula.rms && formula.ddof == 0 && formula.eps == 0;
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
bool unrounded(Variant& v, const Context&, double) {
  return std::exchange(v.rounding, {}) != Rounding{};
}

bool result(Variant& v, const Context&, double result) {
  v.result = static_cast<Result>(result);
  return true;
}
constexpr double of(Result result) { return static_cast<double>(result); }
constexpr double of(DType dtype) { return static_cast<double>(dtype); }
constexpr double of(Variant::Input input) { return static_cast<double>(input); }
constexpr double of(Variant::Of row) { return static_cast<double>(row); }

bool zeros(Variant& v, const Context& c, double) {
  return result(v, c, of(Result::zeros)) && (!c.has_no_deviations() || c.has_bias);
}

// With eps = 0 and nothing after it, the norm of the norm is the norm.
bool twice(Variant& v, const Context& c, double) {
  return result(v, c, of(Result::twice)) && !c.has_no_deviations() &&
         (c.setting.formula.eps != 0 || has_affine(c));
}

bool shifted_rows(Variant& v, const Context& c, double by) {
  return result(v, c, by) && c.rows != 1;
}

bool unwritten(Variant& v, const Context& c, double part) {
  return result(v, c, part) && c.is_written;
}

bool shifted_columns(Variant& v, const Context& c, double by) {
  return result(v, c, by) && c.row_length() > 1;
}

bool other_dtype(Variant& v, const Context& c, double) {
  v.bytes = Variant::Bytes::other_dtype;
  // Nothing says the scale of the integers that wider ones are.
  return item_size(c.setting.output.dtype()) == 2 ||
         (c.is_written && item_size(c.setting.output.dtype()) > 2);
}

bool byte_order(Variant& v, const Context& c, double of_input) {
  v.bytes = of_input != 0 ? Variant::Bytes::swapped_input : Variant::Bytes::swapped;
  const DType dtype = of_input != 0 ? c.x_dtype : c.setting.output.dtype();
  return item_size(dtype) > 1 && is_floating(dtype);
}

// ---- The backward pass.

// part: of dx; 0: both.
bool without_term(GradientVariant& v, const GradientContext& c, double part) {
  if (part != 2) v.has_mean_of_g = false;
  if (part != 1) v.has_variance_term = false;
  return c.of == Gradient::dx && !c.model.has_constants &&
         (part != 1 || !c.model.setting.formula.rms) && (part != 2 || !c.has_no_deviations());
}

bool weight_forgotten(GradientVariant& v, const GradientContext& c, double) {
  v.has_weight = false;
  return c.of == Gradient::dx && c.has_weight && !c.dx_is_zero();
}

bool other_ddof(GradientVariant& v, const GradientContext& c, double of_sums_alone) {
  const std::int64_t n = c.row_length();
  const std::int64_t ddof = v.formula.ddof == 0 ? 1 : 0;
  if (of_sums_alone != 0) {
    v.freedom = n - ddof;
  } else {
    v.formula.ddof = ddof;
  }
  return c.of == Gradient::dx && !c.model.has_constants && ddof < n &&
         (of_sums_alone != 0 || !c.dx_is_zero());
}

bool own_statistics_backward(GradientVariant& v, const GradientContext& c, double) {
  v.own_statistics = true;
  return c.of != Gradient::dbias && c.model.has_constants;
}

bool last_row_lost(GradientVariant& v, const GradientContext& c, double power) {
  const std::int64_t rows = c.model.rows;
  const auto multiple = std::int64_t{1} << static_cast<int>(power);
  v.lost_rows = rows % multiple;
  return c.of != Gradient::dx && v.lost_rows < rows && v.lost_rows != rows % (multiple / 2);
}

bool gradient_statistics_in(GradientVariant& v, const GradientContext& c, double dtype) {
  v.statistics = static_cast<DType>(dtype);
  return c.of != Gradient::dbias &&
         arithmetic_of(*v.statistics).unit > c.model.setting.kernel.arithmetic.unit;
}

bool sums_in(GradientVariant& v, const GradientContext& c, double dtype) {
  v.sums = static_cast<DType>(dtype);
  // The sum of one term is that term, which is rounded once.
  const bool is_one_term = c.model.terms() == 1;
  return c.of != Gradient::dx && !(is_one_term && *v.sums == c.model.setting.output.dtype()) &&
         arithmetic_of(*v.sums).unit > c.model.setting.kernel.arithmetic.unit;
}

// As a kernel does that sums up blocks of rows.
bool sums_in_any_order(GradientVariant& v, const GradientContext& c, double dtype) {
  v.is_any_order = true;
  return sums_in(v, c, dtype);
}

bool xhat_with_affine(GradientVariant& v, const GradientContext& c, double) {
  v.xhat_has_affine = true;
  return c.of != Gradient::dbias && ((c.has_weight && !c.has_no_deviations()) || c.has_bias);
}

// clang-format off
constexpr WrongKernel kWrongKernels[] = {
    {"eps-on-std", "eps is added to the standard deviation", "--eps-on std", KernelPart::eps_place, eps_place, 1},
    {"eps-on-variance", "eps is added to the variance", "--eps-on variance", KernelPart::eps_place, eps_place, 0},
    {"eps-0", "eps is 0", "--eps 0", KernelPart::eps_value, eps_value, 0},
    {"eps-1e-12", "eps is 1e-12", "--eps 1e-12", KernelPart::eps_value, eps_value, 1e-12},
    {"eps-1e-8", "eps is 1e-8", "--eps 1e-8", KernelPart::eps_value, eps_value, 1e-8},
    {"eps-1e-6", "eps is 1e-6", "--eps 1e-6", KernelPart::eps_value, eps_value, 1e-6},
    {"eps-1e-5", "eps is 1e-5", "--eps 1e-5", KernelPart::eps_value, eps_value, 1e-5},
    {"eps-1e-3", "eps is 1e-3", "--eps 1e-3", KernelPart::eps_value, eps_value, 1e-3},
    {"ddof-1", "the variance is divided by n - 1", "--unbiased", KernelPart::ddof, ddof, 1},
    {"ddof-0", "the variance is divided by n", "--ddof 0", KernelPart::ddof, ddof, 0},
    {"rms", "RMS norm: the mean is not subtracted", "--rms", KernelPart::mean_or_division, rms, 1},
    {"layer-norm", "layer norm: the mean is subtracted", "without --rms", KernelPart::mean_or_division, rms, 0},
    {"mean-in-variance", "the mean is subtracted from x, but the variance is mean(x^2)", "", KernelPart::mean_or_division, mean_in_variance},
    {"variance-only", "the variance is right, but the mean is not subtracted from x", "", KernelPart::mean_or_division, mean_times, 0},
    {"mean-twice", "the mean is subtracted twice", "", KernelPart::mean_or_division, mean_times, 2},
    {"no-division", "x - mean is not divided", "", KernelPart::mean_or_division, divide_by, 0},
    {"divide-by-variance", "x - mean is divided by var + eps, without the root", "", KernelPart::mean_or_division, divide_by, 1},
    {"no-reduction", "mean and variance are 0: x / sqrt(eps)", "", KernelPart::mean_or_division, no_reduction},
    {"no-weight", "the weight is forgotten", "without --weight", KernelPart::affine, no_weight},
    {"no-bias", "the bias is forgotten", "without --bias", KernelPart::affine, no_bias},
    {"no-residual", "the residual is forgotten", "without --residual", KernelPart::alone, residual, of(Variant::Input::x_alone)},
    {"residual-twice", "the residual is added twice", "", KernelPart::alone, residual, of(Variant::Input::residual_twice)},
    {"weight-twice", "the weight is applied twice", "", KernelPart::affine, weight_twice},
    {"bias-twice", "the bias is applied twice", "", KernelPart::affine, bias_twice},
    {"swapped-affine", "weight and bias stand for each other", "", KernelPart::affine, swapped_affine},
    {"bias-first", "the bias is added before the weight multiplies", "", KernelPart::affine, bias_first},
    {"weight-plus-one", "1 + weight multiplies", "--zero-centered-weight", KernelPart::affine, weight_plus, 1},
    {"weight-without-one", "weight multiplies, not 1 + weight", "without --zero-centered-weight", KernelPart::affine, weight_plus, -1},
    {"weight-reversed", "the weight is in reverse order", "", KernelPart::affine, reversed<Parameter::weight>},
    {"bias-reversed", "the bias is in reverse order", "", KernelPart::affine, reversed<Parameter::bias>},
    {"weight-shifted", "the weight is off by one element", "", KernelPart::affine, shifted<Parameter::weight>, 1},
    {"weight-shifted", "the weight is off by one element", "", KernelPart::affine, shifted<Parameter::weight>, -1},
    {"bias-shifted", "the bias is off by one element", "", KernelPart::affine, shifted<Parameter::bias>, 1},
    {"bias-shifted", "the bias is off by one element", "", KernelPart::affine, shifted<Parameter::bias>, -1},
    {"weight-transposed", "the weight is transposed", "", KernelPart::affine, transposed<Parameter::weight>, 0},
    {"weight-transposed", "the weight is transposed", "", KernelPart::affine, transposed<Parameter::weight>, 1},
    {"bias-transposed", "the bias is transposed", "", KernelPart::affine, transposed<Parameter::bias>, 0},
    {"bias-transposed", "the bias is transposed", "", KernelPart::affine, transposed<Parameter::bias>, 1},
    {"no-tail-8", "the statistics leave out the n mod 8 last elements", "", KernelPart::alone, no_tail, 8},
    {"no-tail-16", "the statistics leave out the n mod 16 last elements", "", KernelPart::alone, no_tail, 16},
    {"no-tail-32", "the statistics leave out the n mod 32 last elements", "", KernelPart::alone, no_tail, 32},
    {"no-tail-64", "the statistics leave out the n mod 64 last elements", "", KernelPart::alone, no_tail, 64},
    {"no-tail-128", "the statistics leave out the n mod 128 last elements", "", KernelPart::alone, no_tail, 128},
    {"no-tail-256", "the statistics leave out the n mod 256 last elements", "", KernelPart::alone, no_tail, 256},
    {"padded-8", "sums are divided by n rounded up to a multiple of 8", "", KernelPart::alone, padded, 8},
    {"padded-16", "sums are divided by n rounded up to a multiple of 16", "", KernelPart::alone, padded, 16},
    {"padded-32", "sums are divided by n rounded up to a multiple of 32", "", KernelPart::alone, padded, 32},
    {"padded-64", "sums are divided by n rounded up to a multiple of 64", "", KernelPart::alone, padded, 64},
    {"padded-128", "sums are divided by n rounded up to a multiple of 128", "", KernelPart::alone, padded, 128},
    {"padded-256", "sums are divided by n rounded up to a multiple of 256", "", KernelPart::alone, padded, 256},
    {"padded-pow2", "sums are divided by n rounded up to a power of two", "", KernelPart::alone, padded, 0},
    {"neighbor-row", "the statistics are those of the row before", "", KernelPart::alone, of_row, of(Variant::Of::previous_row)},
    {"first-row", "the statistics are those of the first row", "", KernelPart::alone, of_row, of(Variant::Of::first_row)},
    {"last-row", "the statistics are those of the last row", "", KernelPart::alone, of_row, of(Variant::Of::last_row)},
    {"own-statistics", "the statistics are the rows' own, not those that are given", "without --mean", KernelPart::mean_or_division, own_statistics, 1e-5, own_statistics_backward},
    {"one-pass", "the variance is mean(x^2) - mean^2", "", KernelPart::own_sums, one_pass},
    {"float16-sums", "the row's sums are in float16", "", KernelPart::own_sums, own_sums_in, of(DType::float16)},
    {"bfloat16-sums", "the row's sums are in bfloat16", "", KernelPart::own_sums, own_sums_in, of(DType::bfloat16)},
    {"float16-statistics", "mean and rstd are rounded to float16", "", KernelPart::alone, statistics_in, of(DType::float16), gradient_statistics_in},
    {"bfloat16-statistics", "mean and rstd are rounded to bfloat16", "", KernelPart::alone, statistics_in, of(DType::bfloat16), gradient_statistics_in},
    {"rounded-xhat", "xhat is rounded to the output dtype before the weight", "--round xhat", KernelPart::alone, rounded_xhat},
    {"rounded-product", "the product is rounded to the output dtype before the bias", "--round product", KernelPart::alone, rounded_product},
    {"unrounded", "nothing is rounded before the end", "without --round", KernelPart::alone, unrounded},
    {"truncated", "the last rounding is toward zero", "", KernelPart::alone, result, of(Result::truncated)},
    {"away", "the last rounding is away from zero", "", KernelPart::alone, result, of(Result::away)},
    {"other-dtype", "y is right, but labeled as another dtype of its width", "", KernelPart::alone, other_dtype},
    {"byte-order", "the bytes of y are swapped", "", KernelPart::alone, byte_order, 0},
    {"byte-order-x", "the bytes of x were swapped", "", KernelPart::alone, byte_order, 1},
    {"identity", "y is x", "", KernelPart::alone, result, of(Result::input)},
    {"zeros", "y is 0", "", KernelPart::alone, zeros},
    {"twice", "y is the norm of the norm", "", KernelPart::alone, twice},
    {"softmax", "y is softmax of x", "lnorm softmax", KernelPart::alone, result, of(Result::softmax)},
    {"shifted-rows", "y is one row further", "", KernelPart::alone, shifted_rows, of(Result::previous_row)},
    {"shifted-rows", "y is one row further", "", KernelPart::alone, shifted_rows, of(Result::next_row)},
    {"shifted-columns", "y is one element further", "", KernelPart::alone, shifted_columns, of(Result::previous_element)},
    {"shifted-columns", "y is one element further", "", KernelPart::alone, shifted_columns, of(Result::next_element)},
    {"unwritten-rows", "rows are not written: they hold zeros, x, or what is not a number (tried: the last eighth is 0)", "", KernelPart::alone, unwritten, of(Result::unwritten_rows)},
    {"unwritten-tail", "the last elements are not written: they hold zeros, x, or what is not a number (tried: the last eighth is 0)", "", KernelPart::alone, unwritten, of(Result::unwritten_tail)},
    // backward
    {"no-mean-terms", "dx is g / s, without both means", "", KernelPart::mean_or_division, nullptr, 0, without_term},
    {"no-mean-of-g", "the mean of g is not subtracted in dx", "", KernelPart::mean_or_division, nullptr, 1, without_term},
    {"no-variance-term", "dx lacks the term of the variance", "", KernelPart::mean_or_division, nullptr, 2, without_term},
    {"weight-forgotten", "g is dy, without the weight", "without --weight", KernelPart::affine, nullptr, 0, weight_forgotten},
    {"other-ddof", "the variance has the other divisor in dx", "--ddof", KernelPart::ddof, nullptr, 0, other_ddof},
    {"other-ddof", "the variance has the other divisor in dx", "", KernelPart::ddof, nullptr, 1, other_ddof},
    {"last-row-lost", "dweight and dbias lack the last R mod 2 of R rows", "", KernelPart::alone, nullptr, 1, last_row_lost},
    {"last-row-lost", "dweight and dbias lack the last R mod 4 of R rows", "", KernelPart::alone, nullptr, 2, last_row_lost},
    {"last-row-lost", "dweight and dbias lack the last R mod 8 of R rows", "", KernelPart::alone, nullptr, 3, last_row_lost},
    {"last-row-lost", "dweight and dbias lack the last R mod 16 of R rows", "", KernelPart::alone, nullptr, 4, last_row_lost},
    {"last-row-lost", "dweight and dbias lack the last R mod 32 of R rows", "", KernelPart::alone, nullptr, 5, last_row_lost},
    {"last-row-lost", "dweight and dbias lack the last R mod 64 of R rows", "", KernelPart::alone, nullptr, 6, last_row_lost},
    {"last-row-lost", "dweight and dbias lack the last R mod 128 of R rows", "", KernelPart::alone, nullptr, 7, last_row_lost},
    {"last-row-lost", "dweight and dbias lack the last R mod 256 of R rows", "", KernelPart::alone, nullptr, 8, last_row_lost},
    {"float16-dweight", "dweight and dbias are summed in float16", "", KernelPart::sums, nullptr, of(DType::float16), sums_in},
    {"float16-dweight", "dweight and dbias are summed in float16", "", KernelPart::sums, nullptr, of(DType::float16), sums_in_any_order},
    {"bfloat16-dweight", "dweight and dbias are summed in bfloat16", "", KernelPart::sums, nullptr, of(DType::bfloat16), sums_in},
    {"bfloat16-dweight", "dweight and dbias are summed in bfloat16", "", KernelPart::sums, nullptr, of(DType::bfloat16), sums_in_any_order},
    {"xhat-with-affine", "xhat is y, with weight and bias in it", "", KernelPart::alone, nullptr, 0, xhat_with_affine},
};
// clang-format on

}  // namespace

std::span<const WrongKernel> wrong_kernels() noexcept { return kWrongKernels; }

std::string eps_option(const std::string& eps) { return "--eps " + eps; }

std::string axes_option(const std::string& axes) { return "--axes " + axes; }

}  // namespace lnorm
