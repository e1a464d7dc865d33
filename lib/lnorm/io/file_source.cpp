#include <unistd.h>

#include <algorithm>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/os.hpp"

namespace lnorm {

namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::string& path)
      : ByteSource(path == "-" ? "standard input" : path),
        fd_(path == "-" ? os::FileDescriptor(STDIN_FILENO, false) : os::open_for_reading(path)) {
    const struct stat status = os::status(fd_, name());
    if (S_ISDIR(status.st_mode)) fail("is a directory, expected a file");
    if (S_ISREG(status.st_mode)) {
      offset_ = path == "-" ? os::offset_of(fd_) : 0;
      end_ = std::max<std::int64_t>(status.st_size, offset_);
    } else if (S_ISFIFO(status.st_mode)) {
      os::widen_pipe(fd_);
    }
  }

  bool has_random_access() const noexcept override { return end_.has_value(); }

 protected:
  std::size_t read_some(std::span<std::byte> to) override {
    const std::size_t got =
        end_ ? os::read_at(fd_, to, offset_, name()) : os::read_some(fd_, to, name());
    offset_ += static_cast<std::int64_t>(got);
    return got;
  }

  std::optional<std::int64_t> unread() const override {
    if (!end_) return std::nullopt;
    return *end_ - offset_;
  }

  std::size_t read_unread_at(std::int64_t distance, std::span<std::byte> to) const override {
    // Nothing lies behind the end. A file of /proc says that it has no size.
    if (*end_ > 0) {
      const std::int64_t left = std::max<std::int64_t>(*end_ - offset_ - distance, 0);
      to = to.first(std::min(to.size(), static_cast<std::size_t>(left)));
    }
    return os::read_at(fd_, to, offset_ + distance, name());
  }

  std::int64_t skip_unread(std::int64_t count) override {
    if (!end_) return ByteSource::skip_unread(count);
    const std::int64_t passed = std::min(count, *end_ - offset_);
    offset_ += passed;
    return passed;
  }

 private:
  os::FileDescriptor fd_;
  std::int64_t offset_ = 0;          // of a regular file
  std::optional<std::int64_t> end_;  // the same
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string& path) {
  return std::make_unique<FileSource>(path);
}

}  // namespace lnorm
