#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// So many bytes of a file, from a position on: they have positions, too. Who looks for more behind the last one
// has them all held against their CRC-32, if there is one, in whatever order they were read: throws Error.
// name: for messages.
std::unique_ptr<ByteSource> open_stored_member(std::shared_ptr<const ByteSource> file,
                                               std::string name, std::int64_t begin,
                                               std::int64_t size, std::optional<std::uint32_t> crc);

}  // namespace lnorm
