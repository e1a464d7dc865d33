#include "lnorm/pipeline/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/formula.hpp"
#include "lnorm/core/interruption.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/philox.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/layout/row_slice.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/check_rows.hpp"
#include "lnorm/pipeline/mutants.hpp"

namespace lnorm {

namespace {

// Small inputs are drawn up to kAttempts times, larger ones less often: in a large one luck decides little.
constexpr std::int64_t kAttempts = 16;
constexpr std::int64_t kElementsDrawn = 16384;

// What an element of x may depend on.
struct Place {
  const Philox& random;
  const FloatFormat& format;
  double eps;
  EpsOn eps_on;
  std::int64_t n;
  std::int64_t row;
  std::int64_t element;

  std::uint64_t index() const { return static_cast<std::uint64_t>(row * n + element); }
  double normal() const { return random.normal(index()); }
  double power_of_two(std::int64_t exponent) const {
    return std::ldexp(1.0, static_cast<int>(exponent));
  }
  // The same in all rows: two groups of integers, up to most from a center each.
  double pattern(double center, std::uint32_t most) const {
    const auto at = static_cast<std::uint64_t>(element);
    return (element % 2 == 0 ? center : -center) +
           static_cast<double>(random.integer(at, 2 * most + 1)) - most;
  }
};

double ordinary(const Place& p) { return 1 + 2 * p.normal(); }

// The mean is as far from 0 as a right kernel in float32 can bear; in a narrow dtype, as far as its digits allow.
double far_mean(const Place& p) {
  const int precision = p.format.precision;
  // Two numbers beside a power of two: their mean is no number of the dtype.
  if (precision <= 11 && p.n == 2) {
    return p.power_of_two(precision - 2) + (p.element == 0 ? -0.25 : 0.5);
  }
  return p.power_of_two((precision <= 11 ? precision - 3 : precision / 2) + p.row % 2) + p.normal();
}

// The deviation beside which eps counts.
double deviation_of_eps(const Place& p) {
  if (p.eps == 0) return 0x1p-20;
  const double size = p.eps_on == EpsOn::variance ? std::sqrt(p.eps) : p.eps;
  return std::max(size, std::ldexp(16, p.format.least_exponent));
}

double small_deviation(const Place& p) {
  return deviation_of_eps(p) * p.normal() * p.power_of_two(-(p.row % 3));
}

double constant(const Place& p) {
  const std::int64_t kind = p.row % 5;
  return kind == 4 ? 0 : (p.row % 2 == 0 ? 0.75 : -0.75) * static_cast<double>(kind + 1);
}

double outliers(const Place& p) {
  const double outlier = p.element == p.n - 1 ? 300 : p.element == p.n / 3 ? -200 : 0;
  return outlier + p.normal();
}

double ties(const Place& p) { return static_cast<double>(p.random.integer(p.index(), 3)) - 1; }

double denormals(const Place& p) {
  const auto steps = static_cast<double>(p.random.integer(p.index(), 1024)) - 512;
  return std::ldexp(steps, p.format.least_exponent);
}

// Of float64 those whose squares it holds: wrong kernels are evaluated in it.
double largest(const Place& p) {
  const double most = std::min(p.format.greatest, 0x1p500);
  const double size = most * (0.5 + 0.5 * p.random.uniform(p.index()));
  return p.random.block(p.index())[1] % 2 == 0 ? size : -size;
}

// One of three rows has NaN, and one an infinity.
double not_finite(const Place& p) {
  if (p.row % 3 == 0 && p.element == p.n / 2) return kNan;
  return p.row % 3 == 1 && p.element == p.n - 1 ? kInfinity : ordinary(p);
}

double different_rows(const Place& p) {
  return std::ldexp(p.normal() + 0.5, static_cast<int>(2 * (p.row % 6) - 6));
}

double cancelled(const Place& p) {
  return p.pattern(16, 15) * static_cast<double>(1 + 2 * (p.row % 3));
}

// Two elements with the same exponent have exact sums: so rows of two get different ones.
double cancelled_far(const Place& p) {
  if (p.n == 2) {
    const int precision = p.format.precision;
    const int between = std::max(3, 14 - precision);
    const double size =
        2 * std::floor(std::ldexp(1 + p.random.uniform(p.index()), precision - 2)) + 1;
    return std::ldexp(size, (p.element == 0 ? between : 0) - precision);
  }
  return p.power_of_two(p.format.precision - 1) + p.pattern(4, 3);
}

// Pairs of opposite numbers, of which nothing but eps is seen: the mean is 0, and the deviation near that of eps. Each second row
// is the negative of the one before it.
double opposite(const Place& p) {
  if (p.element + p.n % 2 == p.n) return 0;
  const auto pair = static_cast<std::uint64_t>(p.element / 2);
  const double size = static_cast<double>(p.random.integer(pair, 13)) + 3;
  const auto of_eps = static_cast<int>(std::lround(std::log2(deviation_of_eps(p))));
  const int exponent = p.eps > 0 ? std::max(of_eps - 3, p.format.least_exponent) : -8;
  return ((p.element ^ p.row) % 2 == 0 ? 1 : -1) * std::ldexp(size, exponent);
}

// What dy is; nothing: there is none.
enum class Upstream : std::uint8_t {
  none,
  normal,
  // An element beyond the range of float16, and a large last row.
  large,
  // A multiple of x: its terms in dx cancel to what eps leaves.
  like_x,
  // Terms in dx cancel to the last digit for half of the elements, and those of rows of dweight.
  balanced
};

struct CaseRow {
  std::string_view name;
  std::string_view purpose;
  double (*x)(const Place& place);
  // The weight is large, and the bias cancels the products to their last digit.
  bool cancels = false;
  Upstream dy = Upstream::none;
  bool is_quantized = false;  // it is of no use to others
};

// clang-format off
constexpr CaseRow kCases[] = {
    {"ordinary", "normal numbers with mean 1 and deviation 2; weight and bias are not symmetric", ordinary, false, Upstream::normal},
    {"far-mean", "means far above the deviation: one pass, a lost mean, rounded statistics", far_mean, false, Upstream::normal},
    {"small-deviation", "a deviation near that of eps, the root of it or itself: its value and its place", small_deviation, false, Upstream::normal},
    {"constant", "rows of one number: the variance is 0, and y is the bias", constant},
    {"outliers", "massive activations, one of them the last element: tails that are left out; sums that leave float16", outliers, false, Upstream::large},
    {"ties", "elements equal to each other and to the mean: xhat is 0, and exact", ties},
    {"denormals", "numbers below the normal range: what is flushed to 0, and eps beside nothing", denormals},
    {"largest", "the largest finite numbers: squares and sums that overflow", largest},
    {"different-rows", "rows that differ a lot: statistics of another row, or over other axes", different_rows, false, Upstream::large},
    {"cancelled", "a large weight, whose product the bias cancels: the last digits of xhat, its divisor, roundings on the way. A right kernel has only these digits as well: judge it by lnorm check, not by a tolerance. dy is a multiple of x: the terms of dx cancel, too", cancelled, true, Upstream::like_x},
    {"cancelled-far-mean", "the same with means far above the deviation: sums in one pass or in few bits", cancelled_far, true},
    {"opposite-rows", "pairs of rows whose terms of dweight cancel: sums in few bits. The terms of dx cancel for half of the elements: the divisor", opposite, true, Upstream::balanced},
    {"not-finite", "rows with NaN and with infinity: their scales are NaN, and of no other row", not_finite, false, Upstream::none, true},
};
// clang-format on

class Maker {
 public:
  Maker(const InputsOptions& options, std::uint32_t attempt)
      : options_(options),
        attempt_(attempt),
        plan_(make_plan({"x", options.dtype, options.shape}, options.normalization, options.dtype,
                        {.whole = true, .ordered = true})) {}

