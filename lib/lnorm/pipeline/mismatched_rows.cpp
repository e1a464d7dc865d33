#include "lnorm/pipeline/mismatched_rows.hpp"

#include <algorithm>

namespace lnorm {

RowCounter::RowCounter(const Shape& shape, const std::vector<std::size_t>& axes)
    : shape_(shape), row_strides_(shape.size()) {
  found_.axes = axes;
  found_.rows = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (std::binary_search(axes.begin(), axes.end(), axis)) continue;
    row_strides_[axis] = found_.rows;
    found_.rows *= shape[axis];
    row_shape_.insert(row_shape_.begin(), shape[axis]);
  }
}

void RowCounter::add(std::int64_t position) {
  std::int64_t row = 0;
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    row += position % shape_[axis] * row_strides_[axis];
    position /= shape_[axis];
  }
  seen_.resize(static_cast<std::size_t>(found_.rows));
  const auto bit = seen_.begin() + row;
  if (*bit) return;
  *bit = true;
  ++found_.mismatched;
  if (first_ < 0 || row < first_) first_ = row;
}

MismatchedRows RowCounter::result() const {
  MismatchedRows result = found_;
  if (first_ < 0) return result;
  result.first.resize(row_shape_.size());
  std::int64_t row = first_;
  for (std::size_t axis = row_shape_.size(); axis-- > 0; row /= row_shape_[axis]) {
    result.first[axis] = row % row_shape_[axis];
  }
  return result;
}

}  // namespace lnorm
