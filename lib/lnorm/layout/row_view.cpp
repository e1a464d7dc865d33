#include "lnorm/layout/row_view.hpp"

#include <algorithm>
#include <cstring>

namespace lnorm {

namespace {

using Axis = RowView::Axis;

std::vector<Axis> strided(const Shape& shape, MemoryOrder order, const Axes& numbers) {
  const std::vector<std::int64_t> all = strides(shape, order);
  std::vector<Axis> axes;
  for (const std::size_t number : numbers) axes.push_back({shape[number], all[number]});
  return axes;
}

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
    if (!result.empty() && result.back().stride == axis.extent * axis.stride) {
      result.back() = {result.back().extent * axis.extent, axis.stride};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

// A part of a range of rows, or of elements: all combinations of some indices of each axis.
struct Part {
  std::int64_t position;     // in the file
  std::int64_t start;        // in the range
  std::vector<Axis> counts;  // the axes of which there are several indices, and how many
};

// Splits the indices from a to b, numbered along axes, into parts.
void split(std::span<const Axis> axes, std::int64_t a, std::int64_t b, std::int64_t position,
           std::int64_t start, std::vector<Part>& parts) {
  if (a == b) return;
  if (axes.empty()) {
    parts.push_back({position, start, {}});
    return;
  }
  const Axis outer = axes.front();
  const std::span<const Axis> rest = axes.subspan(1);
  const std::int64_t inner = size_of(rest);
  const std::int64_t first = (a + inner - 1) / inner;  // whole ones
  const std::int64_t last = b / inner;
  if (first > last) {  // all within one index
    return split(rest, a - last * inner, b - last * inner, position + last * outer.stride, start,
                 parts);
  }
  if (a < first * inner) {
    split(rest, a - (first - 1) * inner, inner, position + (first - 1) * outer.stride, start,
          parts);
  }
  if (first < last) {
    Part part{position + first * outer.stride, start + first * inner - a, {}};
    part.counts.push_back({last - first, outer.stride});
    part.counts.insert(part.counts.end(), rest.begin(), rest.end());
    parts.push_back(std::move(part));
  }
  split(rest, 0, b - last * inner, position + last * outer.stride, start + last * inner - a, parts);
}

// One axis of a box: its stride in the file, and in rows.
struct BoxAxis {
  std::int64_t count;
  std::int64_t stride;
  std::int64_t rows_stride;
};

// Some rows and some elements of each, with their axes in the order of the file.
struct Box {
  std::int64_t position;    // in the file
  std::int64_t rows_start;  // in rows
  std::vector<BoxAxis> axes;

  std::int64_t size() const {
    std::int64_t size = 1;
    for (const BoxAxis& axis : axes) size *= axis.count;
    return size;
  }
};

void add_axes(const std::vector<Axis>& counts, std::int64_t rows_stride,
              std::vector<BoxAxis>& axes) {
  for (std::size_t i = counts.size(); i-- > 0;) {
    axes.push_back({counts[i].extent, counts[i].stride, rows_stride});
    rows_stride *= counts[i].extent;
  }
}

// Merges axes that follow each other both in the file and in rows.
void merge(std::vector<BoxAxis>& axes) {
  std::vector<BoxAxis> result;
  for (const BoxAxis& axis : axes) {
    if (axis.count == 1) continue;
    if (!result.empty() && result.back().stride == axis.count * axis.stride &&
        result.back().rows_stride == axis.count * axis.rows_stride) {
      result.back() = {result.back().count * axis.count, axis.stride, axis.rows_stride};
    } else {
      result.push_back(axis);
    }
  }
  axes = std::move(result);
}

std::vector<Box> boxes_of(std::span<const Axis> row_axes, std::span<const Axis> element_axes,
                          const Tile& tile, std::int64_t row_stride) {
  std::vector<Part> rows;
  std::vector<Part> elements;
  split(row_axes, tile.first_row, tile.first_row + tile.rows, 0, 0, rows);
  split(element_axes, tile.first, tile.first + tile.count, 0, 0, elements);
  std::vector<Box> boxes;
  for (const Part& some_rows : rows) {
    for (const Part& some : elements) {
      Box box{some_rows.position + some.position, some_rows.start * row_stride + some.start, {}};
      add_axes(some.counts, 1, box.axes);
      add_axes(some_rows.counts, row_stride, box.axes);
      std::stable_sort(box.axes.begin(), box.axes.end(),
                       [](const BoxAxis& a, const BoxAxis& b) { return a.stride > b.stride; });
      merge(box.axes);
      boxes.push_back(std::move(box));
    }
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
    default:
      return copy_as(std::uint64_t{});
  }
}

// Moves a tile from one of its forms to the other.
void copy_boxes(const std::vector<Box>& boxes, std::size_t item, bool to_rows,
                const std::byte* from, std::byte* to) {
  std::int64_t packed_start = 0;
  for (const Box& box : boxes) {
    std::vector<CopyAxis> axes;
    std::int64_t packed_stride = 1;
    for (auto axis = box.axes.rbegin(); axis != box.axes.rend(); ++axis) {
      axes.insert(axes.begin(), to_rows ? CopyAxis{axis->count, packed_stride, axis->rows_stride}
                                        : CopyAxis{axis->count, axis->rows_stride, packed_stride});
      packed_stride *= axis->count;
    }
    copy_items(item, std::move(axes), from, to_rows ? packed_start : box.rows_start, to,
               to_rows ? box.rows_start : packed_start);
    packed_start += box.size();
  }
}

}  // namespace

RowView::RowView(std::span<const Axis> row_axes, std::span<const Axis> element_axes)
    : row_axes_(merged(row_axes)),
      element_axes_(merged(element_axes)),
      rows_(size_of(row_axes)),
      row_length_(size_of(element_axes)) {
  if (rows_ == 0 || row_length_ == 0) return;
  slab_rows_ = rows_;
  // Find the fewest of the last row axes that fill a block together with the elements. The other axes go
  // from block to block.
  for (std::size_t outer = row_axes_.size() + 1; outer-- > 0;) {
    const std::span<const Axis> axes(row_axes_);
    std::vector<Axis> inner(axes.begin() + static_cast<std::ptrdiff_t>(outer), axes.end());
    inner.insert(inner.end(), element_axes_.begin(), element_axes_.end());
    std::stable_sort(inner.begin(), inner.end(),
                     [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
    inner.insert(inner.begin(), axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(outer));
    const std::vector<Axis> all = merged(inner);
    if (all.empty() || (all.size() == 1 && all[0].stride == 1)) {
      slab_rows_ = size_of(axes.subspan(outer));
      break;
    }
  }
  const bool elements_contiguous =
      element_axes_.empty() || (element_axes_.size() == 1 && element_axes_[0].stride == 1);
  contiguous_ = slab_rows_ == 1 && elements_contiguous;
}

RowView::RowView(const Shape& shape, MemoryOrder order, const Axes& row_axes,
                 const Axes& element_axes)
    : RowView(strided(shape, order, row_axes), strided(shape, order, element_axes)) {}

RowView RowView::contiguous(std::int64_t rows, std::int64_t row_length) {
  const Axis row_axis{rows, row_length};
  const Axis element_axis{row_length, 1};
  return {{&row_axis, 1}, {&element_axis, 1}};
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
      length *= box.axes[outer - 1].count;
      --outer;
    }
    std::vector<std::int64_t> index(outer);
    for (std::int64_t left = box.size() / length; left > 0; --left) {
      std::int64_t position = box.position;
      for (std::size_t i = 0; i < outer; ++i) position += index[i] * box.axes[i].stride;
      if (!runs.empty() && runs.back().position + runs.back().count == position) {
        runs.back().count += length;
      } else {
        runs.push_back({position, length});
      }
      for (std::size_t i = outer; i-- > 0;) {
        if (++index[i] < box.axes[i].count) break;
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
