// Vectors of doubles of one target, and how elements of any dtype get into them.

#if defined(LNORM_KERNEL_SIMD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_SIMD_INL_HPP_
#undef LNORM_KERNEL_SIMD_INL_HPP_
#else
#define LNORM_KERNEL_SIMD_INL_HPP_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/core/norm.hpp"
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

// Calls use(T{}) with the one of these types that a dtype's elements have. Returns whether it is one of them.
template <class... T, class Use>
HWY_INLINE bool with_type(DType dtype, Use use) {
  return ((dtype == dtype_of<T>() && (use(T{}), true)) || ...);
}

HWY_INLINE V splat(double value) { return hn::Set(kDoubles, value); }

// A number of elements, to divide by. A quotient by a power of two is exact either way.
struct Count {
  V number;
  V reciprocal;
  bool is_power_of_two;

  HWY_INLINE explicit Count(std::int64_t n)
      : number(splat(static_cast<double>(n))),
        reciprocal(splat(1 / static_cast<double>(n))),
        is_power_of_two((n & (n - 1)) == 0) {}
};
HWY_INLINE V quotient(V value, const Count& count) {
  return count.is_power_of_two ? value * count.reciprocal : hn::Div(value, count.number);
}

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

HWY_INLINE V2 square_root(V2 value) { return root(value); }
HWY_INLINE V negated(V value) { return hn::Zero(kDoubles) - value; }
HWY_INLINE V multiply_add(V a, V b, V c) { return hn::MulAdd(a, b, c); }
HWY_INLINE V2 multiply_add(V2 a, V2 b, V2 c) { return a * b + c; }
HWY_INLINE V larger(V value, double least) { return hn::Max(value, splat(least)); }
HWY_INLINE V2 larger(V2 value, double least) {
  const V high = splat(least);
  const V zero = hn::Zero(kDoubles);
  const auto is_larger =
      hn::Or(hn::Gt(value.high, high), hn::And(hn::Eq(value.high, high), hn::Gt(value.low, zero)));
  return {hn::IfThenElse(is_larger, value.high, high), hn::IfThenElse(is_larger, value.low, zero)};
}
#include "lnorm/core/formula-inl.hpp"
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

// Elements at any address, as floats.
using Floats = hn::CappedTag<float, 16>;
template <class T>
HWY_INLINE hn::Vec<Floats> load_floats(const std::byte* from) {
  const Floats floats;
  if constexpr (std::is_same_v<T, float>) {
    return hn::LoadU(floats, reinterpret_cast<const float*>(from));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return widen_bfloat16(floats, from);
  } else {
    const hn::Rebind<hwy::float16_t, Floats> halves;
    return hn::PromoteTo(floats, hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from)));
  }
}

// Calls use(T{}) where load_floats<T> can load the elements of a row. Returns whether it can.
template <class Use>
HWY_INLINE bool with_floats(const RowsIn& row, Use use) {
  if (row.byte_order != std::endian::native) return false;
  if constexpr (kHasFloat16) return with_type<float, BFloat16, Float16>(row.dtype, use);
  return with_type<float, BFloat16>(row.dtype, use);
}

// Calls add(elements, or_zero) for each group of a row, which is not empty. Both point to the group. The last group may be short:
// then elements is filled up with the row's first element, which changes neither the least nor the largest, and or_zero with zeros.
template <class T, std::int64_t kGroup, class Add>
HWY_INLINE void for_each_group(const RowsIn& row, Add add) {
  const std::int64_t n = row.row_length;
  std::int64_t i = 0;
  for (; i + kGroup <= n; i += kGroup) {
    add(row.data + i * kSize<T>, row.data + i * kSize<T>);
  }
  if (i == n) return;
  alignas(64) std::byte rest[kGroup * kSize<T>];
  alignas(64) std::byte or_zero[kGroup * kSize<T>] = {};
  std::memcpy(or_zero, row.data + i * kSize<T>, static_cast<std::size_t>((n - i) * kSize<T>));
  for (std::int64_t j = 0; j < kGroup; ++j) {
    std::memcpy(rest + j * kSize<T>, j < n - i ? or_zero + j * kSize<T> : row.data, sizeof(T));
  }
  add(rest, or_zero);
}

