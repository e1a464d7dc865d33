#include "lnorm/io/gguf/gguf.hpp"

#include <string>
#include <utility>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"
#include "lnorm/io/gguf/gguf_header.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/raw_tensor.hpp"

namespace lnorm {

namespace {

std::shared_ptr<const ByteSource> with_random_access(std::unique_ptr<ByteSource> bytes) {
  if (bytes->has_random_access()) return bytes;
  bytes->fail("a GGUF file cannot be read from a pipe: its tensors may lie in any order",
              "name the file, or redirect it (< x.gguf)");
}

class GgufSet final : public TensorSet {
 public:
  explicit GgufSet(std::unique_ptr<ByteSource> bytes)
      : TensorSet(bytes->name()),
        bytes_(with_random_access(std::move(bytes))),
        tensors_(read_gguf_header(*bytes_)) {}

  std::size_t size() const override { return tensors_.size(); }
  std::string tensor_name(std::size_t index) const override { return tensors_[index].name; }
  std::int64_t place(std::size_t index) const override { return tensors_[index].begin; }

  TensorInfo info(std::size_t index) const override {
    const GgufTensor& tensor = tensors_[index];
    const std::string label = concat(name(), ':', tensor.name);
    if (const DTypeRow* const row = find_ggml_dtype(tensor.type)) {
      return {label, row->dtype, tensor.shape, std::endian::little};
    }
    const std::string type = ggml_type_name(tensor.type);
    throw UnsupportedDType(
        type,
        concat(printable(label), ": is quantized as ", type, ", expected ",
               dtype_list(&DTypeRow::ggml)),
        hint_about(name(),
                   concat("in Python: t = gguf.GGUFReader('FILE').tensors[", index,
                          "]; numpy.save('x.npy', gguf.dequantize(t.data, t.tensor_type))")));
  }

  Member describe(std::size_t index) const override {
    const GgufTensor& tensor = tensors_[index];
    const DTypeRow* const row = find_ggml_dtype(tensor.type);
    return {tensor.name, row != nullptr ? std::string(row->name) : ggml_type_name(tensor.type),
            tensor.shape, tensor.size};
  }

  std::unique_ptr<TensorSource> open(std::size_t index) const override {
    const GgufTensor& tensor = tensors_[index];
    TensorInfo x = info(index);
    auto bytes = slice(bytes_, x.name, tensor.begin, tensor.size.value());
    return make_raw_source(std::move(bytes), std::move(x));
  }

 private:
  std::shared_ptr<const ByteSource> bytes_;
  std::vector<GgufTensor> tensors_;
};

}  // namespace

std::unique_ptr<TensorSet> open_gguf(std::unique_ptr<ByteSource> bytes) {
  return std::make_unique<GgufSet>(std::move(bytes));
}

}  // namespace lnorm
