#include "lnorm/pipeline/executor.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/catch.hpp"

TEST_CASE("blocks begin and end in order, each in a slot of its own", "[pipeline]") {
  const int threads = GENERATE(1, 2, 3, 8);
  const std::int64_t blocks = GENERATE(0, 1, 2, 5, 1000);
  const lnorm::Executor executor(threads, blocks);
  CHECK(executor.slots() >= 1);
  std::vector<std::atomic<std::int64_t>> owner(executor.slots());
  for (auto& slot : owner) slot = -1;
  std::vector<std::int64_t> begun;
  std::vector<std::int64_t> ended;
  std::atomic<int> faults = 0;
  executor.run(
      blocks,
      [&](std::int64_t block, std::size_t slot) {
        begun.push_back(block);
        if (owner[slot].exchange(block) != -1) ++faults;
      },
      [&](std::int64_t block, std::size_t slot) {
        if (owner[slot] != block) ++faults;
        if (block % 17 == 0) std::this_thread::yield();
      },
      [&](std::int64_t block, std::size_t slot) {
        ended.push_back(block);
        if (owner[slot].exchange(-1) != block) ++faults;
      });
  std::vector<std::int64_t> all;
  for (std::int64_t block = 0; block < blocks; ++block) all.push_back(block);
  CHECK(begun == all);
  CHECK(ended == all);
  CHECK(faults == 0);
}

TEST_CASE("the first exception of a stage comes out", "[pipeline]") {
  const int threads = GENERATE(1, 4);
  const int stage = GENERATE(0, 1, 2);
  const auto fail_in = [&](int this_stage) {
    return [=](std::int64_t block, std::size_t) {
      if (stage == this_stage && block == 7) throw std::runtime_error("block 7");
    };
  };
  const lnorm::Executor executor(threads, 50);
  CHECK_THROWS_AS(executor.run(50, fail_in(0), fail_in(1), fail_in(2)), std::runtime_error);
}

TEST_CASE("a single block is done by the caller alone", "[pipeline]") {
  const lnorm::Executor executor(0, 1);
  CHECK(executor.slots() == 1);
  const auto caller = std::this_thread::get_id();
  const auto check = [&](std::int64_t, std::size_t) {
    CHECK(std::this_thread::get_id() == caller);
  };
  executor.run(1, check, check, check);
}
