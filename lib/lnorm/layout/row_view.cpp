#include "lnorm/layout/row_view.hpp"

#include <algorithm>
#include <utility>

namespace lnorm {

namespace {

// Slowest first.
void sort_as_in_file(std::span<RowAxis> axes) {
  std::stable_sort(axes.begin(), axes.end(),
                   [](const RowAxis& a, const RowAxis& b) { return a.stride > b.stride; });
}

std::vector<RowAxis> numbered(const Shape& shape, MemoryOrder order, const Axes& along) {
  const std::vector<std::int64_t> all = strides(shape, order);
  std::vector<RowAxis> axes;
  for (const std::size_t number : along) axes.push_back({shape[number], all[number], 1});
  for (std::size_t i = axes.size(); i-- > 1;) axes[i - 1].step = axes[i].step * axes[i].extent;
  return merged(axes);
}

// Whether all indices, the last axis fastest, lie one after another.
bool is_dense(const std::vector<RowAxis>& axes) {
  std::int64_t stride = 1;
  for (std::size_t i = axes.size(); i-- > 0; stride *= axes[i].extent) {
    if (axes[i].stride != stride) return false;
  }
  return true;
}

// Splits the numbers from a to b, along axes, into pieces that begin as piece does. Their axes are still in the order of
// axes, not merged. unit: from one number to the next in rows.
void split(std::span<const RowAxis> axes, std::int64_t a, std::int64_t b, std::int64_t unit,
           const Piece& piece, std::vector<Piece>& pieces) {
  if (a == b) return;
  if (axes.empty()) return pieces.push_back(piece);
  const RowAxis outer = axes.front();
  const std::span<const RowAxis> rest = axes.subspan(1);
  const std::int64_t first = (a + outer.step - 1) / outer.step;  // whole indices
  const std::int64_t last = b / outer.step;
  const auto part_from = [&](std::int64_t index, std::int64_t number) {
    Piece part = piece;
    part.position += index * outer.stride;
    part.start += (number - a) * unit;
    return part;
  };
  if (first > last) {  // all within one index
    return split(rest, a - last * outer.step, b - last * outer.step, unit, part_from(last, a),
                 pieces);
  }
  if (a < first * outer.step) {
    split(rest, a - (first - 1) * outer.step, outer.step, unit, part_from(first - 1, a), pieces);
  }
  if (first < last) {
    Piece whole = part_from(first, first * outer.step);
    whole.axes.push_back({last - first, outer.stride, outer.step * unit});
    for (const RowAxis& axis : rest) {
      whole.axes.push_back({axis.extent, axis.stride, axis.step * unit});
    }
    pieces.push_back(std::move(whole));
  }
  split(rest, 0, b - last * outer.step, unit, part_from(last, last * outer.step), pieces);
}

// A tile in pieces.
std::vector<Piece> whole_pieces(std::span<const RowAxis> row_axes,
                                std::span<const RowAxis> element_axes, const Tile& tile,
                                std::int64_t row_stride) {
  std::vector<Piece> rows;
  std::vector<Piece> pieces;
  split(row_axes, tile.first_row, tile.first_row + tile.rows, row_stride, {}, rows);
  for (const Piece& some : rows) {
    split(element_axes, tile.first, tile.first + tile.count, 1, some, pieces);
  }
  for (Piece& piece : pieces) {
    sort_as_in_file(piece.axes);
    piece.axes = merged(piece.axes);
  }
  return pieces;
}

// Has all indices, in the order of the file, lie one after another.
void close_gaps(std::vector<RowAxis>& row_axes, std::vector<RowAxis>& element_axes) {
  std::vector<RowAxis*> axes;
  axes.reserve(row_axes.size() + element_axes.size());
  for (RowAxis& axis : row_axes) axes.push_back(&axis);
  for (RowAxis& axis : element_axes) axes.push_back(&axis);
  std::stable_sort(axes.begin(), axes.end(),
                   [](const RowAxis* a, const RowAxis* b) { return a->stride < b->stride; });
  std::int64_t stride = 1;
  for (RowAxis* axis : axes) {
    axis->stride = stride;
    stride *= axis->extent;
  }
}

}  // namespace

RowView::RowView(const Shape& shape, MemoryOrder order, const Axes& row_axes,
                 const Axes& element_axes)
    : rows_(element_count(extents(shape, row_axes))),
      row_length_(element_count(extents(shape, element_axes))) {
  if (rows_ == 0 || row_length_ == 0) return;  // nothing lies anywhere; strides might be too large
  row_axes_ = numbered(shape, order, row_axes);
  element_axes_ = numbered(shape, order, element_axes);
  // Find the fewest of the last row axes that fill a block together with the elements. The other axes go
  // from block to block.
  slab_rows_ = rows_;
  for (std::size_t outer = row_axes_.size(); outer > 0; --outer) {
    std::vector<RowAxis> axes = row_axes_;
    axes.insert(axes.end(), element_axes_.begin(), element_axes_.end());
    sort_as_in_file(std::span(axes).subspan(outer));
    if (!is_dense(axes)) continue;
    slab_rows_ = row_axes_[outer - 1].step;
    break;
  }
  contiguous_ = slab_rows_ == 1 && is_dense(element_axes_);
}

std::int64_t RowView::whole_rows(std::int64_t most) const noexcept {
  for (const RowAxis& axis : row_axes_) {
    if (axis.step <= most) return most - most % axis.step;
  }
  return most;
}

std::vector<Run> RowView::runs(const Tile& tile) const {
  std::vector<Run> runs;
  for (const Piece& piece : whole_pieces(row_axes_, element_axes_, tile, tile.count)) {
    for (const Run& run : piece.runs()) {
      if (!runs.empty() && runs.back().position + runs.back().count == run.position) {
        runs.back().count += run.count;
      } else {
        runs.push_back(run);
      }
    }
  }
  return runs;
}

std::int64_t RowView::count_runs(const Tile& tile) const {
  std::int64_t count = 0;
  for (const Piece& piece : whole_pieces(row_axes_, element_axes_, tile, tile.count)) {
    count += piece.items() / piece.run_length();
  }
  return count;
}

std::vector<Piece> RowView::pieces(const Tile& tile, std::int64_t row_stride,
                                   std::int64_t most) const {
  std::vector<Piece> pieces;
  for (const Piece& piece : whole_pieces(row_axes_, element_axes_, tile, row_stride)) {
    piece.cut(most, pieces);
  }
  return pieces;
}

void RowView::gather(const Tile& tile, std::size_t item, const std::byte* packed, std::byte* rows,
                     std::int64_t row_stride) const {
  for (const Piece& piece : whole_pieces(row_axes_, element_axes_, tile, row_stride)) {
    piece.packed().gather(item, packed, rows);
    packed += piece.items() * static_cast<std::int64_t>(item);
  }
}

void RowView::scatter(const Tile& tile, std::size_t item, const std::byte* rows,
                      std::int64_t row_stride, std::byte* packed) const {
  for (const Piece& piece : whole_pieces(row_axes_, element_axes_, tile, row_stride)) {
    piece.packed().scatter(item, rows, packed);
    packed += piece.items() * static_cast<std::int64_t>(item);
  }
}

template <class See>
void RowView::for_each_packed_piece(const Tile& block, const Tile& tile, See see) const {
  std::vector<Piece> row_pieces;
  std::vector<Piece> element_pieces;
  split(row_axes_, tile.first_row, tile.first_row + tile.rows, 1, {}, row_pieces);
  split(element_axes_, tile.first, tile.first + tile.count, 1, {}, element_pieces);
  const std::int64_t begin = block.first_row - tile.first_row;
  std::int64_t packed = 0;
  for (const Piece& rows : row_pieces) {
    const std::int64_t first = std::max(begin, rows.start);
    const std::int64_t end = std::min(begin + block.rows, rows.start + rows.items());
    for (const Piece& elements : element_pieces) {
      if (first < end) {
        // What is packed of both is the file of a tensor of its own.
        std::vector<RowAxis> row_axes = rows.axes;
        std::vector<RowAxis> element_axes = elements.axes;
        close_gaps(row_axes, element_axes);
        const Tile shared{first - rows.start, end - first, 0, elements.items()};
        const std::int64_t start = (first - begin) * tile.count + elements.start;
        for (const Piece& piece : whole_pieces(row_axes, element_axes, shared, tile.count)) {
          see(piece, start, packed + piece.position);
        }
      }
      packed += rows.items() * elements.items();
    }
  }
}

void RowView::gather_block(const Tile& block, std::size_t item, const Tile& tile,
                           const std::byte* packed, std::byte* rows) const {
  for_each_packed_piece(block, tile, [&](const Piece& piece, std::int64_t row, std::int64_t at) {
    const auto size = static_cast<std::int64_t>(item);
    piece.gather(item, packed + at * size, rows + row * size);
  });
}

void RowView::scatter_block(const Tile& block, std::size_t item, const std::byte* rows,
                            const Tile& tile, std::byte* packed) const {
  for_each_packed_piece(block, tile, [&](const Piece& piece, std::int64_t row, std::int64_t at) {
    const auto size = static_cast<std::int64_t>(item);
    piece.scatter(item, rows + row * size, packed + at * size);
  });
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
