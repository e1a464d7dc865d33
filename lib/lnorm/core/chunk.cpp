#include "lnorm/core/chunk.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/processors.hpp"

namespace lnorm {

namespace {

template <class T, bool swapped>
void load_as(const std::byte* from, std::int64_t count, Chunk& to) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    UnsignedOfSize<sizeof(T)> bits;
    std::memcpy(&bits, from + i * static_cast<std::int64_t>(sizeof bits), sizeof bits);
    if constexpr (swapped) bits = swap_bytes(bits);
    if constexpr (std::is_same_v<T, bool>) {
      to.high[i] = bits != 0;  // a file may hold any byte; NumPy takes every one but 0 as true
    } else if constexpr (SmallFloat<T>) {
      to.high[i] = to_double(std::bit_cast<T>(bits));
    } else {
      const T element = std::bit_cast<T>(bits);
      if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
        // Both halves are doubles, and the upper one is 0 or larger than the lower one.
        const DoubleDouble sum = fast_two_sum(static_cast<double>(element >> 32) * 0x1p32,
                                              static_cast<double>(bits & 0xffffffffU));
        to.high[i] = sum.high;
        to.low[i] = sum.low;
      } else {
        to.high[i] = static_cast<double>(element);
      }
    }
  }
}

void load_pairs(const std::byte* from, std::int64_t count, Chunk& to) noexcept {
  for (std::int64_t i = 0; i < count; ++i, from += 2 * sizeof(double)) {
    std::memcpy(to.high + i, from, sizeof(double));
    std::memcpy(to.low + i, from + sizeof(double), sizeof(double));
  }
}

}  // namespace

LNORM_FOR_PROCESSORS
void load(const std::byte* from, DType dtype, std::endian byte_order, std::int64_t count,
          Chunk& to) noexcept {
  if (dtype == DType::float64_pair) return load_pairs(from, count, to);
  visit(dtype, [&](auto element) {
    using T = decltype(element);
    if (byte_order == std::endian::native) {
      load_as<T, false>(from, count, to);
    } else {
      load_as<T, true>(from, count, to);
    }
  });
}

bool has_low(DType dtype) noexcept {
  return dtype == DType::int64 || dtype == DType::uint64 || dtype == DType::float64_pair;
}

void store(const double* from, std::int64_t count, DType dtype, std::byte* to,
           bool saturates) noexcept {
  double most = kInfinity;
  if (saturates) most = float_format(dtype).greatest;
  visit(dtype, [&]<class T>(T element) {
    for (std::int64_t i = 0; i < count; ++i, to += sizeof element) {
      const double value = std::isnan(from[i]) ? kNan : std::clamp(from[i], -most, most);
      if constexpr (SmallFloat<T>) {
        element = rounded_to<T>(value);
      } else if constexpr (std::is_same_v<T, std::int8_t>) {
        element = static_cast<T>(std::isnan(value) ? 0 : std::min(std::max(value, -128.0), 127.0));
      } else {
        element = static_cast<T>(value);
      }
      std::memcpy(to, &element, sizeof element);
    }
  });
}

}  // namespace lnorm
