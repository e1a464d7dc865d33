#include "lnorm/io/zip/zip_directory.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"
#include "lnorm/io/zip/zip_format.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kEndSize = 22;
constexpr std::size_t kMaxComment = 0xffff;
constexpr std::size_t kLocatorSize = 20;
constexpr std::size_t kEnd64Size = 56;
constexpr std::uint64_t kMaxMembers = 200'000;

// Where the directory lies, by the record at the end of the file.
struct Place {
  std::int64_t start = 0;  // of the archive; other bytes may stand before it
  std::int64_t begin = 0;  // of the directory in the file
  std::int64_t size = 0;
  std::uint64_t members = 0;
};

// The last record whose comment ends with the file: a comment may hold what looks like one.
std::optional<std::size_t> find_end(std::string_view tail) {
  if (tail.size() < kEndSize) return std::nullopt;
  for (std::size_t at = tail.size() - kEndSize + 1; at-- > 0;) {
    if (!tail.substr(at).starts_with(kZipEnd)) continue;
    if (at + kEndSize + from_little_endian(tail.substr(at + 20, 2)) == tail.size()) return at;
  }
  return std::nullopt;
}

// Sizes, CRC and offset of an entry or a local header.
struct Numbers {
  std::uint64_t crc = 0;
  std::uint64_t stored_size = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  bool operator==(const Numbers&) const = default;
};

class DirectoryReader {
 public:
  explicit DirectoryReader(std::shared_ptr<const ByteSource> bytes) : bytes_(std::move(bytes)) {}

  std::vector<ZipMember> read() {
    find();
    const auto text = slice(bytes_, bytes_->name(), place_.begin, place_.size);
    std::vector<ZipMember> members;
    std::unordered_set<std::string> names;
    for (std::uint64_t i = 0; i < place_.members; ++i) {
      members.push_back(read_entry(*text, i));
      if (!names.insert(members.back().name).second) {
        bytes_->fail("the zip archive has two members of the same name");
      }
    }
    if (!text->peek(1).empty()) bytes_->fail(kZipContradiction);
    return members;
  }

 private:
  // Nothing where there is no such offset; fewer bytes at the end.
  std::string read_at(std::int64_t at, std::size_t size) const {
    if (at < 0 || at > bytes_->remaining().value()) return {};
    std::string result(size, '\0');
    result.resize(bytes_->read_at(at, std::as_writable_bytes(std::span(result))));
    return result;
  }

  void find() {
    const std::int64_t size = bytes_->remaining().value();
    const auto tail_size =
        std::min<std::int64_t>(size, static_cast<std::int64_t>(kEndSize + kMaxComment));
    const std::string tail = read_at(size - tail_size, static_cast<std::size_t>(tail_size));
    const auto found = find_end(tail);
    if (!found) bytes_->fail("is no zip archive, or is cut off: there is no directory at its end");
    const std::int64_t end_at = size - tail_size + static_cast<std::int64_t>(*found);
    const std::string_view end = std::string_view(tail).substr(*found);
    place_.members = from_little_endian(end.substr(10, 2));
    std::uint64_t directory_size = from_little_endian(end.substr(12, 4));
    std::uint64_t offset = from_little_endian(end.substr(16, 4));
    const auto locator = read_at(end_at - static_cast<std::int64_t>(kLocatorSize), kLocatorSize);
    if (locator.starts_with(kZipLocator64)) {
      const std::string_view at = std::string_view(locator).substr(8, 8);
      const std::string end64 =
          read_at(static_cast<std::int64_t>(from_little_endian(at)), kEnd64Size);
      if (end64.size() < kEnd64Size || !end64.starts_with(kZipEnd64)) {
        bytes_->fail("the zip directory (zip64) is not where it should be");
      }
      place_.members = from_little_endian(std::string_view(end64).substr(32, 8));
      directory_size = from_little_endian(std::string_view(end64).substr(40, 8));
      offset = from_little_endian(std::string_view(end64).substr(48, 8));
    } else {
      const auto before_end = static_cast<std::int64_t>(offset + directory_size);
      place_.start = std::max<std::int64_t>(0, end_at - before_end);
    }
    check(directory_size, offset, static_cast<std::uint64_t>(end_at - place_.start));
    place_.begin = place_.start + static_cast<std::int64_t>(offset);
    place_.size = static_cast<std::int64_t>(directory_size);
  }

  // available: the bytes of the archive before the record at its end.
  void check(std::uint64_t directory_size, std::uint64_t offset, std::uint64_t available) const {
    if (place_.members > directory_size / kZipEntrySize) {
      bytes_->fail(concat("the zip directory claims ", place_.members,
                          " members, but has room for ", directory_size / kZipEntrySize));
    }
    if (offset > available || directory_size > available - offset) {
      bytes_->fail("the zip directory is not within the file");
    }
    if (place_.members > kMaxMembers) {
      bytes_->fail(concat("the zip archive has ", place_.members, " members, expected at most ",
                          kMaxMembers));
    }
  }

