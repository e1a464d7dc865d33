#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// A member of a zip archive, as its directory entry says.
struct ZipMember {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t size = 0;
  std::uint64_t stored_size = 0;  // in the archive, compressed or not
  std::int64_t begin = 0;         // of its bytes in the file
};

// The error of an archive that is not sound.
inline constexpr const char* kZipContradiction =
    "the zip archive is damaged: its directory and its members contradict each other";

// Reads the directory at the end of the file and the local header of each member. Throws Error if there is no
// directory, if it is not within the file or claims too many members, if a local header says something else than its
// entry, if a member is not before the directory, or if two have the same name. bytes: has_random_access().
// [PKWARE, APPNOTE 6.3, 4.3.7, 4.3.12 to 4.3.16, 4.5.3]
std::vector<ZipMember> read_zip_directory(const std::shared_ptr<const ByteSource>& bytes);

}  // namespace lnorm
