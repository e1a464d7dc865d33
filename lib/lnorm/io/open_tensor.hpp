#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "lnorm/io/format.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/tensor_source.hpp"

namespace lnorm {

struct ReadOptions {
  std::optional<Format> from;  // not by content
  std::optional<DType>
      as;  // for elements whose dtype the file does not tell (npy.hpp), and for raw
  // For raw alone, which needs a shape.
  std::optional<Shape> shape = {};
  std::int64_t offset = 0;  // bytes before the elements
  std::endian byte_order = std::endian::little;
};

struct OpenedTensor {
  std::unique_ptr<TensorSource> source;
  Format format;
  std::string label;  // the member that was named, or the file's name without extension
};

// Opens what the user names: PATH, PATH:MEMBER (a member of an .npz, a tensor of a .safetensors, a key of
// a JSON object, the number of a line of JSON Lines), or "-", standard input. A file that exists under the
// whole name wins. The content decides the format, then the extension. Throws Error.
OpenedTensor open_tensor(const std::string& name, const ReadOptions& options);

// Gives the tensors that a name stands for, one at each call, and then nothing. JSON Lines give each tensor as
// its line comes; everything else gives one.
using TensorSequence = std::function<std::optional<OpenedTensor>()>;

// The same for a name that may stand for JSON Lines of which none is named.
TensorSequence open_tensors(const std::string& name, const ReadOptions& options);

// The same, but for the members of an .npz, a .safetensors or a JSON object of which none is named.
std::variant<TensorSequence, Members> open_tensors_or_members(const std::string& name,
                                                              const ReadOptions& options);

// "-" and "-:MEMBER".
bool is_standard_input(std::string_view name) noexcept;

}  // namespace lnorm
