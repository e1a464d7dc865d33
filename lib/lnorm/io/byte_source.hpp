#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lnorm/io/os.hpp"

namespace lnorm {

// A file or a pipe, read once from start to end, with a look ahead.
class ByteSource {
 public:
  // "-" is standard input. Throws Error if the file cannot be opened or is a directory.
  explicit ByteSource(const std::string& path);

  // For messages: the path, or "standard input".
  const std::string& name() const noexcept { return name_; }

  // The bytes not read yet, where that is known beforehand: of a regular file.
  std::optional<std::int64_t> remaining() const noexcept { return remaining_; }

  // The next bytes without taking them: count of them, fewer only at the end. count <= kLookAhead.
  std::span<const std::byte> peek(std::size_t count);
  static constexpr std::size_t kLookAhead = 4096;

  // Fills to, but for the end coming first; returns how many bytes were read.
  std::size_t read(std::span<std::byte> to);

  // The same into the front of a buffer that grows as the bytes come, so that a count which is only
  // claimed costs no memory. The buffer's size becomes the number of bytes read.
  void read(std::vector<std::byte>& to, std::size_t count);

  // Where remaining() is known: reads from the bytes not read yet, without taking them, from a distance
  // on; returns how many bytes were read, fewer only at the end. Several threads may do so at once.
  std::size_t read_at(std::int64_t distance, std::span<std::byte> to) const;

  // Passes over bytes, of a regular file without reading them; returns how many there were.
  std::int64_t skip(std::int64_t count);

 private:
  std::string name_;
  os::FileDescriptor fd_;
  std::optional<std::int64_t> remaining_;
  std::int64_t end_ = 0;  // position of the end, where remaining_ is known
  std::vector<std::byte> ahead_;
  std::size_t ahead_start_ = 0;
};

}  // namespace lnorm
