#include "lnorm/report/numbers.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_number.hpp"

namespace lnorm {

namespace {

template <class T>
std::string shortest(T value, double as_double) {
  if (std::isnan(as_double)) return "nan";
  if (std::isinf(as_double)) return as_double < 0 ? "-inf" : "inf";
  char buffer[32];
  std::string_view text = json_number(value, buffer);
  if (text.ends_with(".0")) text.remove_suffix(2);
  return std::string(text);
}

std::string joined(const Shape& shape, std::string_view separator) {
  std::string text;
  for (const std::int64_t extent : shape) text += concat(text.empty() ? "" : separator, extent);
  return text;
}

}  // namespace

std::string shape_text(const Shape& shape) { return shape.empty() ? "()" : joined(shape, "x"); }

std::string index_text(const Shape& index) { return concat('(', joined(index, ","), ')'); }

std::string value_text(double value) { return shortest(value, value); }

std::string value_text(Number value, DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
    case DType::float16:  // in its own digits 65504 would be 65500
    case DType::float32:
      return shortest(static_cast<float>(value.high), value.high);
    case DType::float64:
      return value_text(value.high);
    default:
      break;
  }
  const Int128 integer = integer_of(value);
  return integer < 0 ? std::to_string(static_cast<std::int64_t>(integer))
                     : std::to_string(static_cast<std::uint64_t>(integer));
}

std::string rounded_text(double value, int digits) {
  std::array<char, 64> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                    std::chars_format::general, digits);
  return {buffer.data(), result.ptr};
}

}  // namespace lnorm
