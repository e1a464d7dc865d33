#include "lnorm/measure/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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
    case DType::float8_e4m3fn:  // torch.testing has none: an ulp of 1
      return {0.125, 1e-5};
    case DType::float8_e5m2:
      return {0.25, 1e-5};
    case DType::bfloat16:
      return {1.6e-2, 1e-5};
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

double integer_difference(Number a, Number b) {
  const DoubleDouble high = two_sum(a.high, -b.high);
  return std::fabs((high + DoubleDouble{a.low - b.low}).high);
}

// |a - b|, rounded once.
inline double distance(Number a, Number b) {
  return a.low == 0 && b.low == 0 ? std::fabs(a.high - b.high) : integer_difference(a, b);
}

template <class T>
void raise(std::optional<Greatest<T>>& greatest, T value, const ElementPair& at) {
  if (!greatest || value > greatest->value) greatest = Greatest<T>{value, at};
}

// Passes over the pairs of a chunk. Most of them raise no maximum and are not among the worst, which three
// comparisons tell.
template <class T>  // the expected dtype's
class Pass {
 public:
  Pass(std::size_t max_mismatches, Comparison& comparison)
      : max_mismatches_(max_mismatches), comparison_(comparison) {
    find_limits();
  }

  void see(const ElementPair& pair) {
    const double difference = distance(pair.actual, pair.expected);
    if (!(difference <= std::numeric_limits<double>::max()) && !is_finite(pair)) {
      return see_non_finite(pair);
    }
    const double size = std::fabs(pair.expected.high);
    const std::uint64_t ulps =
        is_equal(pair.actual, pair.expected) ? 0 : ulp_distance<T>(pair.actual, pair.expected);
    if (!(difference <= absolute_ && difference <= relative_ * size && ulps <= ulps_ && any_)) {
      rank(pair, {ulps, difference, difference == 0 ? 0 : difference / size});
    }
    const Tolerance& tolerance = comparison_.tolerance;
    const bool passes =
        is_equal(pair.actual, pair.expected) ||
        ((tolerance.ulp_alone || difference <= tolerance.atol + tolerance.rtol * size) &&
         (!tolerance.max_ulp || ulps <= *tolerance.max_ulp));
    if (!passes) add_mismatch(pair);
  }

 private:
  static bool is_finite(const ElementPair& pair) {
    return std::isfinite(pair.actual.high) && std::isfinite(pair.expected.high);
  }

  // Out of line, or the loop would be slower for it.
  [[gnu::noinline]] void rank(const ElementPair& pair, const Distances& distances) {
    raise(comparison_.absolute, distances.absolute, pair);
    if (pair.expected.high != 0) raise(comparison_.relative, distances.relative, pair);
    raise(comparison_.ulps, distances.ulps, pair);
    comparison_.worst.add({pair, distances});
    find_limits();
  }

  // At least one is not.
  [[gnu::noinline]] void see_non_finite(const ElementPair& pair) {
    const double actual = pair.actual.high;
    const double expected = pair.expected.high;
    const bool one_side = std::isfinite(actual) || std::isfinite(expected);
    const bool both_nan = std::isnan(actual) && std::isnan(expected);
    const bool passes = actual == expected || (both_nan && comparison_.tolerance.equal_nan);
    if (one_side) ++comparison_.non_finite_one_side;
    if (!one_side && !passes) ++comparison_.non_finite_differing;
    if (passes) return;
    add_mismatch(pair);
    comparison_.worst.add({pair, std::nullopt});
    find_limits();
  }

  void add_mismatch(const ElementPair& pair) {
    ++comparison_.mismatched;
    if (comparison_.first_mismatches.size() < max_mismatches_) {
      comparison_.first_mismatches.push_back(pair);
    }
  }

  // What a pair must not exceed in order to raise no maximum and not to be among the worst; of the quotient a
  // little less, for its rounding.
  void find_limits() {
    any_ = comparison_.absolute && comparison_.relative;
    if (!any_) return;
    const Distances worst = comparison_.worst.limits();
    absolute_ = std::min(comparison_.absolute->value, worst.absolute);
    relative_ = std::min(comparison_.relative->value, worst.relative) * (1 - 0x1p-50);
    ulps_ = std::min(comparison_.ulps->value, worst.ulps);
  }

  std::size_t max_mismatches_;
  Comparison& comparison_;
  bool any_ = false;
  double absolute_ = 0;
  double relative_ = 0;
  std::uint64_t ulps_ = 0;
};

}  // namespace

Tolerance default_tolerance(DType actual, DType expected) {
  const Defaults a = defaults_of(actual);
  const Defaults b = defaults_of(expected);
  Tolerance result;
  result.rtol = std::max(a.rtol, b.rtol);
  result.atol = std::max(a.atol, b.atol);
  return result;
}

Shape Comparison::row_index(std::int64_t position) const {
  return extents(index_of(position, actual.shape), kept_axes(actual.shape, rows->axes));
}

void Comparison::clear(std::int64_t position, std::uint64_t floor) {
  elements = position;
  mismatched = 0;
  first_mismatches.clear();
  non_finite_one_side = 0;
  non_finite_differing = 0;
  absolute.reset();
  relative.reset();
  ulps.reset();
  worst.clear(floor);
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
  worst.merge(next.worst);
}

void compare_elements(const Chunk& actual, const Chunk& expected, std::int64_t count,
                      std::size_t max_mismatches, Comparison& comparison) {
  visit(comparison.expected.dtype, [&]<class T>(T) {
    Pass<T> pass(max_mismatches, comparison);
    for (std::int64_t i = 0; i < count; ++i) {
      pass.see({comparison.elements++,
                {actual.high[i], actual.low[i]},
                {expected.high[i], expected.low[i]}});
    }
  });
}

void compare_same_elements(const RawElements& elements, Comparison& comparison) {
  const auto pair_at = [&](std::int64_t index) {
    const Number element = element_at(elements, index);
    return ElementPair{comparison.elements + index, element, element};
  };
  // No distance is greater than 0: each is that of the first pair, unless there has been one.
  if (!comparison.absolute) {
    if (const auto first = first_finite(elements)) {
      comparison.absolute = Greatest<double>{0, pair_at(*first)};
      comparison.ulps = Greatest<std::uint64_t>{0, pair_at(*first)};
    }
  }
  if (!comparison.relative) {
    if (const auto first = first_finite_not_zero(elements)) {
      comparison.relative = Greatest<double>{0, pair_at(*first)};
    }
  }
  comparison.elements += elements.count;
}

}  // namespace lnorm
