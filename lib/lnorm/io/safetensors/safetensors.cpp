#include "lnorm/io/safetensors/safetensors.hpp"

#include <string_view>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/safetensors/safetensors_header.hpp"

namespace lnorm {

namespace {

class SafetensorsMembers final : public Members {
 public:
  // The rest of a pipe is read, too: what writes there is not to fail for it, and it may be cut off.
  explicit SafetensorsMembers(ByteSource& bytes) : header_(bytes) {
    const std::int64_t found = bytes.skip(header_.data_bytes());
    if (found < header_.data_bytes()) {
      throw Error(concat(printable(bytes.name()), ": the data is cut off: the tensors take ",
                         counted(header_.data_bytes(), "byte"), ", found ", found));
    }
    if (!bytes.peek(1).empty()) {
      throw Error(concat(printable(bytes.name()), ": the data goes on after the tensors"));
    }
  }

  std::size_t size() const override { return header_.size(); }

  Member operator[](std::size_t index) const override {
    const SafetensorsDType& dtype = header_.dtype(index);
    return {std::string(header_.name(index)),
            std::string(dtype.dtype ? lnorm::name(*dtype.dtype) : dtype.name),
            header_.shape(index)};
  }

 private:
  SafetensorsHeader header_;
};

}  // namespace

std::unique_ptr<TensorSource> open_safetensors(std::unique_ptr<ByteSource> bytes,
                                               const std::optional<std::string>& member) {
  const SafetensorsHeader header(*bytes);
  const std::size_t index = choose_member(
      bytes->name(), header.size(), [&](std::size_t i) { return std::string(header.name(i)); },
      member);
  TensorInfo info;
  info.name = concat(bytes->name(), ':', header.name(index));
  info.shape = header.shape(index);
  info.byte_order = std::endian::little;
  const SafetensorsDType& dtype = header.dtype(index);
  if (!dtype.dtype) {
    throw Error(concat(printable(info.name), ": dtype ", dtype.name, ", expected one of ",
                       kReadSafetensorsDTypes));
  }
  info.dtype = *dtype.dtype;
  const std::int64_t passed = bytes->skip(header.begin(index));
  if (passed < header.begin(index)) {
    throw Error(concat(printable(info.name), ": the data is cut off: the tensor begins at byte ",
                       header.begin(index), ", found ", passed));
  }
  const std::int64_t following = header.data_bytes() - header.end(index);
  return make_raw_source(std::move(bytes), std::move(info), following);
}

std::unique_ptr<Members> open_safetensors_members(std::unique_ptr<ByteSource> bytes) {
  return std::make_unique<SafetensorsMembers>(*bytes);
}

}  // namespace lnorm
