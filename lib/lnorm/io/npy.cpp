#include "lnorm/io/npy.hpp"

#include <array>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kMaxHeader = std::size_t{64} << 10;

struct Header {
  TensorInfo info;
  std::int64_t data_bytes = 0;
};

std::string too_short(const TensorInfo& info, std::int64_t needed, std::int64_t found) {
  return concat(printable(info.name), ": the data is cut off: shape ", to_string(info.shape),
                " of ", name(info.dtype), " needs ", counted(needed, "byte"), ", found ", found);
}

Header read_header(ByteSource& bytes) {
  const std::string& name = bytes.name();
  const auto fail = [&](std::string_view what) {
    throw Error(concat(printable(name), ": ", what));
  };
  std::array<unsigned char, 12> start{};
  const auto read_start = [&](std::size_t from, std::size_t count, std::string_view what) {
    const std::size_t got =
        bytes.read(std::as_writable_bytes(std::span(start)).subspan(from, count));
    if (got < count) {
      fail(concat("the npy header is cut off in ", what, ": the file ends at byte ", from + got));
    }
  };
  read_start(0, 8, "the magic string and version");
  if (std::string_view(reinterpret_cast<const char*>(start.data()), 6) != "\x93NUMPY") {
    fail("is not an .npy file: it does not start with '\\x93NUMPY'");
  }
  const int major = start[6];
  if (major < 1 || major > 3 || start[7] != 0) {
    fail(concat("npy version ", major, ".", int{start[7]}, ", expected 1.0, 2.0 or 3.0"));
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  read_start(8, length_bytes, "the header length");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::size_t{start[8 + i]} << (8 * i);
  if (length > kMaxHeader) {
    fail(concat("npy header of ", length, " bytes, expected at most ", kMaxHeader));
  }
  std::string dict(length, '\0');
  const std::size_t got = bytes.read(std::as_writable_bytes(std::span(dict)));
  if (got < length) {
    fail(concat("the npy header is cut off: expected ",
                counted(static_cast<long long>(length), "byte"), ", found ", got));
  }
  Header header;
  header.info = parse_npy_dict(name, dict, 8 + length_bytes, major < 3);
  Shape factors = header.info.shape;
  factors.push_back(static_cast<std::int64_t>(item_size(header.info.dtype)));
  const auto data_bytes = checked_product(factors);
  if (!data_bytes) {
    fail(concat("shape ", to_string(header.info.shape), " of ", lnorm::name(header.info.dtype),
                " needs more than 2^63 - 1 bytes"));
  }
  header.data_bytes = *data_bytes;
  return header;
}

class NpySource final : public TensorSource {
 public:
  NpySource(ByteSource bytes, Header header)
      : TensorSource(std::move(header.info)),
        bytes_(std::move(bytes)),
        data_bytes_(header.data_bytes) {
    const auto remaining = bytes_.remaining();
    if (remaining && *remaining < data_bytes_)
      throw Error(too_short(info(), data_bytes_, *remaining));
    if (remaining && *remaining > data_bytes_) fail_too_long(concat("found ", *remaining));
  }

  void read(std::vector<std::byte>& to, std::size_t bytes) override {
    bytes_.read(to, bytes);
    taken_ += static_cast<std::int64_t>(to.size());
    if (to.size() < bytes) throw Error(too_short(info(), data_bytes_, taken_));
  }

  void skip(std::int64_t bytes) override {
    const std::int64_t skipped = bytes_.skip(bytes);
    taken_ += skipped;
    if (skipped < bytes) throw Error(too_short(info(), data_bytes_, taken_));
  }

  bool has_positions() const noexcept override { return bytes_.remaining().has_value(); }

  void read_at(std::int64_t position, std::span<std::byte> to) const override {
    const std::size_t got = bytes_.read_at(position, to);
    if (got < to.size()) {
      throw Error(too_short(info(), data_bytes_, position + static_cast<std::int64_t>(got)));
    }
  }

  void finish() override {
    // What was read at positions still lies ahead.
    if (has_positions()) bytes_.skip(data_bytes_ - taken_);
    if (!bytes_.peek(1).empty()) fail_too_long("found more");
  }

 private:
  [[noreturn]] void fail_too_long(const std::string& found) const {
    throw Error(concat(printable(info().name), ": data goes on after the tensor: shape ",
                       to_string(info().shape), " of ", name(info().dtype), " needs ",
                       counted(data_bytes_, "byte"), ", ", found),
                "a transfer in text mode or a second array in the file does that");
  }

  ByteSource bytes_;
  std::int64_t data_bytes_;
  std::int64_t taken_ = 0;
};

class NpySink final : public TensorSink {
 public:
  NpySink(ByteSink& bytes, const TensorInfo& info) : bytes_(bytes) {
    bytes_.write(format_npy_header(info));
  }

  bool has_positions() const noexcept override { return bytes_.has_positions(); }
  void write_at(std::int64_t position, std::span<const std::byte> elements) const override {
    bytes_.write_at(position, elements);
  }
  void write(std::span<const std::byte> encoded) override { bytes_.write(encoded); }
  void finish() override {}

 private:
  ByteSink& bytes_;
};

}  // namespace

std::unique_ptr<TensorSource> open_npy(ByteSource bytes) {
  Header header = read_header(bytes);
  return std::make_unique<NpySource>(std::move(bytes), std::move(header));
}

std::unique_ptr<TensorSink> make_npy_sink(ByteSink& bytes, const TensorInfo& info) {
  if (info.dtype == DType::bfloat16) {
    throw Error(concat(printable(bytes.name()), ": .npy has no bfloat16"),
                "--to json or --to text writes it, or --dtype float32");
  }
  return std::make_unique<NpySink>(bytes, info);
}

}  // namespace lnorm
