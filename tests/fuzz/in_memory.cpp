#include "fuzz/in_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/memory_bytes.hpp"

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

bool are_alike(const lnorm::TensorInfo& a, const lnorm::TensorInfo& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.order == b.order &&
         a.byte_order == b.byte_order;
}

bool are_alike(const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return are_alike(a->info, b->info) && a->elements == b->elements;
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

std::unique_ptr<lnorm::ByteSource> memory_source(std::string_view bytes) {
  using support::MemoryBytes;
  return std::make_unique<MemoryBytes>("x", std::string(bytes), MemoryBytes::Kind::file);
}

StandardStream::StandardStream(int stream, int fd) : stream_(stream), before_(::dup(stream)) {
  require(::dup2(fd, stream) == stream, "dup2");
}

StandardStream::~StandardStream() { ::dup2(before_.get(), stream_); }

}  // namespace fuzz