  std::string take(ByteSource& text, std::size_t size) const {
    std::string taken(size, '\0');
    // The look ahead saves small entries a call to the system each.
    text.peek(std::min<std::size_t>(size, ByteSource::kLookAhead));
    if (text.read(std::as_writable_bytes(std::span(taken))) < size) {
      bytes_->fail("the zip directory is cut off");
    }
    return taken;
  }

  ZipMember read_entry(ByteSource& text, std::uint64_t index) const {
    const std::string entry = take(text, kZipEntrySize);
    if (!entry.starts_with(kZipEntry)) {
      bytes_->fail(concat("the zip directory has no entry ", index, " where it should be"));
    }
    const auto field = [&](std::size_t at, std::size_t size) {
      return from_little_endian(std::string_view(entry).substr(at, size));
    };
    ZipMember member;
    member.name = take(text, field(28, 2));
    const std::string extra = take(text, field(30, 2));
    text.skip(static_cast<std::int64_t>(field(32, 2)));
    Numbers numbers{field(16, 4), field(20, 4), field(24, 4), field(42, 4)};
    read_zip64(extra, numbers);
    member.flags = static_cast<std::uint16_t>(field(8, 2));
    member.method = static_cast<std::uint16_t>(field(10, 2));
    member.crc = static_cast<std::uint32_t>(numbers.crc);
    member.size = numbers.size;
    member.stored_size = numbers.stored_size;
    member.begin = find_bytes(member, numbers, entry.substr(10, 6));
    return member;
  }

  // Puts the numbers of 64 bits from the extra field in the place of those that do not fit 32.
  void read_zip64(std::string_view extra, Numbers& numbers) const {
    constexpr std::uint64_t kZip64 = 1;
    while (extra.size() >= 4 && from_little_endian(extra.substr(0, 2)) != kZip64) {
      extra.remove_prefix(std::min(extra.size(), 4 + from_little_endian(extra.substr(2, 2))));
    }
    std::string_view field;
    if (extra.size() >= 4) field = extra.substr(4, from_little_endian(extra.substr(2, 2)));
    for (std::uint64_t* number : {&numbers.size, &numbers.stored_size, &numbers.offset}) {
      if (*number != kZipElsewhere32) continue;
      if (field.size() < 8) bytes_->fail(kZipContradiction);
      *number = from_little_endian(field.substr(0, 8));
      field.remove_prefix(8);
    }
  }

  // Where the bytes of a member begin, behind its local header, which must say what the directory says.
  std::int64_t find_bytes(const ZipMember& member, const Numbers& expected,
                          std::string_view method_and_time) const {
    const auto archive_size = static_cast<std::uint64_t>(place_.begin - place_.start);
    if (expected.offset > archive_size) bytes_->fail(kZipContradiction);
    const std::int64_t at = place_.start + static_cast<std::int64_t>(expected.offset);
    const std::string header = read_at(at, kZipLocalSize);
    if (header.size() < kZipLocalSize || !header.starts_with(kZipLocal))
      bytes_->fail(kZipContradiction);
    const auto field = [&](std::size_t from, std::size_t size) {
      return from_little_endian(std::string_view(header).substr(from, size));
    };
    const std::string rest =
        read_at(at + static_cast<std::int64_t>(kZipLocalSize), field(26, 2) + field(28, 2));
    const std::string_view name = std::string_view(rest).substr(0, field(26, 2));
    Numbers found{field(14, 4), field(18, 4), field(22, 4), 0};
    read_zip64(std::string_view(rest).substr(name.size()), found);
    const bool leaves_out = (field(6, 2) & kZipDescriptorFollows) != 0 && found == Numbers{};
    found.offset = expected.offset;
    const std::uint64_t begin = expected.offset + kZipLocalSize + field(26, 2) + field(28, 2);
    if (name != member.name || std::string_view(header).substr(8, 6) != method_and_time ||
        (!leaves_out && found != expected) || begin > archive_size ||
        member.stored_size > archive_size - begin) {
      bytes_->fail(kZipContradiction);
    }
    return place_.start + static_cast<std::int64_t>(begin);
  }

  std::shared_ptr<const ByteSource> bytes_;
  Place place_;
};

}  // namespace

std::vector<ZipMember> read_zip_directory(const std::shared_ptr<const ByteSource>& bytes) {
  return DirectoryReader(bytes).read();
}

}  // namespace lnorm
