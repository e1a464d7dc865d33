#include "lnorm/io/zip/stored_member.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/zip/libzip.hpp"

namespace lnorm {

namespace {

class StoredMember final : public ByteSource {
 public:
  StoredMember(std::shared_ptr<const ByteSource> file, std::string name, std::int64_t begin,
               std::int64_t size, std::optional<std::uint32_t> crc)
      : ByteSource(std::move(name)),
        file_(std::move(file)),
        begin_(begin),
        size_(size),
        crc_(crc) {}

  bool has_positions() const noexcept override { return true; }

 protected:
  std::size_t read_some(std::span<std::byte> to) override {
    if (next_ == size_) check();
    const std::size_t got = read_unread_at(0, to);
    if (crc_ && summed_ == next_) add(to.first(got));
    next_ += static_cast<std::int64_t>(got);
    return got;
  }
  std::optional<std::int64_t> unread() const override { return size_ - next_; }
  std::size_t read_unread_at(std::int64_t distance, std::span<std::byte> to) const override {
    const std::int64_t rest = std::max<std::int64_t>(0, size_ - next_ - distance);
    const std::size_t count = std::min(to.size(), static_cast<std::size_t>(rest));
    return file_->read_at(begin_ + next_ + distance, to.first(count));
  }
  std::int64_t skip_unread(std::int64_t count) override {
    const std::int64_t passed = std::min(count, size_ - next_);
    next_ += passed;
    return passed;
  }

 private:
  void add(std::span<const std::byte> bytes) {
    sum_ = crc32_of(bytes, sum_);
    summed_ += static_cast<std::int64_t>(bytes.size());
  }

  // Bytes that did not come in order are not in the sum yet.
  void check() {
    if (!crc_) return;
    constexpr std::int64_t kPiece = std::int64_t{1} << 18;
    std::vector<std::byte> piece(static_cast<std::size_t>(std::min(kPiece, size_ - summed_)));
    while (summed_ < size_) {
      const auto wanted = std::min(piece.size(), static_cast<std::size_t>(size_ - summed_));
      const std::size_t got = file_->read_at(begin_ + summed_, std::span(piece).first(wanted));
      if (got == 0) throw Error(concat(printable(name()), ": is cut off"));
      add(std::span(piece).first(got));
    }
    if (sum_ != *crc_) {
      throw Error(
          concat(printable(name()),
                 ": is damaged: the CRC-32 of the data is not what the zip directory says"));
    }
  }

  std::shared_ptr<const ByteSource> file_;
  std::int64_t begin_;
  std::int64_t size_;
  std::int64_t next_ = 0;
  std::optional<std::uint32_t> crc_;  // as it should be
  std::uint32_t sum_ = 0;             // of the first summed_ bytes
  std::int64_t summed_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> open_stored_member(std::shared_ptr<const ByteSource> file,
                                               std::string name, std::int64_t begin,
                                               std::int64_t size,
                                               std::optional<std::uint32_t> crc) {
  return std::make_unique<StoredMember>(std::move(file), std::move(name), begin, size, crc);
}

}  // namespace lnorm
