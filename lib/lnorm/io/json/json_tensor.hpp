#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lnorm/core/in_parallel.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_set.hpp"
#include "lnorm/io/tensor_sink.hpp"

// Tensors as JSON [RFC 8259]: a number, nested arrays of numbers, or
//   {"shape": [2, 3], "data": [1, 2, 3, 4, 5, 6], "dtype": "float32"}
// whose data may be nested, too, and whose dtype may be left out: then, as without an object, it is
// dtype. An object of other members holds a tensor by each name. NaN, Infinity and -Infinity are
// read and written as Python does; null is read as NaN. Depth at most kMaxDims; one byte order mark
// at the start is skipped.
namespace lnorm {

// The tensors of a whole text: one without a name, or those of an object, in its order. Throws Error with line,
// column and index path.
std::unique_ptr<TensorSet> open_json(std::unique_ptr<ByteSource> bytes,
                                     const InParallel& in_parallel = one_by_one,
                                     DType dtype = DType::float64);

// The one tensor of a text at hand; name is for messages, which name a line by its number.
std::unique_ptr<TensorSource> parse_json(const std::string& name, std::string text,
                                         std::optional<std::int64_t> line = {},
                                         DType dtype = DType::float64);

// The tensor of a line, or a member of it and what stands around that.
struct JsonLineMember {
  std::unique_ptr<TensorSource> tensor;
  std::string before;
  std::string after;
};
JsonLineMember parse_json_line_member(const std::string& name, std::string text, std::int64_t line,
                                      const std::string& member, DType dtype);

enum class JsonNan { python, null };

// Nested arrays without blanks; floats by json_number. after: what follows, as a rule a newline.
// A tensor without elements is written as an object, since nested arrays would lose its shape and its dtype.
std::unique_ptr<TensorSink> make_json_sink(ByteSink& bytes, const TensorInfo& info, JsonNan nan,
                                           std::string after = "\n");

// An object of tensors by their names.
std::unique_ptr<TensorSetSink> make_json_object_sink(ByteSink& bytes, JsonNan nan);

}  // namespace lnorm
