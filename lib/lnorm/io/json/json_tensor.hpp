#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"

// Tensors as JSON [RFC 8259]: a number, nested arrays of numbers, or
//   {"shape": [2, 3], "data": [1, 2, 3, 4, 5, 6], "dtype": "float32"}
// whose data may be nested, too, and whose dtype may be left out: then, as without an object, it is
// float64. An object of several tensors is addressed by member, unless it has one alone. NaN, Infinity and -Infinity are
// read and written as Python does; null is read as NaN. Depth at most kMaxRank; one byte order mark
// at the start is skipped.
namespace lnorm {

// A whole JSON text.
class JsonDocument {
 public:
  explicit JsonDocument(std::unique_ptr<ByteSource> bytes);

  // The only tensor, or the member named. Throws Error with line, column and index path.
  std::unique_ptr<TensorSource> tensor(const std::optional<std::string>& member) const;

  // Of an object of several tensors; nothing if the text is something else.
  std::optional<Members> members() const;

 private:
  std::string_view text() const;

  std::string name_;
  std::vector<std::byte> text_;  // and the padding that the parser wants
  std::size_t size_ = 0;
};

// The same of a text at hand; name is for messages.
std::unique_ptr<TensorSource> parse_json(const std::string& name, std::string text,
                                         const std::optional<std::string>& member = {});

// The same of a line of a text, whose number its name in messages gets.
std::unique_ptr<TensorSource> parse_json_line(const std::string& name, std::string text,
                                              std::int64_t line);

enum class JsonNan { python, null };

// Nested arrays without blanks, a newline at the end; floats by json_number.
// A tensor without elements is written as an object, since nested arrays would lose its shape and its dtype.
std::unique_ptr<TensorSink> make_json_sink(ByteSink& bytes, const TensorInfo& info, JsonNan nan);

}  // namespace lnorm
