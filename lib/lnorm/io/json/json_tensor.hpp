#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"

// Tensors as JSON [RFC 8259]: a number, nested arrays of numbers, or
//   {"shape": [2, 3], "data": [1, 2, 3, 4, 5, 6], "dtype": "float32"}
// whose data may be nested, too, and whose dtype may be left out: then, as without an object, it is
// float64. An object of several tensors is addressed by member. NaN, Infinity and -Infinity are
// read and written as Python does; null is read as NaN. Depth at most kMaxRank; one byte order mark
// at the start is skipped.
namespace lnorm {

// Reads and checks the whole text. Throws Error with line, column and index path.
std::unique_ptr<TensorSource> open_json(std::unique_ptr<ByteSource> bytes,
                                        const std::optional<std::string>& member);

// The same of a text at hand; name is for messages.
std::unique_ptr<TensorSource> parse_json(const std::string& name, std::string text,
                                         const std::optional<std::string>& member = {});

// The same of a line of a text, whose number its name in messages gets.
std::unique_ptr<TensorSource> parse_json_line(const std::string& name, std::string text,
                                              std::int64_t line);

enum class JsonNan { python, null };

// Nested arrays without blanks, a newline at the end; floats by json_number.
// An empty tensor of two and more dimensions is written as an object, since nested arrays would
// lose its shape.
std::unique_ptr<TensorSink> make_json_sink(ByteSink& bytes, const TensorInfo& info, JsonNan nan);

}  // namespace lnorm
