#include "lnorm/io/onnx/onnx.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"
#include "lnorm/io/onnx/message_reader.hpp"
#include "lnorm/io/raw_tensor.hpp"

namespace lnorm {

namespace {

using Type = protozero::pbf_wire_type;

// The fields of a TensorProto.
enum Field : std::uint32_t {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kDataLocation = 14,
};

std::string_view field_name(std::uint32_t field) {
  return field == kFloatData    ? "float_data"
         : field == kInt32Data  ? "int32_data"
         : field == kStringData ? "string_data"
         : field == kInt64Data  ? "int64_data"
         : field == kDoubleData ? "double_data"
                                : "uint64_data";
}

// Where the elements of a dtype are if they are not in raw_data.
Field field_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return kFloatData;
    case DType::float64:
    case DType::float64_pair:
      return kDoubleData;
    case DType::int64:
      return kInt64Data;
    case DType::uint32:
    case DType::uint64:
      return kUint64Data;
    case DType::boolean:
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::uint8:
    case DType::uint16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::float8_e4m3fnuz:
    case DType::float8_e8m0fnu:
    case DType::float16:
    case DType::bfloat16:
      break;
  }
  return kInt32Data;
}

// A TensorProto.DataType that lnorm does not have.
std::string unsupported_type_name(std::uint64_t number) {
  using Named = std::pair<std::uint64_t, const char*>;
  for (const auto& [type, name] :
       {Named{8, "STRING"}, Named{14, "COMPLEX64"}, Named{15, "COMPLEX128"},
        Named{20, "FLOAT8E5M2FNUZ"}, Named{21, "UINT4"}, Named{22, "INT4"},
        Named{23, "FLOAT4E2M1"}}) {
    if (type == number) return name;
  }
  return concat("number ", number);
}

using Bytes = std::vector<std::byte>;

struct TensorProto {
  Bytes dims;  // packed
  std::optional<std::uint64_t> data_type;
  std::string name;
  std::map<std::uint32_t, Bytes> typed;  // packed, by their fields
  bool has_raw = false;
  std::int64_t raw_begin = 0;  // in the file
  std::int64_t raw_size = 0;
  Bytes raw;  // of a pipe
  bool is_segment = false;
  bool is_external = false;
};

class TensorProtoReader {
 public:
  TensorProtoReader(ByteSource& bytes, bool holds_raw)
      : message_(bytes), name_(bytes.name()), holds_raw_(holds_raw) {}

  TensorProto read() {
    while (message_.next()) read_field();
    // A model's graph lies where a tensor has int64_data.
    if (!tensor_.data_type && has_bytes_of_int64_) fail_model();
    return std::move(tensor_);
  }

 private:
  void read_field() {
    switch (message_.field()) {
      case kDims:
        return read_dims();
      case kDataType:
        if (message_.type() == Type::length_delimited) fail_model();  // by its producer's name
        expect(Type::varint);
        tensor_.data_type = message_.varint();
        return;
      case kSegment:
        tensor_.is_segment = true;
        return message_.skip_value();
      case kFloatData:
        return read_fixed(Type::fixed32, 4);
      case kDoubleData:
        return read_fixed(Type::fixed64, 8);
      case kInt64Data:
        has_bytes_of_int64_ = has_bytes_of_int64_ || message_.type() == Type::length_delimited;
        return read_varints(tensor_.typed[kInt64Data]);
      case kInt32Data:
      case kUint64Data:
        return read_varints(tensor_.typed[message_.field()]);
      case kStringData:
        tensor_.typed[kStringData];
        return message_.skip_value();
      case kName:
        return read_name();
      case kRawData:
        return read_raw();
      case kDataLocation:
        expect(Type::varint);
        tensor_.is_external = message_.varint() == 1;
        return;
      default:
        return message_.skip_value();
    }
  }

  void expect(Type type) {
    if (message_.type() == type) return;
    message_.fail(concat("found wire type ", static_cast<int>(message_.type()), ", expected ",
                         static_cast<int>(type)));
  }

  void read_dims() {
    constexpr std::size_t kMax = kMaxDims * protozero::max_varint_length;
    read_varints(tensor_.dims, kMax);
    if (tensor_.dims.size() > kMax) fail_dims();
  }