  const Plan& plan() const { return plan_; }

  MadeCase make(std::uint32_t number) const {
    const CaseRow& row = kCases[number];
    const std::string name(row.name);
    const Philox random(options_.seed, 4 * number, attempt_);
    const std::vector<double> rows = rows_of(row, random);
    MadeCase made{.name = name,
                  .purpose = std::string(row.purpose),
                  .x = in_shape(name + ".x", encoded(rows, options_.dtype))};
    const Shape shape = plan_.affine_shape();
    const auto count = static_cast<std::size_t>(element_count(shape));
    std::vector<double> weight(count);
    std::vector<double> bias(count);
    if (row.cancels) {
      cancel(rows, weight, bias);
    } else {
      weight = normals(4 * number + 1, count, 0.3);
      bias = normals(4 * number + 2, count, 0.3);
    }
    made.weight = {{name + ".weight", options_.dtype, shape}, encoded(weight, options_.dtype)};
    made.bias = {{name + ".bias", options_.dtype, shape}, encoded(bias, options_.dtype)};
    if (row.dy != Upstream::none) {
      const auto dy = dy_of(row.dy, rows, normals(4 * number + 3, rows.size(), 0.5));
      made.dy = in_shape(name + ".dy", encoded(dy, options_.dtype));
    }
    return made;
  }

