#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// What the bytes of a zip archive mean. [PKWARE, APPNOTE 6.3, 4.3 to 4.5]
namespace lnorm {

inline constexpr std::string_view kZipLocal = "PK\x03\x04";
inline constexpr std::string_view kZipDescriptor = "PK\x07\x08";
inline constexpr std::string_view kZipEntry = "PK\x01\x02";
inline constexpr std::string_view kZipEnd = "PK\x05\x06";
inline constexpr std::string_view kZipEnd64 = "PK\x06\x06";
inline constexpr std::string_view kZipLocator64 = "PK\x06\x07";

inline constexpr std::size_t kZipLocalSize = 30;  // without name and extra field
inline constexpr std::size_t kZipEntrySize = 46;  // without name, extra field and comment

// Flags of a member.
inline constexpr std::uint16_t kZipEncrypted = 1;
inline constexpr std::uint16_t kZipDescriptorFollows =
    1 << 3;  // the local header may leave out sizes and CRC
inline constexpr std::uint16_t kZipNameIsUtf8 = 1 << 11;

inline constexpr std::uint16_t kZipStored = 0;
inline constexpr std::uint16_t kZipDeflated = 8;

// A number that does not fit stands in 64 bits elsewhere, and in its place stands this.
inline constexpr std::uint64_t kZipElsewhere32 = 0xffffffff;
inline constexpr std::uint64_t kZipElsewhere16 = 0xffff;

// The CRC-32 of bytes that follow those of another; 0 is that of none.
inline std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  const auto* const data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(crc32_z(before, data, bytes.size()));
}

// The error of a member whose CRC-32 is another than its directory entry says.
inline constexpr const char* kZipWrongSum =
    "is damaged: the CRC-32 of the data is not what the zip directory says";

}  // namespace lnorm
