#include "support/zip.hpp"

#include <array>

namespace support {

namespace {

void put(std::string& to, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

// Stored blocks [RFC 1951, 3.2.4].
std::string deflate(std::string_view bytes) {
  std::string out;
  do {
    const std::string_view block = bytes.substr(0, 0xffff);
    bytes.remove_prefix(block.size());
    out += bytes.empty() ? '\1' : '\0';
    put(out, block.size(), 2);
    put(out, ~block.size() & 0xffff, 2);
    out += block;
  } while (!bytes.empty());
  return out;
}

struct Placed {
  const ZipEntry& entry;
  std::string data;
  std::uint64_t offset;
};

// What the local header and the directory have in common.
void put_common(std::string& to, const Placed& placed, bool zip64, std::size_t extra) {
  const ZipEntry& entry = placed.entry;
  put(to, zip64 ? 45 : 20, 2);
  put(to, entry.flags, 2);
  put(to, entry.method.value_or(entry.deflated ? 8 : 0), 2);
  put(to, 0x00210000, 4);  // the first day there is
  put(to, entry.crc.value_or(crc32(entry.bytes)), 4);
  put(to, zip64 ? 0xffffffff : placed.data.size(), 4);
  put(to, zip64 ? 0xffffffff : entry.size.value_or(entry.bytes.size()), 4);
  put(to, entry.name.size(), 2);
  put(to, extra, 2);
}

void put_extra(std::string& to, const Placed& placed, bool with_offset) {
  put(to, 1, 2);
  put(to, with_offset ? 24 : 16, 2);
  put(to, placed.entry.size.value_or(placed.entry.bytes.size()), 8);
  put(to, placed.data.size(), 8);
  if (with_offset) put(to, placed.offset, 8);
}

}  // namespace

std::uint32_t crc32(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> of_byte{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t& crc = of_byte[byte] = byte;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
    }
    return of_byte;
  }();
  std::uint32_t crc = 0xffffffff;
  const std::uint32_t* const of_byte = table.data();  // at -O0 the array's operator is a call
  for (const char c : bytes) crc = crc >> 8 ^ of_byte[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::string zip(const std::vector<ZipEntry>& entries, const ZipOptions& options) {
  const bool zip64 = options.zip64;
  std::string file;
  std::string directory;
  for (const ZipEntry& entry : entries) {
    const Placed placed{entry, entry.deflated ? deflate(entry.bytes) : entry.bytes, file.size()};
    file += "PK\x03\x04";
    put_common(file, placed, zip64, zip64 ? 20 : 0);
    file += entry.name;
    if (zip64) put_extra(file, placed, false);
    file += placed.data;
    directory += "PK\x01\x02";
    put(directory, zip64 ? 45 : 20, 2);
    put_common(directory, placed, zip64, zip64 ? 28 : 0);
    put(directory, 0, 8);
    put(directory, 0, 2);
    put(directory, zip64 ? 0xffffffff : placed.offset, 4);
    directory += entry.name;
    if (zip64) put_extra(directory, placed, true);
  }
  const std::size_t offset = file.size();
  file += directory;
  if (zip64) {
    const std::size_t end64 = file.size();
    file += "PK\x06\x06";
    put(file, 44, 8);
    put(file, 45, 2);
    put(file, 45, 2);
    put(file, 0, 8);
    put(file, entries.size(), 8);
    put(file, entries.size(), 8);
    put(file, directory.size(), 8);
    put(file, offset, 8);
    file += "PK\x06\x07";
    put(file, 0, 4);
    put(file, end64, 8);
    put(file, 1, 4);
  }
  file += "PK\x05\x06";
  put(file, 0, 4);
  for (int twice = 0; twice < 2; ++twice) put(file, zip64 ? 0xffff : entries.size(), 2);
  put(file, zip64 ? 0xffffffff : directory.size(), 4);
  put(file, zip64 ? 0xffffffff : offset, 4);
  put(file, options.comment.size(), 2);
  return file + options.comment;
}

}  // namespace support
