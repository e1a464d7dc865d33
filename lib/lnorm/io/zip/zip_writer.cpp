#include "lnorm/io/zip/zip_writer.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/zip/zip_format.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kCrcInLocalHeader = 14;

void put(std::string& to, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

void put32(std::string& to, std::uint64_t value) { put(to, std::min(value, kZipElsewhere32), 4); }

// The field of the numbers that take 64 bits; empty if there are none.
std::string zip64_extra(const std::vector<std::uint64_t>& values) {
  std::string extra;
  if (values.empty()) return extra;
  put(extra, 1, 2);
  put(extra, 8 * values.size(), 2);
  for (const std::uint64_t value : values) put(extra, value, 8);
  return extra;
}

// What the local header and the directory have in common.
std::string common(bool is_zip64, std::uint16_t flags, std::uint32_t crc, std::uint64_t size,
                   const std::string& name, const std::string& extra) {
  std::string fields;
  put(fields, is_zip64 ? 45 : 20, 2);
  put(fields, flags, 2);
  put(fields, 0, 2);           // stored
  put(fields, 0x00210000, 4);  // 1980-01-01
  put(fields, crc, 4);
  put32(fields, size);  // in the archive, and without it
  put32(fields, size);
  put(fields, name.size(), 2);
  put(fields, extra.size(), 2);
  return fields;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

void ZipWriter::begin(const std::string& name, std::int64_t size) {
  take_back();
  const auto fail = [&](std::string_view what) {
    throw Error(concat(printable(bytes_.name()), ": '", short_name(name),
                       "' cannot be the name of a member: ", what));
  };
  if (name.empty()) fail("it is empty");
  if (name.size() > kZipElsewhere16) {
    fail(concat("it has ", name.size(), " bytes, expected at most ", kZipElsewhere16));
  }
  if (name.find('\0') != name.npos) fail("it has a NUL byte");
  if (!is_utf8(name)) fail("it is not UTF-8");
  if (!names_.insert(name).second) fail("the archive has one of that name");
  begun_ = {name, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(bytes_.written()),
            0};
  bytes_.write(local_header(*begun_));
}

void ZipWriter::write(std::span<const std::byte> bytes) {
  begun_->crc = crc32_of(bytes, begun_->crc);
  bytes_.write(bytes);
}

void ZipWriter::end() {
  const Entry& entry = *begun_;
  std::string sum;
  put(sum, entry.crc, 4);
  if (bytes_.has_random_access()) {
    bytes_.rewrite(static_cast<std::int64_t>(entry.offset) + kCrcInLocalHeader,
                   std::as_bytes(std::span(sum)));
  } else {
    std::string descriptor = concat(kZipDescriptor, sum);
    const int width = entry.size >= kZipElsewhere32 ? 8 : 4;
    put(descriptor, entry.size, width);
    put(descriptor, entry.size, width);
    bytes_.write(descriptor);
  }
  directory_.push_back(*std::exchange(begun_, std::nullopt));
}

void ZipWriter::finish() {
  take_back();
  const auto offset = static_cast<std::uint64_t>(bytes_.written());
  for (const Entry& entry : directory_) bytes_.write(directory_entry(entry));
  const auto end = static_cast<std::uint64_t>(bytes_.written());
  const std::uint64_t size = end - offset;
  const std::uint64_t count = directory_.size();
  std::string ending;
  if (count >= kZipElsewhere16 || size >= kZipElsewhere32 || offset >= kZipElsewhere32) {
    ending += kZipEnd64;
    put(ending, 44, 8);  // bytes that follow of this record
    put(ending, 45, 2);
    put(ending, 45, 2);
    put(ending, 0, 8);  // the first disk, twice
    put(ending, count, 8);
    put(ending, count, 8);
    put(ending, size, 8);
    put(ending, offset, 8);
    ending += kZipLocator64;
    put(ending, 0, 4);
    put(ending, end, 8);
    put(ending, 1, 4);
  }
  ending += kZipEnd;
  put(ending, 0, 4);
  put(ending, std::min(count, kZipElsewhere16), 2);
  put(ending, std::min(count, kZipElsewhere16), 2);
  put32(ending, size);
  put32(ending, offset);
  put(ending, 0, 2);  // no comment
  bytes_.write(ending);
}

void ZipWriter::take_back() {
  if (!begun_) return;
  bytes_.rewind(static_cast<std::int64_t>(begun_->offset));
  names_.erase(begun_->name);
  begun_.reset();
}

std::uint16_t ZipWriter::flags(const Entry& entry) const {
  const int descriptor = bytes_.has_random_access() ? 0 : kZipDescriptorFollows;
  return static_cast<std::uint16_t>(descriptor | (is_ascii(entry.name) ? 0 : kZipNameIsUtf8));
}

std::string ZipWriter::local_header(const Entry& entry) const {
  const bool is_zip64 = entry.size >= kZipElsewhere32;
  // What a descriptor is going to say is 0 here, sizes that are known among it.
  const std::uint64_t size = bytes_.has_random_access() ? entry.size : 0;
  const std::string extra = is_zip64 ? zip64_extra({size, size}) : "";
  return concat(
      kZipLocal,
      common(is_zip64, flags(entry), 0, is_zip64 ? kZipElsewhere32 : size, entry.name, extra),
      entry.name, extra);
}

std::string ZipWriter::directory_entry(const Entry& entry) const {
  std::vector<std::uint64_t> large;
  if (entry.size >= kZipElsewhere32) large = {entry.size, entry.size};
  if (entry.offset >= kZipElsewhere32) large.push_back(entry.offset);
  const std::string extra = zip64_extra(large);
  const bool is_zip64 = !large.empty();
  std::string header(kZipEntry);
  put(header, is_zip64 ? 45 : 20, 1);
  put(header, 3, 1);  // made on Unix, whose permissions follow
  header += common(is_zip64, flags(entry), entry.crc, entry.size, entry.name, extra);
  put(header, 0, 6);  // no comment, the first disk, binary
  put(header, 0600u << 16, 4);
  put32(header, entry.offset);
  return concat(header, entry.name, extra);
}

}  // namespace lnorm
