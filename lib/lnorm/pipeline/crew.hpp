#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "lnorm/layout/tiles.hpp"

namespace lnorm {

// Is told after every block how many elements are done; empty if nobody wants to know.
using Progress = std::function<void(std::int64_t elements)>;

struct RunOptions {
  int threads = 0;  // 0: as many as the machine has
  Progress progress{};
};

// How a loop is spread over threads: as many as there can be work for, and as memory allows.
class Crew {
 public:
  // block_bytes: what a block under way takes, where that is much.
  Crew(int threads, std::int64_t blocks, std::int64_t block_bytes = 0);

  int threads() const noexcept { return threads_; }

  // How many blocks can be under way at a time, each of them in a slot of its own.
  std::size_t slots() const noexcept { return slots_; }

  using Stage = std::function<void(std::int64_t block, std::size_t slot)>;

  // Takes every block through three stages: begin and end one block at a time, from the first block to
  // the last; work for several blocks at once. The first exception ends it and is thrown. A single
  // thread, or a single block, is done by the caller alone.
  void run(std::int64_t blocks, const Stage& begin, const Stage& work, const Stage& end) const;

 private:
  int threads_;
  std::size_t slots_;
};

// Tiles by a crew of that many threads, or fewer.
ForEachTile for_each_tile(int threads);

}  // namespace lnorm
