#include "lnorm/io/zip/zip_directory.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kEndSize = 22;
constexpr std::size_t kMaxComment = 0xffff;
constexpr std::size_t kLocatorSize = 20;
constexpr std::size_t kEnd64Size = 56;
constexpr std::size_t kEntrySize = 46;  // the least that a member takes in the directory

constexpr std::string_view kEndMagic = "PK\x05\x06";
constexpr std::string_view kLocatorMagic = "PK\x06\x07";
constexpr std::string_view kEnd64Magic = "PK\x06\x06";
constexpr std::string_view kEntryMagic = "PK\x01\x02";

constexpr std::uint64_t kIn64Bits = 0xffffffff;  // the number is in the extra field

// The last record whose comment ends with the file: a comment may hold what looks like one.
std::optional<std::size_t> find_end(std::string_view tail) {
  if (tail.size() < kEndSize) return std::nullopt;
  for (std::size_t at = tail.size() - kEndSize + 1; at-- > 0;) {
    if (!tail.substr(at).starts_with(kEndMagic)) continue;
    if (at + kEndSize + from_little_endian(tail.substr(at + 20, 2)) == tail.size()) return at;
  }
  return std::nullopt;
}

// Nothing where there is no such position; fewer bytes at the end.
std::string read(const ByteSource& bytes, std::int64_t at, std::size_t size) {
  if (at < 0 || at > bytes.remaining().value()) return {};
  std::string result(size, '\0');
  result.resize(bytes.read_at(at, std::as_writable_bytes(std::span(result))));
  return result;
}

// The offset in an extra field, behind so many bytes of sizes. Nothing where there is none.
std::optional<std::uint64_t> read_long_offset(std::string_view extra, std::size_t before) {
  constexpr std::uint64_t kZip64 = 1;
  while (extra.size() >= 4) {
    const std::uint64_t id = from_little_endian(extra.substr(0, 2));
    const std::string_view field = extra.substr(4, from_little_endian(extra.substr(2, 2)));
    if (id == kZip64) {
      if (field.size() < before + 8) break;
      return from_little_endian(field.substr(before, 8));
    }
    extra.remove_prefix(4 + field.size());
  }
  return std::nullopt;
}

}  // namespace

ZipDirectory find_zip_directory(const ByteSource& bytes) {
  const auto fail = [&](std::string_view what) {
    throw Error(concat(printable(bytes.name()), ": ", what));
  };
  const std::int64_t size = bytes.remaining().value();
  const auto tail_size =
      std::min<std::int64_t>(size, static_cast<std::int64_t>(kEndSize + kMaxComment));
  const std::string tail = read(bytes, size - tail_size, static_cast<std::size_t>(tail_size));
  const auto found = find_end(tail);
  if (!found) fail("is no zip archive, or is cut off: there is no directory at its end");
  const std::int64_t end_at = size - tail_size + static_cast<std::int64_t>(*found);
  const std::string_view end = std::string_view(tail).substr(*found);

  ZipDirectory directory;
  directory.entries = from_little_endian(end.substr(10, 2));
  std::uint64_t directory_size = from_little_endian(end.substr(12, 4));
  std::uint64_t offset = from_little_endian(end.substr(16, 4));
  const auto locator = read(bytes, end_at - static_cast<std::int64_t>(kLocatorSize), kLocatorSize);
  if (locator.starts_with(kLocatorMagic)) {
    const auto end64 =
        read(bytes,
             static_cast<std::int64_t>(from_little_endian(std::string_view(locator).substr(8, 8))),
             kEnd64Size);
    if (end64.size() < kEnd64Size || !end64.starts_with(kEnd64Magic)) {
      fail("the zip directory (zip64) is not where it should be");
    }
    directory.entries = from_little_endian(std::string_view(end64).substr(32, 8));
    directory_size = from_little_endian(std::string_view(end64).substr(40, 8));
    offset = from_little_endian(std::string_view(end64).substr(48, 8));
  } else {
    const auto before_end = static_cast<std::int64_t>(offset + directory_size);
    directory.start = std::max<std::int64_t>(0, end_at - before_end);
  }
  if (directory.entries > directory_size / kEntrySize) {
    fail(concat("the zip directory claims ", directory.entries, " members, but has room for ",
                directory_size / kEntrySize));
  }
  const auto buffer = static_cast<std::uint64_t>(end_at - directory.start);
  if (offset > buffer || directory_size > buffer - offset) {
    fail("the zip directory is not within the file");
  }
  directory.begin = directory.start + static_cast<std::int64_t>(offset);
  directory.size = static_cast<std::int64_t>(directory_size);
  return directory;
}

std::vector<std::uint64_t> read_header_offsets(std::shared_ptr<const ByteSource> bytes,
                                               const ZipDirectory& directory) {
  const std::string name = bytes->name();
  const auto text = slice(std::move(bytes), name, directory.begin, directory.size);
  const auto take = [&](std::size_t size) {
    std::string taken(size, '\0');
    // Looked at ahead, small entries cost no call to the system each.
    text->peek(std::min<std::size_t>(size, ByteSource::kLookAhead));
    if (text->read(std::as_writable_bytes(std::span(taken))) < size) {
      throw Error(concat(printable(name), ": the zip directory is cut off"));
    }
    return taken;
  };
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    const std::string entry = take(kEntrySize);
    if (!entry.starts_with(kEntryMagic)) {
      throw Error(
          concat(printable(name), ": the zip directory has no entry ", i, " where it should be"));
    }
    const auto field = [&](std::size_t at, std::size_t size) {
      return from_little_endian(std::string_view(entry).substr(at, size));
    };
    text->skip(static_cast<std::int64_t>(field(28, 2)));
    const std::string extra = take(field(30, 2));
    text->skip(static_cast<std::int64_t>(field(32, 2)));
    const std::size_t before = 8u * ((field(24, 4) == kIn64Bits) + (field(20, 4) == kIn64Bits));
    const std::uint64_t offset = field(42, 4);
    offsets.push_back(offset == kIn64Bits ? read_long_offset(extra, before).value_or(offset)
                                          : offset);
  }
  return offsets;
}

}  // namespace lnorm