 private:
  std::vector<double> rows_of(const CaseRow& row, const Philox& random) const {
    const FloatFormat& format = float_format(options_.dtype);
    const Formula& formula = plan_.formula;
    std::vector<double> rows;
    rows.reserve(static_cast<std::size_t>(plan_.rows * plan_.row_length));
    for (std::int64_t r = 0; r < plan_.rows; ++r) {
      check_interruption();
      for (std::int64_t i = 0; i < plan_.row_length; ++i) {
        rows.push_back(
            row.x({random, format, formula.eps, formula.eps_on, plan_.row_length, r, i}));
      }
    }
    return rows;
  }

  std::vector<double> normals(std::uint32_t stream, std::size_t count, double mean) const {
    const Philox random(options_.seed, stream, attempt_);
    std::vector<double> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = mean + random.normal(i);
    return numbers;
  }

  // The bias is what the product of the first element that has it rounds to, and takes it away.
  void cancel(const std::vector<double>& rows, std::vector<double>& weight,
              std::vector<double>& bias) const {
    const int precision = float_format(options_.dtype).precision;
    // In a row of two elements xhat hardly depends on x, so that a larger weight cancels as well.
    const bool is_narrow = precision <= 11;
    const bool of_two = is_narrow && plan_.row_length == 2 && plan_.formula.has_mean();
    const double large = std::ldexp(0.75, of_two ? 16 : is_narrow ? 7 : precision * 2 / 3 - 1);
    const auto x = encoded(rows, options_.dtype);
    const AffineLayout& layout = plan_.affine;
    std::vector<double> xhat(rows.size());
    backends().front().layer_norm(
        {x.data(), options_.dtype, std::endian::native, plan_.rows, plan_.row_length},
        {.data = reinterpret_cast<std::byte*>(xhat.data()), .dtype = DType::float64}, {},
        plan_.formula, {});
    // From the last element on, so that the first one stays.
    for (std::int64_t r = layout.rows.empty() ? 1 : plan_.rows; r-- > 0;) {
      const std::int64_t first = layout.first(r);
      for (std::int64_t i = plan_.row_length; i-- > 0;) {
        const double own = xhat[static_cast<std::size_t>(r * plan_.row_length + i)];
        const auto k = static_cast<std::size_t>(layout.number(first, i) / layout.copies);
        const double factor = of_two ? best_cancelled(large, own) : large;
        weight[k] = factor - (options_.normalization.zero_centered_weight ? 1 : 0);
        bias[k] = -factor * own;
      }
    }
    weight = in_tensor_order(std::move(weight), layout);
    bias = in_tensor_order(std::move(bias), layout);
  }

  // Returns the factor, from large up to a quarter more, whose product with xhat is nearest to a number of the dtype.
  double best_cancelled(double large, double xhat) const {
    double best = large;
    double least = large;
    double factor = large;
    while (factor < large * 1.25) {
      const double left = std::fabs(factor * xhat - rounded(factor * xhat));
      if (left < least) best = factor;
      least = std::min(least, left);
      factor = next_to(factor);
    }
    return best;
  }

  // What a number is in the dtype.
  double rounded(double number) const { return OutputFormat(options_.dtype).rounded(number); }

  std::vector<double> dy_of(Upstream kind, const std::vector<double>& x,
                            std::vector<double> normal) const {
    const auto n = static_cast<std::size_t>(plan_.row_length);
    if (kind == Upstream::like_x) {
      std::transform(x.begin(), x.end(), normal.begin(), [](double number) { return 8 * number; });
    } else if (kind == Upstream::large) {
      for (std::size_t i = normal.size() - n; i < normal.size(); ++i) normal[i] *= 16;
      normal.front() = std::min(0x1p20, float_format(options_.dtype).greatest);
    } else if (kind == Upstream::balanced) {
      const std::vector<double> row =
          balanced(std::vector<double>(x.begin(), x.begin() + std::ssize(normal) / plan_.rows));
      for (std::int64_t r = 0; r < plan_.rows; ++r) {
        for (std::size_t i = 0; i < n; ++i) {
          normal[static_cast<std::size_t>(r) * n + i] = r % 2 == 0 ? row[i] : next_to(row[i]);
        }
      }
      if (plan_.rows % 2 == 1 && plan_.rows > 1)
        std::fill(normal.end() - plan_.row_length, normal.end(), 0.0);
    }
    return normal;
  }

  // The next number of the dtype, away from 0.
  double next_to(double number) const {
    return number +
           std::copysign(2 * OutputFormat(options_.dtype).half_ulp(std::fabs(number)), number);
  }

