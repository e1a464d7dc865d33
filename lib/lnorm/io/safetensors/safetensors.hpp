#pragma once

#include <memory>
#include <vector>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_set.hpp"
#include "lnorm/io/tensor_sink.hpp"

// The .safetensors format: the header's length, the header in JSON, then the elements of all tensors,
// little-endian, without gaps.
// [Hugging Face, "safetensors", format]
namespace lnorm {

// Its tensors, listed in natural order of their names. Throws Error if the header is not well formed, or if its
// offsets are not those of the file. From a pipe the tensors come in the order of their elements.
std::unique_ptr<TensorSet> open_safetensors(std::unique_ptr<ByteSource> bytes);

// tensors: those that will begin, in this order; their names are those in the file. One that is left out is
// taken out of the header, which takes a file with random access. Throws Error if a name cannot be one, or is there
// twice.
std::unique_ptr<TensorSetSink> make_safetensors_sink(ByteSink& bytes,
                                                     std::vector<TensorInfo> tensors);

}  // namespace lnorm
