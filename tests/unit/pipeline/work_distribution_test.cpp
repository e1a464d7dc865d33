#include <cstdint>

#include "lnorm/pipeline/ranks.hpp"
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

namespace {

using lnorm::Deal;
using lnorm::WorkDistribution;

constexpr std::int64_t kMebibyte = 1 << 20;

// For every tensor the rank that does it; -1 if all do it together.
std::vector<int> owners(int count, Deal deal, const std::vector<std::int64_t>& bytes) {
  std::vector<std::vector<int>> of_ranks(static_cast<std::size_t>(count));
  support::on_ranks(count, [&](lnorm::Ranks& ranks) {
    const WorkDistribution dealing(ranks, deal, bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const lnorm::Ranks* const found = dealing.ranks_of(i);
      of_ranks[static_cast<std::size_t>(ranks.rank())].push_back(found == nullptr  ? 0
                                                                 : found == &ranks ? 2
                                                                                   : 1);
    }
  });
  std::vector<int> result;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    int owner = -1;
    int alone = 0;
    int together = 0;
    for (int rank = 0; rank < count; ++rank) {
      const int how = of_ranks[static_cast<std::size_t>(rank)][i];
      if (how == 1) owner = rank;
      alone += how == 1 ? 1 : 0;
      together += how == 2 ? 1 : 0;
    }
    CHECK(((alone == 1 && together == 0) || (alone == 0 && together == count)));
    result.push_back(owner);
  }
  return result;
}

}  // namespace

TEST_CASE("a large tensor is done by all ranks, another by the one with the least to do",
          "[pipeline]") {
  const std::vector<std::int64_t> bytes{3 * kMebibyte, 90 * kMebibyte, kMebibyte, 7,
                                        2 * kMebibyte, kMebibyte};
  CHECK(owners(1, Deal::by_size, bytes) == std::vector<int>(6, -1));
  CHECK(owners(2, Deal::together, bytes) == std::vector<int>(6, -1));
  CHECK(owners(3, Deal::by_size, bytes) == std::vector<int>{0, -1, 1, 2, 2, 1});
  CHECK(owners(4, Deal::by_size, {}).empty());
}

TEST_CASE("of tensors of one size every rank does as many", "[pipeline]") {
  const std::vector<std::int64_t> small(8, kMebibyte);
  CHECK(owners(4, Deal::by_size, small) == std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3});
  const std::vector<std::int64_t> few(3, 100 * kMebibyte);
  CHECK(owners(4, Deal::by_size, few) == std::vector<int>(3, -1));
}
