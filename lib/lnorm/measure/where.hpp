#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/shape.hpp"
#include "lnorm/measure/row_runs.hpp"

// Sets of rows or columns, in the fewest words.
namespace lnorm {

// Some numbers below limit. Words count from base on, which shape does, too.
struct NumberSet {
  NumberBits numbers = {};
  std::int64_t limit = 0;
  std::int64_t base = 0;
  Shape shape = {};  // along which they count, if they have an index beside
};

// How many they are, and the first of them as words count them.
struct AffectedNumbers {
  std::int64_t count = 0;
  std::vector<std::int64_t> first;  // up to ten

  template <class Archive>
  void serialize(Archive& archive) {
    archive(count, first);
  }
};
AffectedNumbers affected(const NumberSet& set);

// "rows 5, 17 and 40", "every row from 960 on, the last 64", "all 64 rows", "every 8th row from 3 on", "blocks of 32 rows, ...",
// "17 of 64 rows, from 2 to 60": whichever is true and says it in the fewest numbers. noun: row or column.
std::string words_of(const NumberSet& set, std::string_view noun);

// Where so many elements are, in these rows and columns.
std::string words_of(std::int64_t elements, const NumberSet& rows, const NumberSet& columns);

}  // namespace lnorm
