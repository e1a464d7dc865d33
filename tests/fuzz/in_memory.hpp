#pragma once

#include <string>
#include <string_view>

#include "lnorm/io/byte_source.hpp"

// Files and pipes that are nowhere on a disk, for the fuzzers.
namespace fuzz {

// Throws std::runtime_error, which the fuzzer reports, unless what should hold does.
void require(bool holds, std::string_view what);

class Descriptor {
 public:
  explicit Descriptor(int fd);  // throws if there is none
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  int get() const { return fd_; }

  // A name under which it can be opened, as a file of its own.
  std::string path() const;

 private:
  int fd_;
};

class MemoryFile : public Descriptor {
 public:
  explicit MemoryFile(std::string_view bytes = {});
  std::string content() const;
};

// The end of a pipe that holds bytes, at most kPipeBytes, and whose writer has left.
class FullPipe : public Descriptor {
 public:
  explicit FullPipe(std::string_view bytes);
};
inline constexpr std::size_t kPipeBytes = 65536;

// A file without a descriptor, where there are to be many of them.
class MemorySource final : public lnorm::ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : ByteSource("x"), bytes_(bytes) {}

  bool has_random_access() const noexcept override { return true; }

 protected:
  std::size_t read_some(std::span<std::byte> to) override;
  std::optional<std::int64_t> unread() const override;
  std::size_t read_unread_at(std::int64_t distance, std::span<std::byte> to) const override;

 private:
  std::string_view bytes_;
  std::size_t position_ = 0;
};

// Another descriptor in the place of a standard stream while this lives.
class StandardStream {
 public:
  StandardStream(int stream, int fd);
  StandardStream(const StandardStream&) = delete;
  StandardStream& operator=(const StandardStream&) = delete;
  ~StandardStream();

 private:
  int stream_;
  Descriptor before_;
};

}  // namespace fuzz
