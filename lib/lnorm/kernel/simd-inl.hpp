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

// bfloat16 is the upper half of a float.
template <class F>
HWY_INLINE hn::Vec<F> widen_bfloat16(F floats, const std::byte* from) {
  const hn::RebindToUnsigned<F> bits;
  const hn::Rebind<std::uint16_t, F> halves;
  const auto upper = hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(floats, hn::ShiftLeft<16>(hn::PromoteTo(bits, upper)));
}

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
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return hn::PromoteTo(kDoubles, widen_bfloat16(hn::Rebind<float, D>(), from));
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
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    // To nearest even: half of a last place is added, less a bit if that is even.
    const hn::RebindToUnsigned<decltype(floats)> wide;
    const hn::RebindToSigned<decltype(floats)> integers;
    const hn::Rebind<std::uint16_t, D> bits;
    const auto odd = hn::BitCast(wide, round_to_odd(value));
    const auto last = hn::And(hn::ShiftRight<16>(odd), hn::Set(wide, 1u));
    const auto sum = hn::Add(odd, hn::Add(last, hn::Set(wide, 0x7fffu)));
    const auto rounded = hn::DemoteTo(bits, hn::BitCast(integers, hn::ShiftRight<16>(sum)));
    if constexpr (stream) {
      hn::Stream(rounded, bits, reinterpret_cast<std::uint16_t*>(to));
    } else {
      hn::StoreU(rounded, bits, reinterpret_cast<std::uint16_t*>(to));
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

  Rest() = default;
  HWY_INLINE Rest(const std::byte* from, std::int64_t count) { copy(from, count); }
  HWY_INLINE void copy(const std::byte* from, std::int64_t count) {
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

// Whether the elements are read as they lie. Others are decoded first, a chunk at a time.
bool is_loaded(const RowsIn& row) {
  return (row.dtype == DType::float32 || row.dtype == DType::float64) &&
         row.byte_order == std::endian::native;
}

template <class T>
void decode_as(const std::byte* from, std::int64_t count, double* to) {
  const auto do_group = [&](const std::byte* group, std::int64_t i) HWY_ATTR {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      hn::StoreU(load_vector<T>(group + v * kWidth * kSize<T>), kDoubles, to + i + v * kWidth);
    }
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) do_group(from + i * kSize<T>, i);
  if (i < count)
    do_group(Rest<T>(from + i * kSize<T>, count - i).bytes, i);  // kChunk is whole groups
}

void decode(const std::byte* from, DType dtype, std::endian byte_order, std::int64_t count,
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

// Calls use(T{}, elements, low) with the elements of a chunk, as the row has them or decoded; low is
// null where there are no low parts.
template <class Use>
HWY_INLINE void with_chunk(const RowsIn& row, std::int64_t start, Chunk& chunk, Use use) {
  const std::byte* const at = row.data + start * static_cast<std::int64_t>(item_size(row.dtype));
  if (is_loaded(row)) {
    return row.dtype == DType::float32 ? use(float{}, at, nullptr) : use(double{}, at, nullptr);
  }
  decode(at, row.dtype, row.byte_order, chunk_length(row, start), chunk);
  use(double{}, reinterpret_cast<const std::byte*>(chunk.high),
      has_low(row.dtype) ? chunk.low : nullptr);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
#endif
