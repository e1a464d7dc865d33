#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
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

// Turns elements of a byte order into native ones, in place.
inline void make_native(std::span<std::byte> elements, DType dtype, std::endian byte_order) {
  if (byte_order == std::endian::native) return;
  visit(dtype, [&](auto element) {
    using Bits = UnsignedOfSize<sizeof element>;
    for (; !elements.empty(); elements = elements.subspan(sizeof(Bits))) {
      Bits bits;
      std::memcpy(&bits, elements.data(), sizeof bits);
      bits = swap_bytes(bits);
      std::memcpy(elements.data(), &bits, sizeof bits);
    }
  });
}

}  // namespace lnorm
