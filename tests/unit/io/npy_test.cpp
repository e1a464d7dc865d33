#include "lnorm/io/npy/npy.hpp"

#include <array>

#include "lnorm/io/byte_source.hpp"
#include "support/commands.hpp"
#include "support/elements.hpp"

using lnorm::DType;
using lnorm::Shape;
using lnorm::TensorInfo;

namespace {

using namespace support;
TensorInfo parse_dict(const std::string& dict, bool python2_longs = true) {
  return lnorm::parse_npy_dict("x.npy", dict, 10, python2_longs);
}

std::string dict_error(const std::string& dict) {
  return error_of([&] { parse_dict(dict); });
}

}  // namespace

TEST_CASE("headers are written as NumPy writes them", "[io]") {
  // Every file of the seeds was saved by numpy.save.
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LNORM_DATA_DIR "/seeds")) {
    if (entry.path().extension() != ".npy") continue;
    ++files;
    CAPTURE(entry.path().string());
    const std::string content = read_file(entry.path());
    const std::size_t end = content.find('\n') + 1;
    const auto source = lnorm::open_npy(lnorm::open_file(entry.path().string()));
    CHECK(lnorm::format_npy_header(source->info()) == content.substr(0, end));
  }
  CHECK(files > 30);
}

TEST_CASE("headers of every dtype and rank are a multiple of 64 bytes and read back", "[io]") {
  constexpr std::array kDTypes{DType::boolean, DType::int8,    DType::int16,   DType::int32,
                               DType::int64,   DType::uint8,   DType::uint16,  DType::uint32,
                               DType::uint64,  DType::float16, DType::float32, DType::float64};
  for (const DType dtype : kDTypes) {
    for (std::size_t rank = 0; rank <= lnorm::kMaxDims; ++rank) {
      const TensorInfo info{"", dtype, Shape(rank, 7)};
      const std::string header = lnorm::format_npy_header(info);
      CAPTURE(header);
      CHECK(header.size() % 64 == 0);
      CHECK(header.back() == '\n');
      const TensorInfo back = parse_dict(header.substr(10));
      CHECK(back.dtype == dtype);
      CHECK(back.shape == info.shape);
      CHECK(back.byte_order == std::endian::little);
    }
  }
}

TEST_CASE("header dicts are read as Python reads them", "[io]") {
  CHECK(parse_dict("{'descr':'<f4','fortran_order':False,'shape':(2,3)}").shape == Shape{2, 3});
  CHECK(
      parse_dict("{\"shape\": (6,), \"fortran_order\": False, \"descr\": \">i8\"}\n").byte_order ==
      std::endian::big);
  CHECK(parse_dict("{'descr': '|b1', 'fortran_order': False, 'shape': (), }   \n").shape.empty());
  CHECK(parse_dict("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}").order ==
        lnorm::MemoryOrder::fortran);
  CHECK(parse_dict("{'descr': 'f2', 'fortran_order': False, 'shape': (2L, 3L), }").shape ==
        Shape{2, 3});
  for (const char* const descr : {"<f4", "=f4", "f4", "|f4"}) {
    CHECK(parse_dict("{'fortran_order': False, 'shape': (), 'descr': '" + std::string(descr) + "'}")
              .byte_order == std::endian::little);
  }
}

TEST_CASE("a header that is not well formed is refused with its place", "[io]") {
  const auto error = [](const std::string& rest) {
    return dict_error("{'descr': '<f4', 'fortran_order': False, " + rest);
  };
  CHECK(error("'shape': (6)}") ==
        "x.npy: npy header, byte 63: the shape is a number, expected a tuple of sizes, such as "
        "(2, 3) or (6,)");
  CHECK(error("'shape': (-1,)}") == "x.npy: npy header, byte 61: size -1 is negative");
  CHECK(error("'shape': (18446744073709551622,)}") ==
        "x.npy: npy header, byte 61: size 18446744073709551622 is more than 2^63 - 1");
  CHECK(error("'shape': (1+1, 3)}") ==
        "x.npy: npy header, byte 62: found '+1, 3)}', expected ',' or ')'");
  CHECK(error("'shape': (2, 3)} x") == "x.npy: npy header, byte 68: found 'x' after the dict");
  CHECK(error("'shape': (2, 3), 'shape': (2, 3)}") ==
        "x.npy: npy header, byte 68: 'shape' is there twice");
  CHECK(error("'xshape': (2, 3)}") ==
        "x.npy: npy header, byte 51: key 'xshape' is unknown, expected 'descr', 'fortran_order' "
        "and 'shape'");
  CHECK(error("}") == "x.npy: npy header, byte 52: the dict ends without the key 'shape'");
  CHECK(error("'shape': (2, 3)") ==
        "x.npy: npy header, byte 66: found the end of the header, expected ',' or '}'");
  CHECK(dict_error("{'descr': '<c16'}") ==
        "x.npy: npy header, byte 20: dtype '<c16' is complex, expected one of bool, int8 to int64, "
        "uint8 to uint64, float16, float32 or float64");
  CHECK(contains(dict_error("{'descr': '|O', }"), "object (a pickle, never executed)"));
  CHECK(contains(dict_error("{'descr': '<V2', }"), "perhaps bfloat16"));
  CHECK(contains(dict_error("{'descr': [('a', '<f4')], }"), "structured"));
  CHECK(contains(dict_error("{'fortran_order': 1, }"), "expected True or False"));
  CHECK(contains(dict_error("{'shape': (" + std::string(300, '(') + ")}"), "size of a dimension"));
}
