#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/ranks.hpp"

namespace lnorm {

// Some of the items that a loop goes over.
struct Block {
  std::int64_t first;
  std::int64_t count;
};

// What a loop goes over: rows, or elements. Each block has so many items, the last one may have fewer.
struct LoopExtent {
  std::int64_t items;
  std::int64_t items_of_block;
  std::int64_t elements_of_item = 1;

  std::int64_t blocks() const noexcept { return (items + items_of_block - 1) / items_of_block; }
};

// The items of this rank.
inline Block share_of(const LoopExtent& extent, const Ranks& ranks) {
  const BlockRange blocks = block_range_of(extent.blocks(), ranks);
  const std::int64_t first = std::min(blocks.begin * extent.items_of_block, extent.items);
  return {first, std::min(blocks.end * extent.items_of_block, extent.items) - first};
}

// The one loop over blocks: threads take those of this rank. begin(block, slot) and end(block, slot) are called for one
// block at a time, in order, and work(block, slot) between them for several at once; begin may be nullptr. A slot has
// the buffers of a block under way, which a later block uses again. After every block the loop tells the progress, and
// hears whether another rank has failed.
template <class Slot, class Begin, class Work, class End>
void for_each_block(const LoopExtent& extent, const Executor& executor, const RunOptions& options,
                    std::vector<Slot>& slots, Begin begin, Work work, End end) {
  if (slots.size() < executor.slots()) slots.resize(executor.slots());
  const BlockRange share = block_range_of(extent.blocks(), *options.ranks);
  const auto block_of = [&](std::int64_t number) {
    const std::int64_t first = (share.begin + number) * extent.items_of_block;
    return Block{first, std::min(extent.items_of_block, extent.items - first)};
  };
  Executor::Stage first_stage;
  if constexpr (!std::is_null_pointer_v<Begin>) {
    first_stage = [&](std::int64_t number, std::size_t s) { begin(block_of(number), slots[s]); };
  }
  executor.run(
      share.size(), first_stage,
      [&](std::int64_t number, std::size_t s) { work(block_of(number), slots[s]); },
      [&](std::int64_t number, std::size_t s) {
        end(block_of(number), slots[s]);
        options.ranks->check();
        if (!options.progress) return;
        // The others are about as far.
        const std::int64_t done = (number + 1) * options.ranks->count() * extent.items_of_block;
        options.progress(std::min(done, extent.items) * extent.elements_of_item);
      });
}

}  // namespace lnorm
