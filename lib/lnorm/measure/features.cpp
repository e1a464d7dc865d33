#include "lnorm/measure/features.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "lnorm/core/non_finite.hpp"

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
  return index_in_file(x, axes, row(*first) + (slice ? slice->first : 0), *first);
}

std::vector<std::int64_t> FeatureStats::top(const Top& top) const {
  TopList<std::int64_t> list(top.most);
  for (std::int64_t i = 0; i < count(); ++i) list.add(feature(i).score(top.by), i);
  return list.items();
}

FeatureSummary::FeatureSummary(const FeatureStats& stats) {
  constexpr std::size_t kShown = 5;
  for (std::int64_t i = 0; i < stats.count(); ++i) {
    const Feature feature = stats.feature(i);
    non_finite += feature.non_finite;
    for (std::size_t f = 0; f < figures.size(); ++f) {
      figures[f].add(feature.*kFeatureFigures[f].of);
    }
    if (feature.absmax == 0) {
      ++dead;
      if (first_dead.size() < kShown) first_dead.push_back(i);
    }
    if (!std::isnan(feature.absmax) &&
        (!largest || feature.absmax > stats.feature(*largest).absmax)) {
      largest = i;
    }
  }
  find_medians(figures, [&](std::int64_t step, const SeeValues& see) {
    for (std::int64_t i = 0; i < stats.count(); i += step) {
      const Feature feature = stats.feature(i);
      for (std::size_t f = 0; f < figures.size(); ++f) {
        const double value = feature.*kFeatureFigures[f].of;
        if (!std::isnan(value)) see(f, std::span(&value, 1));
      }
    }
  });
}

void SharedFeatures::add(const std::string& tensor, const FeatureStats& stats) {
  ++tensors_;
  // Where all features are listed, none stands out.
  if (stats.count() <= static_cast<std::int64_t>(top_.most)) return;
  for (const std::int64_t number : stats.top(top_)) {
    if (!stands_out(top_.by, stats.feature(number).score(top_.by))) continue;
    by_feature_[{extents(stats.x.shape, stats.axes), number}].push_back(tensor);
  }
}

std::vector<SharedFeatures::Feature> SharedFeatures::found() const {
  std::vector<Feature> result;
  for (const auto& [feature, tensors] : by_feature_) {
    if (tensors.size() > 1) result.push_back({index_of(feature.second, feature.first), tensors});
  }
  std::ranges::stable_sort(result, std::greater<>(),
                           [](const Feature& feature) { return feature.tensors.size(); });
  return result;
}

Bands absmax_bands(const FeatureStats& stats, std::int64_t most) {
  const std::array absmax{[](const Feature& feature) { return feature.absmax; }};
  const auto each = [&](const auto& see) {
    for (std::int64_t i = 0; i < stats.count(); ++i) see(stats.feature(i));
  };
  return bands_of(absmax, {stats.count(), most}, each).front();
}

}  // namespace lnorm
