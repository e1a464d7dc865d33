#include "lnorm/report/text_sink.hpp"

namespace lnorm {

namespace {

class TextSink final : public TensorSink {
 public:
  TextSink(ByteSink& bytes, const TensorInfo& info, const PrintOptions& options)
      : bytes_(bytes), text_(info.dtype, info.shape, options) {}

  void write(std::span<const std::byte> encoded) override { text_.add(encoded); }

  void finish() override {
    bytes_.write(text_.str());
    bytes_.write("\n");
  }

 private:
  ByteSink& bytes_;
  TorchText text_;
};

}  // namespace

std::unique_ptr<TensorSink> make_text_sink(ByteSink& bytes, const TensorInfo& info,
                                           const PrintOptions& options) {
  return std::make_unique<TextSink>(bytes, info, options);
}

}  // namespace lnorm
