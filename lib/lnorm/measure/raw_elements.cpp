#include "lnorm/measure/raw_elements.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/chunk.hpp"
#include "lnorm/core/processors.hpp"
#include "lnorm/measure/ulp.hpp"

namespace lnorm {

namespace {

enum class Kind { finite, finite_not_zero, nan };

// A float without its sign, whose bits have the order of what they stand for.
template <class T, class Bits>
Bits magnitude_of(Bits bits) {
  if constexpr (std::is_same_v<T, Float8E8M0>) return bits;
  if constexpr (std::is_same_v<T, Float8E4M3Fnuz>) {
    if (bits == T::kNan) return bits;
  }
  return static_cast<Bits>(bits & std::numeric_limits<Bits>::max() >> 1);
}

template <class T, Kind kind, class Bits>
bool is(Bits bits) {
  if constexpr (std::is_integral_v<T>) {
    return kind == Kind::finite || (kind == Kind::finite_not_zero && bits != 0);
  } else {
    constexpr auto kInfinityBits = static_cast<Bits>(detail::kInfinityBits<T>);
    const Bits magnitude = magnitude_of<T>(bits);
    if constexpr (kind == Kind::nan && SmallFloat<T>) {
      if constexpr (T::kBeyond == T::kNan) return magnitude == kInfinityBits;
    }
    if constexpr (kind == Kind::nan) return magnitude > kInfinityBits;
    if constexpr (std::is_same_v<T, Float8E8M0>) return magnitude < kInfinityBits;  // no zero
    return magnitude < kInfinityBits && (kind == Kind::finite || magnitude != 0);
  }
}

// Calls work with the C++ type of the elements and a function that gives the bits of one.
template <class Work>
auto visit_bits(const RawElements& elements, Work work) {
  return visit(elements.dtype, [&]<class T>(T) {
    using Bits = UnsignedOfSize<sizeof(T)>;
    const auto bits_at = [data = elements.data](std::int64_t i) {
      Bits bits;
      std::memcpy(&bits, data + i * static_cast<std::int64_t>(sizeof bits), sizeof bits);
      return bits;
    };
    if (elements.byte_order == std::endian::native) return work(T{}, bits_at);
    return work(T{}, [bits_at](std::int64_t i) { return swap_bytes(bits_at(i)); });
  });
}

// Whole groups are looked at without a branch, so that the compiler can take many elements at once.
template <Kind kind>
std::optional<std::int64_t> find_first(const RawElements& elements) {
  return visit_bits(elements, [&]<class T>(T, auto bits_at) -> std::optional<std::int64_t> {
    using Bits = UnsignedOfSize<sizeof(T)>;
    constexpr std::int64_t kGroup = 256;
    for (std::int64_t start = 0; start < elements.count; start += kGroup) {
      const std::int64_t stop = std::min(start + kGroup, elements.count);
      Bits any = 0;
      for (std::int64_t i = start; i < stop; ++i) {
        any = static_cast<Bits>(any | (is<T, kind>(bits_at(i)) ? 1 : 0));
      }
      for (std::int64_t i = start; any != 0 && i < stop; ++i) {
        if (is<T, kind>(bits_at(i))) return i;
      }
    }
    return std::nullopt;
  });
}

}  // namespace

Number element_at(const RawElements& elements, std::int64_t index) {
  Chunk chunk;
  const auto item = static_cast<std::int64_t>(item_size(elements.dtype));
  chunk.low[0] = 0;
  load(elements.data + index * item, elements.dtype, elements.byte_order, 1, chunk);
  return {chunk.high[0], chunk.low[0]};
}

std::optional<std::int64_t> first_finite(const RawElements& elements) {
  return find_first<Kind::finite>(elements);
}

std::optional<std::int64_t> first_finite_not_zero(const RawElements& elements) {
  return find_first<Kind::finite_not_zero>(elements);
}

bool has_nan(const RawElements& elements) { return find_first<Kind::nan>(elements).has_value(); }

LNORM_FOR_PROCESSORS
double greatest_finite(const RawElements& elements) {
  return visit_bits(elements, [&]<class T>(T, auto bits_at) {
    using Bits = UnsignedOfSize<sizeof(T)>;
    // Magnitudes of floats are no negative numbers; SSE2 compares numbers with a sign.
    using Wide = std::conditional_t<sizeof(T) == 1, std::uint16_t, Bits>;
    using Rank = std::conditional_t<std::is_integral_v<T>, Bits, std::make_signed_t<Wide>>;
    // The values of finite elements, and 0 for the others.
    const auto magnitude = [](Bits bits) -> Rank {
      if constexpr (std::is_same_v<T, bool>) {
        return bits != 0 ? 1 : 0;
      } else if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
        return std::bit_cast<T>(bits) < 0 ? static_cast<Bits>(Bits{0} - bits) : bits;
      } else if constexpr (std::is_integral_v<T>) {
        return bits;
      } else {
        constexpr auto kEnd = static_cast<Rank>(detail::kInfinityBits<T>);
        const auto rank = static_cast<Rank>(magnitude_of<T>(bits));
        return rank < kEnd ? rank : Rank{0};
      }
    };
    Rank most = 0;
    for (std::int64_t i = 0; i < elements.count; ++i) most = std::max(most, magnitude(bits_at(i)));
    if (most == 0 && !first_finite(elements)) return kNoneFinite;
    if constexpr (std::is_integral_v<T>) {
      return static_cast<double>(most);
    } else if constexpr (!std::is_arithmetic_v<T>) {
      return to_double(std::bit_cast<T>(static_cast<Bits>(most)));
    } else {
      return static_cast<double>(std::bit_cast<T>(static_cast<Bits>(most)));
    }
  });
}

}  // namespace lnorm
