#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "lnorm/io/byte_source.hpp"

namespace support {

// Bytes in memory come as those of a pipe or of a file do.
class MemoryBytes final : public lnorm::ByteSource {
 public:
  enum class Kind { pipe, pipe_of_known_length, file };

  MemoryBytes(std::string name, std::string bytes, Kind kind = Kind::pipe)
      : ByteSource(std::move(name)), bytes_(std::move(bytes)), kind_(kind) {}

  bool has_random_access() const noexcept override { return kind_ == Kind::file; }

 protected:
  std::size_t read_some(std::span<std::byte> to) override {
    const std::size_t got = read_unread_at(0, to);
    at_ += got;
    return got;
  }
  std::optional<std::int64_t> unread() const override {
    if (kind_ == Kind::pipe) return std::nullopt;
    return static_cast<std::int64_t>(bytes_.size() - at_);
  }
  std::size_t read_unread_at(std::int64_t distance, std::span<std::byte> to) const override {
    const auto from = at_ + static_cast<std::size_t>(distance);
    if (from > bytes_.size()) throw std::runtime_error("is read behind its end");
    const std::size_t count = std::min(to.size(), bytes_.size() - from);
    std::memcpy(to.data(), bytes_.data() + from, count);
    return count;
  }

 private:
  std::string bytes_;
  Kind kind_;
  std::size_t at_ = 0;
};

}  // namespace support
