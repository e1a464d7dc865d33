#include "lnorm/pipeline/row_maxima.hpp"

#include <algorithm>

namespace lnorm {

RowMaxima::Block RowMaxima::examine(std::int64_t begin, std::int64_t end, const Greatest& greatest,
                                    WorstElements& elements) const {
  const auto of_row = [&](std::int64_t row) {
    return greatest(std::max(begin, row * row_length_), std::min(end, (row + 1) * row_length_));
  };
  const std::int64_t first = row_of(begin);
  const std::int64_t last = row_of(end - 1);
  Block block{begin, end};
  // A row that lies in the block alone is of interest to its elements alone.
  if (begin % row_length_ != 0) block.first_row = of_row(first);
  if (first == last) {
    if (begin % row_length_ == 0) block.first_row = of_row(first);
    block.last_row = block.first_row;
  } else if (end % row_length_ != 0) {
    block.last_row = of_row(last);
  }
  elements.for_each([&](WorstElement& element) {
    const std::int64_t row = row_of(element.pair.position);
    element.row_max = row == last && block.last_row > 0     ? block.last_row
                      : row == first && block.first_row > 0 ? block.first_row
                                                            : of_row(row);
  });
  return block;
}

void RowMaxima::append(const Block& block, WorstElements& before, WorstElements& of_block) {
  if (block.begin == block.end) return;
  const bool is_first = all_.begin == all_.end;
  const std::int64_t first = row_of(block.begin);
  const bool goes_on = !is_first && block.begin % row_length_ != 0;
  const double greatest = goes_on ? std::max(all_.last_row, block.first_row) : block.first_row;
  const auto raise = [&](WorstElement& element) {
    if (row_of(element.pair.position) == first) {
      element.row_max = std::max(element.row_max, greatest);
    }
  };
  before.for_each(raise);
  of_block.for_each(raise);
  if (is_first) all_.begin = block.begin;
  if (row_of(all_.begin) == first) all_.first_row = greatest;
  all_.end = block.end;
  all_.last_row = row_of(block.end - 1) == first ? greatest : block.last_row;
}

}  // namespace lnorm
