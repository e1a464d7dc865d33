#include "lnorm/io/raw_tensor.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// preceding: how many bytes come before the elements.
std::string needs(const TensorInfo& info, std::int64_t preceding) {
  const std::string behind = preceding == 0 ? "" : concat(" behind the first ", preceding);
  return concat("shape ", to_string(info.shape), " of ", name(info.dtype), " needs ",
                counted(data_bytes(info), "byte"), behind, ", ");
}

[[noreturn]] void fail_cut_off(const TensorInfo& info, std::int64_t preceding, std::int64_t found) {
  throw Error(concat(printable(info.name), ": the data is cut off: ", needs(info, preceding),
                     "found ", found));
}

class RawSource final : public TensorSource {
 public:
  RawSource(std::unique_ptr<ByteSource> bytes, TensorInfo tensor, std::int64_t preceding)
      : TensorSource(std::move(tensor)),
        bytes_(std::move(bytes)),
        data_bytes_(lnorm::data_bytes(info())),
        preceding_(preceding) {
    const auto remaining = bytes_->remaining();
    if (!remaining) return;
    if (*remaining < data_bytes_) fail_too_short(*remaining);
    if (*remaining > data_bytes_) fail_too_long(concat("found ", preceding_ + *remaining));
  }

  void read(std::vector<std::byte>& to, std::size_t bytes) override {
    bytes_->read(to, bytes);
    taken_ += static_cast<std::int64_t>(to.size());
    if (to.size() < bytes) fail_too_short(taken_);
  }

  void skip(std::int64_t bytes) override {
    const std::int64_t skipped = bytes_->skip(bytes);
    taken_ += skipped;
    if (skipped < bytes) fail_too_short(taken_);
  }

  bool has_random_access() const noexcept override { return bytes_->has_random_access(); }

  void read_at(std::int64_t offset, std::span<std::byte> to) const override {
    const std::size_t got = bytes_->read_at(offset, to);
    if (got < to.size()) fail_too_short(offset + static_cast<std::int64_t>(got));
  }

  void finish() override {
    // What was read by read_at still lies ahead.
    if (has_random_access()) bytes_->skip(data_bytes_ - taken_);
    // Looking for the end, too, is what checks the sum of a member of an archive.
    if (!bytes_->peek(1).empty()) fail_too_long("found more");
  }

 private:
  [[noreturn]] void fail_too_short(std::int64_t found) const {
    fail_cut_off(info(), preceding_, preceding_ + found);
  }
  [[noreturn]] void fail_too_long(const std::string& found) const {
    throw Error(concat(printable(info().name),
                       ": data goes on after the tensor: ", needs(info(), preceding_), found,
                       " (a transfer in text mode or a second array in the file does that)"));
  }

  std::unique_ptr<ByteSource> bytes_;
  std::int64_t data_bytes_;
  std::int64_t preceding_;
  std::int64_t taken_ = 0;
};

class RawSink final : public TensorSink {
 public:
  RawSink(ByteSink& bytes, std::string_view header, const TensorInfo& info)
      : bytes_(bytes), dtype_(info.dtype), unwritten_(data_bytes(info)) {
    bytes_.write(header);
  }

  std::span<const std::byte> encode(std::int64_t, std::span<const std::byte> elements,
                                    std::string& buffer) const override {
    return encode_raw(elements, dtype_, buffer);
  }

  bool has_random_access() const noexcept override { return bytes_.has_random_access(); }
  void write_at(std::int64_t offset, std::span<const std::byte> elements) const override {
    std::string buffer;
    bytes_.write_at(offset, encode(0, elements, buffer));
  }
  void write(std::span<const std::byte> encoded) override {
    bytes_.write(encoded);
    unwritten_ -= std::ssize(encoded);
  }
  void finish() override {
    if (has_random_access()) bytes_.advance(unwritten_);
  }
  void skip() override { finish(); }

 private:
  ByteSink& bytes_;
  DType dtype_;
  std::int64_t unwritten_;  // by write; what write_at was given is not counted
};

}  // namespace

std::int64_t data_bytes(const TensorInfo& info) {
  Shape factors = info.shape;
  factors.push_back(static_cast<std::int64_t>(item_size(info.dtype)));
  const auto bytes = checked_product(factors);
  if (!bytes) {
    throw Error(concat(printable(info.name), ": shape ", to_string(info.shape), " of ",
                       name(info.dtype), " needs more than 2^63 - 1 bytes"));
  }
  return *bytes;
}

std::unique_ptr<TensorSource> make_raw_source(std::unique_ptr<ByteSource> bytes, TensorInfo info,
                                              std::int64_t preceding) {
  return std::make_unique<RawSource>(std::move(bytes), std::move(info), preceding);
}

std::unique_ptr<TensorSource> open_raw(std::unique_ptr<ByteSource> bytes, TensorInfo info,
                                       std::int64_t offset) {
  const std::int64_t passed = bytes->skip(offset);
  if (passed < offset) fail_cut_off(info, offset, passed);
  return make_raw_source(std::move(bytes), std::move(info), offset);
}

void complete_shape(TensorInfo& info, const ByteSource& bytes, std::int64_t offset) {
  const auto size = std::find(info.shape.begin(), info.shape.end(), -1);
  if (size == info.shape.end()) return;
  const std::string shape = to_string(info.shape);
  const auto fail = [&](const std::string& what) {
    throw Error(concat(printable(info.name), ": shape ", shape, " of ", name(info.dtype), what));
  };
  const auto remaining = bytes.remaining();
  if (!remaining) fail(" is for a file: the length of a pipe is not known");
  *size = 1;
  const std::int64_t item = data_bytes(info);
  const std::int64_t found = std::max<std::int64_t>(0, *remaining - offset);
  if (item == 0 || found % item != 0) {
    fail(concat(" needs a multiple of ", counted(item, "byte"), ", found ", found));
  }
  *size = found / item;
}

std::span<const std::byte> encode_raw(std::span<const std::byte> elements, DType dtype,
                                      std::string& buffer) {
  if constexpr (std::endian::native == std::endian::little) return elements;
  buffer.assign(reinterpret_cast<const char*>(elements.data()), elements.size());
  const auto encoded = std::as_writable_bytes(std::span(buffer));
  make_native(encoded, dtype, std::endian::little);  // and back
  return encoded;
}

std::unique_ptr<TensorSink> make_raw_sink(ByteSink& bytes, std::string_view header,
                                          const TensorInfo& info) {
  return std::make_unique<RawSink>(bytes, header, info);
}

}  // namespace lnorm
