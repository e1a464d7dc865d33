#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_number.hpp"
#include "lnorm/io/json/json_tensor.hpp"

namespace lnorm {

namespace {

class JsonSink final : public TensorSink {
 public:
  JsonSink(ByteSink& bytes, const TensorInfo& info, JsonNan nan, std::function<void()> end)
      : bytes_(bytes),
        end_(std::move(end)),
        dtype_(info.dtype),
        shape_(info.shape),
        nan_(nan == JsonNan::null ? "null" : "") {}

  std::span<const std::byte> encode(std::int64_t position, std::span<const std::byte> elements,
                                    std::string& buffer) const override {
    if (elements.empty()) return {};  // of such a tensor there is no index, and finish writes it
    return visit(dtype_, [&]<class T>(T) {
      // A bool is a byte of any value, and written as 0 or 1.
      using Element = std::conditional_t<std::is_same_v<T, bool>, Bool, T>;
      return encode_as<Element>(position, elements, buffer);
    });
  }

  void write(std::span<const std::byte> encoded) override { bytes_.write(encoded); }

  void finish() override {
    if (element_count(shape_) == 0) bytes_.write(empty_object());
    end_();
  }

 private:
  enum class Bool : unsigned char { no };

  std::string empty_object() const {
    const nlohmann::ordered_json object{
        {"shape", shape_}, {"data", nlohmann::ordered_json::array()}, {"dtype", name(dtype_)}};
    return object.dump();
  }

  // The buffer only grows: what it holds beyond the text is written over by the next one.
  template <class T>
  std::span<const std::byte> encode_as(std::int64_t position, std::span<const std::byte> elements,
                                       std::string& buffer) const {
    const std::size_t most = kJsonNumberRoom + 2 * shape_.size() + 1;  // that an element takes
    buffer.resize(std::max(buffer.size(), elements.size() / sizeof(T) * 12 + most));
    Shape index = index_of(position, shape_);
    char* to = buffer.data();
    if (position == 0) to = std::fill_n(to, shape_.size(), '[');
    for (; !elements.empty(); elements = elements.subspan(sizeof(T))) {
      const auto used = static_cast<std::size_t>(to - buffer.data());
      if (buffer.size() - used < most) {
        buffer.resize(2 * buffer.size());
        to = buffer.data() + used;
      }
      T element;
      std::memcpy(&element, elements.data(), sizeof element);
      to = put_element(element, to);
      to = end_element(index, to);
    }
    return std::as_bytes(std::span(buffer.data(), to));
  }

  template <class T>
  char* put_element(T element, char* to) const {
    if constexpr (std::is_same_v<T, Bool>) {
      return std::fill_n(to, 1, element == Bool::no ? '0' : '1');
    } else if constexpr (std::is_integral_v<T>) {
      return std::to_chars(to, to + kJsonNumberRoom, element).ptr;
    } else {
      char* const end = put_json_number(element, to);
      return *to == 'N' && !nan_.empty() ? std::copy(nan_.begin(), nan_.end(), to) : end;
    }
  }

  // Steps the index; what rolls over closes its list.
  char* end_element(Shape& index, char* to) const {
    if (!shape_.empty() && ++index.back() < shape_.back()) {
      *to++ = ',';
      return to;
    }
    std::size_t closed = 0;
    while (closed < shape_.size()) {
      const std::size_t axis = shape_.size() - 1 - closed;
      if (closed > 0 && ++index[axis] < shape_[axis]) break;
      index[axis] = 0;
      ++closed;
    }
    to = std::fill_n(to, closed, ']');
    if (closed == shape_.size()) return to;
    *to++ = ',';
    return std::fill_n(to, closed, '[');
  }

  ByteSink& bytes_;
  std::function<void()> end_;
  DType dtype_;
  Shape shape_;
  std::string_view nan_;  // in place of NaN, unless empty
};

class JsonObjectSink final : public TensorSetSink {
 public:
  JsonObjectSink(ByteSink& bytes, JsonNan nan) : bytes_(bytes), nan_(nan) {}

  std::unique_ptr<TensorSink> begin(const TensorInfo& info) override {
    take_back();
    if (names_.contains(info.name)) fail(info.name, "it is there twice");
    start_ = bytes_.written();
    try {
      bytes_.write(concat(names_.empty() ? "{" : ",", nlohmann::json(info.name).dump(), ":"));
    } catch (const nlohmann::json::type_error&) {
      fail(info.name, "it is not UTF-8");
    }
    return std::make_unique<JsonSink>(bytes_, info, nan_, [this, name = info.name] {
      names_.insert(name);
      start_.reset();
    });
  }

  void finish() override {
    take_back();
    bytes_.write(names_.empty() ? "{}\n" : "}\n");
  }

 private:
  // What has begun, but is not complete.
  void take_back() {
    if (start_) bytes_.rewind(*start_);
    start_.reset();
  }

  [[noreturn]] void fail(const std::string& name, std::string_view what) const {
    throw Error(concat(printable(bytes_.name()), ": '", printable(name),
                       "' cannot be the name of a tensor: ", what));
  }

  ByteSink& bytes_;
  JsonNan nan_;
  std::unordered_set<std::string> names_;  // of those that are complete
  std::optional<std::int64_t> start_;      // of the one that is not
};

}  // namespace

std::unique_ptr<TensorSink> make_json_sink(ByteSink& bytes, const TensorInfo& info, JsonNan nan,
                                           std::string after) {
  return std::make_unique<JsonSink>(bytes, info, nan,
                                    [&bytes, after = std::move(after)] { bytes.write(after); });
}

std::unique_ptr<TensorSetSink> make_json_object_sink(ByteSink& bytes, JsonNan nan) {
  return std::make_unique<JsonObjectSink>(bytes, nan);
}

}  // namespace lnorm
