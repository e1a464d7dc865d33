#include "lnorm/layout/piece.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lnorm/layout/transpose.hpp"

namespace lnorm {

namespace {

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
  } else if (outer.from == 1 && inner.to == 1) {
    transpose(from, inner.from, to, outer.to, outer.count, inner.count);
  } else {
    for (std::int64_t i = 0; i < outer.count; ++i) {
      for (std::int64_t j = 0; j < inner.count; ++j) {
        to[i * outer.to + j * inner.to] = from[i * outer.from + j * inner.from];
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

// to_rows: rows are what is copied to, otherwise what is copied from.
void copy_items(std::size_t item, std::span<const RowAxis> along, const std::byte* from,
                std::byte* to, bool to_rows) {
  std::vector<CopyAxis> axes;
  axes.reserve(along.size() + 2);
  for (const RowAxis& axis : along) {
    axes.push_back(to_rows ? CopyAxis{axis.extent, axis.stride, axis.step}
                           : CopyAxis{axis.extent, axis.step, axis.stride});
  }
  const auto copy_as = [&]<class T>(T) {
    copy(std::move(axes), reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to));
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

// How many of the last axes make up a run.
std::size_t axes_of_run(std::span<const RowAxis> axes) {
  std::size_t count = 0;
  std::int64_t length = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend() && axis->stride == length; ++axis) {
    length *= axis->extent;
    ++count;
  }
  return count;
}

}  // namespace

std::int64_t size_of(std::span<const RowAxis> axes) {
  std::int64_t size = 1;
  for (const RowAxis& axis : axes) size *= axis.extent;
  return size;
}

std::vector<RowAxis> merged(std::span<const RowAxis> axes) {
  std::vector<RowAxis> result;
  for (const RowAxis& axis : axes) {
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

std::int64_t Piece::run_length() const { return size_of(std::span(axes).last(axes_of_run(axes))); }

std::vector<Run> Piece::runs() const {
  const std::size_t outer = axes.size() - axes_of_run(axes);
  const std::int64_t length = run_length();
  std::vector<std::int64_t> index(outer);
  std::vector<Run> runs;
  runs.reserve(static_cast<std::size_t>(items() / length));
  for (std::int64_t left = items() / length; left > 0; --left) {
    runs.push_back({position, length});
    for (std::size_t i = 0; i < outer; ++i) runs.back().position += index[i] * axes[i].stride;
    for (std::size_t i = outer; i-- > 0;) {
      if (++index[i] < axes[i].extent) break;
      index[i] = 0;
    }
  }
  return runs;
}

void Piece::cut(std::int64_t most, std::vector<Piece>& parts) const {
  if (items() <= most || axes.empty()) return parts.push_back(*this);
  // Along the slowest axis.
  const RowAxis& slowest = axes.front();
  const std::int64_t at_once = std::max<std::int64_t>(1, most * slowest.extent / items());
  for (std::int64_t i = 0; i < slowest.extent; i += at_once) {
    Piece part{position + i * slowest.stride, start + i * slowest.step, axes};
    part.axes.front().extent = std::min(at_once, slowest.extent - i);
    part.axes = merged(part.axes);
    part.cut(most, parts);
  }
}

Piece Piece::packed() const {
  Piece piece{0, start, axes};
  std::int64_t stride = items();
  for (RowAxis& axis : piece.axes) axis.stride = stride /= axis.extent;
  return piece;
}

void Piece::gather(std::size_t item, const std::byte* file, std::byte* rows) const {
  copy_items(item, axes, file, rows + start * static_cast<std::int64_t>(item), true);
}

void Piece::scatter(std::size_t item, const std::byte* rows, std::byte* file) const {
  copy_items(item, axes, rows + start * static_cast<std::int64_t>(item), file, false);
}

}  // namespace lnorm
