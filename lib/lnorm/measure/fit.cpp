#include "lnorm/measure/fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>

#include "lnorm/core/processors.hpp"
#include "lnorm/measure/ulp.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kFewestValues = 8;
constexpr double kStandardErrors = 4;
constexpr double kOfSpacing = 0.25;

// The nearest decimal of the fewest digits within an error.
double shortest_decimal_near(double value, double error) {
  if (std::fabs(value) <= error) return 0;
  char text[40];
  for (int digits = 0; digits < 16; ++digits) {
    std::snprintf(text, sizeof text, "%.*e", digits, value);
    const double decimal = std::strtod(text, nullptr);
    if (std::fabs(decimal - value) <= error) return decimal;
  }
  return value;
}

bool has_values(const std::vector<double>& numbers) {
  std::set<double> values;
  for (std::size_t i = 0; i < numbers.size() && values.size() < kFewestValues; ++i) {
    values.insert(numbers[i]);
  }
  return values.size() == kFewestValues;
}

double mean_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

double greatest_of(const std::vector<double>& numbers) {
  double greatest = 0;
  for (const double number : numbers) greatest = std::max(greatest, std::fabs(number));
  return greatest;
}

}  // namespace

LNORM_FOR_PROCESSORS
bool Fit::explains(const double* actual, const double* expected, std::int64_t count,
                   double bound) const noexcept {
  const auto one_if = [](bool is) { return static_cast<std::int64_t>(is); };
  std::int64_t explained = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double left = std::fabs(actual[i] - std::fma(scale, expected[i], offset));
    explained += one_if(left <= bound) |
                 (one_if(!std::isfinite(actual[i])) & one_if(!std::isfinite(expected[i])));
  }
  return explained == count;
}

std::optional<Fit> fit_of(std::vector<double> a, std::vector<double> e, DType dtype) {
  std::size_t finite = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(e[i])) continue;
    a[finite] = a[i];
    e[finite++] = e[i];
  }
  a.resize(finite);
  e.resize(finite);
  if (!has_values(a) || !has_values(e)) return std::nullopt;
  const auto n = static_cast<double>(a.size());
  const double rounding = std::max(0x1p-46, 0x1p-51 * std::sqrt(n));  // of the sums
  const double mean_a = mean_of(a);
  const double mean_e = mean_of(e);
  double ee = 0;
  double ea = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ee += (e[i] - mean_e) * (e[i] - mean_e);
    ea += (e[i] - mean_e) * (a[i] - mean_a);
  }
  if (!(ee > 0) || !std::isfinite(ee) || !std::isfinite(ea)) return std::nullopt;
  const double scale = ea / ee;
  double left = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double rest = (a[i] - mean_a) - scale * (e[i] - mean_e);
    left += rest * rest;
  }
  const double deviation = kStandardErrors * std::sqrt(left / n);
  // Numbers that come again and again have the same rounding errors, which do not average out.
  const double spacing = is_floating(dtype) ? ulp_at(greatest_of(a), dtype) * kOfSpacing : 0;
  Fit fit;
  fit.scale = shortest_decimal_near(
      scale, deviation / std::sqrt(ee) + spacing / greatest_of(e) +
                 rounding * (std::fabs(scale) + std::fabs(mean_a) / std::sqrt(ee / n)));
  const double offset = mean_a - fit.scale * mean_e;
  fit.offset = shortest_decimal_near(
      offset, deviation / std::sqrt(n) + spacing +
                  rounding * (std::fabs(mean_a) + std::fabs(fit.scale * mean_e)));
  return fit;
}

}  // namespace lnorm
