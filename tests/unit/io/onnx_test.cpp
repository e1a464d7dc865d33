#include "lnorm/io/onnx/onnx.hpp"

#include <protozero/pbf_writer.hpp>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/files.hpp"
#include "support/memory_bytes.hpp"

namespace {

using namespace support;
using lnorm::DType;
using lnorm::Shape;
using Writer = protozero::pbf_writer;

struct Tensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::string elements;  // in native byte order

  bool operator==(const Tensor&) const = default;
};

Tensor tensor_of(lnorm::TensorSource& source, const std::string& name) {
  const lnorm::TensorInfo& info = source.info();
  auto bytes = lnorm::read_all(source);
  lnorm::make_native(bytes, info.dtype, info.byte_order);
  return {name, info.dtype, info.shape, text_of(bytes)};
}

Tensor read(const std::string& bytes, bool is_file) {
  using enum MemoryBytes::Kind;
  const auto set =
      lnorm::open_onnx(std::make_unique<MemoryBytes>("x.pb", bytes, is_file ? file : pipe));
  CHECK(set->size() == 1);
  return tensor_of(*set->open(0), set->tensor_name(0));
}

// From a file and from a pipe.
Tensor read(const std::string& bytes) {
  const Tensor tensor = read(bytes, true);
  CHECK(tensor == read(bytes, false));
  return tensor;
}

std::string onnx_error(const std::string& bytes, bool is_file = true) {
  return error_of([&] { read(bytes, is_file); });
}

// A message of dims and data_type, and what add adds.
template <class Add>
std::string message(const Shape& dims, int data_type, Add add) {
  std::string bytes;
  Writer writer(bytes);
  for (const std::int64_t extent : dims) writer.add_int64(1, extent);
  writer.add_int32(2, data_type);
  add(writer);
  return bytes;
}

std::string raw(const Shape& dims, int data_type, const std::string& elements) {
  return message(dims, data_type, [&](Writer& writer) { writer.add_bytes(9, elements); });
}

std::string int32s(int data_type, const std::vector<std::int32_t>& elements) {
  return message({static_cast<std::int64_t>(elements.size())}, data_type, [&](Writer& writer) {
    writer.add_packed_int32(5, elements.begin(), elements.end());
  });
}

std::string field(int number, const std::string& value) {
  std::string bytes;
  Writer(bytes).add_bytes(static_cast<std::uint32_t>(number), value);
  return bytes;
}

}  // namespace

TEST_CASE("tensors that ONNX has written are read bit for bit", "[io]") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_file("onnx"))) {
    if (entry.path().extension() != ".pb") continue;
    CAPTURE(entry.path().string());
    ++files;
    auto npy = entry.path();
    const auto expected = lnorm::open_npy(lnorm::open_file(npy.replace_extension(".npy").string()));
    const Tensor found = read(read_file(entry.path()));
    CHECK(found.shape == expected->info().shape);
    const std::string stem = entry.path().stem().string();
    const std::string dtype = stem.substr(stem.find('_') + 1);
    if (dtype == "bfloat16") {
      CHECK(found.dtype == DType::bfloat16);
    } else {
      CHECK(found.dtype == expected->info().dtype);
    }
    CHECK(found.elements == tensor_of(*expected, "").elements);
    if (stem.starts_with("raw_") && dtype != "bfloat16") CHECK(found.name == "h.0/" + dtype);
  }
  CHECK(files == 28);
}

TEST_CASE("fields come in any order, packed or not, in parts, and the last one counts", "[io]") {
  const std::string expected = bytes_of<float>({1, 2, 3});
  const auto check = [&](auto add) {
    std::string bytes;
    Writer writer(bytes);
    add(writer);
    CHECK(read(bytes) == Tensor{"b", DType::float32, {3, 1}, expected});
  };
  const std::vector<float> floats{2, 3};
  const std::vector<std::int64_t> dims{3, 1};
  check([&](Writer& writer) {
    writer.add_float(4, 1);
    writer.add_string(8, "a");
    writer.add_packed_float(4, floats.begin(), floats.end());
    writer.add_int32(2, 7);
    writer.add_packed_int64(1, dims.begin(), dims.end());
    writer.add_string(12, "a text");
    writer.add_fixed32(1000, 1);
    writer.add_fixed64(1001, 1);
    writer.add_int32(2, 1);
    writer.add_string(8, "b");
  });
  check([&](Writer& writer) {
    writer.add_bytes(9, "not this");
    writer.add_bytes(9, expected);
    writer.add_int64(1, 3);
    writer.add_int64(1, 1);
    writer.add_string(8, "b");
    writer.add_int32(2, 1);
    writer.add_enum(14, 0);
  });
}

