#include <nlohmann/json.hpp>
#include <string>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/safetensors/safetensors.hpp"
#include "lnorm/io/safetensors/safetensors_dtype.hpp"

namespace lnorm {

namespace {

std::string format_header(const TensorInfo& info, const std::string& name) {
  const nlohmann::ordered_json tensor{{"dtype", safetensors_dtype(info.dtype).name},
                                      {"shape", info.shape},
                                      {"data_offsets", {0, data_bytes(info)}}};
  std::string json = nlohmann::ordered_json{{name, tensor}}.dump();
  // The reference implementation aligns the elements so.
  constexpr std::size_t kAlignment = 8;
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  std::string header;
  for (std::size_t i = 0; i < 8; ++i) {
    header += static_cast<char>(static_cast<std::uint64_t>(json.size()) >> (8 * i) & 0xff);
  }
  return header + json;
}

}  // namespace

std::unique_ptr<TensorSink> make_safetensors_sink(ByteSink& bytes, const TensorInfo& info,
                                                  const std::string& name) {
  const auto fail = [&](std::string_view what) {
    throw Error(concat(printable(bytes.name()), ": '", printable(name),
                       "' cannot be the name of a tensor: ", what),
                "--name gives it another");
  };
  if (name == "__metadata__") fail("safetensors files keep other things there");
  try {
    return make_raw_sink(bytes, format_header(info, name), info.dtype);
  } catch (const nlohmann::json::type_error&) {
    fail("it is not UTF-8");
  }
  return nullptr;
}

}  // namespace lnorm
