#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// A tensor as the header of a GGUF file describes it.
struct GgufTensor {
  std::string name;
  Shape shape;
  std::uint32_t type = 0;            // ggml's number
  std::int64_t begin = 0;            // of its elements, in the file
  std::optional<std::int64_t> size;  // in bytes, where ggml's table has such a type
};

// ggml's name of a type: "Q4_K", or "type 99" of one that is not known.
std::string ggml_type_name(std::uint32_t type);

// The dtype that has the elements of a type, null if they are quantized.
const DTypeRow* find_ggml_dtype(std::uint32_t type);

// Reads what stands before the elements, in the order of the file. Counts and sizes are compared with the bytes that are left
// before anything is allocated. Throws Error. Requires bytes with random access, none of which has been read.
std::vector<GgufTensor> read_gguf_header(const ByteSource& bytes);

}  // namespace lnorm
