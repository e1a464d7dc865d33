#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "lnorm/core/dtype.hpp"

namespace lnorm {

enum class DTypeKind {
  boolean,
  signed_integer,
  unsigned_integer,
  floating,
};

// The finite numbers of a float dtype: the multiples of a power of two that have at most so many bits, from the
// smallest subnormal up to the greatest.
struct FloatFormat {
  int precision = 0;       // bits, the leading one among them
  int least_exponent = 0;  // the smallest subnormal is 2^least_exponent
  double greatest = 0;
  bool has_infinity = true;  // otherwise NaN is what overflow makes
};

// All that lnorm has to know of a dtype but how its elements are decoded: that is visit.
struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t size;  // bytes of an element
  DTypeKind kind;
  // What formats call it; empty or 0 where a format does not have it.
  std::string_view
      npy;  // NumPy's type code; V1 and V2, of ml_dtypes, do not tell which dtype it is
  std::string_view safetensors;
  std::string_view torch;  // the storage, as torch.FloatStorage; newer dtypes have none
  std::string_view onnx;
  int onnx_number = 0;  // TensorProto.DataType
  std::string_view ggml = {};
  std::array<std::string_view, 4> synonyms = {};  // what people call it
  FloatFormat format = {};  // of a float, and of what results are quantized to
  double rtol = 0;          // of torch.testing.assert_close; of float8 an ulp of 1, and a subnormal
  double atol = 0;
};

// The rows have the order of DType.
// clang-format off
inline constexpr std::array kDTypes{
    DTypeRow{DType::boolean, "bool",   1, DTypeKind::boolean,          "b1", "BOOL", "Bool",  "BOOL",   9, ""},
    DTypeRow{DType::int8,    "int8",   1, DTypeKind::signed_integer,   "i1", "I8",   "Char",  "INT8",   3, "I8", {}, {8, 0, 128}},
    DTypeRow{DType::int16,   "int16",  2, DTypeKind::signed_integer,   "i2", "I16",  "Short", "INT16",  5, "I16"},
    DTypeRow{DType::int32,   "int32",  4, DTypeKind::signed_integer,   "i4", "I32",  "Int",   "INT32",  6, "I32"},
    DTypeRow{DType::int64,   "int64",  8, DTypeKind::signed_integer,   "i8", "I64",  "Long",  "INT64",  7, "I64"},
    DTypeRow{DType::uint8,   "uint8",  1, DTypeKind::unsigned_integer, "u1", "U8",   "Byte",  "UINT8",  2, ""},
    DTypeRow{DType::uint16,  "uint16", 2, DTypeKind::unsigned_integer, "u2", "U16",  "",      "UINT16", 4, ""},
    DTypeRow{DType::uint32,  "uint32", 4, DTypeKind::unsigned_integer, "u4", "U32",  "",      "UINT32", 12, ""},
    DTypeRow{DType::uint64,  "uint64", 8, DTypeKind::unsigned_integer, "u8", "U64",  "",      "UINT64", 13, ""},
    DTypeRow{DType::float8_e4m3fn, "float8_e4m3fn", 1, DTypeKind::floating,
             "V1", "F8_E4M3", "", "FLOAT8E4M3FN", 17, "", {},
             {4, -9, 448, false}, 0.125, 2e-3},
    DTypeRow{DType::float8_e5m2, "float8_e5m2", 1, DTypeKind::floating,
             "V1", "F8_E5M2", "", "FLOAT8E5M2", 19, "", {"f1"},
             {3, -16, 57344}, 0.25, 1e-5},
    DTypeRow{DType::float8_e4m3fnuz, "float8_e4m3fnuz", 1, DTypeKind::floating,
             "V1", "F8_E4M3FNUZ", "", "FLOAT8E4M3FNUZ", 18, "", {},
             {4, -10, 240, false}, 0.125, 1e-3},
    DTypeRow{DType::float8_e8m0fnu, "float8_e8m0fnu", 1, DTypeKind::floating,
             "V1", "F8_E8M0", "", "FLOAT8E8M0", 24, "", {"float8_e8m0", "e8m0"},
             {1, -127, 0x1p127, false}, 0, 0},
    DTypeRow{DType::float16, "float16", 2, DTypeKind::floating,
             "f2", "F16", "Half", "FLOAT16", 10, "F16", {"f16", "fp16", "half", "f2"},
             {11, -24, 0x1.ffcp15}, 1e-3, 1e-5},
    DTypeRow{DType::bfloat16, "bfloat16", 2, DTypeKind::floating,
             "V2", "BF16", "BFloat16", "BFLOAT16", 16, "BF16", {"bf16"},
             {8, -133, 0x1.fep127}, 1.6e-2, 1e-5},
    DTypeRow{DType::float32, "float32", 4, DTypeKind::floating,
             "f4", "F32", "Float", "FLOAT", 1, "F32", {"f32", "fp32", "float", "f4"},
             {24, -149, 0x1.fffffep127}, 1.3e-6, 1e-5},
    DTypeRow{DType::float64, "float64", 8, DTypeKind::floating,
             "f8", "F64", "Double", "DOUBLE", 11, "F64", {"f64", "fp64", "double", "f8"},
             {53, -1074, 0x1.fffffffffffffp1023}, 1e-7, 1e-7},
    DTypeRow{DType::float64_pair, "float64_pair", 16, DTypeKind::floating,
             "", "", "", "", 0, "", {},
             {53, -1074, 0x1.fffffffffffffp1023}},
};
// clang-format on

constexpr const DTypeRow& dtype_row(DType dtype) noexcept {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

constexpr bool is_in_order() noexcept {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].dtype != static_cast<DType>(i)) return false;
  }
  return kDTypes.back().dtype == DType::float64_pair;
}
static_assert(is_in_order());

// The dtype that a format calls so, null if there is none.
constexpr const DTypeRow* find_dtype(std::string_view DTypeRow::*names, std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (!name.empty() && row.*names == name) return &row;
  }
  return nullptr;
}

// "bool, int8 to int64, float16 or float32", for messages: the dtypes that a format has a name for, by that name; or those
// for which a condition holds.
std::string dtype_list(std::string_view DTypeRow::*names);
std::string dtype_list(bool (*is_one)(DType));

// Whether NumPy's type code tells which dtype it is.
constexpr bool is_npy_dtype(DType dtype) noexcept {
  const std::string_view code = dtype_row(dtype).npy;
  return !code.empty() && code[0] != 'V';
}

// Requires a float dtype.
constexpr const FloatFormat& float_format(DType dtype) noexcept { return dtype_row(dtype).format; }

}  // namespace lnorm
