#include "lnorm/measure/comparison.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/double_double.hpp"
#include "lnorm/measure/ulp.hpp"

namespace lnorm {

namespace {

struct Defaults {
  double rtol;
  double atol;
};

Defaults defaults_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {1e-3, 1e-5};
    case DType::float32:
      return {1.3e-6, 1e-5};
    case DType::float64:
      return {1e-7, 1e-7};
    default:
      return {0, 0};
  }
}

bool is_equal(Number a, Number b) { return a.high == b.high && a.low == b.low; }

// |a - b|, rounded once.
double distance(Number a, Number b) {
  if (a.low == 0 && b.low == 0) return std::fabs(a.high - b.high);
  const DoubleDouble high = two_sum(a.high, -b.high);
  return std::fabs((high + DoubleDouble{a.low - b.low}).high);
}

template <class T>
void raise(std::optional<Greatest<T>>& greatest, T value, const ElementPair& at) {
  if (!greatest || value > greatest->value) greatest = Greatest<T>{value, at};
}

// Both finite: whether the pair passes; raises the maxima.
bool compare_finite(const ElementPair& pair, Comparison& comparison) {
  const auto& [position, actual, expected] = pair;
  const double difference = distance(actual, expected);
  const double size = std::fabs(expected.high);
  const std::uint64_t ulps = ulp_distance(actual, expected, comparison.expected.dtype);
  raise(comparison.absolute, difference, pair);
  if (size > 0) raise(comparison.relative, difference / size, pair);
  raise(comparison.ulps, ulps, pair);
  const Tolerance& tolerance = comparison.tolerance;
  return is_equal(actual, expected) || difference <= tolerance.atol + tolerance.rtol * size ||
         (tolerance.max_ulp && ulps <= *tolerance.max_ulp);
}

// At least one not finite.
bool compare_non_finite(const ElementPair& pair, Comparison& comparison) {
  const double actual = pair.actual.high;
  const double expected = pair.expected.high;
  const bool one_side = std::isfinite(actual) || std::isfinite(expected);
  const bool both_nan = std::isnan(actual) && std::isnan(expected);
  const bool passes = actual == expected || (both_nan && comparison.tolerance.equal_nan);
  if (one_side) ++comparison.non_finite_one_side;
  if (!one_side && !passes) ++comparison.non_finite_differing;
  return passes;
}

}  // namespace

Tolerance default_tolerance(DType actual, DType expected) {
  const Defaults a = defaults_of(actual);
  const Defaults b = defaults_of(expected);
  Tolerance result;
  result.rtol = std::max(a.rtol, b.rtol);
  result.atol = std::max(a.atol, b.atol);
  return result;
}

void compare_elements(const Chunk& actual, const Chunk& expected, std::int64_t count,
                      std::size_t max_mismatches, Comparison& comparison) {
  for (std::int64_t i = 0; i < count; ++i) {
    const ElementPair pair{comparison.elements++,
                           {actual.high[i], actual.low[i]},
                           {expected.high[i], expected.low[i]}};
    const bool finite = std::isfinite(pair.actual.high) && std::isfinite(pair.expected.high);
    if (finite ? compare_finite(pair, comparison) : compare_non_finite(pair, comparison)) continue;
    ++comparison.mismatched;
    if (comparison.first_mismatches.size() < max_mismatches) {
      comparison.first_mismatches.push_back(pair);
    }
  }
}

}  // namespace lnorm
