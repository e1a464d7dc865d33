#include "lnorm/pipeline/mismatched_rows.hpp"

#include <algorithm>
#include <bit>

#include "lnorm/layout/row_view.hpp"

namespace lnorm {

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
