#include "lnorm/io/npy/npy.hpp"

#include <utility>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/raw_tensor.hpp"

namespace lnorm {

TensorInfo read_npy_header(ByteSource& bytes, std::optional<DType> as) {
  std::size_t offset = 0;
  const auto take = [&](std::size_t count, std::string_view what) {
    std::string taken(count, '\0');
    const std::size_t got = bytes.read(std::as_writable_bytes(std::span(taken)));
    offset += got;
    if (got < count) {
      bytes.fail(concat("the npy header is cut off in ", what, ": the file ends at byte ", offset));
    }
    return taken;
  };
  const std::string start = take(8, "the magic string and version");
  if (!start.starts_with("\x93NUMPY")) {
    bytes.fail("is not an .npy file: it does not start with '\\x93NUMPY'");
  }
  const int major = static_cast<unsigned char>(start[6]);
  const int minor = static_cast<unsigned char>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    bytes.fail(concat("npy version ", major, ".", minor, ", expected 1.0, 2.0 or 3.0"));
  }
  const std::size_t length = from_little_endian(take(major == 1 ? 2 : 4, "the header length"));
  constexpr std::size_t kMaxHeader = std::size_t{64} << 10;
  if (length > kMaxHeader) {
    bytes.fail(concat("npy header of ", length, " bytes, expected at most ", kMaxHeader));
  }
  const std::size_t at = offset;
  const std::string dict =
      take(length, concat("the dict, of ", counted(static_cast<long long>(length), "byte")));
  return parse_npy_dict(bytes.name(), dict, at, major < 3, as);
}

std::unique_ptr<TensorSource> open_npy(std::unique_ptr<ByteSource> bytes, std::optional<DType> as) {
  TensorInfo info = read_npy_header(*bytes, as);
  return make_raw_source(std::move(bytes), std::move(info));
}

std::unique_ptr<TensorSink> make_npy_sink(ByteSink& bytes, const TensorInfo& info) {
  return make_raw_sink(bytes, format_npy_header(info), info);
}

}  // namespace lnorm
