#include "lnorm/io/byte_slice.hpp"

#include <algorithm>

namespace lnorm {

namespace {

std::span<std::byte> at_most(std::span<std::byte> to, std::int64_t count) {
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(0, count));
  return to.first(std::min(to.size(), most));
}

class NextBytes final : public ByteSource {
 public:
  NextBytes(std::shared_ptr<ByteSource> pipe, std::string name, std::int64_t size)
      : ByteSource(std::move(name)), pipe_(std::move(pipe)), unread_(size) {}

 protected:
  std::size_t read_some(std::span<std::byte> to) override {
    const std::size_t got = pipe_->read(at_most(to, unread_));
    unread_ -= static_cast<std::int64_t>(got);
    return got;
  }
  std::optional<std::int64_t> unread() const override { return std::nullopt; }
  std::int64_t skip_unread(std::int64_t count) override {
    const std::int64_t passed = pipe_->skip(std::min(count, unread_));
    unread_ -= passed;
    return passed;
  }

 private:
  std::shared_ptr<ByteSource> pipe_;
  std::int64_t unread_;
};

}  // namespace

std::size_t Slice::read_some(std::span<std::byte> to) {
  const std::size_t got = Slice::read_unread_at(0, to);
  next_ += static_cast<std::int64_t>(got);
  return got;
}

std::size_t Slice::read_unread_at(std::int64_t distance, std::span<std::byte> to) const {
  return whole_->read_at(next_ + distance, at_most(to, end_ - next_ - distance));
}

std::int64_t Slice::skip_unread(std::int64_t count) {
  const std::int64_t passed = std::min(count, end_ - next_);
  next_ += passed;
  return passed;
}

std::size_t TextBytes::read_some(std::span<std::byte> to) {
  const auto left = std::as_bytes(std::span(text_)).subspan(static_cast<std::size_t>(next_));
  const std::size_t count = std::min(to.size(), left.size());
  std::copy_n(left.begin(), count, to.begin());
  next_ += static_cast<std::int64_t>(count);
  return count;
}

std::unique_ptr<ByteSource> slice(std::shared_ptr<const ByteSource> whole, std::string name,
                                  std::int64_t begin, std::int64_t size) {
  return std::make_unique<Slice>(std::move(whole), std::move(name), begin, size);
}

std::unique_ptr<ByteSource> next_of(std::shared_ptr<ByteSource> pipe, std::string name,
                                    std::int64_t size) {
  return std::make_unique<NextBytes>(std::move(pipe), std::move(name), size);
}

}  // namespace lnorm
