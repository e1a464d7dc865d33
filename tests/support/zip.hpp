#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace support {

std::uint32_t crc32(std::string_view bytes);

// A member of a zip archive, and what its headers are to say of it where that is not so.
struct ZipEntry {
  std::string name = {};
  std::string bytes = {};
  bool deflated = false;  // in blocks that are not compressed
  std::uint16_t flags = 0;
  std::optional<std::uint16_t> method = {};
  std::optional<std::uint32_t> size = {};  // of the bytes
  std::optional<std::uint32_t> crc = {};
};

struct ZipOptions {
  bool zip64 = false;  // sizes and offsets in 64 bits
  std::string comment = {};
};

// [PKWARE, APPNOTE 6.3, 4.3 to 4.5]
std::string zip(const std::vector<ZipEntry>& entries, const ZipOptions& options = {});

}  // namespace support
