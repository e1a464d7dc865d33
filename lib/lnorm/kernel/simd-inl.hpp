// Vectors of doubles of one target, and how elements of any dtype get into them.

#include <hwy/cache_control.h>
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

HWY_INLINE V multiply_subtract(V a, V b, V c) { return hn::MulSub(a, b, c); }
HWY_INLINE V square_root(V value) { return hn::Sqrt(value); }

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

// The first count lanes, or all of them.
template <class Tag>
HWY_INLINE hn::Mask<Tag> mask_of(Tag tag, std::int64_t count) {
  return hn::FirstN(tag, static_cast<std::size_t>(std::min(count, kWidth)));
}

HWY_INLINE hn::Mask<D> is_within(V value, double least, double most) {
  return hn::And(hn::Ge(value, splat(least)), hn::Le(value, splat(most)));
}

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

HWY_INLINE void prefetch(const std::byte* from, std::int64_t bytes) {
  constexpr std::int64_t kLine = 64;
  for (std::int64_t at = 0; at < bytes; at += kLine) hwy::Prefetch(from + at);
}

// Elements less the center, loaded from where they lie. If ahead is not 0, the caches also get what lies so many bytes
// further on. A center of 0, which most rows have, costs nothing.
template <class T, bool has_center>
struct Encoded {
  const std::byte* x;
  V center;
  std::int64_t ahead;

  HWY_INLINE V operator()(std::int64_t i) const {
    const V element = load_vector<T>(x + i * kSize<T>);
    if constexpr (has_center) return element - center;
    return element;
  }
  HWY_INLINE void read_ahead(std::int64_t i) const {
    if (ahead != 0) prefetch(x + ahead + i * kSize<T>, kLanes * kSize<T>);
  }
};

// Calls use(elements) with the Encoded elements of x.
template <class T, class Use>
HWY_INLINE void with_encoded(const std::byte* x, double center, std::int64_t ahead, Use use) {
  if (center == 0) {
    use(Encoded<T, false>{x, hn::Zero(kDoubles), ahead});
  } else {
    use(Encoded<T, true>{x, splat(center), ahead});
  }
}

// Decodes elements, less the center. There is room for whole groups.
template <class T>
void decode_as(const std::byte* from, std::int64_t count, double center, double* to,
               std::int64_t ahead) {
  with_encoded<T>(from, center, ahead, [&](const auto& elements) HWY_ATTR {
    for (std::int64_t i = 0; i + kLanes <= count; i += kLanes) {
      elements.read_ahead(i);
      for (std::int64_t v = i; v < i + kLanes; v += kWidth) {
        hn::StoreU(elements(v), kDoubles, to + v);
      }
    }
  });
  const std::int64_t left = count % kLanes;
  if (left == 0) return;
  alignas(64) std::byte rest[kLanes * kSize<T>] = {};
  std::memcpy(rest, from + (count - left) * kSize<T>, static_cast<std::size_t>(left * kSize<T>));
  const Encoded<T, true> elements{rest, splat(center), 0};
  for (std::int64_t v = 0; v < left; v += kWidth) {
    hn::StoreU(elements(v), kDoubles, to + count - left + v);
  }
}

// Decodes 64-bit integers. There is room for whole vectors.
template <class T>
void decode_integers(const std::byte* from, std::int64_t count, Chunk& to) {
  const hn::RebindToUnsigned<D> words;
  // Integers in the last bits of a power of two. The sign bit counts 2^63 where it is not set.
  constexpr std::uint64_t kSign = std::is_signed_v<T> ? 0x80000000U : 0;
  constexpr double kOffset = std::is_signed_v<T> ? 0x1p63 : 0;
  const auto power_52 = hn::BitCast(words, splat(0x1p52));
  const auto power_84 = hn::Xor(hn::BitCast(words, splat(0x1p84)), hn::Set(words, kSign));
  alignas(64) std::uint64_t rest[kWidth] = {};
  for (std::int64_t i = 0; i < count; i += kWidth) {
    const auto* at = reinterpret_cast<const std::uint64_t*>(from) + i;
    if (count - i < kWidth) {
      std::memcpy(rest, at, static_cast<std::size_t>(count - i) * sizeof *at);
      at = rest;
    }
    const auto bits = hn::LoadU(words, at);
    const auto lower = hn::And(bits, hn::Set(words, 0xffffffffU));
    const V high = hn::BitCast(kDoubles, hn::Xor(hn::ShiftRight<32>(bits), power_84));
    const V low = hn::BitCast(kDoubles, hn::Xor(lower, power_52));
    // The upper half is 0 or larger than the lower one.
    const V2 element = fast_two_sum(high - splat(0x1p84 + kOffset), low - splat(0x1p52));
    hn::Store(element.high, kDoubles, to.high + i);
    hn::Store(element.low, kDoubles, to.low + i);
  }
}