  // dx is (g - x P) / s where the mean of x and of g is 0, P = sum(g x) / ((n - ddof) s t). Half of the elements have g = x,
  // the others as much of it that P is 1: for the former dx is what rounding leaves.
  std::vector<double> balanced(std::vector<double> x) const {
    const Formula& formula = plan_.formula;
    double all = 0;
    double first = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      all += x[i] * x[i];
      if (i / 2 % 2 == 0) first += x[i] * x[i];
    }
    const auto freedom = static_cast<double>(formula.freedom(plan_.row_length));
    const double deviation = std::sqrt(all / freedom);
    const Divisors divisors(all / freedom, formula);
    const double scale = std::ldexp(1.0, 4 - std::ilogb(deviation));
    const double factor =
        all > first ? (freedom * divisors.s * divisors.t - first) / (all - first) : 1;
    double missing = 0;  // of sum(g x)
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0) continue;
      const double g = i / 2 % 2 == 0 ? x[i] : factor * x[i] + missing / x[i];
      const double rounded_g = rounded(scale * g) / scale;
      missing = i / 2 % 2 == 0 ? missing : (g - rounded_g) * x[i];
      x[i] = rounded_g;
    }
    for (double& number : x) number *= scale;
    return x;
  }

  // Rows in the order of the tensor.
  MadeTensor in_shape(std::string name, std::vector<std::byte> rows) const {
    MadeTensor made{{std::move(name), options_.dtype, options_.shape}, std::move(rows)};
    if (plan_.out_view.is_contiguous()) return made;
    const std::vector<std::byte> in_rows = std::exchange(made.elements, {});
    made.elements.resize(in_rows.size());
    plan_.out_view.scatter(plan_.out_view.all(), item_size(options_.dtype), in_rows.data(),
                           plan_.row_length, made.elements.data());
    return made;
  }

  const InputsOptions& options_;
  std::uint32_t attempt_;
  Plan plan_;
};

// A tensor of a case as a file of its own.
std::unique_ptr<TensorSource> source_of(const MadeTensor& made) {
  TensorSpool spool(made.info);
  spool.write(made.elements);
  return spool.source();
}

bool rounds_last(std::string_view id) { return id == "truncated" || id == "away"; }

// Tries wrong kernels on a case, by the plan of y or of q. has_affine: or on x and dy alone.
std::vector<TriedMutant> tried_on(const MadeCase& made, const Plan& plan,
                                  const InputsOptions& options, bool has_affine,
                                  const ChooseKernel& choose, const Criteria& criteria) {
  const LayerNormOptions& normalization = options.normalization;
  const auto x = grouped(source_of(made.x), normalization.axes);
  const bool adds_one = has_affine && normalization.zero_centered_weight;
  AffineTerm weight;
  AffineTerm bias;
  if (has_affine) {
    weight = AffineTerm(made.weight.info, made.weight.elements, adds_one);
    bias = AffineTerm(made.bias.info, made.bias.elements, false);
  }
  const Rounding rounding = has_affine ? normalization.rounding : Rounding{};
  const AffineTerm weight_of_rows = weight.laid_out(plan.affine);
  const AffineTerm bias_of_rows = bias.laid_out(plan.affine);
  Affine affine(weight_of_rows, bias_of_rows, rounding);
  if (!weight.is_uniform() || !bias.is_uniform()) affine.set_layout(plan.affine);
  const MutantInputs inputs{
      .x = *x, .weight = weight_of_rows, .bias = bias_of_rows, .affine = affine};
  const MutantOptions how{.zero_centered_weight = adds_one,
                          .rounding = rounding,
                          .choose = choose,
                          .criteria = criteria,
                          .until_caught = true};
  const RunOptions run_options{.threads = options.threads};
  if (options.quantization) {
    return try_quantized_mutants(inputs, {*options.quantization}, plan, backends().front(), how,
                                 run_options);
  }
  auto tried = try_mutants(inputs, plan, backends().front(), how, run_options);
  if (!made.dy) return tried;
  const auto dy = grouped(source_of(*made.dy), normalization.axes);
  const GradPlan backward = make_grad_plan({x->info(), dy->info()}, normalization, plan.out, {},
                                           {.whole = true, .ordered = true});
  const AffineTerm g_weight = weight.laid_out(backward.rows.affine);
  const AffineTerm g_bias = bias.laid_out(backward.rows.affine);
  auto gradients = try_gradient_mutants(
      {.sources = {*x, *dy}, .weight = g_weight, .bias = g_bias, .parameters = made.weight.info},
      backward, backends().front(),
      {.zero_centered_weight = adds_one,
       .choose = choose,
       .criteria = criteria,
       .parameter_criteria = criteria,
       .until_caught = true},
      run_options);
  std::move(gradients.begin(), gradients.end(), std::back_inserter(tried));
  return tried;
}

