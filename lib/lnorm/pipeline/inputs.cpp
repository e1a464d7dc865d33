#include "lnorm/pipeline/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/philox.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/check_rows.hpp"
#include "lnorm/pipeline/mutants.hpp"

namespace lnorm {

namespace {

constexpr std::uint32_t kAttempts = 4;

// What an element of x may depend on.
struct Place {
  const Philox& random;
  const FloatFormat& format;
  double eps;
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

double far_mean(const Place& p) {
  return p.power_of_two(p.format.precision / 2 + p.row % 2) + p.normal();
}

double small_deviation(const Place& p) {
  const double root = p.eps > 0 ? std::sqrt(p.eps) : 0x1p-20;
  return root * p.normal() * p.power_of_two(-(p.row % 3));
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

double different_rows(const Place& p) {
  return std::ldexp(p.normal() + 0.5, static_cast<int>(2 * (p.row % 6) - 6));
}

double cancelled(const Place& p) {
  return p.pattern(16, 15) * static_cast<double>(1 + 2 * (p.row % 3));
}

double cancelled_far(const Place& p) {
  return p.power_of_two(p.format.precision - 1) + p.pattern(4, 3);
}

struct CaseRow {
  std::string_view name;
  std::string_view purpose;
  double (*x)(const Place& place);
  // The weight is large, and the bias cancels the products to their last digit.
  bool cancels = false;
  bool has_dy = false;
};

// clang-format off
constexpr CaseRow kCases[] = {
    {"ordinary", "normal numbers with mean 1 and deviation 2; weight and bias are not symmetric", ordinary, false, true},
    {"far-mean", "means far above the deviation: one pass, a lost mean, rounded statistics", far_mean, false, true},
    {"small-deviation", "a deviation near the root of eps: its value and its place", small_deviation, false, true},
    {"constant", "rows of one number: the variance is 0, and y is the bias", constant},
    {"outliers", "massive activations, one of them the last element: tails that are left out", outliers},
    {"ties", "elements equal to each other and to the mean: xhat is 0, and exact", ties},
    {"denormals", "numbers below the normal range: what is flushed to 0, and eps beside nothing", denormals},
    {"largest", "the largest finite numbers: squares and sums that overflow", largest},
    {"different-rows", "rows that differ a lot: statistics of another row, or over other axes", different_rows, false, true},
    {"cancelled", "a large weight, whose product the bias cancels: the last digits of xhat, its divisor, roundings on the way. A right kernel has only these digits as well: judge it by lnorm check, not by a tolerance", cancelled, true},
    {"cancelled-far-mean", "the same with means far above the deviation: sums in one pass or in few bits", cancelled_far, true},
};
// clang-format on
static_assert(std::size(kCases) <= 12);

std::vector<std::byte> encoded(const std::vector<double>& numbers, DType dtype) {
  std::vector<std::byte> bytes(numbers.size() * item_size(dtype));
  store(numbers.data(), std::ssize(numbers), dtype, bytes.data());
  return bytes;
}

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
                  .x = in_shape(name + ".x", encoded(rows, options_.dtype)),
                  .weight = {},
                  .bias = {},
                  .dy = {},
                  .kills = {}};
    const auto n = static_cast<std::size_t>(plan_.row_length);
    std::vector<double> weight(n);
    std::vector<double> bias(n);
    if (row.cancels) {
      cancel(rows, weight, bias);
    } else {
      weight = normals(4 * number + 1, n, 0.3);
      bias = normals(4 * number + 2, n, 0.3);
    }
    const Shape shape = plan_.normalized_shape();
    made.weight = {{name + ".weight", options_.dtype, shape}, encoded(weight, options_.dtype)};
    made.bias = {{name + ".bias", options_.dtype, shape}, encoded(bias, options_.dtype)};
    if (row.has_dy) {
      const auto dy = normals(4 * number + 3, rows.size(), 0);
      made.dy = in_shape(name + ".dy", encoded(dy, options_.dtype));
    }
    return made;
  }

