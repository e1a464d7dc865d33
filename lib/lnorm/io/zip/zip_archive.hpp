#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// A zip archive that is read. Its members are stored or deflated; names are labels, and never paths.
class ZipArchive {
 public:
  // Reads and checks the directory, and that every member stands where it says. Throws Error if it is not
  // well formed, if two members have the same name, or if bytes come from a pipe.
  explicit ZipArchive(std::unique_ptr<ByteSource> bytes);
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;
  ~ZipArchive();

  const std::string& name() const noexcept;
  std::size_t size() const;
  std::string member_name(std::size_t index) const;

  // How many bytes a member has, as the directory says.
  std::int64_t member_bytes(std::size_t index) const;

  // Ascends in the order in which the members lie in the file.
  std::int64_t place(std::size_t index) const;

  // Whether a CRC of 0 means that there is none.
  enum class Sums { complete, may_be_missing };

  // The bytes of a member, whose end throws Error if its CRC is not right, in whatever order they were read.
  // One that is stored has positions, one that is deflated has none. name: what to call it in messages. Throws
  // Error if it is encrypted or compressed in another way.
  static std::unique_ptr<ByteSource> open(std::shared_ptr<const ZipArchive> archive,
                                          std::size_t index, std::string name,
                                          Sums sums = Sums::complete);

 private:
  class Deflated;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lnorm
