#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lnorm/io/os.hpp"

namespace lnorm {

// Records of one size that are written once and read several times: the first in memory up to a limit, the others in
// a temporary file without a name, in $TMPDIR or /tmp. Throws Error where that fails.
class Spool {
 public:
  explicit Spool(std::size_t record_size, std::size_t memory = std::size_t{9} << 20);

  // One record or several.
  void append(std::span<const std::byte> records);

  // How many records there are.
  std::int64_t size() const noexcept {
    return (std::ssize(held_) + in_file_ + std::ssize(latest_)) /
           static_cast<std::int64_t>(record_size_);
  }

  // Calls see with so many records from the first on, in order, some at a time.
  void replay(std::int64_t first, std::int64_t count,
              const std::function<void(std::span<const std::byte>)>& see) const;

  // Reads the first of every step records.
  void replay_each(std::int64_t step,
                   const std::function<void(std::span<const std::byte>)>& see) const;

 private:
  // Those at an offset, at most wanted, some of them at least; by way of the buffer if they are in the file.
  std::span<const std::byte> read(std::int64_t offset, std::size_t wanted,
                                  std::vector<std::byte>& buffer) const;

  std::size_t record_size_;
  std::size_t memory_;
  std::vector<std::byte> held_;
  std::vector<std::byte> latest_;  // what is not in the file yet
  std::int64_t in_file_ = 0;       // bytes
  std::string file_name_;
  os::FileDescriptor file_;
};

}  // namespace lnorm
