#include "lnorm/pipeline/mismatched_rows.hpp"

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
    : numbers_(shape, axes), row_shape_(row_shape(shape, axes)) {
  found_.axes = axes;
  found_.rows = element_count(row_shape_);
}

void RowCounter::add(std::int64_t position) {
  const std::int64_t row = numbers_.of(position);
  seen_.resize(static_cast<std::size_t>(found_.rows));
  const auto bit = seen_.begin() + row;
  if (*bit) return;
  *bit = true;
  ++found_.mismatched;
  if (first_ < 0 || row < first_) first_ = row;
}

MismatchedRows RowCounter::result() const {
  MismatchedRows result = found_;
  if (first_ >= 0) result.first = index_of(first_, row_shape_);
  return result;
}

}  // namespace lnorm
