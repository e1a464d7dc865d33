#include "lnorm/measure/set_comparison.hpp"

#include <algorithm>
#include <tuple>

namespace lnorm {

namespace {

using Badness = std::tuple<bool, bool, double>;

Badness badness(const PairComparison& pair, WorstBy by) {
  if (!pair.comparison || !pair.comparison->same_shape) return {};
  const Comparison& c = *pair.comparison;
  return {!c.equal(), c.not_finite() > 0, c.greatest(by).value_or(0)};
}

}  // namespace

std::size_t SetComparison::agreeing() const {
  return static_cast<std::size_t>(std::ranges::count_if(pairs, &PairComparison::agrees));
}

std::size_t SetComparison::differing() const {
  return static_cast<std::size_t>(std::ranges::count_if(pairs, &PairComparison::differs));
}

bool SetComparison::differ() const {
  return differing() > 0 || (!common && !(actual_only.empty() && expected_only.empty()));
}

std::optional<std::size_t> SetComparison::first() const {
  const auto found = std::ranges::find_if(pairs, &PairComparison::differs);
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
