// Vectors of doubles, and how elements of any dtype get into them: included once for every target that Highway
// compiles for, by files that include foreach_target.h before, and by portable.cpp for vectors of one double.

#if defined(LNORM_KERNEL_SIMD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_SIMD_INL_HPP_
#undef LNORM_KERNEL_SIMD_INL_HPP_
#else
#define LNORM_KERNEL_SIMD_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 16>;
using V = hn::Vec<D>;
using F = hn::Rebind<float, D>;  // as many floats
constexpr D kDoubles;
constexpr auto kWidth = static_cast<std::int64_t>(hn::MaxLanes(kDoubles));

// Sums are kept in several vectors, so that one addition need not wait for the other, and elements go through
// few additions each.
constexpr std::int64_t kVectors = kWidth == 2 ? 8 : 4;
constexpr std::int64_t kLanes = kVectors * kWidth;

#if HWY_ARCH_X86
constexpr bool kHasFusedMultiplyAdd = HWY_TARGET <= HWY_AVX2;
constexpr bool kHasFloat16 = HWY_TARGET <= HWY_AVX2;  // else float16 goes by way of a Chunk
#else
constexpr bool kHasFusedMultiplyAdd = HWY_TARGET != HWY_SCALAR;
constexpr bool kHasFloat16 = HWY_TARGET != HWY_SCALAR;
#endif

template <class T>
constexpr std::int64_t kSize = static_cast<std::int64_t>(sizeof(T));

HWY_INLINE V splat(double value) { return hn::Set(kDoubles, value); }

// Double-doubles in vectors.
struct V2 {
  V high;
  V low;
};
using Real = V;
using Pair = V2;

HWY_INLINE V product_error(V a, V b, V product) {
  if constexpr (kHasFusedMultiplyAdd) {
    return hn::MulSub(a, b, product);
  } else {  // [Dekker, Veltkamp]
    const V splitter = splat(0x1p27 + 1);
    const V a_scaled = splitter * a;
    const V a_high = a_scaled - (a_scaled - a);
    const V a_low = a - a_high;
    const V b_scaled = splitter * b;
    const V b_high = b_scaled - (b_scaled - b);
    const V b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
  }
}

#define LNORM_REAL_INLINE HWY_INLINE
#include "lnorm/core/double_double-inl.hpp"
#undef LNORM_REAL_INLINE

HWY_INLINE V2 splat(DoubleDouble value) { return {splat(value.high), splat(value.low)}; }

// bfloat16 is the upper half of a float.
template <class Floats>
HWY_INLINE hn::Vec<Floats> widen_bfloat16(Floats floats, const std::byte* from) {
  const hn::RebindToUnsigned<Floats> bits;
  const hn::Rebind<std::uint16_t, Floats> halves;
  const auto upper = hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(floats, hn::ShiftLeft<16>(hn::PromoteTo(bits, upper)));
}

// Elements at any address, as doubles.
template <class T>
HWY_INLINE V load_vector(const std::byte* from) {
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(kDoubles, reinterpret_cast<const double*>(from));
  } else if constexpr (std::is_same_v<T, float>) {
    return hn::PromoteTo(kDoubles, hn::LoadU(F(), reinterpret_cast<const float*>(from)));
  } else if constexpr (std::is_same_v<T, Float16>) {
    const hn::Rebind<hwy::float16_t, D> halves;
    const auto* const bits = reinterpret_cast<const hwy::float16_t*>(from);
    return hn::PromoteTo(kDoubles, hn::PromoteTo(F(), hn::LoadU(halves, bits)));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return hn::PromoteTo(kDoubles, widen_bfloat16(F(), from));
  } else {
    const hn::Rebind<std::int32_t, D> integers;
    const hn::Rebind<T, D> elements;
    const auto loaded = hn::LoadU(elements, reinterpret_cast<const T*>(from));
    if constexpr (sizeof(T) == 4) {
      return hn::PromoteTo(kDoubles, loaded);
    } else {
      return hn::PromoteTo(kDoubles, hn::PromoteTo(integers, loaded));
    }
  }
}

// Which elements of vector v there are in a group of count.
template <class Tag>
HWY_INLINE hn::Mask<Tag> mask_of(Tag tag, std::int64_t count, std::int64_t v) {
  const std::int64_t present = std::clamp<std::int64_t>(count - v * kWidth, 0, kWidth);
  return hn::FirstN(tag, static_cast<std::size_t>(present));
}