  [[noreturn]] void fail_dims() {
    message_.fail(concat("there are more than ", kMaxDims, " dims"));
  }

  // One, or several with their length before them, which comes to the same as several times one.
  void read_varints(Bytes& to, std::size_t most = SIZE_MAX) {
    if (message_.type() == Type::varint) return message_.append_varint(to);
    expect(Type::length_delimited);
    const std::int64_t length = message_.length();
    if (static_cast<std::uint64_t>(length) > most) fail_dims();
    message_.append(to, length);
  }

  void read_fixed(Type type, std::int64_t size) {
    Bytes& to = tensor_.typed[message_.field()];
    if (message_.type() == type) return message_.append(to, size);
    expect(Type::length_delimited);
    const std::int64_t length = message_.length();
    if (length % size != 0) {
      message_.fail(concat("found ", counted(length, "byte"), ", expected a multiple of ", size));
    }
    message_.append(to, length);
  }

  void read_name() {
    constexpr std::int64_t kMax = std::int64_t{1} << 16;
    expect(Type::length_delimited);
    const std::int64_t length = message_.length();
    if (length > kMax) {
      message_.fail(concat("found a name of ", length, " bytes, expected at most ", kMax));
    }
    Bytes name;
    message_.append(name, length);
    tensor_.name = as_text(name);
  }

  void read_raw() {
    expect(Type::length_delimited);
    tensor_.has_raw = true;
    tensor_.raw_size = message_.length();
    tensor_.raw_begin = message_.offset();
    tensor_.raw.clear();
    if (!holds_raw_) return message_.skip(tensor_.raw_size);
    message_.append(tensor_.raw, tensor_.raw_size);
  }

  [[noreturn]] void fail_model() const {
    throw Error(concat(printable(name_), ": is an ONNX model, expected a TensorProto"),
                "in Python: onnx.save_tensor(onnx.load(\"model.onnx\").graph.initializer[0], "
                "\"x.pb\")");
  }

  MessageReader message_;
  std::string name_;
  bool holds_raw_;
  bool has_bytes_of_int64_ = false;
  TensorProto tensor_;
};

class TensorOpener {
 public:
  TensorOpener(std::string name, TensorProto tensor) : tensor_(std::move(tensor)) {
    info_.name = std::move(name);
  }

  // file: with the elements of raw_data, unless they are held.
  std::unique_ptr<TensorSource> open(std::shared_ptr<const ByteSource> file) {
    if (tensor_.is_segment) fail("is a segment of a larger tensor, expected a whole one");
    if (tensor_.is_external) {
      fail("its data is external, in another file, expected it in this one",
           "in Python: onnx.save_tensor(numpy_helper.from_array(numpy_helper.to_array(tensor, "
           "FOLDER)), \"x.pb\")");
    }
    const DTypeRow& dtype = find_type();
    const Field typed_field = field_of(dtype.dtype);
    info_.dtype = dtype.dtype;
    info_.byte_order = std::endian::little;
    read_dims();
    for (const auto& [field, bytes] : tensor_.typed) {
      if (field == typed_field || (bytes.empty() && field != kStringData)) continue;
      fail(concat("elements of ", dtype.onnx, " are in ", field_name(typed_field), ", found ",
                  field_name(field)));
    }
    Bytes& typed = tensor_.typed[typed_field];
    if (tensor_.has_raw && !typed.empty()) {
      fail(concat("found both raw_data and ", field_name(typed_field), ", expected one of them"));
    }
    if (!tensor_.has_raw) return held(typed, typed_field);
    const std::int64_t needed = data_bytes(info_);
    if (tensor_.raw_size != needed) {
      fail(concat("dims ", to_string(info_.shape), " of ", dtype.onnx, " need ",
                  counted(needed, "byte"), ", found ", tensor_.raw_size, " in raw_data"));
    }
    if (file) {
      return make_raw_source(slice(std::move(file), info_.name, tensor_.raw_begin, needed), info_);
    }
    return std::make_unique<HeldTensor<Bytes>>(info_, std::move(tensor_.raw));
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint = "") const {
    throw Error(concat(printable(info_.name), ": ", what), hint);
  }

