#include "lnorm/io/json/json_element.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "lnorm/io/json/json_text.hpp"

namespace lnorm {

namespace {

using Value = simdjson::ondemand::value;

bool read(Value& value, bool& element) {
  if (value.get_bool().get(element) == simdjson::SUCCESS) return true;
  std::uint64_t integer;
  if (value.get_uint64().get(integer) != simdjson::SUCCESS || integer > 1) return false;
  element = integer == 1;
  return true;
}

template <class T>
requires std::is_integral_v<T>
bool read(Value& value, T& element) {
  std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t> integer;
  if (value.get(integer) != simdjson::SUCCESS) return false;
  element = static_cast<T>(integer);
  return element == integer;
}

bool read(Value& value, double& element) {
  if (value.get_double().get(element) == simdjson::SUCCESS) return true;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string_view token = trimmed_json(value.raw_json_token());
  element = token == "Infinity"    ? kInfinity
            : token == "-Infinity" ? -kInfinity
                                   : std::numeric_limits<double>::quiet_NaN();
  return !std::isnan(element) || token == "NaN" || token == "null";
}

bool read(Value& value, float& element) {
  const std::string_view token = value.raw_json_token();
  double number;
  if (!read(value, number)) return false;
  element = static_cast<float>(number);
  if (!std::isfinite(number)) return true;
  // From the decimal, since by way of double it would be rounded twice. Where the decimal is out of
  // range this leaves element alone: 0 after an underflow, infinite after an overflow.
  (void)std::from_chars(token.data(), token.data() + token.size(), element);
  return std::isfinite(element);
}

template <class Small>
bool read_small(Value& value, Small (*rounded)(double) noexcept, Small& element) {
  double number;
  if (!read(value, number)) return false;
  element = rounded(number);
  const double back = to_double(element);
  return std::isfinite(back) || back == number || std::isnan(number);
}
bool read(Value& value, Float8E4M3& element) { return read_small(value, to_float8_e4m3, element); }
bool read(Value& value, Float8E5M2& element) { return read_small(value, to_float8_e5m2, element); }
bool read(Value& value, Float16& element) { return read_small(value, to_float16, element); }
bool read(Value& value, BFloat16& element) { return read_small(value, to_bfloat16, element); }

template <class T>
std::optional<std::size_t> read_list(simdjson::ondemand::array& list, std::span<std::byte> to) {
  const std::size_t room = to.size() / sizeof(T);
  std::byte* at = to.data();
  std::size_t count = 0;
  for (auto result : list) {
    Value value;
    T element;
    if (result.get(value) != simdjson::SUCCESS || count == room || !read(value, element)) {
      return std::nullopt;
    }
    std::memcpy(at, &element, sizeof element);
    at += sizeof element;
    ++count;
  }
  return count;
}

}  // namespace

bool append_json_element(Value& value, DType dtype, RawBytes& elements) {
  const auto append = [&](auto element) {
    if (!read(value, element)) return false;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&element);
    elements.insert(elements.end(), bytes, bytes + sizeof element);
    return true;
  };
  return dtype == DType::float64 ? append(double{}) : visit(dtype, append);
}

std::optional<std::size_t> read_json_list(simdjson::ondemand::array& list, DType dtype,
                                          std::span<std::byte> to) {
  return visit(dtype, [&]<class T>(T) { return read_list<T>(list, to); });
}

}  // namespace lnorm
