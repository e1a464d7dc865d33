#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// So many bytes of a source, from a distance on, as a source of their own; name is for messages. Of a source with
// random access there may be several such parts at a time, on several threads.
std::unique_ptr<ByteSource> slice(std::shared_ptr<const ByteSource> whole, std::string name,
                                  std::int64_t begin, std::int64_t size);

// The next bytes of a pipe, so many of them. They are to be read, or skipped, before the pipe is read again.
std::unique_ptr<ByteSource> next_of(std::shared_ptr<ByteSource> pipe, std::string name,
                                    std::int64_t size);

}  // namespace lnorm
