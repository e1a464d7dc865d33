#pragma once

#include <cstddef>
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

  // The bytes of a member, whose end throws Error if its CRC is not right. name: what to call it in
  // messages. Throws Error if it is encrypted or compressed in another way.
  static std::unique_ptr<ByteSource> open(std::shared_ptr<const ZipArchive> archive,
                                          std::size_t index, std::string name);

 private:
  class Member;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lnorm
