#include "lnorm/pipeline/compared_rows.hpp"

#include <algorithm>
#include <bit>

#include "lnorm/layout/row_view.hpp"

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

RowNumbers::RowNumbers(const Shape& shape, const Axes& axes)
    : shape_(shape), row_strides_(shape.size()) {
  const Shape rows = row_shape(shape, axes);
  if (element_count(rows) == 0) return;  // strides might be too large, and none is needed
  const Axes kept = kept_axes(shape, axes);
  const auto row_strides = strides(rows, MemoryOrder::c);
  for (std::size_t i = 0; i < kept.size(); ++i) row_strides_[kept[i]] = row_strides[i];
}

std::int64_t RowNumbers::of(std::int64_t position) const {
  std::int64_t row = 0;
  for (std::size_t axis = shape_.size(); axis-- > 0; position /= shape_[axis]) {
    row += position % shape_[axis] * row_strides_[axis];
  }
  return row;
}

RowCounter::RowCounter(const Shape& shape, const Axes& axes)
    : numbers_(shape, axes), row_shape_(row_shape(shape, axes)), axes_(axes) {}

void RowCounter::add(std::int64_t position) {
  const std::int64_t row = numbers_.of(position);
  if (seen_.empty()) seen_.resize(static_cast<std::size_t>((element_count(row_shape_) + 63) / 64));
  seen_[static_cast<std::size_t>(row / 64)] |= std::uint64_t{1} << row % 64;
}

void RowCounter::append(std::span<const std::uint64_t> seen) {
  seen_.resize(std::max(seen_.size(), seen.size()));
  for (std::size_t i = 0; i < seen.size(); ++i) seen_[i] |= seen[i];
}

MismatchedRows RowCounter::result() const {
  MismatchedRows result;
  result.axes = axes_;
  result.rows = element_count(row_shape_);
  for (const std::uint64_t rows : seen_) result.mismatched += std::popcount(rows);
  const auto first = std::find_if(seen_.begin(), seen_.end(), [](auto rows) { return rows != 0; });
  if (first == seen_.end()) return result;
  result.first = index_of(64 * (first - seen_.begin()) + std::countr_zero(*first), row_shape_);
  return result;
}

}  // namespace lnorm
