#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "lnorm/io/byte_sink.hpp"

namespace lnorm {

// A zip archive that is written from its first byte on, its members stored, one after another. What they are
// called, and where they are, is held until the end. The date of all is the first that zip has: the same
// members give the same bytes.
// [PKWARE, APPNOTE 6.3, 4.3 to 4.5]
class ZipWriter {
 public:
  explicit ZipWriter(ByteSink& bytes) : bytes_(bytes) {}

  // Begins a member of so many bytes. One before it that has not ended is taken back. Throws Error, naming the
  // member, unless the name is UTF-8 without NUL, has 1 to 65535 bytes, and is new.
  void begin(const std::string& name, std::int64_t size);

  void write(std::span<const std::byte> bytes);

  // The member is complete.
  void end();

  // After the last member: takes back one that has not ended, and writes the directory.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t size;
    std::uint64_t offset;
    std::uint32_t crc;
  };

  void take_back();
  std::uint16_t flags(const Entry& entry) const;
  std::string local_header(const Entry& entry) const;
  std::string directory_entry(const Entry& entry) const;

  ByteSink& bytes_;
  std::vector<Entry> directory_;
  std::unordered_set<std::string> names_;
  std::optional<Entry> begun_;
};

}  // namespace lnorm
