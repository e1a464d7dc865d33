#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/in_parallel.hpp"
#include "lnorm/core/raw_bytes.hpp"
#include "lnorm/core/tensor_info.hpp"

// How tensors stand in a JSON text (json_tensor.hpp says which do). All that fails throws Error with line, column
// and index path.
namespace lnorm {

// A text of which the parser may read some bytes more than there are: kJsonPadding follow it.
struct PaddedJson {
  std::string name;  // for messages
  std::string_view text;
  std::optional<std::int64_t> line;  // the number of its first line, which the tensor's name gets
  InParallel in_parallel = one_by_one;
  DType dtype = DType::float64;  // of a tensor that does not tell its own
};
inline constexpr std::size_t kJsonPadding = 64;

struct JsonTensor {
  TensorInfo info;
  RawBytes elements;
};

struct JsonMember {
  std::string name;
  std::string_view value;  // of the text
};

// The names of members, for a message.
std::string short_list(const std::vector<JsonMember>& members);

// The text as one tensor.
JsonTensor read_json(const PaddedJson& json);

// The members of an object of tensors, in their order, of which no value has been looked at; nothing if the text
// is one tensor.
std::optional<std::vector<JsonMember>> json_members(const PaddedJson& json);

// One of these.
JsonTensor read_json_member(const PaddedJson& json, const JsonMember& member);

// What a value is, by its first character: "a string".
std::string_view json_kind(char first) noexcept;

}  // namespace lnorm
