#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"

// Tensors whose elements stand for themselves in a file, between bytes of other kinds.
namespace lnorm {

// How many bytes the elements take. Throws Error if that does not fit in 63 bits.
std::int64_t data_bytes(const TensorInfo& info);

// The tensor whose elements come next in bytes, followed by the end. Throws Error where the size of bytes is
// known to be another.
std::unique_ptr<TensorSource> make_raw_source(std::unique_ptr<ByteSource> bytes, TensorInfo info);

// Writes the header, then the elements, little-endian on every machine. done: called when they are complete.
std::unique_ptr<TensorSink> make_raw_sink(ByteSink& bytes, std::string_view header,
                                          const TensorInfo& info, std::function<void()> done = {});

}  // namespace lnorm
