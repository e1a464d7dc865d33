#include "lnorm/measure/set_comparison.hpp"

#include <algorithm>
#include <tuple>

namespace lnorm {

namespace {

std::size_t count(const std::vector<PairComparison>& pairs, bool (PairComparison::*is)() const) {
  const auto found = std::count_if(pairs.begin(), pairs.end(),
                                   [&](const PairComparison& pair) { return (pair.*is)(); });
  return static_cast<std::size_t>(found);
}

double greatest(const Comparison& comparison, WorstBy by) {
  const auto value_of = [](const std::optional<Greatest<double>>& greatest) {
    return greatest ? greatest->value : 0;
  };
  if (by == WorstBy::abs) return value_of(comparison.absolute);
  if (by == WorstBy::rel) return value_of(comparison.relative);
  return comparison.ulps ? comparison.ulps->value.value() : 0;
}

using Badness = std::tuple<bool, bool, double>;

Badness badness(const PairComparison& pair, WorstBy by) {
  if (!pair.comparison || !pair.comparison->same_shape) return {};
  const Comparison& c = *pair.comparison;
  const std::vector<Failure> failures = c.failures();
  const bool is_finite = failures.empty() || failures.front().criterion != Criterion::finite;
  return {!failures.empty(), !is_finite, greatest(c, by)};
}

}  // namespace

std::size_t SetComparison::agreeing() const { return count(pairs, &PairComparison::agrees); }

std::size_t SetComparison::differing() const { return count(pairs, &PairComparison::differs); }

bool SetComparison::differ() const {
  return differing() > 0 || (!common && !(actual_only.empty() && expected_only.empty()));
}

std::optional<std::size_t> SetComparison::first() const {
  const auto found =
      std::find_if(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.differs(); });
  if (found == pairs.end()) return std::nullopt;
  return static_cast<std::size_t>(found - pairs.begin());
}

std::optional<std::size_t> SetComparison::worst() const {
  std::optional<std::size_t> result;
  Badness most;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Badness own = badness(pairs[i], by);
    if (own <= most) continue;
    most = own;
    result = i;
  }
  return result;
}

}  // namespace lnorm
