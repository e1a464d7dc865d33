#pragma once

#include <array>
#include <cstddef>
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
};

// All that lnorm has to know of a dtype but how its elements are decoded: that is visit.
struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t size;  // bytes of an element
  DTypeKind kind;
  FloatFormat format{};  // of a float
  double rtol = 0;  // of torch.testing.assert_close; for float8, where it has none, an ulp of 1
  double atol = 0;
};

// In the order of DType.
inline constexpr std::array kDTypes{
    DTypeRow{DType::boolean, "bool", 1, DTypeKind::boolean},
    DTypeRow{DType::int8, "int8", 1, DTypeKind::signed_integer},
    DTypeRow{DType::int16, "int16", 2, DTypeKind::signed_integer},
    DTypeRow{DType::int32, "int32", 4, DTypeKind::signed_integer},
    DTypeRow{DType::int64, "int64", 8, DTypeKind::signed_integer},
    DTypeRow{DType::uint8, "uint8", 1, DTypeKind::unsigned_integer},
    DTypeRow{DType::uint16, "uint16", 2, DTypeKind::unsigned_integer},
    DTypeRow{DType::uint32, "uint32", 4, DTypeKind::unsigned_integer},
    DTypeRow{DType::uint64, "uint64", 8, DTypeKind::unsigned_integer},
    DTypeRow{
        DType::float8_e4m3fn, "float8_e4m3fn", 1, DTypeKind::floating, {4, -9, 448}, 0.125, 1e-5},
    DTypeRow{
        DType::float8_e5m2, "float8_e5m2", 1, DTypeKind::floating, {3, -16, 57344}, 0.25, 1e-5},
    DTypeRow{DType::float16, "float16", 2, DTypeKind::floating, {11, -24, 0x1.ffcp15}, 1e-3, 1e-5},
    DTypeRow{
        DType::bfloat16, "bfloat16", 2, DTypeKind::floating, {8, -133, 0x1.fep127}, 1.6e-2, 1e-5},
    DTypeRow{DType::float32,
             "float32",
             4,
             DTypeKind::floating,
             {24, -149, 0x1.fffffep127},
             1.3e-6,
             1e-5},
    DTypeRow{DType::float64,
             "float64",
             8,
             DTypeKind::floating,
             {53, -1074, 0x1.fffffffffffffp1023},
             1e-7,
             1e-7},
    DTypeRow{DType::float64_pair,
             "float64_pair",
             16,
             DTypeKind::floating,
             {53, -1074, 0x1.fffffffffffffp1023}},
};

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

// Requires a float dtype.
constexpr const FloatFormat& float_format(DType dtype) noexcept { return dtype_row(dtype).format; }

}  // namespace lnorm