 private:
  std::vector<double> rows_of(const CaseRow& row, const Philox& random) const {
    const FloatFormat& format = float_format(options_.dtype);
    std::vector<double> rows;
    rows.reserve(static_cast<std::size_t>(plan_.rows * plan_.row_length));
    for (std::int64_t r = 0; r < plan_.rows; ++r) {
      for (std::int64_t i = 0; i < plan_.row_length; ++i) {
        rows.push_back(row.x({random, format, plan_.formula.eps, plan_.row_length, r, i}));
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

  // The bias is what the first row's product rounds to, and takes it away.
  void cancel(const std::vector<double>& rows, std::vector<double>& weight,
              std::vector<double>& bias) const {
    const int precision = float_format(options_.dtype).precision;
    const double large = std::ldexp(1.0, precision <= 11 ? 6 : precision * 2 / 3 - 2);
    const auto x = encoded(rows, options_.dtype);
    std::vector<double> xhat(weight.size());
    backends().front().layer_norm(
        {x.data(), options_.dtype, std::endian::native, 1, plan_.row_length},
        {.data = reinterpret_cast<std::byte*>(xhat.data()), .dtype = DType::float64}, {},
        plan_.formula, {});
    const double one = options_.normalization.zero_centered_weight ? 1 : 0;
    for (std::size_t i = 0; i < xhat.size(); ++i) {
      weight[i] = large - one;
      bias[i] = -large * xhat[i];
    }
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

// What a case kills.
std::vector<TriedMutant> tried_on(const MadeCase& made, const Plan& plan,
                                  const InputsOptions& options, const ChooseKernel& choose,
                                  const Criteria& criteria) {
  TensorSpool spool(made.x.info);
  spool.write(made.x.elements);
  const auto x = spool.source();
  const LayerNormOptions& normalization = options.normalization;
  const AffineTerm weight(made.weight.info, made.weight.elements,
                          normalization.zero_centered_weight);
  const AffineTerm bias(made.bias.info, made.bias.elements, false);
  const Affine affine(weight, bias, normalization.rounding);
  return try_mutants({.x = *x, .alone = nullptr, .weight = weight, .bias = bias, .affine = affine},
                     plan, backends().front(),
                     {.zero_centered_weight = normalization.zero_centered_weight,
                      .rounding = normalization.rounding,
                      .choose = choose,
                      .criteria = criteria},
                     {.threads = options.threads});
}

bool rounds_last(std::string_view id) { return id == "truncated" || id == "away"; }

MadeInputs attempt(const InputsOptions& options, std::uint32_t number) {
  const Maker maker(options, number);
  MadeInputs made;
  MutantReport report;
  for (std::uint32_t c = 0; c < std::size(kCases); ++c) {
    MadeCase& one = made.cases.emplace_back(maker.make(c));
    auto tried =
        tried_on(one, maker.plan(), options, [](std::string_view id) { return !rounds_last(id); },
                 {.tolerance = default_tolerance(options.dtype, options.dtype)});
    auto last = tried_on(one, maker.plan(), options, rounds_last, {.max_ulp = 0.5});
    std::erase_if(last, [](const TriedMutant& mutant) { return !rounds_last(mutant.formulas.id); });
    std::move(last.begin(), last.end(), std::back_inserter(tried));
    report.add(one.name, tried);
  }
  for (const Mutant& mutant : report.mutants()) {
    if (mutant.is_equivalent()) {
      made.equivalent.push_back(mutant.id);
      continue;
    }
    const std::vector<std::string>& by = mutant.hardest().caught_by;
    if (by.empty()) made.alive.push_back(mutant.id);
    for (MadeCase& one : made.cases) {
      if (std::find(by.begin(), by.end(), one.name) != by.end()) one.kills.push_back(mutant.id);
    }
  }
  return made;
}

}  // namespace

MadeInputs make_inputs(const InputsOptions& options) {
  if (element_count(options.shape) == 0) {
    throw Error(concat("shape ", to_string(options.shape), " has no elements"));
  }
  MadeInputs best = attempt(options, 0);
  for (std::uint32_t number = 1; number < kAttempts && !best.alive.empty(); ++number) {
    MadeInputs next = attempt(options, number);
    if (next.alive.size() < best.alive.size()) best = std::move(next);
  }
  return best;
}

}  // namespace lnorm
