#pragma once

#include <cstdint>
#include <functional>

#include "lnorm/measure/raw_elements.hpp"
#include "lnorm/measure/worst.hpp"

namespace lnorm {

// Finds row_max of the worst elements while blocks of elements go by, each once. Rows lie one after another
// in C order; a row may begin in one block and end in another.
class RowMaxima {
 public:
  explicit RowMaxima(std::int64_t row_length) : row_length_(row_length) {}

  // The greatest finite |expected| from one position up to another, or kNoneFinite.
  using Greatest = std::function<double(std::int64_t begin, std::int64_t end)>;

  // Successive elements, and the greatest ones of the rows at their ends.
  struct Block {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    double first_row = kNoneFinite;
    double last_row = kNoneFinite;
  };

  // On any thread. Sets row_max of the elements, which lie in the block, as far as the block tells.
  Block examine(std::int64_t begin, std::int64_t end, const Greatest& greatest,
                WorstElements& elements) const;

  // In order: before the elements of a block, which may be empty, are added to those of the blocks before it. Sets row_max
  // as far as all of the blocks tell.
  void append(const Block& block, WorstElements& before, WorstElements& of_block);

  // All blocks so far as one.
  const Block& all() const noexcept { return all_; }

 private:
  std::int64_t row_of(std::int64_t position) const { return position / row_length_; }

  std::int64_t row_length_;
  Block all_;  // last_row: of the row that the next block goes on with
};

}  // namespace lnorm
