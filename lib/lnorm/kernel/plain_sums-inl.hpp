// The range and the plain sums of a row: see plain_sums.hpp.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "lnorm/kernel/plain_sums.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

using Floats = hn::CappedTag<float, 16>;
using Bits = hn::RebindToUnsigned<Floats>;

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

// The sizes |x| are compared as the integers that their bits are.
struct RangeLanes {
  static constexpr auto kFloats = static_cast<std::int64_t>(hn::MaxLanes(Floats()));
  static constexpr std::int64_t kGroup = 32;
  static constexpr std::int64_t kParts = kGroup / kFloats;

  hn::Vec<Floats> min[kParts];
  hn::Vec<Floats> max[kParts];
  hn::Vec<Bits> least[kParts];  // less 1, so that 0 is the largest of all
  hn::Vec<Bits> greatest[kParts];

  HWY_INLINE RangeLanes() {
    const Floats floats;
    const Bits bits;
    for (std::int64_t p = 0; p < kParts; ++p) {
      min[p] = hn::Set(floats, std::numeric_limits<float>::infinity());
      max[p] = hn::Neg(min[p]);
      least[p] = hn::Set(bits, ~0u);
      greatest[p] = hn::Zero(bits);
    }
  }

  template <class T>
  HWY_INLINE void add_group(const std::byte* x) {
    const Bits bits;
    for (std::int64_t p = 0; p < kParts; ++p) {
      const auto element = load_floats<T>(x + p * kFloats * kSize<T>);
      const auto size = hn::BitCast(bits, hn::Abs(element));
      min[p] = hn::Min(min[p], element);
      max[p] = hn::Max(max[p], element);
      least[p] = hn::Min(least[p], hn::Sub(size, hn::Set(bits, 1u)));
      greatest[p] = hn::Max(greatest[p], size);
    }
  }

  HWY_INLINE Range range() {
    const Floats floats;
    const Bits bits;
    for (std::int64_t p = 1; p < kParts; ++p) {
      min[0] = hn::Min(min[0], min[p]);
      max[0] = hn::Max(max[0], max[p]);
      least[0] = hn::Min(least[0], least[p]);
      greatest[0] = hn::Max(greatest[0], greatest[p]);
    }
    const std::uint32_t least_bits = hn::GetLane(hn::MinOfLanes(bits, least[0])) + 1;
    Range range;
    range.min = static_cast<double>(hn::GetLane(hn::MinOfLanes(floats, min[0]))) + 0.0;
    range.max = static_cast<double>(hn::GetLane(hn::MaxOfLanes(floats, max[0]))) + 0.0;
    if (least_bits != 0) range.least = static_cast<double>(std::bit_cast<float>(least_bits));
    range.greatest =
        static_cast<double>(std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(bits, greatest[0]))));
    return range;
  }
};

template <class T>
Range range_of(const RowsIn& row) {
  const std::byte* const x = row.data;
  const std::int64_t n = row.row_length;
  RangeLanes lanes;
  std::int64_t i = 0;
  for (; i + RangeLanes::kGroup <= n; i += RangeLanes::kGroup) {
    lanes.add_group<T>(x + i * kSize<T>);
  }
  if (i < n) {  // filled up with the first element, which changes nothing
    alignas(64) std::byte rest[RangeLanes::kGroup * kSize<T>];
    const std::int64_t count = n - i;
    std::memcpy(rest, x + i * kSize<T>, static_cast<std::size_t>(count * kSize<T>));
    for (std::int64_t j = count; j < RangeLanes::kGroup; ++j) {
      std::memcpy(rest + j * kSize<T>, x, sizeof(T));
    }
    lanes.add_group<T>(rest);
  }
  const Range result = lanes.range();
  // What is not finite is to be counted.
  return std::isfinite(result.greatest) ? result : range_one_by_one(row);
}

// Of a dtype that has no plain sums, which least is for.
Range range_of_doubles(const RowsIn& row) {
  const V infinity = splat(HUGE_VAL);
  V min = infinity;
  V max = hn::Neg(infinity);
  V not_finite = hn::Zero(kDoubles);  // NaN, if an element is that or infinite
  for_each_chunk(row, 0, [&](std::int64_t, std::int64_t n, Chunk& chunk) HWY_ATTR {
    const std::int64_t whole = (n + kWidth - 1) / kWidth * kWidth;
    std::fill(chunk.high + n, chunk.high + whole, chunk.high[0]);
    for (std::int64_t i = 0; i < whole; i += kWidth) {
      const V x = hn::Load(kDoubles, chunk.high + i);
      min = hn::Min(min, x);
      max = hn::Max(max, x);
      not_finite = not_finite + (x - x);
    }
  });
  if (sum_of_lanes(not_finite) != 0) return range_one_by_one(row);
  Range range;
  range.min = hn::GetLane(hn::MinOfLanes(kDoubles, min)) + 0.0;
  range.max = hn::GetLane(hn::MaxOfLanes(kDoubles, max)) + 0.0;
  range.greatest = std::max(-range.min, range.max);
  return range;
}

Range range(const RowsIn& row) {
  if (!has_low(row.dtype) && !may_be_plain(row.dtype) && row.row_length > 0) {
    return range_of_doubles(row);
  }
  if (row.byte_order == std::endian::native) {
    if (row.dtype == DType::float32) return range_of<float>(row);
    if (row.dtype == DType::bfloat16) return range_of<BFloat16>(row);
    if constexpr (kHasFloat16) {
      if (row.dtype == DType::float16) return range_of<Float16>(row);
    }
  }
  return range_one_by_one(row);
}

// x, and the upper and lower parts of x^2.
struct PlainLanes {
  Lanes x;
  Lanes upper;
  Lanes lower;
  V splitter;

  HWY_INLINE void clear() {
    x.clear();
    upper.clear();
    lower.clear();
  }
  HWY_INLINE void add(std::int64_t v, V element) {
    const V square = element * element;
    const V part = (square + splitter) - splitter;
    x.v[v] = x.v[v] + element;
    upper.v[v] = upper.v[v] + part;
    lower.v[v] = lower.v[v] + (square - part);
  }
  HWY_INLINE Sums fold() const {
    return {{sum_of_lanes(x.fold())},
            lnorm::two_sum(sum_of_lanes(upper.fold()), sum_of_lanes(lower.fold()))};
  }
};

Sums plain_sums(const RowsIn& row, int exponent) {
  Sums total;
  PlainLanes of_chunk;
  of_chunk.clear();
  of_chunk.splitter = splat(plain_splitter(exponent));
  const bool is_usual = row.dtype == DType::float32 && row.byte_order == std::endian::native;
  for_each_stretch(row, 0, is_usual,
                   [&](std::int64_t start, std::int64_t n, const auto& elements) HWY_ATTR {
                     PlainLanes lanes = of_chunk;  // in registers
                     std::int64_t i = 0;
                     for (; i + kLanes <= n; i += kLanes) {
                       for (std::int64_t v = 0; v < kVectors; ++v)
                         lanes.add(v, elements(i + v * kWidth));
                     }
                     for (std::int64_t v = 0; i < n; ++v, i += kWidth) {
                       lanes.add(v, hn::IfThenElseZero(mask_of(kDoubles, n - i), elements(i)));
                     }
                     of_chunk = lanes;
                     const std::int64_t end = start + n;
                     if (end % kChunk != 0 && end != row.row_length) return;
                     total += lanes.fold();
                     of_chunk.clear();
                   });
  return total;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
