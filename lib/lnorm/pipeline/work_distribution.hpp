#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lnorm/pipeline/ranks.hpp"

namespace lnorm {

enum class Deal {
  together,  // all ranks do every tensor together
  by_size,   // all ranks do a large tensor together, one rank does another
};

// Which of several tensors a rank does. All ranks come to the same.
class WorkDistribution {
 public:
  // bytes: of each tensor, in the order in which they are done.
  WorkDistribution(Ranks& ranks, Deal deal, std::span<const std::int64_t> bytes);

  // The ranks that do a tensor, if this one is among them: all of them, or it alone. Otherwise null.
  Ranks* ranks_of(std::size_t tensor) const;

  // A smaller tensor is not large: what ranks have to tell each other takes as long as to read it.
  static constexpr double kMinLarge = 4 << 20;

 private:
  // This rank, which still hears of the failure of others.
  class Alone final : public SoleRank {
   public:
    explicit Alone(Ranks& all) : all_(all) {}
    void check() override { all_.check(); }

   private:
    Ranks& all_;
  };

  static constexpr int kAll = -1;

  Ranks& all_;
  mutable Alone alone_;
  std::vector<int> owners_;  // of tensors: a rank, or all
};

}  // namespace lnorm
