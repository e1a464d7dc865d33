#include "lnorm/io/npy/npy.hpp"

#include <array>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/raw_tensor.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kMaxHeader = std::size_t{64} << 10;

}  // namespace

TensorInfo read_npy_header(ByteSource& bytes, std::optional<DType> as) {
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
  return parse_npy_dict(name, dict, 8 + length_bytes, major < 3, as);
}

std::unique_ptr<TensorSource> open_npy(std::unique_ptr<ByteSource> bytes, std::optional<DType> as) {
  TensorInfo info = read_npy_header(*bytes, as);
  return make_raw_source(std::move(bytes), std::move(info));
}

std::unique_ptr<TensorSink> make_npy_sink(ByteSink& bytes, const TensorInfo& info) {
  return make_raw_sink(bytes, format_npy_header(info), info.dtype);
}

}  // namespace lnorm
