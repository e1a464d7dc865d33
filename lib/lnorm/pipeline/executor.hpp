#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "lnorm/core/in_parallel.hpp"
#include "lnorm/layout/tiles.hpp"
#include "lnorm/pipeline/ranks.hpp"

namespace lnorm {

// Gets the number of elements that are done, after every block. Empty if nobody wants to know.
using Progress = std::function<void(std::int64_t elements)>;

struct RunOptions {
  int threads = 0;  // 0: as many as the machine has
  Progress progress{};
  Ranks* ranks = &sole_rank();
};

// The threads of a loop: as many as have work, and as memory allows. Where some cannot be created the others do the work.
class Executor {
 public:
  // block_bytes: what a block under way takes, if that is much.
  Executor(int threads, std::int64_t blocks, std::int64_t block_bytes = 0);

  int threads() const noexcept { return threads_; }

  // How many blocks can be under way at a time, each of them in a slot of its own.
  std::size_t slots() const noexcept { return slots_; }

  using Stage = std::function<void(std::int64_t block, std::size_t slot)>;

  // Takes every block through three stages. begin and end take one block at a time, from the first to the
  // last; work takes several at once. The first exception ends the loop and is thrown. The caller alone
  // does a single block, or the work of a single thread. begin and end may be empty.
  void run(std::int64_t blocks, const Stage& begin, const Stage& work, const Stage& end) const;

 private:
  int threads_;
  std::size_t slots_;
};

// Parts, or tiles, by a executor of that many threads, or fewer.
InParallel in_parallel(int threads);
ForEachTile for_each_tile(int threads);

}  // namespace lnorm
