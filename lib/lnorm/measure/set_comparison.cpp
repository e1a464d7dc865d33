#include "lnorm/measure/set_comparison.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>

namespace lnorm {

namespace {

std::size_t count(const std::vector<PairComparison>& pairs,
                  bool (PairComparison::*is)() const noexcept) {
  const auto found = std::count_if(pairs.begin(), pairs.end(),
                                   [&](const PairComparison& pair) { return (pair.*is)(); });
  return static_cast<std::size_t>(found);
}

// The greatest distance: a double that is not negative has the order of its bits.
std::uint64_t greatest(const Comparison& comparison, WorstBy by) {
  const auto bits_of = [](const std::optional<Greatest<double>>& value) {
    return value ? std::bit_cast<std::uint64_t>(value->value) : 0;
  };
  if (by == WorstBy::abs) return bits_of(comparison.absolute);
  if (by == WorstBy::rel) return bits_of(comparison.relative);
  return comparison.ulps ? comparison.ulps->value : 0;
}

using Badness = std::tuple<bool, bool, std::uint64_t>;

Badness badness(const PairComparison& pair, WorstBy by) {
  if (!pair.comparison || !pair.comparison->same_shape) return {};
  const Comparison& c = *pair.comparison;
  return {!c.equal(), c.non_finite_one_side + c.non_finite_differing > 0, greatest(c, by)};
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