// The first count lanes, or all of them.
template <class Tag>
HWY_INLINE hn::Mask<Tag> mask_of(Tag tag, std::int64_t count) {
  constexpr auto kCount = static_cast<std::int64_t>(hn::MaxLanes(Tag()));
  return hn::FirstN(tag, static_cast<std::size_t>(std::min(count, kCount)));
}

HWY_INLINE hn::Mask<D> is_within(V value, double least, double most) {
  return hn::And(hn::Ge(value, splat(least)), hn::Le(value, splat(most)));
}

// The ends of an interval about a number. Zero within 0 stays +0.
struct Ends {
  V low;
  V high;
};
HWY_INLINE Ends ends_of(V2 value, V bound) {
  return {value.high + ((splat(0.0) - bound) + value.low), value.high + (bound + value.low)};
}

// Has write(to) write a vector of results of Out, of which the first count are wanted.
template <class Out, std::int64_t width = kWidth, class Write>
HWY_INLINE void write_first(std::int64_t count, std::byte* to, const Write& write) {
  alignas(64) std::byte buffer[width * kSize<Out>];
  const bool are_all = count >= width;
  write(are_all ? to : buffer);
  if (!are_all) std::memcpy(to, buffer, static_cast<std::size_t>(count * kSize<Out>));
}

HWY_INLINE double sum_of_lanes(V lanes) { return hn::GetLane(hn::SumOfLanes(kDoubles, lanes)); }

// A vector for each of several sums.
struct Lanes {
  V v[kVectors];

  HWY_INLINE void clear() {
    for (V& vector : v) vector = hn::Zero(kDoubles);
  }
  // Adds them up to one vector, whose lanes are still to be summed.
  HWY_INLINE V fold() const {
    V folded[kVectors];
    for (std::int64_t j = 0; j < kVectors; ++j) folded[j] = v[j];
    for (std::int64_t half = kVectors / 2; half > 0; half /= 2) {
      for (std::int64_t j = 0; j < half; ++j) folded[j] = folded[j] + folded[j + half];
    }
    return folded[0];
  }
};

// A sum in each lane, and what its additions lose.
struct CompensatedSum {
  V sum;
  V lost;

  HWY_INLINE void clear() { sum = lost = hn::Zero(kDoubles); }
  HWY_INLINE V total() const { return sum + lost; }
  HWY_INLINE void add(V term) {
    const V2 next = two_sum(sum, term);
    sum = next.high;
    lost = lost + next.low;
  }
  // A pair, whose low part adds up with what is lost.
  HWY_INLINE void add(V2 term) {
    const V2 next = two_sum(sum, term.high);
    sum = next.high;
    lost = lost + (next.low + term.low);
  }
  // Adds halves, so that additions do not wait for each other.
  HWY_INLINE DoubleDouble fold() const {
    alignas(64) double sums[kWidth];
    alignas(64) double rest[kWidth];
    hn::Store(sum, kDoubles, sums);
    hn::Store(lost, kDoubles, rest);
    for (std::int64_t half = kWidth / 2; half > 0; half /= 2) {
      for (std::int64_t j = 0; j < half; ++j) {
        const DoubleDouble both = lnorm::two_sum(sums[j], sums[j + half]);
        sums[j] = both.high;
        rest[j] = rest[j] + rest[j + half] + both.low;
      }
    }
    return lnorm::two_sum(sums[0], rest[0]);
  }
};

// Such a sum in several vectors.
template <std::int64_t count>
struct CompensatedSums {
  CompensatedSum v[count];

  HWY_INLINE void clear() {
    for (CompensatedSum& each : v) each.clear();
  }
  HWY_INLINE DoubleDouble fold() const {
    CompensatedSum folded[count];
    for (std::int64_t j = 0; j < count; ++j) folded[j] = v[j];
    for (std::int64_t half = count / 2; half > 0; half /= 2) {
      for (std::int64_t j = 0; j < half; ++j) {
        folded[j].add(V2{folded[j + half].sum, folded[j + half].lost});
      }
    }
    return folded[0].fold();
  }
};

