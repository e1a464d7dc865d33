#include "lnorm/io/safetensors/safetensors.hpp"

#include <string_view>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/safetensors/safetensors_header.hpp"

namespace lnorm {

std::unique_ptr<TensorSource> open_safetensors(std::unique_ptr<ByteSource> bytes,
                                               const std::optional<std::string>& member) {
  const SafetensorsHeader header = read_safetensors_header(*bytes);
  const std::size_t index = choose_member(
      bytes->name(), header.tensors.size(),
      [&](std::size_t i) { return std::string(header.name(header.tensors[i])); }, member);
  const SafetensorsEntry& tensor = header.tensors[index];
  TensorInfo info;
  info.name = concat(bytes->name(), ':', header.name(tensor));
  info.shape = header.shape(tensor);
  info.byte_order = std::endian::little;
  if (!tensor.dtype->dtype) {
    throw Error(concat(printable(info.name), ": dtype ", tensor.dtype->name, ", expected one of ",
                       kReadSafetensorsDTypes));
  }
  info.dtype = *tensor.dtype->dtype;
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
                    std::string(dtype.dtype ? name(*dtype.dtype) : dtype.name),
                    header->shape(tensor)};
          }};
}

}  // namespace lnorm
