#pragma once

#include <cstdint>

#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// Where a zip archive lies in a file, by the record at its end. [PKWARE, APPNOTE 6.3, 4.3.14 to 4.3.16]
struct ZipDirectory {
  std::int64_t start = 0;     // of the archive; before it is what somebody has put in front of it
  std::uint64_t entries = 0;  // as many members as it claims
};

// Throws Error if there is no such record, or if it claims more entries than its directory has room for.
// bytes: has_positions().
ZipDirectory find_zip_directory(const ByteSource& bytes);

}  // namespace lnorm
