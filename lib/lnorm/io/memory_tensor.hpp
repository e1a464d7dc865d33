#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/io/tensor_set.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"

// Tensors in memory that somebody else owns, with any strides.
namespace lnorm {

struct Memory {
  TensorInfo info;
  std::byte* data = nullptr;          // of the element whose indices are all 0
  std::vector<std::int64_t> strides;  // in bytes; negative ones go back
};

// Whether elements lie one after another in the memory order of info.
inline bool is_contiguous(const Memory& memory) {
  auto expected = static_cast<std::int64_t>(item_size(memory.info.dtype));
  const Shape& shape = memory.info.shape;
  const bool is_c = memory.info.order == MemoryOrder::c;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t axis = is_c ? shape.size() - 1 - i : i;
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1 && memory.strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

// Whether elements lie where their type wants them, as code that does not copy them may expect.
inline bool is_aligned(const Memory& memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory.data) % item_size(memory.info.dtype) == 0;
}

// In Fortran order where that is all that keeps elements from lying one after another.
inline void set_order(Memory& memory) {
  if (is_contiguous(memory)) return;
  memory.info.order = MemoryOrder::fortran;
  if (!is_contiguous(memory)) memory.info.order = MemoryOrder::c;
}

// In bytes, of elements in C order.
inline std::vector<std::int64_t> c_strides(const TensorInfo& info) {
  std::vector<std::int64_t> strides(info.shape.size());
  auto next = static_cast<std::int64_t>(item_size(info.dtype));
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = next;
    next *= std::max<std::int64_t>(1, info.shape[axis]);
  }
  return strides;
}

// The first and one past the last byte that it may have.
inline std::pair<std::byte*, std::byte*> extent_of(const Memory& memory) {
  std::byte* first = memory.data;
  std::byte* last = memory.data + item_size(memory.info.dtype);
  for (std::size_t i = 0; i < memory.strides.size(); ++i) {
    if (memory.info.shape[i] == 0) return {first, first};
    const std::int64_t reach = (memory.info.shape[i] - 1) * memory.strides[i];
    (reach < 0 ? first : last) += reach;
  }
  return {first, last};
}

inline bool overlap(const Memory& a, const Memory& b) {
  const auto [a_first, a_last] = extent_of(a);
  const auto [b_first, b_last] = extent_of(b);
  return a_first < b_last && b_first < a_last;
}

// Whether elements may share bytes, as those of a broadcast array do.
inline bool has_overlaps(const Memory& memory) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // by their strides, with their sizes
  for (std::size_t i = 0; i < memory.strides.size(); ++i) {
    if (memory.info.shape[i] == 0) return false;
    if (memory.info.shape[i] > 1) {
      axes.emplace_back(std::abs(memory.strides[i]), memory.info.shape[i]);
    }
  }
  std::sort(axes.begin(), axes.end());
  auto inner = static_cast<std::int64_t>(item_size(memory.info.dtype));  // bytes up to the last one
  return std::any_of(axes.begin(), axes.end(), [&](const auto& axis) {
    const bool overlaps = axis.first < inner;
    inner += axis.first * (axis.second - 1);
    return overlaps;
  });
}

// Goes over successive elements in C order, whatever the strides are: calls see(where the first lies, how many, the stride)
// for some of the last axis at a time.
template <class See>
void for_each_run(const Memory& memory, std::int64_t first, std::int64_t count, See see) {
  const Shape& shape = memory.info.shape;
  if (count == 0) return;
  if (shape.empty()) return see(memory.data, count, 0);
  Shape index = index_of(first, shape);
  const std::size_t last = shape.size() - 1;
  while (count > 0) {
    std::byte* from = memory.data;
    for (std::size_t axis = 0; axis <= last; ++axis) from += index[axis] * memory.strides[axis];
    const std::int64_t run = std::min(count, shape[last] - index[last]);
    see(from, run, memory.strides[last]);
    count -= run;
    index[last] = 0;
    for (std::size_t axis = last; axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

// Copies elements of 1, 2, 4 or 8 bytes that lie a stride apart.
inline void copy_elements(std::size_t item, const std::byte* from, std::int64_t from_stride,
                          std::byte* to, std::int64_t to_stride, std::int64_t count) {
  const auto copy = [&](auto size) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * to_stride, from + i * from_stride, size);
    }
  };
  // The compiler knows what to do with a constant.
  if (item == 4) return copy(std::integral_constant<std::size_t, 4>{});
  if (item == 2) return copy(std::integral_constant<std::size_t, 2>{});
  if (item == 8) return copy(std::integral_constant<std::size_t, 8>{});
  copy(std::integral_constant<std::size_t, 1>{});
}

