#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

// A tensor that is being written. Its header is given to the maker; elements come in C order, in
// native byte order, and in two steps: encode, which may be slow, and write.
class TensorSink {
 public:
  TensorSink() = default;
  TensorSink(const TensorSink&) = delete;
  TensorSink& operator=(const TensorSink&) = delete;
  virtual ~TensorSink() = default;

  // Whether what stands for an element depends on all of them. Then prescan sees them first, in any order, several threads
  // at once, and begin_writing follows, before the first of them is encoded.
  virtual bool needs_prescan() const noexcept { return false; }
  virtual void prescan([[maybe_unused]] std::span<const std::byte> elements) {}
  virtual void begin_writing() {}

  // What stands in the file for whole elements, the first of which is at a position (counted in
  // elements): these bytes themselves, or others, in the buffer, whose contents do not matter. Several threads
  // may do so at once.
  virtual std::span<const std::byte> encode([[maybe_unused]] std::int64_t position,
                                            std::span<const std::byte> elements,
                                            [[maybe_unused]] std::string& buffer) const {
    return elements;
  }

  // Whether write_at is there, where elements stand for themselves in a regular file.
  virtual bool has_random_access() const noexcept { return false; }

  // Replaces encode and write: the elements go to an offset, counted in bytes from the first
  // element. Several threads may do so at once.
  virtual void write_at([[maybe_unused]] std::int64_t offset,
                        [[maybe_unused]] std::span<const std::byte> elements) const {}

  // If the elements are to lie in memory: where, from an offset on, counted as above. They may be put there in place
  // of write_at. Otherwise null.
  virtual std::byte* in_memory([[maybe_unused]] std::int64_t offset) const noexcept {
    return nullptr;
  }

  // Takes what encode gave, from the first element to the last.
  virtual void write(std::span<const std::byte> encoded) = 0;

  // After the last element: writes what is still due.
  virtual void finish() = 0;

  // Replaces all that, where another process writes the elements.
  virtual void skip() {}
};

// Writes to a sink of a file, and calls follow after its end. Such sinks need neither begin_writing nor in_memory.
class FollowedSink final : public TensorSink {
 public:
  FollowedSink(std::unique_ptr<TensorSink> sink, std::function<void()> follow)
      : follow_(std::move(follow)), sink_(std::move(sink)) {}

  std::span<const std::byte> encode(std::int64_t position, std::span<const std::byte> elements,
                                    std::string& buffer) const override {
    return sink_->encode(position, elements, buffer);
  }
  bool has_random_access() const noexcept override { return sink_->has_random_access(); }
  void write_at(std::int64_t offset, std::span<const std::byte> elements) const override {
    sink_->write_at(offset, elements);
  }
  void write(std::span<const std::byte> encoded) override { sink_->write(encoded); }
  void finish() override {
    sink_->finish();
    follow_();
  }
  void skip() override {
    sink_->skip();
    follow_();
  }

 private:
  std::function<void()> follow_;
  std::unique_ptr<TensorSink> sink_;
};

// Several tensors that are written one after another, into a file of all of them or into a folder.
class TensorSetSink {
 public:
  TensorSetSink() = default;
  TensorSetSink(const TensorSetSink&) = delete;
  TensorSetSink& operator=(const TensorSetSink&) = delete;
  virtual ~TensorSetSink() = default;

  // The next tensor, which is complete when finish() of its sink returns. One that is not complete when the next
  // begins, or when finish() of the set is called, is left out. info: native byte order; its name is the
  // tensor's name in the set. Throws Error if that cannot be a name there, or is there twice.
  virtual std::unique_ptr<TensorSink> begin(const TensorInfo& info) = 0;

  // After the last tensor: writes what is still due.
  virtual void finish() = 0;
};

}  // namespace lnorm
