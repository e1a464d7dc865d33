// Vectors of doubles, and how elements of any dtype get into them and out: included once for every
// target that Highway compiles for, by files that include foreach_target.h before.

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
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/two_pass.hpp"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, static_cast<std::size_t>(kLanes)>;
using V = hn::Vec<D>;
constexpr D kDoubles;
constexpr auto kWidth = static_cast<std::int64_t>(hn::MaxLanes(kDoubles));
constexpr std::int64_t kVectors = kLanes / kWidth;

// Without instructions for it, float16 goes by way of a Chunk.
constexpr bool kHasFloat16 = HWY_TARGET <= HWY_AVX2;

template <class T>
constexpr std::int64_t kSize = static_cast<std::int64_t>(sizeof(T));

HWY_INLINE V splat(double value) { return hn::Set(kDoubles, value); }

// Elements at any address, as doubles.
template <class T>
HWY_INLINE V load_vector(const std::byte* from) {
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(kDoubles, reinterpret_cast<const double*>(from));
  } else if constexpr (std::is_same_v<T, float>) {
    const hn::Rebind<float, D> floats;
    return hn::PromoteTo(kDoubles, hn::LoadU(floats, reinterpret_cast<const float*>(from)));
  } else if constexpr (std::is_same_v<T, Float16>) {
    const hn::Rebind<float, D> floats;
    const hn::Rebind<hwy::float16_t, D> halves;
    const auto* const bits = reinterpret_cast<const hwy::float16_t*>(from);
    return hn::PromoteTo(kDoubles, hn::PromoteTo(floats, hn::LoadU(halves, bits)));
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

// The nearest float that is either exact or has an odd last bit: rounding that once more, to fewer
// bits, rounds as from the double itself.
[[maybe_unused]] HWY_INLINE hn::Vec<hn::Rebind<float, D> > round_to_odd(V value) {
  const hn::Rebind<float, D> floats;
  const hn::RebindToUnsigned<decltype(floats)> bits;
  const auto nearest = hn::DemoteTo(floats, value);
  const V back = hn::PromoteTo(kDoubles, nearest);
  const auto is_off = hn::DemoteTo(floats, hn::IfThenElseZero(hn::Ne(back, value), splat(1)));
  const auto is_above =
      hn::DemoteTo(floats, hn::IfThenElseZero(hn::Gt(hn::Abs(back), hn::Abs(value)), splat(1)));
  const auto one = hn::Set(bits, 1u);
  const auto truncated = hn::Sub(
      hn::BitCast(bits, nearest),
      hn::And(one,
              hn::VecFromMask(bits, hn::RebindMask(bits, hn::Ne(is_above, hn::Zero(floats))))));
  return hn::BitCast(
      floats,
      hn::Or(truncated,
             hn::And(one, hn::VecFromMask(
                              bits, hn::RebindMask(bits, hn::Ne(is_off, hn::Zero(floats)))))));
}

// stream: past the caches, to an aligned address.
template <class T, bool stream>
HWY_INLINE void store_vector(V value, std::byte* to) {
  const hn::Rebind<float, D> floats;
  if constexpr (std::is_same_v<T, float>) {
    const auto rounded = hn::DemoteTo(floats, value);
    if constexpr (stream) {
      hn::Stream(rounded, floats, reinterpret_cast<float*>(to));
    } else {
      hn::StoreU(rounded, floats, reinterpret_cast<float*>(to));
    }
  } else {
    const hn::Rebind<hwy::float16_t, D> halves;
    const hn::Rebind<std::uint16_t, D> bits;
    const auto rounded = hn::BitCast(bits, hn::DemoteTo(halves, round_to_odd(value)));
    if constexpr (stream) {
      hn::Stream(rounded, bits, reinterpret_cast<std::uint16_t*>(to));
    } else {
      hn::StoreU(rounded, bits, reinterpret_cast<std::uint16_t*>(to));
    }
  }
}

// Which elements of vector v there are in a group of count.
HWY_INLINE hn::Mask<D> mask_of(std::int64_t count, std::int64_t v) {
  const std::int64_t present = std::clamp<std::int64_t>(count - v * kWidth, 0, kWidth);
  return hn::FirstN(kDoubles, static_cast<std::size_t>(present));
}

// The last elements of a row, fewer than a group, followed by zeros.
template <class T>
struct Rest {
  alignas(64) std::byte bytes[kLanes * kSize<T>] = {};

  HWY_INLINE Rest(const std::byte* from, std::int64_t count) {
    std::memcpy(bytes, from, static_cast<std::size_t>(count * kSize<T>));
  }
};

// Adds the lanes in halves.
template <class H>
HWY_INLINE double fold_vector(H, hn::Vec<H> lanes) {
  if constexpr (hn::MaxLanes(H()) == 1) {
    return hn::GetLane(lanes);
  } else {
    const hn::Half<H> half;
    return fold_vector(half, hn::Add(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  }
}

struct Lanes {
  V v[kVectors];

  HWY_INLINE Lanes() {
    for (V& vector : v) vector = hn::Zero(kDoubles);
  }
  // To one vector, which is still to be folded.
  HWY_INLINE V fold_vectors() {
    for (std::int64_t half = kVectors / 2; half > 0; half /= 2) {
      for (std::int64_t j = 0; j < half; ++j) v[j] = hn::Add(v[j], v[j + half]);
    }
    return v[0];
  }
  HWY_INLINE double fold() { return fold_vector(kDoubles, fold_vectors()); }
};

// Whether the elements can be read as they lie.
bool is_loaded(const RowsIn& row) {
  switch (row.dtype) {
    case DType::float16:
      return kHasFloat16 && row.byte_order == std::endian::native;
    case DType::boolean:
    case DType::uint32:
    case DType::int64:
    case DType::uint64:
      return false;
    default:
      return row.byte_order == std::endian::native;
  }
}

// Calls use(T{}, elements, low) with the elements of a chunk, as the row has them or decoded; low is
// null where there are no low parts.
template <class Use>
HWY_INLINE void with_chunk(const RowsIn& row, std::int64_t start, Chunk& chunk, Use use) {
  const std::byte* const at = row.data + start * static_cast<std::int64_t>(item_size(row.dtype));
  if (is_loaded(row)) {
    switch (row.dtype) {
      case DType::float32:
        return use(float{}, at, nullptr);
      case DType::float64:
        return use(double{}, at, nullptr);
      case DType::float16:
        return use(Float16{}, at, nullptr);
      case DType::int8:
        return use(std::int8_t{}, at, nullptr);
      case DType::uint8:
        return use(std::uint8_t{}, at, nullptr);
      case DType::int16:
        return use(std::int16_t{}, at, nullptr);
      case DType::uint16:
        return use(std::uint16_t{}, at, nullptr);
      case DType::int32:
        return use(std::int32_t{}, at, nullptr);
      default:
        break;
    }
  }
  load(at, row.dtype, row.byte_order, chunk_length(row, start), chunk);
  use(double{}, reinterpret_cast<const std::byte*>(chunk.high),
      has_low(row.dtype) ? chunk.low : nullptr);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
#endif
