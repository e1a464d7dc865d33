#include "lnorm/io/safetensors/safetensors.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/pattern.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/safetensors/safetensors_header.hpp"

namespace lnorm {

namespace {

class SafetensorsSet final : public TensorSet {
 public:
  explicit SafetensorsSet(std::shared_ptr<ByteSource> bytes)
      : TensorSet(bytes->name()),
        bytes_(std::move(bytes)),
        header_(read_safetensors_header(*bytes_)),
        listed_(header_.tensors.size()) {
    std::iota(listed_.begin(), listed_.end(), std::uint32_t{0});
    const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
      return natural_less(header_.name(header_.tensors[a]), header_.name(header_.tensors[b]));
    };
    if (!std::is_sorted(listed_.begin(), listed_.end(), is_before)) {
      std::sort(listed_.begin(), listed_.end(), is_before);
    }
  }

  std::size_t size() const override { return listed_.size(); }
  std::string tensor_name(std::size_t index) const override {
    return std::string(header_.name(entry(index)));
  }
  std::int64_t place(std::size_t index) const override { return listed_[index]; }
  bool is_pipe() const override { return !bytes_->has_random_access(); }

  TensorInfo info(std::size_t index) const override {
    const SafetensorsEntry& tensor = entry(index);
    const std::string label = concat(name(), ':', header_.name(tensor));
    if (!tensor.dtype->dtype) {
      throw UnsupportedDType(std::string(tensor.dtype->name),
                             concat(printable(label), ": dtype ", tensor.dtype->name,
                                    ", expected one of ", dtype_list(&DTypeRow::safetensors)));
    }
    return {label, *tensor.dtype->dtype, header_.shape(tensor), std::endian::little};
  }

  Member describe(std::size_t index) const override {
    const SafetensorsEntry& tensor = entry(index);
    const SafetensorsDType& dtype = *tensor.dtype;
    return {tensor_name(index), std::string(dtype.dtype ? lnorm::name(*dtype.dtype) : dtype.name),
            header_.shape(tensor), tensor.end - tensor.begin};
  }

  std::unique_ptr<TensorSource> open(std::size_t index) const override {
    const SafetensorsEntry& tensor = entry(index);
    TensorInfo x = info(index);
    const std::int64_t size = tensor.end - tensor.begin;
    if (!is_pipe()) {
      auto bytes = slice(bytes_, x.name, tensor.begin, size);
      return make_raw_source(std::move(bytes), std::move(x));
    }
    if (tensor.begin < passed_) {
      throw Error(concat(printable(x.name), ": has passed in the pipe already"),
                  "name a file, or redirect it (< x.safetensors)");
    }
    skip_to(tensor.begin, x.name);
    passed_ = tensor.end;
    auto bytes = next_of(bytes_, x.name, size);
    return make_raw_source(std::move(bytes), std::move(x));
  }

  // What writes into a pipe is not to fail for what nobody asked for; and the pipe may be cut off.
  void finish() const override {
    if (!is_pipe()) return;
    skip_to(header_.data_bytes(), name());
    if (!bytes_->peek(1).empty()) fail("the data goes on after the tensors");
  }

 private:
  const SafetensorsEntry& entry(std::size_t index) const { return header_.tensors[listed_[index]]; }

  void skip_to(std::int64_t offset, const std::string& who) const {
    const std::int64_t found = bytes_->skip(offset - passed_);
    if (found < offset - passed_) {
      throw Error(concat(printable(who), ": the data is cut off: expected ",
                         counted(offset, "byte"), " of elements before this, found ",
                         passed_ + found));
    }
    passed_ = offset;
  }

  std::shared_ptr<ByteSource> bytes_;
  SafetensorsHeader header_;
  std::vector<std::uint32_t> listed_;  // in the order of listing: indices of header_.tensors
  mutable std::int64_t passed_ = 0;    // of a pipe
};

}  // namespace

std::unique_ptr<TensorSet> open_safetensors(std::unique_ptr<ByteSource> bytes) {
  return std::make_unique<SafetensorsSet>(std::move(bytes));
}

}  // namespace lnorm
