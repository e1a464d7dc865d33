#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lnorm {

// A format that is not read.
struct UnsupportedFormat {
  std::string what;  // "an HDF5 file"
  std::string hint;  // what makes a file of it that is read; empty where what says it all
};

// By the first bytes of a file.
std::optional<UnsupportedFormat> find_unsupported_format(std::string_view head);

// Records of TensorFlow: of each first its u64 length, then the masked CRC-32C of that.
bool is_tfrecord(std::string_view head) noexcept;

}  // namespace lnorm
