#include "fuzz/in_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace fuzz {

namespace {

int filled(int fd, std::string_view bytes) {
  require(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "write");
  return fd;
}

int full_pipe(std::string_view bytes) {
  require(bytes.size() <= kPipeBytes, "the pipe holds that much");
  int fds[2];
  require(::pipe2(fds, O_CLOEXEC) == 0, "pipe2");
  ::close(filled(fds[1], bytes));
  return fds[0];
}

}  // namespace

void require(bool holds, std::string_view what) {
  if (!holds) throw std::runtime_error("does not hold: " + std::string(what));
}

Descriptor::Descriptor(int fd) : fd_(fd) { require(fd >= 0, "there is a descriptor"); }
Descriptor::~Descriptor() { ::close(fd_); }

std::string Descriptor::path() const { return "/proc/self/fd/" + std::to_string(fd_); }

MemoryFile::MemoryFile(std::string_view bytes)
    : Descriptor(filled(::memfd_create("fuzz", MFD_CLOEXEC), bytes)) {}

std::string MemoryFile::content() const {
  std::string bytes(static_cast<std::size_t>(::lseek(get(), 0, SEEK_END)), '\0');
  require(::pread(get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "pread");
  return bytes;
}

FullPipe::FullPipe(std::string_view bytes) : Descriptor(full_pipe(bytes)) {}

std::size_t MemorySource::read_some(std::span<std::byte> to) {
  const std::size_t got = read_unread_at(0, to);
  position_ += got;
  return got;
}

std::optional<std::int64_t> MemorySource::unread() const {
  return static_cast<std::int64_t>(bytes_.size() - position_);
}

std::size_t MemorySource::read_unread_at(std::int64_t distance, std::span<std::byte> to) const {
  const auto from = static_cast<std::size_t>(static_cast<std::int64_t>(position_) + distance);
  require(from <= bytes_.size(), "nothing is read from behind the end");
  const auto rest = std::as_bytes(std::span(bytes_)).subspan(from);
  const std::size_t count = std::min(to.size(), rest.size());
  std::copy_n(rest.begin(), count, to.begin());
  return count;
}

StandardStream::StandardStream(int stream, int fd) : stream_(stream), before_(::dup(stream)) {
  require(::dup2(fd, stream) == stream, "dup2");
}

StandardStream::~StandardStream() { ::dup2(before_.get(), stream_); }

}  // namespace fuzz
