#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/os.hpp"

namespace lnorm {

// A file or a pipe.
class FileSource final : public ByteSource {
 public:
  // "-" is standard input. Throws Error if the file cannot be opened or is a directory.
  explicit FileSource(const std::string& path);

  bool has_positions() const noexcept override { return end_.has_value(); }

 protected:
  std::size_t read_some(std::span<std::byte> to) override;
  std::optional<std::int64_t> unread() const override;
  std::size_t read_unread_at(std::int64_t distance, std::span<std::byte> to) const override;
  std::int64_t skip_unread(std::int64_t count) override;

 private:
  os::FileDescriptor fd_;
  std::int64_t position_ = 0;        // of a regular file
  std::optional<std::int64_t> end_;  // the same
};

}  // namespace lnorm