TEST_CASE("elements of less than 32 bits are in int32_data, narrow floats as their bits", "[io]") {
  CHECK(read(int32s(3, {-128, 127})).elements == bytes_of<std::int8_t>({-128, 127}));
  CHECK(read(int32s(5, {-32768, 7})).elements == bytes_of<std::int16_t>({-32768, 7}));
  CHECK(read(int32s(9, {0, 1})).elements == std::string("\0\1", 2));
  CHECK(read(int32s(10, {0x3c00, 0xfc00})).elements == bytes_of<std::uint16_t>({0x3c00, 0xfc00}));
  for (const auto& [number, dtype] :
       {std::pair{17, DType::float8_e4m3fn}, {19, DType::float8_e5m2}}) {
    const Tensor float8{"", dtype, {2}, "\x38\xff"};
    CHECK(read(int32s(number, {0x38, 0xff})) == float8);
    CHECK(read(raw({2}, number, "\x38\xff")) == float8);
  }
  CHECK(onnx_error(int32s(17, {256})) ==
        "x.pb: element 0 in int32_data is 256, which is no FLOAT8E4M3FN");
  CHECK(read(int32s(16, {0x3f80, 0xff80})).dtype == DType::bfloat16);
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  const std::vector<std::uint64_t> large{1, kMax};
  CHECK(read(message({2}, 13, [&](Writer& writer) {
          writer.add_packed_uint64(11, large.begin(), large.end());
        })).elements == bytes_of<std::uint64_t>(large));

  CHECK(onnx_error(int32s(3, {1, 128})) ==
        "x.pb: element 1 in int32_data is 128, which is no INT8");
  CHECK(onnx_error(int32s(2, {-1})) == "x.pb: element 0 in int32_data is -1, which is no UINT8");
  CHECK(onnx_error(int32s(9, {2})) == "x.pb: element 0 in int32_data is 2, which is no BOOL");
  CHECK(onnx_error(int32s(10, {0, 65536})) ==
        "x.pb: element 1 in int32_data is 65536, which is no FLOAT16");
  CHECK(onnx_error(message({2}, 12, [&](Writer& writer) {
          writer.add_packed_uint64(11, large.begin(), large.end());
        })) == "x.pb: element 1 in uint64_data is 18446744073709551615, which is no UINT32");
}

TEST_CASE("there are as many elements as dims say, in one field", "[io]") {
  CHECK(onnx_error(raw({2, 3}, 1, std::string(20, 'x'))) ==
        "x.pb: dims (2, 3) of FLOAT need 24 bytes, found 20 in raw_data");
  CHECK(onnx_error(raw({}, 11, std::string(9, 'x'))) ==
        "x.pb: dims () of DOUBLE need 8 bytes, found 9 in raw_data");
  CHECK(onnx_error(message({3}, 1, [](Writer& writer) { writer.add_float(4, 1); })) ==
        "x.pb: dims (3) need 3 elements, found 1 in float_data");
  CHECK(onnx_error(message({}, 7, [](Writer&) {})) ==
        "x.pb: dims () need 1 element, found 0 in int64_data");
  CHECK(read(message({0}, 7, [](Writer&) {})).elements.empty());
  CHECK(onnx_error(message({1}, 6, [](Writer& writer) { writer.add_float(4, 1); })) ==
        "x.pb: elements of INT32 are in int32_data, found float_data");
  CHECK(onnx_error(raw({1}, 1, "1234") + field(4, "1234")) ==
        "x.pb: found both raw_data and float_data, expected one of them");
  CHECK(onnx_error(raw({1}, 1, "1234") + field(6, "text")) ==
        "x.pb: elements of FLOAT are in float_data, found string_data");
}

