#include "lnorm/measure/features.hpp"

#include <cmath>
#include <limits>

namespace lnorm {

double Feature::score(TopBy by) const noexcept {
  if (by == TopBy::non_finite) return static_cast<double>(non_finite);
  if (by == TopBy::mean) return std::fabs(mean);
  if (by == TopBy::variance) return variance;
  if (by == TopBy::variance_min) return -variance;
  return by == TopBy::zeros ? zeros : absmax;
}

Feature FeatureStats::feature(std::int64_t number) const noexcept {
  const FeatureSums& of = sums[static_cast<std::size_t>(number)];
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (of.finite == 0) return {kNan, kNan, kNan, kNan, of.non_finite};
  const auto n = static_cast<double>(of.finite);
  return {of.mean, of.squares / (n - static_cast<double>(ddof)), of.absmax,
          static_cast<double>(of.zeros) / n, of.non_finite};
}

std::optional<Shape> FeatureStats::first_non_finite_index() const {
  std::optional<std::int64_t> first;
  const auto row = [&](std::int64_t number) {
    return sums[static_cast<std::size_t>(number)].first_non_finite;
  };
  for (std::int64_t i = 0; i < count(); ++i) {
    if (row(i) >= 0 && (!first || row(i) < row(*first))) first = i;
  }
  if (!first) return std::nullopt;
  return index_of_element(x.shape, axes, row(*first) + (slice ? slice->first : 0), *first);
}

}  // namespace lnorm
