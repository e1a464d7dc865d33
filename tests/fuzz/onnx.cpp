#include "lnorm/io/onnx/onnx.hpp"

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "fuzz/in_memory.hpp"
#include "fuzz/targets.hpp"
#include "lnorm/core/byte_order.hpp"
#include "lnorm/io/raw_tensor.hpp"

namespace {

using namespace fuzz;

struct OnnxTensor {
  std::string name;
  lnorm::DType dtype;
  lnorm::Shape shape;
  std::string elements;  // little-endian

  bool operator==(const OnnxTensor&) const = default;
};

// Nothing where it is refused.
std::optional<OnnxTensor> read(std::unique_ptr<lnorm::ByteSource> bytes) {
  return unless_refused([&] {
    const auto set = lnorm::open_onnx(std::move(bytes));
    const auto source = set->open(0);
    const lnorm::TensorInfo& info = source->info();
    auto elements = read_all(*source);
    require(static_cast<std::int64_t>(elements.size()) == lnorm::data_bytes(info),
            "there are as many elements as the shape says");
    lnorm::make_native(elements, info.dtype, info.byte_order);
    std::string buffer;
    const auto encoded = lnorm::encode_raw(elements, info.dtype, buffer);
    return OnnxTensor{set->tensor_name(0), info.dtype, info.shape, support::text_of(encoded)};
  });
}

// What protozero's own reader, which holds the whole message, finds of the fields that come once.
struct OnnxClaims {
  std::int32_t data_type = 0;
  std::string name;
  std::optional<std::string> raw;
};

OnnxClaims onnx_claims(std::string_view bytes) {
  OnnxClaims claims;
  protozero::pbf_reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case protozero::tag_and_type(2, protozero::pbf_wire_type::varint):
        claims.data_type = message.get_int32();
        break;
      case protozero::tag_and_type(8, protozero::pbf_wire_type::length_delimited):
        claims.name = message.get_string();
        break;
      case protozero::tag_and_type(9, protozero::pbf_wire_type::length_delimited):
        claims.raw = message.get_bytes();
        break;
      default:
        message.skip();
    }
  }
  return claims;
}

std::string written(const OnnxTensor& tensor, std::int32_t data_type) {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  message.add_packed_int64(1, tensor.shape.begin(), tensor.shape.end());
  message.add_int32(2, data_type);
  message.add_string(8, tensor.name);
  message.add_bytes(9, tensor.elements);
  return bytes;
}

}  // namespace

int fuzz_onnx(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = bytes_of(data, size);
  const auto tensor = read(memory_source(bytes));
  if (size <= kPipeBytes) {
    const FullPipe pipe(bytes);
    require(read(lnorm::open_file(pipe.path())) == tensor, "a pipe is read like a file");
  }
  if (!tensor) return 0;
  const OnnxClaims claims = onnx_claims(bytes);
  require(tensor->name == claims.name, "it has the last name");
  require(!claims.raw || tensor->elements == *claims.raw, "it has the last raw_data");
  const std::string again = written(*tensor, claims.data_type);
  require(read(memory_source(again)) == tensor, "it comes back from raw_data");
  return 0;
}
