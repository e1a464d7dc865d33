#include "lnorm/pipeline/executor.hpp"

#include <tbb/info.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "lnorm/core/interruption.hpp"

namespace lnorm {

namespace {

// Large blocks are fewer: what they may take together.
constexpr std::int64_t kLargeBlock = std::int64_t{2} << 20;
constexpr std::int64_t kMaxBytes = std::int64_t{72} << 20;

int useful_threads(int threads, std::int64_t blocks, std::int64_t block_bytes) {
  if (blocks <= 1) return 1;
  if (threads == 0) threads = tbb::info::default_concurrency();
  if (block_bytes >= kLargeBlock) blocks = std::min(blocks, kMaxBytes / block_bytes);
  return static_cast<int>(std::clamp<std::int64_t>(blocks, 1, threads));
}

// Threads beside this one that take part in the work of an arena while this lives: as many as can be created. oneTBB ends a process in
// which it cannot create one, so its arena has room for these alone.
class Helpers {
 public:
  Helpers(tbb::task_arena& arena, int count) {
    all_.reserve(static_cast<std::size_t>(count));
    try {
      while (std::ssize(all_) < count) {
        auto helper = std::make_unique<Helper>();
        helper->thread =
            std::thread([&arena, &group = helper->group] { arena.execute([&] { group.wait(); }); });
        all_.push_back(std::move(helper));
      }
    } catch (const std::exception&) {  // these are all that there are
    }
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  ~Helpers() {
    for (const auto& helper : all_) helper->end = {};
    for (const auto& helper : all_) helper->thread.join();
  }

 private:
  // It works until its own task is gone.
  struct Helper {
    tbb::task_group group;
    tbb::task_handle end = group.defer([] {});
    std::thread thread;
  };
  std::vector<std::unique_ptr<Helper>> all_;
};

}  // namespace

Executor::Executor(int threads, std::int64_t blocks, std::int64_t block_bytes)
    : threads_(useful_threads(threads, blocks, block_bytes)),
      // One to work on for every thread, and as many that wait for their turn to begin or end.
      slots_(static_cast<std::size_t>(threads_) *
             (threads_ == 1 || block_bytes >= kLargeBlock ? 1 : 2)) {}

void Executor::run(std::int64_t blocks, const Stage& begin, const Stage& do_work,
                   const Stage& end) const {
  const auto work = [&](std::int64_t block, std::size_t slot) {
    check_interruption();
    do_work(block, slot);
  };
  if (threads_ == 1) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      if (begin) begin(block, 0);
      work(block, 0);
      if (end) end(block, 0);
    }
    return;
  }
  // Blocks leave in order, and there are never more under way than slots: by the time a block comes in,
  // the one that had its slot has left.
  const auto slot_of = [&](std::int64_t block) { return static_cast<std::size_t>(block) % slots_; };
  const auto in_order = tbb::filter_mode::serial_in_order;
  std::int64_t next = 0;
  const auto claim = [&](tbb::flow_control& control) {
    if (next == blocks) {
      control.stop();
      return next;
    }
    if (begin) begin(next, slot_of(next));
    return next++;
  };
  const auto work_on = [&](std::int64_t block) {
    work(block, slot_of(block));
    return block;
  };
  const auto end_of = [&](std::int64_t block) {
    if (end) end(block, slot_of(block));
  };
  tbb::task_arena arena(threads_, static_cast<unsigned>(threads_));
  const Helpers helpers(arena, threads_ - 1);
  arena.execute([&] {
    tbb::parallel_pipeline(slots_, tbb::make_filter<void, std::int64_t>(in_order, claim) &
                                       tbb::make_filter<std::int64_t, std::int64_t>(
                                           tbb::filter_mode::parallel, work_on) &
                                       tbb::make_filter<std::int64_t, void>(in_order, end_of));
  });
  check_interruption();  // others may have done all of the work
}

InParallel in_parallel(int threads) {
  return [threads](std::int64_t parts, const std::function<void(std::int64_t)>& work) {
    Executor(threads, parts)
        .run(parts, {}, [&](std::int64_t part, std::size_t) { work(part); }, {});
  };
}

ForEachTile for_each_tile(int threads) {
  return
      [threads](std::int64_t tiles, std::int64_t bytes, const TileWork& work, const TileWork& end) {
        const Executor executor(threads, tiles, bytes);
        std::vector<TileBuffer> buffers(executor.slots());
        const auto in_room = [&buffers](const TileWork& stage) -> Executor::Stage {
          if (!stage) return {};
          return [&](std::int64_t number, std::size_t slot) { stage(number, buffers[slot]); };
        };
        executor.run(tiles, {}, in_room(work), in_room(end));
      };
}

}  // namespace lnorm
