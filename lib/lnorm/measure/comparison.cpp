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

// A chunk of both sides.
struct Pairs {
  const Chunk& actual;
  const Chunk& expected;
  std::int64_t count;
  std::int64_t first;  // position of the first

  ElementPair at(std::int64_t i) const {
    return {first + i, {actual.high[i], actual.low[i]}, {expected.high[i], expected.low[i]}};
  }
};

void add_mismatch(const ElementPair& pair, std::size_t max_mismatches, Comparison& comparison) {
  ++comparison.mismatched;
  if (comparison.first_mismatches.size() < max_mismatches) {
    comparison.first_mismatches.push_back(pair);
  }
}

// What a chunk of finite pairs comes to.
struct Extremes {
  bool finite = true;            // if not, the rest says nothing
  bool all_within_bound = true;  // |actual - expected| <= atol + rtol * |expected|
  double absolute = 0;
  double relative = -1;  // none
};

// In lanes, so that the compiler can make vectors of them.
Extremes extremes_of(const double* actual, const double* expected, std::int64_t count,
                     const Tolerance& tolerance) {
  constexpr std::int64_t kLanes = 8;
  double absolute[kLanes] = {};
  double relative[kLanes];
  double beyond[kLanes] = {};
  double zero[kLanes] = {};  // NaN where an element is not finite
  std::fill(relative, relative + kLanes, -1.0);
  const auto see = [&](std::int64_t i, std::int64_t j) {
    const double difference = std::fabs(actual[i] - expected[i]);
    const double size = std::fabs(expected[i]);
    const double bound = tolerance.atol + tolerance.rtol * size;
    zero[j] += (actual[i] - actual[i]) + (expected[i] - expected[i]);
    beyond[j] += difference <= bound ? 0 : 1;
    absolute[j] = difference > absolute[j] ? difference : absolute[j];
    const double ratio = size > 0 ? difference / size : -1;
    relative[j] = ratio > relative[j] ? ratio : relative[j];
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) see(i + j, j);
  }
  for (; i < count; ++i) see(i, 0);
  Extremes result;
  for (std::int64_t j = 0; j < kLanes; ++j) {
    result.finite = result.finite && zero[j] == 0;
    result.all_within_bound = result.all_within_bound && beyond[j] == 0;
    result.absolute = std::max(result.absolute, absolute[j]);
    result.relative = std::max(result.relative, relative[j]);
  }
  return result;
}

// Raises greatest to value, the maximum over the chunk, at the first element where value_at(i) is that.
template <class T, class ValueAt>
void raise_to_first(std::optional<Greatest<T>>& greatest, T value, const Pairs& pairs,
                    ValueAt value_at) {
  if (greatest && value <= greatest->value) return;
  std::int64_t i = 0;
  while (value_at(i) != value) ++i;
  greatest = Greatest<T>{value, pairs.at(i)};
}

void compare_finite_chunk(const Pairs& pairs, const Extremes& extremes, std::size_t max_mismatches,
                          Comparison& comparison) {
  const double* const actual = pairs.actual.high;
  const double* const expected = pairs.expected.high;
  const auto difference_at = [&](std::int64_t i) { return std::fabs(actual[i] - expected[i]); };
  raise_to_first(comparison.absolute, extremes.absolute, pairs, difference_at);
  if (extremes.relative >= 0) {
    raise_to_first(comparison.relative, extremes.relative, pairs, [&](std::int64_t i) {
      const double size = std::fabs(expected[i]);
      return size > 0 ? difference_at(i) / size : -1;
    });
  }
  const DType dtype = comparison.expected.dtype;
  const auto ulps = greatest_ulp_distance(pairs.actual, pairs.expected, pairs.count, dtype);
  if (!comparison.ulps || ulps.distance > comparison.ulps->value) {
    comparison.ulps = Greatest<std::uint64_t>{ulps.distance, pairs.at(ulps.index)};
  }
  if (extremes.all_within_bound) return;
  const Tolerance& tolerance = comparison.tolerance;
  for (std::int64_t i = 0; i < pairs.count; ++i) {
    const double bound = tolerance.atol + tolerance.rtol * std::fabs(expected[i]);
    if (difference_at(i) <= bound || actual[i] == expected[i]) continue;
    const ElementPair pair = pairs.at(i);
    if (tolerance.max_ulp &&
        ulp_distance(pair.actual, pair.expected, dtype) <= *tolerance.max_ulp) {
      continue;
    }
    add_mismatch(pair, max_mismatches, comparison);
  }
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

void Comparison::clear(std::int64_t position) {
  elements = position;
  mismatched = 0;
  first_mismatches.clear();
  non_finite_one_side = 0;
  non_finite_differing = 0;
  absolute.reset();
  relative.reset();
  ulps.reset();
}

void Comparison::append(const Comparison& next, std::size_t max_mismatches) {
  elements = next.elements;
  mismatched += next.mismatched;
  for (const ElementPair& pair : next.first_mismatches) {
    if (first_mismatches.size() == max_mismatches) break;
    first_mismatches.push_back(pair);
  }
  non_finite_one_side += next.non_finite_one_side;
  non_finite_differing += next.non_finite_differing;
  const auto raise_to = [](auto& greatest, const auto& other) {
    if (other) raise(greatest, other->value, other->at);
  };
  raise_to(absolute, next.absolute);
  raise_to(relative, next.relative);
  raise_to(ulps, next.ulps);
}

void compare_elements(const Chunk& actual, const Chunk& expected, std::int64_t count,
                      std::size_t max_mismatches, Comparison& comparison) {
  const Pairs pairs{actual, expected, count, comparison.elements};
  comparison.elements += count;
  if (count > 0 && !has_low(comparison.actual.dtype) && !has_low(comparison.expected.dtype)) {
    const Extremes extremes = extremes_of(actual.high, expected.high, count, comparison.tolerance);
    if (extremes.finite) {
      return compare_finite_chunk(pairs, extremes, max_mismatches, comparison);
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const ElementPair pair = pairs.at(i);
    const bool finite = std::isfinite(pair.actual.high) && std::isfinite(pair.expected.high);
    if (finite ? compare_finite(pair, comparison) : compare_non_finite(pair, comparison)) continue;
    add_mismatch(pair, max_mismatches, comparison);
  }
}

}  // namespace lnorm
