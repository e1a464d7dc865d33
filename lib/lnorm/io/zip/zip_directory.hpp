#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// Where a zip archive lies in a file, by the record at its end. [PKWARE, APPNOTE 6.3, 4.3.14 to 4.3.16]
struct ZipDirectory {
  std::int64_t start = 0;     // of the archive; before it is what somebody has put in front of it
  std::int64_t begin = 0;     // of the directory, counted from the start of the file
  std::int64_t size = 0;      // of the directory, in bytes
  std::uint64_t entries = 0;  // as many members as it claims
};

// Throws Error if there is no such record, if its directory is not within the file, or if it claims more
// entries than its directory has room for. bytes: has_random_access().
ZipDirectory find_zip_directory(const ByteSource& bytes);

// Where the local header of each member begins, counted from the start of the archive. Throws Error if the
// directory does not hold so many entries. [4.3.12, 4.5.3]
std::vector<std::uint64_t> read_header_offsets(std::shared_ptr<const ByteSource> bytes,
                                               const ZipDirectory& directory);

}  // namespace lnorm
