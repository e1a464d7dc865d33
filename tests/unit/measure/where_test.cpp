#include "lnorm/measure/where.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

using lnorm::NumberSet;

std::vector<std::int64_t> range(std::int64_t first, std::int64_t end, std::int64_t step = 1) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = first; i < end; i += step) numbers.push_back(i);
  return numbers;
}

std::vector<std::int64_t> blocks(std::int64_t first, std::int64_t count, std::int64_t step,
                                 std::int64_t end) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = first; i < end; i += step) {
    for (std::int64_t k = i; k < std::min(i + count, end); ++k) numbers.push_back(k);
  }
  return numbers;
}

lnorm::NumberBits bits_of(const std::vector<std::int64_t>& numbers) {
  lnorm::NumberBits bits;
  for (const std::int64_t number : numbers) bits.add(number);
  return bits;
}

}  // namespace

TEST_CASE("a set of rows is said in the fewest numbers") {
  struct Case {
    std::vector<std::int64_t> numbers;
    std::int64_t limit;
    std::string words;
  };
  const std::vector<Case> cases{
      {{}, 9, "no row"},
      {{0}, 1, "the one row"},
      {{5}, 64, "row 5"},
      {{5, 6}, 64, "rows 5 and 6"},
      {{5, 17, 40}, 64, "rows 5, 17 and 40"},
      {range(0, 64), 64, "all 64 rows"},
      {range(0, 3), 64, "the first 3 rows"},
      {range(960, 1024), 1024, "every row from 960 on, the last 64"},
      {range(10, 20), 64, "rows 10 to 19"},
      {range(3, 64, 8), 64, "every 8th row from 3 on"},
      {range(1, 64, 2), 64, "every 2nd row from 1 on"},
      {range(0, 64, 3), 64, "every 3rd row from 0 on"},
      {range(0, 64, 21), 64, "every 21st row from 0 on"},
      {blocks(4, 4, 16, 64), 64, "blocks of 4 rows, every 16 from 4 on"},
      // The last block may be cut off by the end.
      {blocks(8, 8, 24, 60), 60, "blocks of 8 rows, every 24 from 8 on"},
      {{1, 2, 5, 9, 11, 40}, 64, "6 of 64 rows, from 1 to 40"},
  };
  for (const Case& one : cases) {
    CHECK(lnorm::words_of(NumberSet{bits_of(one.numbers), one.limit, 0}, "row") == one.words);
  }
  std::vector<std::int64_t> most = range(0, 64);
  most.erase(most.begin() + 7);
  // The bits of a run may go over words.
  CHECK(lnorm::words_of(NumberSet{bits_of(range(60, 130)), 200, 0}, "row") == "rows 60 to 129");
  CHECK(lnorm::words_of(NumberSet{bits_of(most), 64, 0}, "column") ==
        "all 64 columns but column 7");
}

TEST_CASE("where elements are is said by rows, by columns, or by both") {
  const NumberSet all_rows{bits_of(range(0, 8)), 8, 0};
  const NumberSet all_columns{bits_of(range(0, 100)), 100, 0};
  CHECK(lnorm::words_of(800, all_rows, all_columns) == "every element");
  CHECK(lnorm::words_of(200, {bits_of({2, 5}), 8, 0}, all_columns) == "rows 2 and 5");
  CHECK(lnorm::words_of(8, all_rows, {bits_of({99}), 100, 0}) == "column 99 in all rows");
  CHECK(lnorm::words_of(2, {bits_of({2, 5}), 8, 0}, {bits_of({99}), 100, 0}) ==
        "column 99 of rows 2 and 5");
  CHECK(lnorm::words_of(7, all_rows, {bits_of({1, 99}), 100, 0}) ==
        "7 elements, in all rows, columns 1 and 99");
  // Of some rows of a tensor, numbered as in all of it.
  CHECK(lnorm::words_of(200, {bits_of({2, 5}), 8, 100}, all_columns) == "rows 102 and 105");
  CHECK(lnorm::words_of(NumberSet{bits_of(range(4, 8)), 8, 100}, "row") ==
        "every row from 104 on, the last 4");
  CHECK(lnorm::words_of(790, all_rows, all_columns) == "790 elements, in all rows, all columns");
}
