#include "lnorm/layout/row_view.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace lnorm {

namespace {

using Axis = RowView::Axis;

std::int64_t size_of(std::span<const Axis> axes) {
  std::int64_t size = 1;
  for (const Axis& axis : axes) size *= axis.extent;
  return size;
}

// Merges axes that go on where the next one ends.
std::vector<Axis> merged(std::span<const Axis> axes) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (axis.extent == 1) continue;
    if (!result.empty() && result.back().stride == axis.extent * axis.stride &&
        result.back().step == axis.extent * axis.step) {
      result.back() = {result.back().extent * axis.extent, axis.stride, axis.step};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

std::vector<Axis> numbered(const Shape& shape, MemoryOrder order, const Axes& along) {
  const std::vector<std::int64_t> all = strides(shape, order);
  std::vector<Axis> axes;
  for (const std::size_t number : along) axes.push_back({shape[number], all[number], 1});
  for (std::size_t i = axes.size(); i-- > 1;) axes[i - 1].step = axes[i].step * axes[i].extent;
  return merged(axes);
}

void sort_as_in_file(std::span<Axis> axes) {
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
}

// Whether all indices, the last axis fastest, lie one after another.
bool is_dense(const std::vector<Axis>& axes) {
  std::int64_t stride = 1;
  for (std::size_t i = axes.size(); i-- > 0; stride *= axes[i].extent) {
    if (axes[i].stride != stride) return false;
  }
  return true;
}

// Some rows and some elements of each: all combinations of some indices of each axis.
struct Box {
  std::int64_t position = 0;  // in the file
  std::int64_t start = 0;     // in rows
  std::vector<Axis> axes;     // with their steps in rows
};

// Splits the numbers from a to b, along axes, into boxes, each of them a part of box. unit: from one number to
// the next in rows.
void split(std::span<const Axis> axes, std::int64_t a, std::int64_t b, std::int64_t unit,
           const Box& box, std::vector<Box>& boxes) {
  if (a == b) return;
  if (axes.empty()) return boxes.push_back(box);
  const Axis outer = axes.front();
  const std::span<const Axis> rest = axes.subspan(1);
  const std::int64_t first = (a + outer.step - 1) / outer.step;  // whole indices
  const std::int64_t last = b / outer.step;
  const auto part_from = [&](std::int64_t index, std::int64_t number) {
    Box part = box;
    part.position += index * outer.stride;
    part.start += (number - a) * unit;
    return part;
  };
  if (first > last) {  // all within one index
    return split(rest, a - last * outer.step, b - last * outer.step, unit, part_from(last, a),
                 boxes);
  }
  if (a < first * outer.step) {
    split(rest, a - (first - 1) * outer.step, outer.step, unit, part_from(first - 1, a), boxes);
  }
  if (first < last) {
    Box whole = part_from(first, first * outer.step);
    whole.axes.push_back({last - first, outer.stride, outer.step * unit});
    for (const Axis& axis : rest) {
      whole.axes.push_back({axis.extent, axis.stride, axis.step * unit});
    }
    boxes.push_back(std::move(whole));
  }
  split(rest, 0, b - last * outer.step, unit, part_from(last, last * outer.step), boxes);
}

std::vector<Box> boxes_of(std::span<const Axis> row_axes, std::span<const Axis> element_axes,
                          const Tile& tile, std::int64_t row_stride) {
  std::vector<Box> rows;
  std::vector<Box> boxes;
  split(row_axes, tile.first_row, tile.first_row + tile.rows, row_stride, {}, rows);
  for (const Box& some : rows) {
    split(element_axes, tile.first, tile.first + tile.count, 1, some, boxes);
  }
  for (Box& box : boxes) {
    sort_as_in_file(box.axes);
    box.axes = merged(box.axes);
  }
  return boxes;
}

// An axis of a copy in memory.
struct CopyAxis {
  std::int64_t count;
  std::int64_t from;  // strides
  std::int64_t to;
};

template <class T>
void copy_plane(CopyAxis outer, CopyAxis inner, const T* from, T* to) {
  if (inner.from == 1 && inner.to == 1) {
    for (std::int64_t i = 0; i < outer.count; ++i) {
      std::memcpy(to + i * outer.to, from + i * outer.from,
                  static_cast<std::size_t>(inner.count) * sizeof(T));
    }
    return;
  }
  // Copy in squares: their cache lines are used up before they are evicted.
  constexpr std::int64_t kSquare = 32;
  for (std::int64_t j0 = 0; j0 < inner.count; j0 += kSquare) {
    const std::int64_t j1 = std::min(inner.count, j0 + kSquare);
    for (std::int64_t i0 = 0; i0 < outer.count; i0 += kSquare) {
      const std::int64_t i1 = std::min(outer.count, i0 + kSquare);
      for (std::int64_t i = i0; i < i1; ++i) {
        for (std::int64_t j = j0; j < j1; ++j) {
          to[i * outer.to + j * inner.to] = from[i * outer.from + j * inner.from];
        }
      }
    }
  }
}

template <class T>
void copy_axes(std::span<const CopyAxis> axes, const T* from, T* to) {
  if (axes.size() == 2) return copy_plane(axes[0], axes[1], from, to);
  const CopyAxis& outer = axes.front();
  for (std::int64_t i = 0; i < outer.count; ++i) {
    copy_axes(axes.subspan(1), from + i * outer.from, to + i * outer.to);
  }
}

// Puts the axis with stride 1 in `to` last, and the one with stride 1 in `from` before it.
template <class T>
void copy(std::vector<CopyAxis> axes, const T* from, T* to) {
  while (axes.size() < 2) axes.insert(axes.begin(), {1, 0, 0});
  const auto move_to_end = [&](std::int64_t CopyAxis::*stride) {
    std::stable_partition(axes.begin(), axes.end(), [&](const CopyAxis& axis) {
      return axis.count == 1 || axis.*stride != 1;
    });
  };
  move_to_end(&CopyAxis::from);
  move_to_end(&CopyAxis::to);
  copy_axes<T>(axes, from, to);
}

void copy_items(std::size_t item, std::vector<CopyAxis> axes, const std::byte* from,
                std::int64_t from_start, std::byte* to, std::int64_t to_start) {
  const auto copy_as = [&]<class T>(T) {
    const auto size = static_cast<std::int64_t>(sizeof(T));
    copy(std::move(axes), reinterpret_cast<const T*>(from + from_start * size),
         reinterpret_cast<T*>(to + to_start * size));
  };
  // Elements of one size are moved alike, whatever their dtype. The buffers are aligned: they come from new.
  switch (item) {
    case 1:
      return copy_as(std::uint8_t{});
    case 2:
      return copy_as(std::uint16_t{});
    case 4:
      return copy_as(std::uint32_t{});
    case 16:
      return copy_as(std::array<std::uint64_t, 2>{});
    default:
      return copy_as(std::uint64_t{});
  }
}

// Moves a tile from one of its forms to the other.
void copy_boxes(const std::vector<Box>& boxes, std::size_t item, bool to_rows,
                const std::byte* from, std::byte* to) {
  std::int64_t packed_start = 0;
  for (const Box& box : boxes) {
    const std::int64_t size = size_of(box.axes);
    std::vector<CopyAxis> axes;
    std::int64_t packed_stride = size;
    for (const Axis& axis : box.axes) {
      packed_stride /= axis.extent;
      axes.push_back(to_rows ? CopyAxis{axis.extent, packed_stride, axis.step}
                             : CopyAxis{axis.extent, axis.step, packed_stride});
    }
    copy_items(item, std::move(axes), from, to_rows ? packed_start : box.start, to,
               to_rows ? box.start : packed_start);
    packed_start += size;
  }
}

}  // namespace

RowView::RowView(const Shape& shape, MemoryOrder order, const Axes& row_axes,
                 const Axes& element_axes)
    : row_axes_(numbered(shape, order, row_axes)),
      element_axes_(numbered(shape, order, element_axes)),
      rows_(size_of(row_axes_)),
      row_length_(size_of(element_axes_)) {
  if (rows_ == 0 || row_length_ == 0) return;
  // Find the fewest of the last row axes that fill a block together with the elements. The other axes go
  // from block to block.
  slab_rows_ = rows_;
  for (std::size_t outer = row_axes_.size(); outer > 0; --outer) {
    std::vector<Axis> axes = row_axes_;
    axes.insert(axes.end(), element_axes_.begin(), element_axes_.end());
    sort_as_in_file(std::span(axes).subspan(outer));
    if (!is_dense(axes)) continue;
    slab_rows_ = row_axes_[outer - 1].step;
    break;
  }
  contiguous_ = slab_rows_ == 1 && is_dense(element_axes_);
}

RowView RowView::one_row(const Shape& shape, MemoryOrder order) {
  if (element_count(shape) == 0) return contiguous(1, 0);  // strides might be too large
  return {shape, order, {}, kept_axes(shape, {})};
}

bool RowView::runs_across_rows() const noexcept {
  return element_axes_.size() == 1 && element_axes_[0].stride != 1;
}

std::vector<RowView::Run> RowView::runs(const Tile& tile) const {
  std::vector<Run> runs;
  for (const Box& box : boxes_of(row_axes_, element_axes_, tile, tile.count)) {
    // The last axes are one run as far as they follow each other in the file.
    std::size_t outer = box.axes.size();
    std::int64_t length = 1;
    while (outer > 0 && box.axes[outer - 1].stride == length) {
      length *= box.axes[outer - 1].extent;
      --outer;
    }
    std::vector<std::int64_t> index(outer);
    for (std::int64_t left = size_of(box.axes) / length; left > 0; --left) {
      std::int64_t position = box.position;
      for (std::size_t i = 0; i < outer; ++i) position += index[i] * box.axes[i].stride;
      if (!runs.empty() && runs.back().position + runs.back().count == position) {
        runs.back().count += length;
      } else {
        runs.push_back({position, length});
      }
      for (std::size_t i = outer; i-- > 0;) {
        if (++index[i] < box.axes[i].extent) break;
        index[i] = 0;
      }
    }
  }
  return runs;
}

void RowView::gather(const Tile& tile, std::size_t item, const std::byte* packed, std::byte* rows,
                     std::int64_t row_stride) const {
  copy_boxes(boxes_of(row_axes_, element_axes_, tile, row_stride), item, true, packed, rows);
}

void RowView::scatter(const Tile& tile, std::size_t item, const std::byte* rows,
                      std::int64_t row_stride, std::byte* packed) const {
  copy_boxes(boxes_of(row_axes_, element_axes_, tile, row_stride), item, false, rows, packed);
}

std::vector<std::int64_t> strides(const Shape& shape, MemoryOrder order) {
  std::vector<std::int64_t> result(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t axis = order == MemoryOrder::fortran ? i : shape.size() - 1 - i;
    result[axis] = stride;
    stride *= shape[axis];
  }
  return result;
}

}  // namespace lnorm
