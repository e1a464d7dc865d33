#pragma once

#include <memory>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_set.hpp"

namespace lnorm {

// The tensors of a GGUF file (versions 2 and 3, little-endian), in the order of its header. Their shapes are those of
// NumPy: the file has the fastest axis first. Those that ggml quantizes are listed by ggml's name of their type; info
// and open refuse them by it. Throws Error if the bytes have no random access, if the header is not well formed, or if
// a tensor overlaps another or goes beyond the file.
// [ggml, docs/gguf.md]
std::unique_ptr<TensorSet> open_gguf(std::unique_ptr<ByteSource> bytes);

}  // namespace lnorm
