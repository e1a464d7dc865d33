#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "lnorm/core/dtype.hpp"

namespace lnorm {

template <std::size_t size>
using UnsignedOfSize = std::conditional_t<
    size == 1, std::uint8_t,
    std::conditional_t<size == 2, std::uint16_t,
                       std::conditional_t<size == 4, std::uint32_t, std::uint64_t>>>;

template <class Bits>
Bits swap_bytes(Bits bits) noexcept {
  if constexpr (sizeof bits == 8) {
    return __builtin_bswap64(bits);
  } else if constexpr (sizeof bits == 4) {
    return __builtin_bswap32(bits);
  } else if constexpr (sizeof bits == 2) {
    return __builtin_bswap16(bits);
  } else {
    return bits;
  }
}

// The integer of up to eight bytes, the least significant of which comes first.
inline std::uint64_t from_little_endian(std::string_view bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Turns elements of a byte order into native ones, in place.
inline void make_native(std::span<std::byte> elements, DType dtype, std::endian byte_order) {
  if (byte_order == std::endian::native) return;
  const std::size_t item = item_size(dtype);
  for (; !elements.empty(); elements = elements.subspan(item)) {
    std::reverse(elements.begin(), elements.begin() + static_cast<std::ptrdiff_t>(item));
  }
}

}  // namespace lnorm
