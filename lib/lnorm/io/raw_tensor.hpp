#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"

// Tensors whose elements stand for themselves in a file, between bytes of other kinds.
namespace lnorm {

// How many bytes the elements take. Throws Error if that does not fit in 63 bits.
std::int64_t data_bytes(const TensorInfo& info);

// The tensor whose elements come next in bytes, followed by the end. preceding: how many of the file's bytes came
// before, for messages. Throws Error where the size of bytes is known to be another.
std::unique_ptr<TensorSource> make_raw_source(std::unique_ptr<ByteSource> bytes, TensorInfo info,
                                              std::int64_t preceding = 0);

// The tensor that a file holds alone, behind so many bytes of another kind. Throws Error as make_raw_source does.
std::unique_ptr<TensorSource> open_raw(std::unique_ptr<ByteSource> bytes, TensorInfo info,
                                       std::int64_t offset);

// Replaces the size of -1 that the shape may have by what the bytes have behind an offset. Throws Error if they are no
// whole number of it, or if it is not known how many there are.
void complete_shape(TensorInfo& info, const ByteSource& bytes, std::int64_t offset);

// Elements in native byte order as they stand in a file, little-endian: these bytes themselves, or others, in
// a buffer.
std::span<const std::byte> encode_raw(std::span<const std::byte> elements, DType dtype,
                                      std::string& buffer);

// Writes the header, then the elements, little-endian on every machine.
std::unique_ptr<TensorSink> make_raw_sink(ByteSink& bytes, std::string_view header,
                                          const TensorInfo& info);

}  // namespace lnorm
