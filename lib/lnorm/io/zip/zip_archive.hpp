#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/zip/zip_directory.hpp"

namespace lnorm {

// A zip archive that is read. Its members are stored or deflated; names are labels, and never paths.
class ZipArchive {
 public:
  // Reads and checks the directory, and that every member stands where it says. Throws Error if it is not
  // well formed, if two members have the same name, or if bytes come from a pipe.
  explicit ZipArchive(std::unique_ptr<ByteSource> bytes);

  const std::string& name() const noexcept { return bytes_->name(); }
  std::size_t size() const noexcept { return members_.size(); }
  const std::string& member_name(std::size_t index) const { return members_[index].name; }

  // How many bytes a member has, as the directory says.
  std::int64_t member_bytes(std::size_t index) const;

  // Ascends in the order in which the members lie in the file.
  std::int64_t place(std::size_t index) const { return members_[index].begin; }

  // Whether a CRC of 0 means that there is none.
  enum class Sums { complete, may_be_missing };

  // The bytes of a member, whose end throws Error if its CRC is not right, in whatever order they were read.
  // They may outlive the archive. One that is stored has random access, one that is deflated has none. name: what to
  // call it in messages. Throws Error if it is encrypted or compressed in another way.
  std::unique_ptr<ByteSource> open(std::size_t index, std::string name,
                                   Sums sums = Sums::complete) const;

 private:
  std::shared_ptr<const ByteSource> bytes_;
  std::vector<ZipMember> members_;
};

}  // namespace lnorm
