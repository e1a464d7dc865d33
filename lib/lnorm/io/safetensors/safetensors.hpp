#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"

// The .safetensors format: the header's length, the header in JSON, then the elements of all tensors,
// little-endian, without gaps.
// [Hugging Face, "safetensors", format]
namespace lnorm {

// The tensor named, or the only one; the others are not read, but for a pipe, which is read to its end.
// Throws Error if the header is not well formed, if its offsets are not those of the file, if there is
// no such tensor, or several and none is named, and for a dtype that lnorm does not have.
std::unique_ptr<TensorSource> open_safetensors(std::unique_ptr<ByteSource> bytes,
                                               const std::optional<std::string>& member);

Members open_safetensors_members(std::unique_ptr<ByteSource> bytes);

// One tensor of that name. info: native byte order. Throws Error if the name cannot be one.
std::unique_ptr<TensorSink> make_safetensors_sink(ByteSink& bytes, const TensorInfo& info,
                                                  const std::string& name);

}  // namespace lnorm
