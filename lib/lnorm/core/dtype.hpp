#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "lnorm/core/small_float.hpp"

namespace lnorm {

// The element types that lnorm reads, named as NumPy and PyTorch name them.
enum class DType {
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float8_e4m3fn,
  float8_e5m2,
  float8_e4m3fnuz,
  float8_e8m0fnu,  // powers of two: scales
  float16,
  bfloat16,
  float32,
  float64,
  // Two float64 in native byte order, for their exact sum, to which the first is the nearest float64. Results have it;
  // no file does.
  float64_pair,
};

std::string_view name(DType dtype);
// Finds a dtype by its name, or by a synonym: half, fp16, bf16, float, f32, double and the like.
std::optional<DType> parse_dtype(std::string_view name);
std::size_t item_size(DType dtype);
bool is_floating(DType dtype);
bool is_float8(DType dtype);        // of 8 bits, but for scales
bool is_larger_float(DType dtype);  // of 16 bits or more
bool is_result(DType dtype);        // either of these: what results are rounded to

// Calls visitor(T{}) with the C++ type of dtype's elements: bool, std::int8_t ... float, double;
// Float8E4M3, Float8E5M2, Float8E4M3Fnuz, Float8E8M0, Float16, BFloat16. A pair counts as double.
template <class Visitor>
constexpr decltype(auto) visit(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::boolean:
      return visitor(bool{});
    case DType::int8:
      return visitor(std::int8_t{});
    case DType::int16:
      return visitor(std::int16_t{});
    case DType::int32:
      return visitor(std::int32_t{});
    case DType::int64:
      return visitor(std::int64_t{});
    case DType::uint8:
      return visitor(std::uint8_t{});
    case DType::uint16:
      return visitor(std::uint16_t{});
    case DType::uint32:
      return visitor(std::uint32_t{});
    case DType::uint64:
      return visitor(std::uint64_t{});
    case DType::float8_e4m3fn:
      return visitor(Float8E4M3{});
    case DType::float8_e5m2:
      return visitor(Float8E5M2{});
    case DType::float8_e4m3fnuz:
      return visitor(Float8E4M3Fnuz{});
    case DType::float8_e8m0fnu:
      return visitor(Float8E8M0{});
    case DType::float16:
      return visitor(Float16{});
    case DType::bfloat16:
      return visitor(BFloat16{});
    case DType::float32:
      return visitor(float{});
    case DType::float64:
    case DType::float64_pair:
      break;
  }
  return visitor(double{});
}

// The dtype of a C++ type for which visit calls.
template <class T>
constexpr DType dtype_of() {
  auto dtype = DType::boolean;
  const auto is_it = [](auto element) { return std::is_same_v<decltype(element), T>; };
  while (!visit(dtype, is_it)) dtype = static_cast<DType>(static_cast<int>(dtype) + 1);
  return dtype;
}

}  // namespace lnorm