bool is_caught(const MutantReport& report, std::string_view id) {
  const auto found = std::ranges::find(report.mutants(), id, &Mutant::id);
  return found != report.mutants().end() && found->is_caught();
}

Plan quantized_plan(const InputsOptions& options) {
  RowNeeds needs = options.needs;
  needs.ordered = true;
  Plan plan = make_plan({"x", options.dtype, options.shape}, options.normalization,
                        options.quantization->dtype, needs);
  plan.rounding = options.dtype;
  return plan;
}

// Tries wrong kernels on all cases, as a test does; without weight and bias each until one catches it.
MutantReport report_on(const std::vector<MadeCase>& cases, const Plan& plan,
                       const InputsOptions& options, bool has_affine) {
  const std::optional<Plan> quantized =
      options.quantization ? std::optional(quantized_plan(options)) : std::nullopt;
  MutantReport report;
  for (const MadeCase& one : cases) {
    const auto is_open = [&](std::string_view id) { return has_affine || !is_caught(report, id); };
    if (quantized) {
      report.add(one.name, tried_on(one, *quantized, options, has_affine, is_open,
                                    {.tolerance = Tolerance{0, 0}}));
      continue;
    }
    auto tried = tried_on(one, plan, options, has_affine,
                          [&](std::string_view id) { return !rounds_last(id) && is_open(id); },
                          {.tolerance = default_tolerance(options.dtype, options.dtype)});
    auto last = tried_on(one, plan, options, has_affine,
                         [&](std::string_view id) { return rounds_last(id) && is_open(id); },
                         {.max_ulp = 0.5});
    std::erase_if(last, [](const TriedMutant& mutant) { return !rounds_last(mutant.id); });
    std::move(last.begin(), last.end(), std::back_inserter(tried));
    report.add(one.name, tried);
  }
  return report;
}

std::vector<std::string> survivors_of(const MutantReport& report) {
  std::vector<std::string> ids;
  for (const Mutant* const mutant : report.survivors()) ids.push_back(mutant->id);
  return ids;
}

MadeInputs attempt(const InputsOptions& options, std::uint32_t number) {
  const Maker maker(options, number);
  MadeInputs made;
  for (std::uint32_t c = 0; c < std::size(kCases); ++c) {
    if (options.quantization || !kCases[c].is_quantized) made.cases.push_back(maker.make(c));
  }
  // Two elements have one other order: to reverse them is to shift them.
  if (maker.plan().row_length == 2) {
    made.same = {{"weight-reversed", "weight-shifted"}, {"bias-reversed", "bias-shifted"}};
  }
  if (!maker.plan().formula.has_mean()) made.same.push_back({"no-mean-terms", "no-variance-term"});
  const MutantReport report = report_on(made.cases, maker.plan(), options, true);
  made.alive = survivors_of(report);
  for (const Mutant& mutant : report.mutants()) {
    if (mutant.is_equivalent()) {
      made.equivalent.push_back(mutant.id);
      continue;
    }
    const auto caught = [](const Mutant::Outcome& outcome) { return outcome.caught_by.size(); };
    const std::vector<std::string>& by = std::ranges::min(mutant.outcomes, {}, caught).caught_by;
    for (MadeCase& one : made.cases) {
      if (std::find(by.begin(), by.end(), one.name) != by.end()) one.kills.push_back(mutant.id);
    }
  }
  made.alive_without_affine = survivors_of(report_on(made.cases, maker.plan(), options, false));
  return made;
}

}  // namespace

MadeInputs make_inputs(const InputsOptions& options) {
  if (element_count(options.shape) == 0) {
    throw Error(concat("shape ", to_string(options.shape), " has no elements"));
  }
  const auto alive = [](const MadeInputs& made) {
    return std::pair(made.alive.size(), made.alive_without_affine.size());
  };
  const std::int64_t attempts =
      std::clamp<std::int64_t>(kElementsDrawn / element_count(options.shape), 1, kAttempts);
  MadeInputs best = attempt(options, 0);
  for (std::uint32_t number = 1;
       number < attempts && !(best.alive.empty() && best.alive_without_affine.empty()); ++number) {
    MadeInputs next = attempt(options, number);
    if (alive(next) < alive(best)) best = std::move(next);
  }
  return best;
}

}  // namespace lnorm
