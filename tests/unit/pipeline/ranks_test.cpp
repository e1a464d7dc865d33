#include "lnorm/pipeline/ranks.hpp"

#include "lnorm/core/error.hpp"
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

using support::on_ranks;

namespace {

struct Odd {
  std::vector<std::string> words;
  std::optional<std::vector<double>> numbers;
  bool flag = false;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(words, numbers, flag);
  }
};

}  // namespace

TEST_CASE("values are unpacked as they were packed", "[ranks]") {
  Odd odd{{"", "a", std::string(1000, 'x')}, std::vector<double>{1, -0.5}, true};
  std::vector<Odd> several{odd, {}, odd};
  std::int64_t number = -7;
  const std::string bytes = lnorm::serialize(several, number);
  std::vector<Odd> found(1);
  std::int64_t other = 0;
  lnorm::deserialize(bytes, found, other);
  REQUIRE(found.size() == 3);
  for (const std::size_t i : std::vector<std::size_t>{0, 2}) {
    CHECK(found[i].words == odd.words);
    CHECK(found[i].numbers == odd.numbers);
    CHECK(found[i].flag);
  }
  CHECK(found[1].words.empty());
  CHECK(!found[1].numbers);
  CHECK(other == -7);
}

TEST_CASE("what ranks have found is brought together in their order", "[ranks]") {
  for (const int count : {1, 2, 3, 4, 5, 8, 13}) {
    CAPTURE(count);
    std::string expected;
    for (int rank = 0; rank < count; ++rank) expected += static_cast<char>('a' + rank);
    std::vector<std::string> results(static_cast<std::size_t>(count));
    CHECK(on_ranks(count, [&](lnorm::Ranks& ranks) {
      std::string found(1, static_cast<char>('a' + ranks.rank()));
      lnorm::all_reduce(
          ranks, [&] { return found; }, [&](const std::string& next) { found += next; },
          [&](const std::string& all) { found = all; });
      std::vector<std::int64_t> numbers{1, ranks.rank()};
      lnorm::add_up(ranks, numbers);
      std::string shared = "of rank " + std::to_string(ranks.rank());
      lnorm::broadcast(ranks, shared);
      lnorm::barrier(ranks);
      const bool all = lnorm::all_of(ranks, true);
      const bool not_all = lnorm::all_of(ranks, ranks.rank() != ranks.count() - 1);
      results[static_cast<std::size_t>(ranks.rank())] =
          found + ' ' + std::to_string(numbers[0]) + ' ' + std::to_string(numbers[1]) + ' ' +
          shared + (all ? " yes" : "") + (not_all ? " no" : "");
    }));
    for (const std::string& result : results) {
      CHECK(result == expected + ' ' + std::to_string(count) + ' ' +
                          std::to_string(count * (count - 1) / 2) + " of rank 0 yes");
    }
  }
}

TEST_CASE("the shares of ranks follow each other and differ by one block at most", "[ranks]") {
  for (const int count : {1, 2, 3, 5, 7}) {
    for (const std::int64_t blocks : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3},
                                      std::int64_t{100}, std::int64_t{1} << 61}) {
      CAPTURE(count, blocks);
      std::vector<lnorm::BlockRange> shares(static_cast<std::size_t>(count));
      std::vector<lnorm::BlockRange> alone = shares;
      on_ranks(count, [&](lnorm::Ranks& ranks) {
        const auto rank = static_cast<std::size_t>(ranks.rank());
        shares[rank] = lnorm::block_range_of(blocks, ranks);
        // One rank that cannot take a part is enough: rank 0 does all.
        lnorm::Participants participants(ranks, count == 1 || ranks.rank() != count - 1);
        lnorm::Ranks* const taking_part = participants.ranks();
        if (taking_part != nullptr) alone[rank] = lnorm::block_range_of(blocks, *taking_part);
      });
      std::int64_t next = 0;
      for (const lnorm::BlockRange& share : shares) {
        CHECK(share.begin == next);
        CHECK(share.size() >= blocks / count);
        CHECK(share.size() <= blocks / count + 1);
        next = share.end;
      }
      CHECK(next == blocks);
      for (std::size_t rank = 0; rank < alone.size(); ++rank) {
        CHECK(alone[rank].size() == (rank == 0 ? blocks : 0));
      }
    }
  }
}

TEST_CASE("a tensor that one rank sees otherwise is refused there", "[ranks]") {
  const auto check = [](lnorm::TensorInfo of_one) {
    on_ranks(3, [&](lnorm::Ranks& ranks) {
      const lnorm::TensorInfo x{"x", lnorm::DType::float32, {3, 4}};
      lnorm::check_same(ranks, ranks.rank() == 2 ? of_one : x);
    });
  };
  CHECK_NOTHROW(check({"another name", lnorm::DType::float32, {3, 4}}));
  CHECK_THROWS_AS(check({"x", lnorm::DType::float32, {4, 4}}), lnorm::Error);
  CHECK_THROWS_AS(check({"x", lnorm::DType::float64, {3, 4}}), lnorm::Error);
}