// The last elements of a row, fewer than a group, followed by zeros.
template <class T>
struct Rest {
  alignas(64) std::byte bytes[kLanes * kSize<T>];

  HWY_INLINE Rest(const std::byte* from, std::int64_t count) {
    const auto size = static_cast<std::size_t>(count * kSize<T>);
    std::memcpy(bytes, from, size);
    std::memset(bytes + size, 0, sizeof bytes - size);
  }
};

HWY_INLINE double sum_of_lanes(V lanes) { return hn::GetLane(hn::SumOfLanes(kDoubles, lanes)); }

// A vector for each of several sums.
struct Lanes {
  V v[kVectors];

  HWY_INLINE void clear() {
    for (V& vector : v) vector = hn::Zero(kDoubles);
  }
  // To one vector, which is still to be summed.
  HWY_INLINE V fold() const {
    V folded[kVectors];
    for (std::int64_t j = 0; j < kVectors; ++j) folded[j] = v[j];
    for (std::int64_t half = kVectors / 2; half > 0; half /= 2) {
      for (std::int64_t j = 0; j < half; ++j) folded[j] = folded[j] + folded[j + half];
    }
    return folded[0];
  }
};

// Whether the elements are read as they lie. Others are decoded first, a chunk at a time.
HWY_INLINE bool is_loaded(const RowsIn& row) {
  return (row.dtype == DType::float32 || row.dtype == DType::float64) &&
         row.byte_order == std::endian::native;
}

template <class T>
void decode_as(const std::byte* from, std::int64_t count, double* to) {
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    hn::StoreU(load_vector<T>(from + i * kSize<T>), kDoubles, to + i);
  }
  if constexpr (kWidth > 1) {  // kChunk is whole vectors
    if (i == count) return;
    const Rest<T> rest(from + i * kSize<T>, count - i);
    hn::StoreU(load_vector<T>(rest.bytes), kDoubles, to + i);
  }
}

inline void decode(const std::byte* from, DType dtype, std::endian byte_order, std::int64_t count,
                   Chunk& chunk) {
  if (byte_order == std::endian::native) {
    switch (dtype) {
      case DType::int8:
        return decode_as<std::int8_t>(from, count, chunk.high);
      case DType::uint8:
        return decode_as<std::uint8_t>(from, count, chunk.high);
      case DType::int16:
        return decode_as<std::int16_t>(from, count, chunk.high);
      case DType::uint16:
        return decode_as<std::uint16_t>(from, count, chunk.high);
      case DType::int32:
        return decode_as<std::int32_t>(from, count, chunk.high);
      case DType::bfloat16:
        return decode_as<BFloat16>(from, count, chunk.high);
      case DType::float16:
        if constexpr (kHasFloat16) return decode_as<Float16>(from, count, chunk.high);
        break;
      default:
        break;
    }
  }
  load(from, dtype, byte_order, count, chunk);
}

// Calls use(T{}, elements, low) with the count elements of a chunk, as the row has them or decoded. low is null
// where there are no low parts.
template <class Use>
HWY_INLINE void with_chunk(const RowsIn& row, std::int64_t start, std::int64_t count, Chunk& chunk,
                           Use use) {
  const std::byte* const at = part_of(row, start, count).data;
  if (is_loaded(row)) {
    return row.dtype == DType::float32 ? use(float{}, at, nullptr) : use(double{}, at, nullptr);
  }
  decode(at, row.dtype, row.byte_order, count, chunk);
  use(double{}, reinterpret_cast<const std::byte*>(chunk.high),
      has_low(row.dtype) ? chunk.low : nullptr);
}

// Calls use(has_weight, has_bias) with both as types.
template <class Use>
HWY_INLINE void with_terms(const Affine& affine, Use use) {
  const auto with_weight = [&](auto has_weight) HWY_ATTR {
    if (affine.bias().empty()) {
      use(has_weight, std::false_type{});
    } else {
      use(has_weight, std::true_type{});
    }
  };
  if (affine.weight().empty()) {
    with_weight(std::false_type{});
  } else {
    with_weight(std::true_type{});
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