  const DTypeRow& find_type() const {
    if (!tensor_.data_type) fail("has no data_type, expected an ONNX TensorProto");
    const std::uint64_t number = *tensor_.data_type;
    for (const DTypeRow& row : kDTypes) {
      if (number != 0 && static_cast<std::uint64_t>(row.onnx_number) == number) return row;
    }
    const std::string name = unsupported_type_name(number);
    throw UnsupportedDType(name, concat(printable(info_.name), ": data_type is ", name,
                                        ", expected one of ", dtype_list(&DTypeRow::onnx)));
  }

  void read_dims() {
    const char* at = reinterpret_cast<const char*>(tensor_.dims.data());
    const char* const end = at + tensor_.dims.size();
    while (at != end) {
      const auto extent = static_cast<std::int64_t>(next_varint(at, end, "dims"));
      if (extent < 0) fail(concat("dims: size ", extent, " is negative"));
      if (info_.shape.size() == kMaxDims) fail(concat("there are more than ", kMaxDims, " dims"));
      info_.shape.push_back(extent);
    }
  }

  std::uint64_t next_varint(const char*& at, const char* end, std::string_view field) const {
    try {
      return protozero::decode_varint(&at, end);
    } catch (const protozero::exception&) {
      fail(concat(field, " do not end with the end of a varint"));
    }
  }

  std::unique_ptr<TensorSource> held(Bytes& typed, Field field) {
    const std::int64_t needed =
        data_bytes(info_) / static_cast<std::int64_t>(item_size(info_.dtype));
    const bool is_float = field == kFloatData || field == kDoubleData;
    const std::int64_t found =
        is_float
            ? std::ssize(typed) / static_cast<std::int64_t>(item_size(info_.dtype))
            : std::count_if(typed.begin(), typed.end(),  // the last bytes of varints
                            [](std::byte byte) { return (byte & std::byte{0x80}) == std::byte{}; });
    if (found != needed) {
      fail(concat("dims ", to_string(info_.shape), " need ", counted(needed, "element"), ", found ",
                  found, " in ", field_name(field)));
    }
    if (is_float) return std::make_unique<HeldTensor<Bytes>>(info_, std::move(typed));
    info_.byte_order = std::endian::native;
    return std::make_unique<HeldTensor<Bytes>>(info_, visit(info_.dtype, [&](auto element) {
                                                 return decoded<decltype(element)>(typed, field);
                                               }));
  }

  template <class T>
  Bytes decoded(const Bytes& typed, Field field) const {
    // Floats of 8 and 16 bits stand there as their bits.
    using Bits = std::conditional_t<std::is_arithmetic_v<T>, T, UnsignedOfSize<sizeof(T)>>;
    Bytes elements;
    elements.reserve(static_cast<std::size_t>(data_bytes(info_)));
    const char* at = reinterpret_cast<const char*>(typed.data());
    const char* const end = at + typed.size();
    while (at != end) {
      const std::uint64_t varint = next_varint(at, end, field_name(field));
      const auto value = field == kInt32Data ? static_cast<std::int32_t>(varint)
                                             : static_cast<std::int64_t>(varint);
      const auto bits = static_cast<Bits>(value);
      if (static_cast<std::int64_t>(bits) != value) {
        fail(concat("element ", elements.size() / sizeof bits, " in ", field_name(field), " is ",
                    field == kUint64Data ? std::to_string(varint) : std::to_string(value),
                    ", which is no ", dtype_row(info_.dtype).onnx));
      }
      const auto* const first = reinterpret_cast<const std::byte*>(&bits);
      elements.insert(elements.end(), first, first + sizeof bits);
    }
    return elements;
  }

  TensorInfo info_;
  TensorProto tensor_;
};

}  // namespace

std::unique_ptr<TensorSet> open_onnx(std::unique_ptr<ByteSource> bytes) {
  const std::string name = bytes->name();
  std::shared_ptr<const ByteSource> file;
  if (bytes->has_random_access()) {
    file = std::move(bytes);
    bytes = slice(file, name, 0, file->remaining().value());
  }
  TensorProto tensor = TensorProtoReader(*bytes, file == nullptr).read();
  const std::string tensor_name = tensor.name;
  return set_of(TensorOpener(name, std::move(tensor)).open(file), tensor_name);
}

}  // namespace lnorm
