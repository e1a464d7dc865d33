#include "lnorm/pipeline/work_distribution.hpp"

#include <algorithm>
#include <numeric>

namespace lnorm {

namespace {

// With so many tensors a rank, if they have the same size, all are busy to nearly the end.
constexpr double kTensorsOfRank = 4;

}  // namespace

// A tensor of one rank goes to the one that has the least to do so far. So where all barrier again, for a tensor that they do
// together, nobody waits for longer than such a tensor takes.
WorkDistribution::WorkDistribution(Ranks& ranks, Deal deal, std::span<const std::int64_t> bytes)
    : all_(ranks), alone_(ranks), owners_(bytes.size(), kAll) {
  if (ranks.count() == 1 || deal == Deal::together) return;
  // Doubles, since headers may name what has no end.
  const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  const double most = std::max(kMinLarge, all / (kTensorsOfRank * ranks.count()));
  std::vector<double> distributed(static_cast<std::size_t>(ranks.count()));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto size = static_cast<double>(bytes[i]);
    if (size > most) continue;
    const auto least = std::min_element(distributed.begin(), distributed.end());
    *least += size;
    owners_[i] = static_cast<int>(least - distributed.begin());
  }
}

Ranks* WorkDistribution::ranks_of(std::size_t tensor) const {
  if (owners_[tensor] == kAll) return &all_;
  return owners_[tensor] == all_.rank() ? &alone_ : nullptr;
}

}  // namespace lnorm
