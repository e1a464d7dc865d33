#include "lnorm/io/file_source.hpp"

#include <unistd.h>

#include <algorithm>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

FileSource::FileSource(const std::string& path)
    : ByteSource(path == "-" ? "standard input" : path),
      fd_(path == "-" ? os::FileDescriptor(STDIN_FILENO, false) : os::open_for_reading(path)) {
  const struct stat status = os::status(fd_, name());
  if (S_ISDIR(status.st_mode)) {
    throw Error(concat(printable(name()), ": is a directory, expected a file"));
  }
  if (S_ISREG(status.st_mode)) {
    position_ = os::position(fd_);
    end_ = std::max<std::int64_t>(status.st_size, position_);
  } else if (S_ISFIFO(status.st_mode)) {
    os::widen_pipe(fd_);
  }
}

std::size_t FileSource::read_some(std::span<std::byte> to) {
  const std::size_t got = os::read_some(fd_, to, name());
  position_ += static_cast<std::int64_t>(got);
  return got;
}

std::optional<std::int64_t> FileSource::unread() const {
  if (!end_) return std::nullopt;
  return *end_ - position_;
}

std::size_t FileSource::read_unread_at(std::int64_t distance, std::span<std::byte> to) const {
  return os::read_at(fd_, to, position_ + distance, name());
}

std::int64_t FileSource::skip_unread(std::int64_t count) {
  if (!end_) return ByteSource::skip_unread(count);
  const std::int64_t passed = std::min(count, *end_ - position_);
  os::seek_forward(fd_, passed, name());
  position_ += passed;
  return passed;
}

}  // namespace lnorm
