#include "lnorm/core/chunk.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/int128.hpp"

namespace lnorm {

namespace {

template <class T, bool swapped>
T load_one(const std::byte* from) noexcept {
  UnsignedOfSize<sizeof(T)> bits;
  std::memcpy(&bits, from, sizeof bits);
  if constexpr (swapped) bits = swap_bytes(bits);
  if constexpr (std::is_same_v<T, bool>) {
    return bits != 0;  // a file may hold any byte; NumPy takes every one but 0 as true
  } else {
    return std::bit_cast<T>(bits);
  }
}

template <class T, bool swapped>
void load_as(const std::byte* from, std::int64_t count, Chunk& to) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    const T element = load_one<T, swapped>(from + i * static_cast<std::int64_t>(sizeof(T)));
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      to.high[i] = to_double(element);
    } else {
      to.high[i] = static_cast<double>(element);
      if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
        to.low[i] =
            static_cast<double>(static_cast<Int128>(element) - static_cast<Int128>(to.high[i]));
      }
    }
  }
}

}  // namespace

void load(const std::byte* from, DType dtype, std::endian byte_order, std::int64_t count,
          Chunk& to) noexcept {
  visit(dtype, [&](auto element) {
    using T = decltype(element);
    if (byte_order == std::endian::native) {
      load_as<T, false>(from, count, to);
    } else {
      load_as<T, true>(from, count, to);
    }
  });
}

bool has_low(DType dtype) noexcept { return dtype == DType::int64 || dtype == DType::uint64; }

void store(const double* from, std::int64_t count, DType dtype, std::byte* to) noexcept {
  const auto store_as = [&](auto convert) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = std::isnan(from[i]) ? std::numeric_limits<double>::quiet_NaN() : from[i];
      const auto element = convert(value);
      std::memcpy(to + i * static_cast<std::int64_t>(sizeof element), &element, sizeof element);
    }
  };
  switch (dtype) {
    case DType::float16:
      return store_as([](double value) { return to_float16(value); });
    case DType::bfloat16:
      return store_as([](double value) { return to_bfloat16(value); });
    case DType::float32:
      return store_as([](double value) { return static_cast<float>(value); });
    default:
      return store_as([](double value) { return value; });
  }
}

}  // namespace lnorm
