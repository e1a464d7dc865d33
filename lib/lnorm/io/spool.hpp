#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lnorm/io/os.hpp"

namespace lnorm {

// Records of one size that are written once and read several times: in memory up to a limit, then in
// a temporary file without a name, in $TMPDIR or /tmp. Throws Error where that fails.
class Spool {
 public:
  explicit Spool(std::size_t record_size, std::size_t memory = std::size_t{9} << 20);

  // One record or several.
  void append(std::span<const std::byte> records);

  // Calls see with every record, in order.
  void replay(const std::function<void(std::span<const std::byte>)>& see) const;

 private:
  void write_out();

  std::size_t record_size_;
  std::size_t memory_;
  std::vector<std::byte> latest_;  // what is not in the file yet
  std::string file_name_;
  os::FileDescriptor file_;
};

}  // namespace lnorm
