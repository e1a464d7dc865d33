#include "lnorm/io/torch/strided_source.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kMaxPiece = std::int64_t{128} << 10;

// What a call to the system costs, in bytes that are read for nothing.
constexpr std::int64_t kCall = 2048;

// Successive indices of an axis. Steps are in bytes.
struct Axis {
  std::int64_t extent;
  std::int64_t from_step;  // in the storage
  std::int64_t to_step;    // in what is read
};

// Some indices of each axis, those farthest apart in the storage first.
using Box = std::vector<Axis>;

// From the first byte of a box to behind its last one, in the storage.
std::int64_t span_of(std::span<const Axis> box, std::int64_t item) {
  std::int64_t span = item;
  for (const Axis& axis : box) span += (axis.extent - 1) * axis.from_step;
  return span;
}

void copy_items(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
                std::int64_t count, std::int64_t item) {
  if (from_step == item && to_step == item) {
    std::memcpy(to, from, static_cast<std::size_t>(count * item));
    return;
  }
  const auto copy = [&](auto size) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * to_step, from + i * from_step, size);
    }
  };
  // The compiler knows what to do with a constant.
  if (item == 4) return copy(std::integral_constant<std::size_t, 4>{});
  if (item == 2) return copy(std::integral_constant<std::size_t, 2>{});
  if (item == 8) return copy(std::integral_constant<std::size_t, 8>{});
  copy(std::integral_constant<std::size_t, 1>{});
}

void copy_box(std::span<const Axis> box, const std::byte* from, std::byte* to, std::int64_t item) {
  if (box.empty()) return copy_items(from, item, to, item, 1, item);
  const Axis& axis = box[0];
  if (box.size() == 1) {
    return copy_items(from, axis.from_step, to, axis.to_step, axis.extent, item);
  }
  for (std::int64_t i = 0; i < axis.extent; ++i) {
    copy_box(box.subspan(1), from + i * axis.from_step, to + i * axis.to_step, item);
  }
}

class StridedSource final : public RandomAccessSource {
 public:
  StridedSource(std::shared_ptr<const ByteSource> storage, TensorInfo tensor, std::int64_t offset,
                const std::vector<std::int64_t>& strides)
      : RandomAccessSource(std::move(tensor)),
        storage_(std::move(storage)),
        item_(static_cast<std::int64_t>(item_size(info().dtype))),
        offset_(offset * item_) {
    // Axes that follow one another without a gap are one.
    std::int64_t to_step = item_;
    const Shape& shape = info().shape;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] == 1) continue;
      const std::int64_t from_step = strides[i] * item_;
      if (!axes_.empty() && from_step == axes_.back().from_step * axes_.back().extent) {
        axes_.back().extent *= shape[i];
      } else {
        axes_.push_back({shape[i], from_step, to_step});
      }
      to_step *= shape[i];
    }
    std::reverse(axes_.begin(), axes_.end());
  }

  void read_at(std::int64_t position, std::span<std::byte> to) const override {
    std::vector<std::byte> piece;
    const auto bytes = static_cast<std::int64_t>(to.size());
    read_range(axes_, position, bytes, offset_, to.data(), piece);
  }

 private:
  // Bytes of the elements that axes number, in C order, as boxes: what is left of an index of the first axis,
  // whole indices, and the start of another one.
  void read_range(std::span<const Axis> axes, std::int64_t first, std::int64_t bytes,
                  std::int64_t from, std::byte* to, std::vector<std::byte>& piece) const {
    if (bytes == 0) return;
    if (axes.empty()) return read_storage(from + first, {to, static_cast<std::size_t>(bytes)});
    const Axis& axis = axes[0];
    std::int64_t index = first / axis.to_step;
    const std::int64_t into = first % axis.to_step;
    const auto part = [&](std::int64_t start, std::int64_t count) {
      read_range(axes.subspan(1), start, count, from + index * axis.from_step, to, piece);
      to += count;
      bytes -= count;
      ++index;
    };
    if (into > 0) part(into, std::min(bytes, axis.to_step - into));
    const std::int64_t whole = bytes / axis.to_step;
    if (whole > 0) {
      Box box(axes.begin(), axes.end());
      box[0].extent = whole;
      std::stable_sort(box.begin(), box.end(),
                       [](const Axis& a, const Axis& b) { return a.from_step > b.from_step; });
      read_box(box, from + index * axis.from_step, to, piece);
      to += whole * axis.to_step;
      bytes -= whole * axis.to_step;
      index += whole;
    }
    if (bytes > 0) part(0, bytes);
  }

  // As many indices of the first axis at a time as lie within a piece; if not even one does, one after another.
  void read_box(std::span<const Axis> box, std::int64_t from, std::byte* to,
                std::vector<std::byte>& piece) const {
    if (box.empty()) return read_piece(box, from, to, piece);
    const Axis& axis = box[0];
    const std::span<const Axis> rest = box.subspan(1);
    const std::int64_t one = span_of(rest, item_);
    std::int64_t count = 1;
    if (axis.from_step <= one + kCall && one <= kMaxPiece) {
      count = axis.from_step == 0 ? axis.extent : 1 + (kMaxPiece - one) / axis.from_step;
    }
    Box part(box.begin(), box.end());
    for (std::int64_t i = 0; i < axis.extent; i += count) {
      part[0].extent = std::min(count, axis.extent - i);
      const std::int64_t part_from = from + i * axis.from_step;
      std::byte* const part_to = to + i * axis.to_step;
      if (count > 1) {
        read_piece(part, part_from, part_to, piece);
      } else {
        read_box(rest, part_from, part_to, piece);
      }
    }
  }

  void read_piece(std::span<const Axis> box, std::int64_t from, std::byte* to,
                  std::vector<std::byte>& piece) const {
    piece.resize(static_cast<std::size_t>(span_of(box, item_)));
    read_storage(from, piece);
    copy_box(box, piece.data(), to, item_);
  }

  void read_storage(std::int64_t from, std::span<std::byte> to) const {
    if (storage_->read_at(from, to) < to.size()) {
      throw Error(concat(printable(info().name), ": the data is cut off"));
    }
  }

  std::shared_ptr<const ByteSource> storage_;
  std::int64_t item_;
  std::int64_t offset_;     // in bytes
  std::vector<Axis> axes_;  // in C order
};

}  // namespace

std::unique_ptr<TensorSource> make_strided_source(std::shared_ptr<const ByteSource> storage,
                                                  TensorInfo info, std::int64_t offset,
                                                  const std::vector<std::int64_t>& strides) {
  return std::make_unique<StridedSource>(std::move(storage), std::move(info), offset, strides);
}

}  // namespace lnorm
