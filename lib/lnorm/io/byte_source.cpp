#include "lnorm/io/byte_source.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kFirstGrowth = std::size_t{1} << 20;

}  // namespace

ByteSource::ByteSource(const std::string& path)
    : name_(path == "-" ? "standard input" : path),
      fd_(path == "-" ? os::FileDescriptor(STDIN_FILENO, false) : os::open_for_reading(path)) {
  const struct stat status = os::status(fd_, name_);
  if (S_ISDIR(status.st_mode)) {
    throw Error(concat(printable(name_), ": is a directory, expected a file"));
  }
  if (S_ISREG(status.st_mode)) {
    end_ = std::max<std::int64_t>(status.st_size, os::position(fd_));
    remaining_ = end_ - os::position(fd_);
  } else if (S_ISFIFO(status.st_mode)) {
    os::widen_pipe(fd_);
  }
}

std::span<const std::byte> ByteSource::peek(std::size_t count) {
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(ahead_start_));
  ahead_start_ = 0;
  while (ahead_.size() < count) {
    const std::size_t have = ahead_.size();
    ahead_.resize(kLookAhead);
    const std::size_t got = os::read_some(fd_, std::span(ahead_).subspan(have), name_);
    ahead_.resize(have + got);
    if (got == 0) break;
  }
  return std::span(ahead_).first(std::min(count, ahead_.size()));
}

std::size_t ByteSource::read(std::span<std::byte> to) {
  const std::size_t from_ahead = std::min(to.size(), ahead_.size() - ahead_start_);
  if (from_ahead > 0) std::memcpy(to.data(), ahead_.data() + ahead_start_, from_ahead);
  ahead_start_ += from_ahead;
  std::size_t done = from_ahead;
  while (done < to.size()) {
    const std::size_t got = os::read_some(fd_, to.subspan(done), name_);
    if (got == 0) break;
    done += got;
  }
  if (remaining_) *remaining_ -= static_cast<std::int64_t>(done);
  return done;
}

void ByteSource::read(std::vector<std::byte>& to, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const std::size_t room = std::max({to.capacity(), kFirstGrowth, 2 * done});
    to.resize(std::min(count, room));
    const std::size_t got = read(std::span(to).subspan(done));
    done += got;
    if (done < to.size()) break;
  }
  to.resize(done);
}

std::size_t ByteSource::read_at(std::int64_t distance, std::span<std::byte> to) const {
  return os::read_at(fd_, to, end_ - *remaining_ + distance, name_);
}

std::int64_t ByteSource::skip(std::int64_t count) {
  const auto ahead = static_cast<std::int64_t>(ahead_.size() - ahead_start_);
  std::int64_t done = std::min(count, ahead);
  ahead_start_ += static_cast<std::size_t>(done);
  if (remaining_) {
    *remaining_ -= done;
    const std::int64_t rest = std::min(count - done, *remaining_);
    os::seek_forward(fd_, rest, name_);
    *remaining_ -= rest;
    return done + rest;
  }
  std::vector<std::byte> passed(static_cast<std::size_t>(
      std::min<std::int64_t>(count - done, static_cast<std::int64_t>(kFirstGrowth))));
  while (done < count) {
    const auto wanted = std::min(passed.size(), static_cast<std::size_t>(count - done));
    const std::size_t got = os::read_some(fd_, std::span(passed).first(wanted), name_);
    if (got == 0) break;
    done += static_cast<std::int64_t>(got);
  }
  return done;
}

}  // namespace lnorm