// How far ahead of a pass memory is read, in bytes.
inline std::int64_t ahead_of(const RowsIn& part) {
  return part.to_next != 0 ? part.to_next
                           : kChunk * static_cast<std::int64_t>(item_size(part.dtype));
}

// Decodes the elements of a row, less the center, if there is code for their dtype. There is room for whole groups.
// ahead: see Encoded.
inline bool decode_usual(const RowsIn& row, double center, double* to, std::int64_t ahead) {
  const auto decode_from = [&]<class T>(T) {
    decode_as<T>(row.data, row.row_length, center, to, ahead);
    return true;
  };
  if (row.byte_order != std::endian::native) return false;
  switch (row.dtype) {
    case DType::int8:
      return decode_from(std::int8_t{});
    case DType::uint8:
      return decode_from(std::uint8_t{});
    case DType::int16:
      return decode_from(std::int16_t{});
    case DType::uint16:
      return decode_from(std::uint16_t{});
    case DType::int32:
      return decode_from(std::int32_t{});
    case DType::bfloat16:
      return decode_from(BFloat16{});
    case DType::float32:
      return decode_from(float{});
    case DType::float64:
      return decode_from(double{});
    case DType::float16:
      if constexpr (kHasFloat16) return decode_from(Float16{});
      break;
    case DType::boolean:
    case DType::uint32:
    case DType::int64:
    case DType::uint64:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::float64_pair:
      break;
  }
  return false;
}

// Up to a chunk of a row of any dtype. The center is 0 where elements have low parts.
inline void decode(const RowsIn& part, double center, Chunk& chunk) {
  const std::int64_t n = part.row_length;
  if (part.byte_order == std::endian::native) {
    if (part.dtype == DType::int64) return decode_integers<std::int64_t>(part.data, n, chunk);
    if (part.dtype == DType::uint64) return decode_integers<std::uint64_t>(part.data, n, chunk);
  }
  if (decode_usual(part, center, chunk.high, ahead_of(part))) return;
  load(part.data, part.dtype, part.byte_order, n, chunk);
  if (center == 0) return;
  decode_as<double>(reinterpret_cast<const std::byte*>(chunk.high), n, center, chunk.high, 0);
}

// Calls use(start, count, chunk) for every chunk of a row, less the center.
template <class Use>
HWY_INLINE void for_each_chunk(const RowsIn& row, double center, Use use) {
  Chunk chunk;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t count = std::min(kChunk, row.row_length - start);
    decode(part_of(row, start, count), center, chunk);
    use(start, count, chunk);
  }
}

// The same of a row of any length without low parts. There is room for whole groups.
inline void decode_row(const RowsIn& row, double center, double* to, std::int64_t ahead) {
  if (decode_usual(row, center, to, ahead)) return;
  for_each_chunk(row, center, [&](std::int64_t start, std::int64_t n, const Chunk& chunk) {
    std::copy_n(chunk.high, n, to + start);
  });
}

// Elements less the center, in a chunk that is decoded. After them there is room for a vector.
struct Decoded {
  const double* d;

  HWY_INLINE V operator()(std::int64_t i) const { return hn::LoadU(kDoubles, d + i); }
  HWY_INLINE void read_ahead(std::int64_t) const {}
};

// Calls use(start, count, elements) for all of a row, within a chunk at a time; elements are Decoded or, of what most
// tensors are of, whole groups Encoded: then a pass computes while it reads from memory, without a detour.
template <class Use>
HWY_INLINE void for_each_stretch(const RowsIn& row, double center, bool is_fast_path, Use use) {
  Chunk chunk;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t count = std::min(kChunk, row.row_length - start);
    const std::int64_t whole = is_fast_path ? count - count % kLanes : 0;
    if (whole > 0) {
      const RowsIn part = part_of(row, start, whole);
      with_encoded<float>(part.data, center, ahead_of(part),
                          [&](const auto& elements) HWY_ATTR { use(start, whole, elements); });
    }
    if (whole == count) continue;
    decode(part_of(row, start + whole, count - whole), center, chunk);
    use(start + whole, count - whole, Decoded{chunk.high});
  }
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
