#pragma once

#include <span>
#include <string>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "support/files.hpp"

namespace support {

// What write(bytes) writes into a file of that name.
template <class Write>
std::string written(Write write, const std::string& name = "bytes") {
  const TempDir at;
  lnorm::ByteSink bytes(at / name);
  write(bytes);
  bytes.finish();
  bytes.commit();
  return read_file(at / name);
}

// Writes some elements, in native byte order.
inline void put_some(lnorm::TensorSink& sink, std::span<const std::byte> elements) {
  std::string buffer;
  if (!elements.empty()) sink.write(sink.encode(0, elements, buffer));
}
// Writes all of them.
inline void put(lnorm::TensorSink& sink, std::span<const std::byte> elements) {
  put_some(sink, elements);
  sink.finish();
}

}  // namespace support
