#include "lnorm/io/zip/npz_sink.hpp"

#include <string>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/zip/zip_writer.hpp"

namespace lnorm {

namespace {

// It has no positions: the sum of a member's bytes is that of their order.
class MemberSink final : public TensorSink {
 public:
  MemberSink(ZipWriter& archive, DType dtype) : archive_(archive), dtype_(dtype) {}

  std::span<const std::byte> encode(std::int64_t, std::span<const std::byte> elements,
                                    std::string& buffer) const override {
    return encode_raw(elements, dtype_, buffer);
  }
  void write(std::span<const std::byte> encoded) override { archive_.write(encoded); }
  void finish() override { archive_.end(); }

 private:
  ZipWriter& archive_;
  DType dtype_;
};

class NpzSetSink final : public TensorSetSink {
 public:
  explicit NpzSetSink(ByteSink& bytes) : bytes_(bytes), archive_(bytes) {}

  std::unique_ptr<TensorSink> begin(const TensorInfo& info) override {
    if (info.name.empty()) {
      throw Error(
          concat(printable(bytes_.name()), ": a tensor has no name, expected one for .npz"));
    }
    const std::string header = format_npy_header(info);
    archive_.begin(info.name + ".npy", std::ssize(header) + data_bytes(info));
    archive_.write(std::as_bytes(std::span(header)));
    return std::make_unique<MemberSink>(archive_, info.dtype);
  }

  void finish() override { archive_.finish(); }

 private:
  ByteSink& bytes_;
  ZipWriter archive_;
};

}  // namespace

std::unique_ptr<TensorSetSink> make_npz_set_sink(ByteSink& bytes) {
  return std::make_unique<NpzSetSink>(bytes);
}

}  // namespace lnorm