TEST_CASE("what a TensorProto may be and lnorm does not read is named", "[io]") {
  constexpr const char* kExpected =
      ", expected one of BOOL, INT8 to INT64, UINT8 to UINT64, FLOAT8E4M3FN, FLOAT8E5M2, "
      "FLOAT8E4M3FNUZ, FLOAT8E8M0, FLOAT16, BFLOAT16, FLOAT or DOUBLE";
  for (const auto& [number, name] : std::vector<std::pair<int, std::string>>{{8, "STRING"},
                                                                             {14, "COMPLEX64"},
                                                                             {20, "FLOAT8E5M2FNUZ"},
                                                                             {22, "INT4"},
                                                                             {0, "number 0"},
                                                                             {99, "number 99"}}) {
    CHECK(onnx_error(raw({1}, number, "x")) == "x.pb: data_type is " + name + kExpected);
    CHECK_THROWS_AS(read(raw({1}, number, "x")), lnorm::UnsupportedDType);
  }
  CHECK(onnx_error(raw({1}, 1, "1234") + field(3, "")) ==
        "x.pb: is a segment of a larger tensor, expected a whole one");
  CHECK(onnx_error(message({1}, 1, [](Writer& writer) { writer.add_enum(14, 1); })) ==
        "x.pb: its data is external, in another file, expected it in this one");
  CHECK(onnx_error("") == "x.pb: has no data_type, expected an ONNX TensorProto");
  for (const std::string model : {"model", "model_without_producer"}) {
    CHECK(onnx_error(read_file(data_file("onnx/" + model + ".onnx"))) ==
          "x.pb: is an ONNX model, expected a TensorProto");
  }
}

TEST_CASE("a TensorProto that is not well formed is refused with its place", "[io]") {
  const auto at = [](int byte, const std::string& what) {
    return "x.pb: ONNX TensorProto, byte " + std::to_string(byte) + ": " + what;
  };
  for (const bool is_file : {true, false}) {
    CAPTURE(is_file);
    const auto error = [&](const std::string& bytes) { return onnx_error(bytes, is_file); };
    CHECK(error("[1, 2]") == at(0, "field 11: found wire type 3, expected 2"));
    CHECK(error("{}") == at(0, "field 15: found wire type 3, expected 0, 1, 2 or 5"));
    CHECK(error(std::string(3, '\0')) ==
          at(0, "found a field of number 0, expected 1 to 536870911"));
    CHECK(error(std::string(11, '\xff')) == at(0, "found a varint of more than 10 bytes"));
    CHECK(error("\x08\x80") == at(0, "field 1: the message is cut off in a varint"));
    CHECK(error("\x10\x01\x20\x01") == at(2, "field 4: found wire type 0, expected 2"));
    CHECK(error("\x10\x01\x22\x05"
                "12345") == at(2, "field 4: found 5 bytes, expected a multiple of 4"));
    CHECK(error("\x10\x01\x4a\x05"
                "123") == at(2, "field 9: the message is cut off: 2 bytes more expected"));
    CHECK(error("\x62\x05"
                "123") == at(0, "field 12: the message is cut off: 2 bytes more expected"));
    CHECK(error("\x4a\xff\xff\xff\xff\x7f") ==
          at(0, "field 9: found a length of 34359738367, expected at most 2147483647"));
    CHECK(error("\x42\x81\x80\x04") ==
          (is_file ? at(0, "field 8: the message is cut off: 65537 bytes more expected")
                   : at(0, "field 8: found a name of 65537 bytes, expected at most 65536")));
    CHECK(error(raw({-1}, 1, "")) == "x.pb: dims: size -1 is negative");
    constexpr auto kTooMany = std::int64_t{1} << 40;
    CHECK(error(raw({kTooMany, kTooMany}, 1, "")) ==
          "x.pb: shape (1099511627776, 1099511627776) of float32 needs more than 2^63 - 1 bytes");
    CHECK(error(raw(Shape(65, 1), 1, "1234")) == "x.pb: there are more than 64 dims");
    CHECK(error(raw(Shape(641, 1), 1, "1234")) == at(1280, "field 1: there are more than 64 dims"));
    CHECK(error(field(1, "\x80") + field(9, "1234") + "\x10\x01") ==
          "x.pb: dims do not end with the end of a varint");
  }
  // 1 GB claimed in a pipe, of which there is little; memory is measured where the program runs.
  CHECK(onnx_error("\x10\x01\x4a\x80\x80\x80\x80\x04"
                   "1234",
                   false) ==
        at(2, "field 9: the message is cut off: 1073741820 bytes more expected"));
  // Every cut of a message is refused, or is a message of less.
  const std::string whole = raw({2}, 1, "12345678");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = onnx_error(whole.substr(0, size), size % 2 == 0);
    if (!cut.starts_with("x.pb: ")) FAIL(size << ": " << cut);
  }
}
