#include "lnorm/io/safetensors/safetensors.hpp"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/safetensors/safetensors_header.hpp"

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

std::unique_ptr<TensorSource> open_safetensors(std::unique_ptr<ByteSource> bytes,
                                               const std::optional<std::string>& member) {
  const SafetensorsHeader header = read_safetensors_header(*bytes);
  const std::size_t index = choose_member(
      bytes->name(), header.tensors.size(),
      [&](std::size_t i) { return std::string(header.name(header.tensors[i])); }, member);
  const SafetensorsEntry& tensor = header.tensors[index];
  const std::string name = concat(bytes->name(), ':', header.name(tensor));
  if (!tensor.dtype->dtype) {
    throw Error(concat(printable(name), ": dtype ", tensor.dtype->name, ", expected one of ",
                       kReadSafetensorsDTypes));
  }
  TensorInfo info{name, *tensor.dtype->dtype, header.shape(tensor), std::endian::little};
  const std::int64_t passed = bytes->skip(tensor.begin);
  if (passed < tensor.begin) {
    throw Error(concat(printable(info.name), ": the data is cut off: the tensor begins at byte ",
                       tensor.begin, ", found ", passed));
  }
  return make_raw_source(std::move(bytes), std::move(info), header.data_bytes() - tensor.end);
}

Members open_safetensors_members(std::unique_ptr<ByteSource> bytes) {
  const auto header = std::make_shared<const SafetensorsHeader>(read_safetensors_header(*bytes));
  // The rest of a pipe is read: what writes there is not to fail for it, and it may be cut off.
  const std::int64_t found = bytes->skip(header->data_bytes());
  if (found < header->data_bytes()) {
    throw Error(concat(printable(bytes->name()), ": the data is cut off: the tensors take ",
                       counted(header->data_bytes(), "byte"), ", found ", found));
  }
  if (!bytes->peek(1).empty()) {
    throw Error(concat(printable(bytes->name()), ": the data goes on after the tensors"));
  }
  return {header->tensors.size(), [header](std::size_t index) -> Member {
            const SafetensorsEntry& tensor = header->tensors[index];
            const SafetensorsDType& dtype = *tensor.dtype;
            return {std::string(header->name(tensor)),
                    std::string(dtype.dtype ? lnorm::name(*dtype.dtype) : dtype.name),
                    header->shape(tensor)};
          }};
}

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
