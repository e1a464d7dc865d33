#pragma once

#include <memory>
#include <optional>

#include "lnorm/core/error.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "support/elements.hpp"
#include "support/written.hpp"

// Files and pipes that are nowhere on a disk, for the fuzzers.
namespace fuzz {

using support::put;

// Returns what work gives, or nothing where the library refuses.
template <std::invocable Work>
auto unless_refused(Work work) -> std::optional<decltype(work())> {
  try {
    return work();
  } catch (const lnorm::Error&) {
    return std::nullopt;
  }
}

struct Tensor {
  lnorm::TensorInfo info;
  std::string elements;
};
bool are_alike(const lnorm::TensorInfo& a, const lnorm::TensorInfo& b);
bool are_alike(const std::optional<Tensor>& a, const std::optional<Tensor>& b);

inline std::string_view bytes_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

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

// Returns the bytes that write puts into a file.
template <class Write>
std::string file_of(Write write) {
  const MemoryFile file;
  lnorm::ByteSink bytes(file.path());
  write(bytes);
  bytes.finish();
  return file.content();
}

// The end of a pipe that holds bytes, at most kPipeBytes, and whose writer has left.
class FullPipe : public Descriptor {
 public:
  explicit FullPipe(std::string_view bytes);
};
inline constexpr std::size_t kPipeBytes = 65536;

// A file without a descriptor, where there are to be many of them.
std::unique_ptr<lnorm::ByteSource> memory_source(std::string_view bytes);

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
