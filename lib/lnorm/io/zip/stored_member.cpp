#include "lnorm/io/zip/stored_member.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/zip/libzip.hpp"

namespace lnorm {

namespace {

// The CRC-32 of bytes that come in pieces, in any order and on several threads.
class PiecewiseSum {
 public:
  // A piece that has come before, or in part, is left out.
  void add(std::int64_t begin, std::span<const std::byte> bytes) {
    const Piece piece{begin + static_cast<std::int64_t>(bytes.size()), crc32_of(bytes)};
    const std::lock_guard lock(mutex_);
    auto next = pieces_.lower_bound(begin);
    if (next != pieces_.end() && next->first < piece.end) return;
    if (next != pieces_.begin()) {
      const auto before = std::prev(next);
      if (before->second.end > begin) return;
      if (before->second.end == begin) {
        append(before->second, begin, piece);
        return join(before, next);
      }
    }
    join(pieces_.emplace_hint(next, begin, piece), next);
  }

  // From the first byte on: what there is without a gap, the sum of it, and where the next piece begins.
  std::int64_t end() const { return has_start() ? pieces_.begin()->second.end : 0; }
  std::uint32_t sum() const { return has_start() ? pieces_.begin()->second.sum : 0; }
  std::optional<std::int64_t> gap_end() const {
    const auto next = has_start() ? std::next(pieces_.begin()) : pieces_.begin();
    return next == pieces_.end() ? std::nullopt : std::optional(next->first);
  }

 private:
  struct Piece {
    std::int64_t end;
    std::uint32_t sum;
  };
  using Pieces = std::map<std::int64_t, Piece>;  // by where they begin

  static void append(Piece& piece, std::int64_t begin, const Piece& next) {
    const auto sum = libzip().crc32_combine(piece.sum, next.sum, next.end - begin);
    piece = {next.end, static_cast<std::uint32_t>(sum)};
  }
  void join(Pieces::iterator piece, Pieces::iterator next) {
    if (next == pieces_.end() || piece->second.end != next->first) return;
    append(piece->second, next->first, next->second);
    pieces_.erase(next);
  }
  bool has_start() const { return !pieces_.empty() && pieces_.begin()->first == 0; }

  std::mutex mutex_;
  Pieces pieces_;
};

class StoredMember final : public ByteSource {
 public:
  StoredMember(std::shared_ptr<const ByteSource> file, std::string name, std::int64_t begin,
               std::int64_t size, std::optional<std::uint32_t> crc)
      : ByteSource(std::move(name)),
        file_(std::move(file)),
        begin_(begin),
        size_(size),
        crc_(crc) {}

  bool has_random_access() const noexcept override { return true; }

 protected:
  std::size_t read_some(std::span<std::byte> to) override {
    if (next_ == size_) check();
    const std::size_t got = read_piece(next_, to, 1);
    next_ += static_cast<std::int64_t>(got);
    return got;
  }
  std::optional<std::int64_t> unread() const override { return size_ - next_; }
  std::size_t read_unread_at(std::int64_t distance, std::span<std::byte> to) const override {
    // Of smaller pieces there may be too many to keep.
    constexpr std::size_t kMinSummed = std::size_t{1} << 14;
    return read_piece(next_ + distance, to, kMinSummed);
  }
  std::int64_t skip_unread(std::int64_t count) override {
    const std::int64_t passed = std::min(count, size_ - next_);
    next_ += passed;
    return passed;
  }

 private:
  // Adds what it has read to the sum while the processor has it at hand, if that is so many bytes.
  std::size_t read_piece(std::int64_t position, std::span<std::byte> to,
                         std::size_t least_summed) const {
    const std::int64_t rest = std::max<std::int64_t>(0, size_ - position);
    const std::size_t count = std::min(to.size(), static_cast<std::size_t>(rest));
    const std::size_t got = file_->read_at(begin_ + position, to.first(count));
    if (crc_ && got > 0 && got >= least_summed) sum_.add(position, to.first(got));
    return got;
  }

  // Reads what is not in the sum yet.
  void check() const {
    if (!crc_) return;
    constexpr std::int64_t kPiece = std::int64_t{1} << 18;
    std::vector<std::byte> piece;
    while (sum_.end() < size_) {
      const std::int64_t wanted = std::min(kPiece, sum_.gap_end().value_or(size_) - sum_.end());
      piece.resize(static_cast<std::size_t>(wanted));
      if (read_piece(sum_.end(), piece, 1) < piece.size()) {
        throw Error(concat(printable(name()), ": is cut off"));
      }
    }
    if (sum_.sum() != *crc_) {
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
  mutable PiecewiseSum sum_;
};

}  // namespace

std::unique_ptr<ByteSource> open_stored_member(std::shared_ptr<const ByteSource> file,
                                               std::string name, std::int64_t begin,
                                               std::int64_t size,
                                               std::optional<std::uint32_t> crc) {
  return std::make_unique<StoredMember>(std::move(file), std::move(name), begin, size, crc);
}

}  // namespace lnorm
