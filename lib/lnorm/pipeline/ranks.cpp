#include "lnorm/pipeline/ranks.hpp"

#include <algorithm>
#include <numeric>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// With so many tensors a rank, if they have the same size, all are busy to nearly the end.
constexpr double kTensorsOfRank = 4;

}  // namespace

Ranks& sole_rank() {
  static SoleRank ranks;
  return ranks;
}

// In a binomial tree: each step twice as many ranks have the bytes.
std::string broadcast_bytes(Ranks& ranks, std::string bytes) {
  const int count = ranks.count();
  const int rank = ranks.rank();
  int step = 1;
  while (step < count) step *= 2;
  for (step /= 2; step >= 1; step /= 2) {
    if (rank % (2 * step) == step) {
      bytes = ranks.receive(rank - step);
    } else if (rank % (2 * step) == 0 && rank + step < count) {
      ranks.send(rank + step, bytes);
    }
  }
  return bytes;
}

void reduce(Ranks& ranks, const std::function<std::string()>& packed,
            const std::function<void(const std::string&)>& append) {
  const int rank = ranks.rank();
  for (int step = 1; step < ranks.count(); step *= 2) {
    if (rank % (2 * step) != 0) return ranks.send(rank - step, packed());
    if (rank + step < ranks.count()) append(ranks.receive(rank + step));
  }
}

void all_reduce(Ranks& ranks, const std::function<std::string()>& packed,
                const std::function<void(const std::string&)>& append,
                const std::function<void(const std::string&)>& replace) {
  if (ranks.count() == 1) return;
  reduce(ranks, packed, append);
  const std::string all = broadcast_bytes(ranks, ranks.is_first() ? packed() : std::string());
  if (!ranks.is_first()) replace(all);
}

void add_up(Ranks& ranks, std::span<std::int64_t> numbers) {
  std::vector<std::int64_t> sums(numbers.begin(), numbers.end());
  all_reduce_value(ranks, sums, [&](const std::vector<std::int64_t>& next) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += next[i];
  });
  std::copy(sums.begin(), sums.end(), numbers.begin());
}

bool all_of(Ranks& ranks, bool is_so) {
  std::int64_t doubts = is_so ? 0 : 1;
  add_up(ranks, {&doubts, 1});
  return doubts == 0;
}

void barrier(Ranks& ranks) { all_of(ranks, true); }

BlockRange block_range_of(std::int64_t blocks, const Ranks& ranks) {
  const std::int64_t count = ranks.count();
  const auto begin = [&](std::int64_t rank) {
    return rank * (blocks / count) + rank * (blocks % count) / count;
  };
  return {begin(ranks.rank()), begin(ranks.rank() + 1)};
}

Participants::Participants(Ranks& all, bool can_distribute) : alone_(all) {
  if (all_of(all, can_distribute)) {
    ranks_ = &all;
  } else if (all.is_first()) {
    ranks_ = &alone_;
  }
}

void check_same(Ranks& ranks, const std::string& name, std::vector<std::string> found,
                std::string_view things) {
  if (ranks.count() == 1) return;
  std::vector<std::string> expected = found;
  broadcast(ranks, expected);
  if (found == expected) return;
  if (found.size() != expected.size()) {
    throw Error(concat(printable(name), ": has ", counted(std::ssize(found), things), ", expected ",
                       expected.size(), ", as rank 0 has them"));
  }
  const auto [here, there] = std::mismatch(found.begin(), found.end(), expected.begin());
  throw Error(concat(printable(name), ": is ", printable(*here), ", expected ", printable(*there),
                     ", as rank 0 has it"));
}

std::string identity(const TensorInfo& tensor) {
  return concat(name(tensor.dtype), ", shape ", to_string(tensor.shape),
                tensor.order == MemoryOrder::fortran ? ", in Fortran order" : "");
}

void check_same(Ranks& ranks, const TensorInfo& tensor) {
  if (ranks.count() == 1) return;
  check_same(ranks, tensor.name, {identity(tensor)}, "tensor");
}

// A tensor of one rank goes to the one that has the least to do so far. So where all meet again, for a tensor that they do
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