class MemorySource final : public RandomAccessSource {
 public:
  explicit MemorySource(const Memory& memory)
      : RandomAccessSource(memory.info), memory_(memory), contiguous_(is_contiguous(memory)) {}

  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    if (to.empty()) return;
    if (contiguous_) {
      std::memcpy(to.data(), memory_.data + offset, to.size());
      return;
    }
    const std::size_t item = item_size(info().dtype);
    const auto size = static_cast<std::int64_t>(item);
    std::byte* next = to.data();
    for_each_run(memory_, offset / size, std::ssize(to) / size,
                 [&](const std::byte* from, std::int64_t count, std::int64_t stride) {
                   copy_elements(item, from, stride, next, size, count);
                   next += count * size;
                 });
  }
  const std::byte* in_memory(std::int64_t offset) const noexcept override {
    return contiguous_ && is_aligned(memory_) ? memory_.data + offset : nullptr;
  }
  // Where its storage begins is not known.
  std::unique_ptr<TensorSource> without_strides(bool from_storage) const override {
    if (from_storage || contiguous_) return nullptr;
    const auto [first, last] = extent_of(memory_);
    const Memory read{info(), memory_.data, c_strides(info())};
    if (first < read.data || extent_of(read).second > last) return nullptr;
    return std::make_unique<MemorySource>(read);
  }

 private:
  Memory memory_;
  bool contiguous_;
};

// The memory is native, and in C order but for its strides.
class MemorySink final : public TensorSink {
 public:
  explicit MemorySink(const Memory& memory) : memory_(memory), contiguous_(is_contiguous(memory)) {}

  bool has_random_access() const noexcept override { return true; }
  void write_at(std::int64_t offset, std::span<const std::byte> elements) const override {
    if (elements.empty()) return;
    if (contiguous_) {
      std::memcpy(memory_.data + offset, elements.data(), elements.size());
      return;
    }
    const std::size_t item = item_size(memory_.info.dtype);
    const auto size = static_cast<std::int64_t>(item);
    const std::byte* next = elements.data();
    for_each_run(memory_, offset / size, std::ssize(elements) / size,
                 [&](std::byte* to, std::int64_t count, std::int64_t stride) {
                   copy_elements(item, next, size, to, stride, count);
                   next += count * size;
                 });
  }
  std::byte* in_memory(std::int64_t offset) const noexcept override {
    return contiguous_ && is_aligned(memory_) ? memory_.data + offset : nullptr;
  }
  void write(std::span<const std::byte> elements) override {
    write_at(next_, elements);
    next_ += std::ssize(elements);
  }
  void finish() override {}

 private:
  Memory memory_;
  bool contiguous_;
  std::int64_t next_ = 0;
};

// What the program sees of them: a file of one tensor without a name, or of several.
class MemorySet final : public TensorSet {
 public:
  MemorySet(std::string name, std::vector<std::pair<std::string, Memory>> tensors)
      : TensorSet(std::move(name)), tensors_(std::move(tensors)) {}

  std::size_t size() const override { return tensors_.size(); }
  bool has_several() const override { return size() != 1 || !tensors_.front().first.empty(); }
  std::string tensor_name(std::size_t index) const override { return tensors_[index].first; }
  TensorInfo info(std::size_t index) const override { return tensors_[index].second.info; }
  std::unique_ptr<TensorSource> open(std::size_t index) const override {
    return std::make_unique<MemorySource>(tensors_[index].second);
  }

 private:
  std::vector<std::pair<std::string, Memory>> tensors_;
};

}  // namespace lnorm
