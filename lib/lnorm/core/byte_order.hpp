#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

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

}  // namespace lnorm
