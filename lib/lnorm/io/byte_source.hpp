#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lnorm {

// Bytes that are read once from start to end, with a look ahead.
class ByteSource {
 public:
  // name: for messages, "x.npy", "x.npz:weight" or "standard input".
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  const std::string& name() const noexcept { return name_; }

  // Throws Error, which begins with the name.
  [[noreturn]] void fail(std::string_view what, std::string hint = {}) const;

  // The bytes not read yet, where that is known beforehand.
  std::optional<std::int64_t> remaining() const;

  // The next bytes without taking them: count of them, fewer only at the end. count <= kLookAhead.
  std::span<const std::byte> peek(std::size_t count);
  static constexpr std::size_t kLookAhead = 4096;

  // Fills to, but for the end coming first; returns how many bytes were read.
  std::size_t read(std::span<std::byte> to);

  // Reads into a buffer that grows as the bytes come, so that a count which is only claimed costs no memory. The
  // buffer's size becomes the number of bytes read. Bytes: std::vector<std::byte> or RawBytes.
  template <class Bytes>
  void read(Bytes& to, std::size_t count);

  // The next bytes without taking them: at least one, and those that come with it; none at the end.
  std::span<const std::byte> peek_available();

  // Whether read_at is there: of regular files.
  virtual bool has_random_access() const noexcept { return false; }

  // Reads from the bytes not read yet, without taking them, from a distance on; returns how many bytes
  // were read, fewer only at the end. Several threads may do so at once.
  std::size_t read_at(std::int64_t distance, std::span<std::byte> to) const;

  // Passes over bytes, without reading them where has_random_access(); returns how many there were.
  std::int64_t skip(std::int64_t count);

 protected:
  // These do the same for what the source has beyond the look ahead.
  virtual std::size_t read_some(std::span<std::byte> to) = 0;  // at least one byte, 0 at the end
  virtual std::optional<std::int64_t> unread() const = 0;
  virtual std::size_t read_unread_at(std::int64_t, std::span<std::byte>) const { return 0; }
  virtual std::int64_t skip_unread(std::int64_t count);

 private:
  std::size_t ahead() const noexcept { return ahead_.size() - ahead_start_; }

  std::string name_;
  std::vector<std::byte> ahead_;
  std::size_t ahead_start_ = 0;
};

// Bytes as characters.
inline std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A file or a pipe; "-" is standard input. Throws Error if the file cannot be opened or is a directory.
std::unique_ptr<ByteSource> open_file(const std::string& path);

}  // namespace lnorm
