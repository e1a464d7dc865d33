#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "lnorm/io/json/json_number.hpp"
#include "lnorm/io/json/json_tensor.hpp"

namespace lnorm {

namespace {

class JsonSink final : public TensorSink {
 public:
  JsonSink(ByteSink& bytes, const TensorInfo& info, JsonNan nan)
      : bytes_(bytes),
        dtype_(info.dtype),
        shape_(info.shape),
        nan_(nan == JsonNan::null ? "null" : "") {}

  std::span<const std::byte> encode(std::int64_t position, std::span<const std::byte> elements,
                                    std::string& room) const override {
    room.clear();
    if (elements.empty()) return {};  // of such a tensor there is no index, and finish writes it
    visit(dtype_, [&](auto element) {
      using T = decltype(element);
      if constexpr (!std::is_integral_v<T>) encode_as<T>(position, elements, room);
    });
    return std::as_bytes(std::span(room));
  }

  void write(std::span<const std::byte> encoded) override { bytes_.write(encoded); }

  void finish() override {
    if (element_count(shape_) == 0) bytes_.write(empty_object());
    bytes_.write("\n");
  }

 private:
  std::string empty_object() const {
    const nlohmann::ordered_json object{
        {"shape", shape_}, {"data", nlohmann::ordered_json::array()}, {"dtype", name(dtype_)}};
    return object.dump();
  }

  template <class T>
  void encode_as(std::int64_t position, std::span<const std::byte> elements,
                 std::string& text) const {
    Shape index = index_of(position, shape_);
    if (position == 0) text.append(shape_.size(), '[');
    char buffer[32];
    for (; !elements.empty(); elements = elements.subspan(sizeof(T))) {
      T element;
      std::memcpy(&element, elements.data(), sizeof element);
      const std::string_view number = json_number(element, buffer);
      text += number == "NaN" && !nan_.empty() ? nan_ : number;
      end_element(index, text);
    }
  }

  // Steps the index; what rolls over closes its list.
  void end_element(Shape& index, std::string& text) const {
    std::size_t closed = 0;
    while (closed < shape_.size()) {
      const std::size_t axis = shape_.size() - 1 - closed;
      if (++index[axis] < shape_[axis]) break;
      index[axis] = 0;
      ++closed;
    }
    if (closed > 0) text.append(closed, ']');
    if (closed == shape_.size()) return;
    text += ',';
    if (closed > 0) text.append(closed, '[');
  }

  ByteSink& bytes_;
  DType dtype_;
  Shape shape_;
  std::string_view nan_;  // in place of NaN, unless empty
};

}  // namespace

std::unique_ptr<TensorSink> make_json_sink(ByteSink& bytes, const TensorInfo& info, JsonNan nan) {
  return std::make_unique<JsonSink>(bytes, info, nan);
}

}  // namespace lnorm
