#include "lnorm/io/zip/zip_archive.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"
#include "lnorm/io/zip/zip_format.hpp"

namespace lnorm {

namespace {

// The bytes of a deflated member, inflated as they are read. Throws Error if they cannot be inflated, if they are not
// as many as the directory says, or at their end if their CRC-32 is not right. name: for messages.
class DeflatedMember final : public ByteSource {
 public:
  DeflatedMember(std::shared_ptr<const ByteSource> file, std::string name, const ZipMember& member)
      : ByteSource(std::move(name)),
        file_(std::move(file)),
        begin_(member.begin),
        stored_(static_cast<std::int64_t>(member.stored_size)),
        size_(static_cast<std::int64_t>(member.size)),
        crc_(member.crc) {
    // The negative window says that there is no header of zlib.
    if (inflateInit2(&inflater_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~DeflatedMember() override { inflateEnd(&inflater_); }

 protected:
  std::size_t read_some(std::span<std::byte> to) override {
    to = to.first(std::min<std::size_t>(to.size(), std::numeric_limits<uInt>::max()));
    inflater_.next_out = reinterpret_cast<Bytef*>(to.data());
    inflater_.avail_out = static_cast<uInt>(to.size());
    while (!at_end_ && inflater_.avail_out == to.size()) inflate_some();
    const auto got = to.size() - inflater_.avail_out;
    found_crc_ = crc32_of(to.first(got), found_crc_);
    inflated_ += static_cast<std::int64_t>(got);
    if (inflated_ > size_) fail(kZipContradiction);
    if (got == 0) check_end();
    return got;
  }
  std::optional<std::int64_t> unread() const override { return size_ - inflated_; }

 private:
  void inflate_some() {
    if (inflater_.avail_in == 0) {
      constexpr std::int64_t kPiece = std::int64_t{1} << 16;
      compressed_.resize(static_cast<std::size_t>(std::min(kPiece, stored_)));
      const std::size_t got = file_->read_at(begin_, compressed_);
      if (got == 0) fail("is cut off");
      begin_ += static_cast<std::int64_t>(got);
      stored_ -= static_cast<std::int64_t>(got);
      inflater_.next_in = reinterpret_cast<Bytef*>(compressed_.data());
      inflater_.avail_in = static_cast<uInt>(got);
    }
    const int status = inflate(&inflater_, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_DATA_ERROR || status == Z_NEED_DICT) {
      fail("is damaged: the deflated data cannot be inflated");
    }
    at_end_ = status == Z_STREAM_END;
  }

  void check_end() const {
    if (found_crc_ != crc_) fail(kZipWrongSum);
    if (inflated_ != size_) fail(kZipContradiction);
  }

  std::shared_ptr<const ByteSource> file_;
  std::int64_t begin_;   // of the compressed bytes that have not been read, in the file
  std::int64_t stored_;  // as many
  std::int64_t size_;
  std::uint32_t crc_;
  z_stream inflater_{};
  std::vector<std::byte> compressed_;
  std::int64_t inflated_ = 0;
  std::uint32_t found_crc_ = 0;
  bool at_end_ = false;
};

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
    const auto sum = crc32_combine(piece.sum, next.sum, next.end - begin);
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

// The bytes of a stored member. Who looks for more behind the last one has the CRC-32 of all of them checked, in whatever
// order they were read: throws Error.
class StoredMember final : public Slice {
 public:
  StoredMember(std::shared_ptr<const ByteSource> file, std::string name, std::int64_t begin,
               std::int64_t size, std::uint32_t crc)
      : Slice(std::move(file), std::move(name), begin, size), size_(size), crc_(crc) {}

 protected:
  // What is read is added to the sum while the processor has it at hand.
  std::size_t read_some(std::span<std::byte> to) override {
    const std::int64_t offset = position();
    if (offset == size_) check();
    const std::size_t got = Slice::read_some(to);
    if (got > 0) sum_.add(offset, to.first(got));
    return got;
  }
  std::size_t read_unread_at(std::int64_t distance, std::span<std::byte> to) const override {
    // There may be too many smaller pieces to keep.
    constexpr std::size_t kMinSummed = std::size_t{1} << 14;
    const std::size_t got = Slice::read_unread_at(distance, to);
    if (got >= kMinSummed) sum_.add(position() + distance, to.first(got));
    return got;
  }

 private:
  std::int64_t position() const { return size_ - unread().value(); }

  // Reads what is not in the sum yet.
  void check() const {
    constexpr std::int64_t kPiece = std::int64_t{1} << 18;
    std::vector<std::byte> piece;
    while (sum_.end() < size_) {
      const std::int64_t offset = sum_.end();
      piece.resize(
          static_cast<std::size_t>(std::min(kPiece, sum_.gap_end().value_or(size_) - offset)));
      if (Slice::read_unread_at(offset - position(), piece) < piece.size()) fail("is cut off");
      sum_.add(offset, piece);
    }
    if (sum_.sum() != crc_) fail(kZipWrongSum);
  }

  std::int64_t size_;
  std::uint32_t crc_;  // as it should be
  mutable PiecewiseSum sum_;
};

std::string method_name(std::uint16_t number) {
  using Named = std::pair<std::uint16_t, const char*>;
  for (const auto& [method, name] : {Named{9, "deflate64"}, Named{12, "bzip2"}, Named{14, "lzma"},
                                     Named{93, "zstd"}, Named{95, "xz"}}) {
    if (method == number) return name;
  }
  return concat("method ", number);
}

// Whether one of the first members is the pickle of a file of PyTorch.
bool starts_torch(ByteSource& bytes) {
  constexpr std::size_t kNameSizeAt = 26;
  constexpr std::string_view kPickle = "data.pkl";
  const std::string_view start = as_text(bytes.peek(ByteSource::kLookAhead));
  for (std::size_t at = 0; (at = start.find(kZipLocal, at)) != start.npos; ++at) {
    if (start.size() - at < kZipLocalSize) return false;
    const std::string_view name =
        start.substr(at + kZipLocalSize, from_little_endian(start.substr(at + kNameSizeAt, 2)));
    if (name.ends_with(kPickle)) return true;
  }
  return false;
}

std::unique_ptr<ByteSource> with_random_access(std::unique_ptr<ByteSource> bytes) {
  if (bytes->has_random_access()) return bytes;
  const std::string_view extension = starts_torch(*bytes) ? ".pt" : ".npz";
  bytes->fail(concat("a zip archive (", extension,
                     ") cannot be read from a pipe, since its directory is at its end"),
              concat("name the file, or redirect it (< x", extension, ")"));
}

std::int64_t size_of(const ZipMember& member, const std::string& name) {
  if (member.size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw Error(concat(printable(name), ": is said to have more than 2^63 - 1 bytes"));
  }
  return static_cast<std::int64_t>(member.size);
}

}  // namespace

ZipArchive::ZipArchive(std::unique_ptr<ByteSource> bytes)
    : bytes_(with_random_access(std::move(bytes))), members_(read_zip_directory(bytes_)) {}

std::int64_t ZipArchive::member_bytes(std::size_t index) const {
  return size_of(members_[index], name());
}

std::unique_ptr<ByteSource> ZipArchive::open(std::size_t index, std::string name, Sums sums) const {
  const ZipMember& member = members_[index];
  const auto fail = [&](std::string_view what) {
    throw Error(concat(printable(name), ": is ", what));
  };
  if ((member.flags & kZipEncrypted) != 0) fail("encrypted, which lnorm does not read");
  if (member.method != kZipStored && member.method != kZipDeflated) {
    fail(concat("compressed by ", method_name(member.method), ", expected stored or deflated"));
  }
  if (member.stored_size == 0 && member.crc != 0) {
    throw Error(concat(printable(name), ": ", kZipWrongSum));
  }
  const std::int64_t size = size_of(member, name);
  if (member.method == kZipDeflated)
    return std::make_unique<DeflatedMember>(bytes_, std::move(name), member);
  if (member.stored_size != member.size) {
    fail(concat("stored in ", member.stored_size, " bytes, but said to have ", member.size));
  }
  if (sums == Sums::may_be_missing && member.crc == 0) {
    return slice(bytes_, std::move(name), member.begin, size);
  }
  return std::make_unique<StoredMember>(bytes_, std::move(name), member.begin, size, member.crc);
}

}  // namespace lnorm