// Adds elements to the lanes, of which there are copies that stay in registers: add(v, x) takes the v-th of a group of vectors.
template <bool reads_ahead, class AllLanes, class Elements>
HWY_INLINE void add_to(AllLanes& lanes, const Elements& elements, std::int64_t n) {
  AllLanes sums = lanes;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    if constexpr (reads_ahead) elements.read_ahead(i);
    for (std::int64_t v = 0; v < kVectors; ++v) sums.add(v, elements(i + v * kWidth));
  }
  for (std::int64_t v = 0; v < kVectors && i < n; ++v, i += kWidth) {
    sums.add(v, hn::IfThenElseZero(mask_of(kDoubles, n - i), elements(i)));
  }
  lanes = sums;
}

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
  const bool has_code = kHasFloat16 || row.dtype != DType::float16;
  if (row.byte_order != std::endian::native || !has_code) return false;
  // A call for every few elements would take its time: inline.
  return with_type<float, BFloat16, Float16, double, std::int8_t, std::uint8_t, std::int16_t,
                   std::uint16_t, std::int32_t>(
      row.dtype, [&]<class T>(T) HWY_ATTR __attribute__((always_inline)) {
        if constexpr (kHasFloat16 || !std::is_same_v<T, Float16>) {
          decode_as<T>(row.data, row.row_length, center, to, ahead);
        }
      });
}

// Decodes up to a chunk of a row of any dtype. The center is 0 where elements have low parts.
inline void decode(const RowsIn& part, double center, Chunk& chunk) {
  const std::int64_t n = part.row_length;
  if (decode_usual(part, center, chunk.high, ahead_of(part))) return;
  const bool are_integers =
      part.byte_order == std::endian::native &&
      with_type<std::int64_t, std::uint64_t>(
          part.dtype, [&]<class T>(T) HWY_ATTR { decode_integers<T>(part.data, n, chunk); });
  if (are_integers) return;
  load(part.data, part.dtype, part.byte_order, n, chunk);
  if (center == 0) return;
  decode_as<double>(reinterpret_cast<const std::byte*>(chunk.high), n, center, chunk.high, 0);
}

// Calls use(start, part) for the parts of a row, of a chunk each.
template <class Use>
HWY_INLINE void for_each_part(const RowsIn& row, Use use) {
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    use(start, part_of(row, start, std::min(kChunk, row.row_length - start)));
  }
}

// Calls use(start, count, chunk) for every chunk of a row, less the center.
template <class Use>
HWY_INLINE void for_each_chunk(const RowsIn& row, double center, Use use) {
  Chunk chunk;
  for_each_part(row, [&](std::int64_t start, const RowsIn& part) HWY_ATTR {
    decode(part, center, chunk);
    use(start, part.row_length, chunk);
  });
}

// Decodes a row of any length without low parts. There is room for whole groups.
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

// Calls use(start, count, elements) for all of a row, within a chunk at a time; elements are Decoded or, of dtypes that are Fast,
// whole groups Encoded: then a pass computes while it reads from memory, without a detour.
template <class... Fast, class Use>
HWY_INLINE void for_each_stretch(const RowsIn& row, double center, bool may_be_fast, Use use) {
  Chunk chunk;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t count = std::min(kChunk, row.row_length - start);
    std::int64_t whole = count - count % kLanes;
    const RowsIn part = part_of(row, start, whole);
    const bool is_fast =
        may_be_fast && whole > 0 && row.byte_order == std::endian::native &&
        with_type<Fast...>(row.dtype, [&]<class T>(T) HWY_ATTR {
          with_encoded<T>(part.data, center, ahead_of(part),
                          [&](const auto& elements) HWY_ATTR { use(start, whole, elements); });
        });
    if (!is_fast) whole = 0;
    if (whole == count) continue;
    decode(part_of(row, start + whole, count - whole), center, chunk);
    use(start + whole, count - whole, Decoded{chunk.high});
  }
}

// Calls use(flag) with the flag as a type.
template <class Use>
HWY_INLINE void with_flag(bool flag, Use use) {
  if (flag) {
    use(std::true_type{});
  } else {
    use(std::false_type{});
  }
}

// Calls use(has_weight, has_bias) with both as types.
template <class Use>
HWY_INLINE void with_terms(const Affine& affine, Use use) {
  with_flag(!affine.weight().empty(), [&](auto has_weight) HWY_ATTR {
    with_flag(!affine.bias().empty(), [&](auto has_bias) HWY_ATTR { use(has_weight, has_bias); });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
