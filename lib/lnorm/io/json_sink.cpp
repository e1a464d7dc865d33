#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "lnorm/io/json_number.hpp"
#include "lnorm/io/json_tensor.hpp"

namespace lnorm {

namespace {

class JsonSink final : public TensorSink {
 public:
  JsonSink(ByteSink& bytes, const TensorInfo& info, JsonNan nan)
      : bytes_(bytes),
        dtype_(info.dtype),
        shape_(info.shape),
        index_(info.shape.size(), 0),
        nan_(nan == JsonNan::null ? "null" : "") {
    if (element_count(shape_) > 0) {
      text_.append(shape_.size(), '[');
    } else {
      text_ = shape_.size() == 1 ? "[]" : empty_object();
    }
  }

  void write(std::span<const std::byte> elements) override {
    switch (dtype_) {
      case DType::float16:
        return write_as<Float16>(elements);
      case DType::float32:
        return write_as<float>(elements);
      default:
        return write_as<double>(elements);
    }
  }

  void finish() override {
    text_ += '\n';
    flush();
  }

 private:
  static constexpr std::size_t kFlushSize = std::size_t{1} << 16;

  std::string empty_object() const {
    const nlohmann::ordered_json object{
        {"shape", shape_}, {"data", nlohmann::ordered_json::array()}, {"dtype", name(dtype_)}};
    return object.dump();
  }

  template <class T>
  void write_as(std::span<const std::byte> elements) {
    char buffer[32];
    for (; !elements.empty(); elements = elements.subspan(sizeof(T))) {
      T element;
      std::memcpy(&element, elements.data(), sizeof element);
      const std::string_view number = json_number(element, buffer);
      text_ += number == "NaN" && !nan_.empty() ? nan_ : number;
      end_element();
      if (text_.size() >= kFlushSize) flush();
    }
  }

  // Steps the index; what rolls over closes its list.
  void end_element() {
    std::size_t closed = 0;
    while (closed < shape_.size()) {
      const std::size_t axis = shape_.size() - 1 - closed;
      if (++index_[axis] < shape_[axis]) break;
      index_[axis] = 0;
      ++closed;
    }
    text_.append(closed, ']');
    if (closed == shape_.size()) return;
    text_ += ',';
    text_.append(closed, '[');
  }

  void flush() {
    bytes_.write(text_);
    text_.clear();
  }

  ByteSink& bytes_;
  DType dtype_;
  Shape shape_;
  Shape index_;
  std::string_view nan_;  // in place of NaN, unless empty
  std::string text_;
};

}  // namespace

std::unique_ptr<TensorSink> make_json_sink(ByteSink& bytes, const TensorInfo& info, JsonNan nan) {
  return std::make_unique<JsonSink>(bytes, info, nan);
}

}  // namespace lnorm
