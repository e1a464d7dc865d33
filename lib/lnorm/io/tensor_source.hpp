#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

// A tensor that is being read. Its header is known. Its elements come in the memory order of info(): one
// after another by read and skip, or, if there is random access, anywhere and again by read_at.
class TensorSource {
 public:
  explicit TensorSource(TensorInfo info) : info_(std::move(info)) {}
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;
  virtual ~TensorSource() = default;

  const TensorInfo& info() const noexcept { return info_; }

  // The next bytes of the elements, in the dtype and byte order of info(). The buffer grows no
  // faster than the bytes come. Throws Error if the data ends before that.
  virtual void read(std::vector<std::byte>& to, std::size_t bytes) = 0;

  // Passes over bytes of the elements, without reading them where the file allows it.
  virtual void skip(std::int64_t bytes) = 0;

  // Whether read_at is there: of regular files, and of what is in memory.
  virtual bool has_random_access() const noexcept { return false; }

  // Fills to with the bytes of the elements from an offset on, counted in bytes from the first
  // element. It takes the place of read. Several threads may call it at once.
  virtual void read_at(std::int64_t offset, std::span<std::byte> to) const = 0;

  // If all elements lie in memory: where, from an offset on, counted as above. They need not be read then. Otherwise null.
  virtual const std::byte* in_memory([[maybe_unused]] std::int64_t offset) const noexcept {
    return nullptr;
  }

  // Of a view: what a kernel reads that takes its elements to lie one after another in C order, from its own first element on or
  // from the first of the storage. Null where that is the view itself, or goes beyond what is known of the storage.
  virtual std::unique_ptr<TensorSource> without_strides([[maybe_unused]] bool from_storage) const {
    return nullptr;
  }

  // Follows the last read. Throws Error if anything follows the tensor.
  virtual void finish() = 0;

 private:
  TensorInfo info_;
};

// A source that is read by offset alone.
class RandomAccessSource : public TensorSource {
 public:
  using TensorSource::TensorSource;

  void read(std::vector<std::byte>& to, std::size_t bytes) final {
    to.resize(bytes);
    read_at(next_, to);
    skip(static_cast<std::int64_t>(bytes));
  }
  void skip(std::int64_t bytes) final { next_ += bytes; }
  bool has_random_access() const noexcept final { return true; }
  void finish() override {}

 private:
  std::int64_t next_ = 0;
};

// Elements that are held.
template <class Bytes>
class HeldTensor final : public RandomAccessSource {
 public:
  HeldTensor(TensorInfo info, Bytes elements)
      : RandomAccessSource(std::move(info)), elements_(std::move(elements)) {}

  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    std::copy_n(elements_.begin() + offset, to.size(), to.begin());
  }

 private:
  Bytes elements_;
};

// A source that somebody else finishes.
class LentSource final : public TensorSource {
 public:
  explicit LentSource(TensorSource& source) : TensorSource(source.info()), source_(source) {}

  void read(std::vector<std::byte>& to, std::size_t bytes) override { source_.read(to, bytes); }
  void skip(std::int64_t bytes) override { source_.skip(bytes); }
  bool has_random_access() const noexcept override { return source_.has_random_access(); }
  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    source_.read_at(offset, to);
  }
  const std::byte* in_memory(std::int64_t offset) const noexcept override {
    return source_.in_memory(offset);
  }
  std::unique_ptr<TensorSource> without_strides(bool from_storage) const override {
    return source_.without_strides(from_storage);
  }
  void finish() override {}

 private:
  TensorSource& source_;
};

// All elements, as the file holds them; checks that nothing follows.
inline std::vector<std::byte> read_all(TensorSource& source) {
  std::vector<std::byte> elements;
  const auto count = static_cast<std::size_t>(element_count(source.info().shape));
  source.read(elements, count * item_size(source.info().dtype));
  source.finish();
  return elements;
}

}  // namespace lnorm
