#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/safetensors/safetensors.hpp"

namespace lnorm {

namespace {

class SafetensorsSink final : public TensorSetSink {
 public:
  SafetensorsSink(ByteSink& bytes, std::vector<TensorInfo> tensors)
      : bytes_(bytes), announced_(std::move(tensors)) {
    std::unordered_set<std::string_view> names;
    for (const TensorInfo& tensor : announced_) {
      if (tensor.name == "__metadata__")
        fail(tensor.name, "safetensors files keep other things there");
      if (!names.insert(tensor.name).second) fail(tensor.name, "it is there twice");
    }
    const std::string header = format_header(announced_, 0);
    header_size_ = header.size();
    bytes_.write(header);
  }

  std::unique_ptr<TensorSink> begin(const TensorInfo& info) override {
    take_back();
    under_way_ = info;
    start_ = bytes_.written();
    return std::make_unique<FollowedSink>(make_raw_sink(bytes_, "", info), [this] {
      written_.push_back(*std::exchange(under_way_, std::nullopt));
    });
  }

  void finish() override {
    take_back();
    if (written_.size() == announced_.size()) return;
    // Fewer tensors never have a longer header; blanks fill it up.
    const std::string header = format_header(written_, header_size_);
    bytes_.rewrite(0, std::as_bytes(std::span(header)));
  }

 private:
  [[noreturn]] void fail(const std::string& name, std::string_view what) const {
    throw Error(concat(printable(bytes_.name()), ": '", printable(name),
                       "' cannot be the name of a tensor: ", what),
                announced_.size() == 1 ? Remedy{Remedy::Setting::tensor_name} : Remedy{});
  }

  // What has begun, but is not complete.
  void take_back() {
    if (!under_way_) return;
    if (!bytes_.has_random_access()) {
      throw Error(concat(printable(bytes_.name()), ": tensor '", printable(under_way_->name),
                         "' cannot be left out, since the header is written already"),
                  Remedy{Remedy::Setting::regular_output});
    }
    under_way_.reset();
    bytes_.rewind(start_);
  }

  std::string format_header(const std::vector<TensorInfo>& tensors, std::size_t size) const {
    std::string json = "{";
    std::int64_t begin = 0;
    for (const TensorInfo& tensor : tensors) {
      const std::int64_t end = begin + data_bytes(tensor);
      const nlohmann::ordered_json entry{{"dtype", dtype_row(tensor.dtype).safetensors},
                                         {"shape", tensor.shape},
                                         {"data_offsets", {begin, end}}};
      try {
        json += concat(json.size() > 1 ? "," : "", nlohmann::json(tensor.name).dump(), ":",
                       entry.dump());
      } catch (const nlohmann::json::type_error&) {
        fail(tensor.name, "it is not UTF-8");
      }
      begin = end;
    }
    json += '}';
    // The reference implementation aligns the elements so.
    constexpr std::size_t kAlignment = 8;
    json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
    if (json.size() + 8 < size) json.append(size - 8 - json.size(), ' ');
    std::string header;
    for (std::size_t i = 0; i < 8; ++i) {
      header += static_cast<char>(static_cast<std::uint64_t>(json.size()) >> (8 * i) & 0xff);
    }
    return header + json;
  }

  ByteSink& bytes_;
  std::vector<TensorInfo> announced_;
  std::vector<TensorInfo> written_;
  std::size_t header_size_ = 0;
  std::optional<TensorInfo> under_way_;
  std::int64_t start_ = 0;  // of its elements
};

}  // namespace

std::unique_ptr<TensorSetSink> make_safetensors_sink(ByteSink& bytes,
                                                     std::vector<TensorInfo> tensors) {
  return std::make_unique<SafetensorsSink>(bytes, std::move(tensors));
}

}  // namespace lnorm
