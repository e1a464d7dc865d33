#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// So many bytes of a source, from a distance on, as a source of their own; name is for messages. Of a source with
// random access there may be several such parts at a time, on several threads.
class Slice : public ByteSource {
 public:
  Slice(std::shared_ptr<const ByteSource> whole, std::string name, std::int64_t begin,
        std::int64_t size)
      : ByteSource(std::move(name)), whole_(std::move(whole)), next_(begin), end_(begin + size) {}

  bool has_random_access() const noexcept override { return true; }

 protected:
  std::size_t read_some(std::span<std::byte> to) override;
  std::optional<std::int64_t> unread() const override { return end_ - next_; }
  std::size_t read_unread_at(std::int64_t distance, std::span<std::byte> to) const override;
  std::int64_t skip_unread(std::int64_t count) override;

 private:
  std::shared_ptr<const ByteSource> whole_;
  std::int64_t next_;
  std::int64_t end_;
};
std::unique_ptr<ByteSource> slice(std::shared_ptr<const ByteSource> whole, std::string name,
                                  std::int64_t begin, std::int64_t size);

// Text at hand.
class TextBytes final : public ByteSource {
 public:
  TextBytes(std::string name, std::string text)
      : ByteSource(std::move(name)), text_(std::move(text)) {}

 protected:
  std::size_t read_some(std::span<std::byte> to) override;
  std::optional<std::int64_t> unread() const override { return std::ssize(text_) - next_; }

 private:
  std::string text_;
  std::int64_t next_ = 0;
};

// The next bytes of a pipe, so many of them. They are to be read, or skipped, before the pipe is read again.
std::unique_ptr<ByteSource> next_of(std::shared_ptr<ByteSource> pipe, std::string name,
                                    std::int64_t size);

}  // namespace lnorm
