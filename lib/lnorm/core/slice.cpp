#include "lnorm/core/slice.hpp"

#include "lnorm/core/axes.hpp"

namespace lnorm {

TensorInfo slice_info(const TensorInfo& x, const Axes& axes, std::int64_t first,
                      std::int64_t count) {
  TensorInfo slice = x;
  slice.shape = extents(x.shape, axes);
  slice.shape.insert(slice.shape.begin(), count);
  slice.order = MemoryOrder::c;
  if (x.slice) {
    slice.slice->first += first;
    slice.slice->count = count;
  } else {
    slice.slice = {x.shape, axes, first, count};
  }
  return slice;
}

TensorInfo whole_of(const TensorInfo& x) {
  TensorInfo whole = x;
  if (x.slice) {
    whole.shape = x.slice->shape;
    whole.slice.reset();
  }
  return whole;
}

std::int64_t all_rows(const RowSlice& slice) {
  return element_count(row_shape(slice.shape, slice.axes));
}

std::int64_t position_in_whole(const RowSlice& slice, std::int64_t position) {
  const Axes kept = kept_axes(slice.shape, slice.axes);
  const Shape normalized = extents(slice.shape, slice.axes);
  const std::int64_t length = element_count(normalized);
  const Shape row = index_of(slice.first + position / length, extents(slice.shape, kept));
  const Shape element = index_of(position % length, normalized);
  Shape index(slice.shape.size());
  for (std::size_t i = 0; i < kept.size(); ++i) index[kept[i]] = row[i];
  for (std::size_t i = 0; i < element.size(); ++i) index[slice.axes[i]] = element[i];
  std::int64_t result = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    result = result * slice.shape[axis] + index[axis];
  }
  return result;
}

}  // namespace lnorm
