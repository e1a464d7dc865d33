#include "lnorm/report/text_sink.hpp"

#include <mutex>
#include <optional>

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

// Prints a tensor that is not to be held.
class LongTextSink final : public TensorSink {
 public:
  LongTextSink(ByteSink& bytes, const TensorInfo& info, const PrintOptions& options)
      : bytes_(bytes),
        dtype_(info.dtype),
        options_(options),
        text_(info.dtype, info.shape, options) {}

  bool needs_prescan() const noexcept override { return true; }
  void prescan(std::span<const std::byte> elements) override {
    TorchRange range;
    range.add(dtype_, elements);
    const std::lock_guard lock(mutex_);
    range_.add(range);
  }
  void begin_writing() override { format_.emplace(dtype_, range_, options_); }

  std::span<const std::byte> encode(std::int64_t position, std::span<const std::byte> elements,
                                    std::string& buffer) const override {
    return std::as_bytes(std::span(text_.print(*format_, position, elements, buffer)));
  }

  void write(std::span<const std::byte> encoded) override {
    bytes_.write(encoded);
    const std::string_view text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    const std::size_t line = text.rfind('\n');
    column_ = line == text.npos ? column_ + text.size() : text.size() - line - 1;
  }

  void finish() override {
    bytes_.write(text_.end(column_));
    bytes_.write("\n");
  }

 private:
  ByteSink& bytes_;
  DType dtype_;
  PrintOptions options_;
  TorchText text_;
  std::mutex mutex_;
  TorchRange range_;
  std::optional<TorchElements> format_;
  std::size_t column_ = 0;  // of what is written, in its last line
};

}  // namespace

std::unique_ptr<TensorSink> make_text_sink(ByteSink& bytes, const TensorInfo& info,
                                           const PrintOptions& options) {
  constexpr std::int64_t kMaxHeld = std::int64_t{1} << 18;  // elements
  const bool is_long = element_count(info.shape) > kMaxHeld;
  if (is_long && TorchText(info.dtype, info.shape, options).shows_all()) {
    return std::make_unique<LongTextSink>(bytes, info, options);
  }
  return std::make_unique<TextSink>(bytes, info, options);
}

}  // namespace lnorm
