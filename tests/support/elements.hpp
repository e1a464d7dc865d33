#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/error.hpp"

// Tests that call the library compare numbers, the bytes of tensors, and errors.
namespace support {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kMaxDouble = std::numeric_limits<double>::max();
inline constexpr std::endian kOtherByteOrder =
    std::endian::native == std::endian::little ? std::endian::big : std::endian::little;

inline bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
// NaN equals NaN, and zeros have signs.
inline bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || same_bits(a, b);
}

// These turn elements into the bytes that they are in memory, and back.
template <class T>
std::vector<std::byte> as_bytes(const std::vector<T>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return {bytes.begin(), bytes.end()};
}
template <class T>
std::vector<T> elements_of(std::span<const std::byte> bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Draws so many numbers of a normal distribution.
template <class T = double>
std::vector<T> normals(std::int64_t count, std::uint64_t seed, double mean = 0,
                       double deviation = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, deviation);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(normal(random));
  return values;
}

// Turns the elements, of so many bytes each, into the other byte order.
inline std::vector<std::byte> swapped(std::span<const std::byte> bytes, std::size_t item) {
  std::vector<std::byte> result;
  for (std::size_t i = 0; i < bytes.size(); i += item) {
    const auto element = bytes.subspan(i, item);
    result.insert(result.end(), element.rbegin(), element.rend());
  }
  return result;
}

// Returns what the library says against some work, without the start that it must have, such as a folder.
template <std::invocable Work>
std::string error_of(Work work, std::string_view start = "") {
  try {
    work();
  } catch (const lnorm::Error& error) {
    const std::string what = error.what();
    return what.starts_with(start) ? what.substr(start.size()) : "elsewhere: " + what;
  }
  return "no error";
}

}  // namespace support
