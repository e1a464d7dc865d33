// The range and the plain sums of a row: see plain_sums.hpp.

#if defined(LNORM_KERNEL_PLAIN_SUMS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_PLAIN_SUMS_INL_HPP_
#undef LNORM_KERNEL_PLAIN_SUMS_INL_HPP_
#else
#define LNORM_KERNEL_PLAIN_SUMS_INL_HPP_
#endif

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lnorm/kernel/plain_sums.hpp"
#include "lnorm/kernel/simd-inl.hpp"

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
Range range_of(const std::byte* x, std::int64_t n) {
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
  return lanes.range();
}

// Calls use(T{}) with the type of the row's elements; false where they have none that is loaded as floats.
template <class Use>
HWY_INLINE bool with_float_type(const RowsIn& row, Use use) {
  if (row.byte_order != std::endian::native) return false;
  switch (row.dtype) {
    case DType::float32:
      use(float{});
      return true;
    case DType::bfloat16:
      use(BFloat16{});
      return true;
    case DType::float16:
      if constexpr (kHasFloat16) {
        use(Float16{});
        return true;
      }
      return false;
    default:
      return false;
  }
}

Range range(const RowsIn& row) {
  Range result;
  const bool done = with_float_type(
      row, [&]<class T>(T) HWY_ATTR { result = range_of<T>(row.data, row.row_length); });
  // What is not finite is to be counted.
  return done && result.greatest < std::numeric_limits<double>::infinity() ? result
                                                                           : range_one_by_one(row);
}

// x, and the upper and lower parts of x^2.
struct PlainLanes {
  Lanes x;
  Lanes upper;
  Lanes lower;
  V splitter;

  template <class T>
  HWY_INLINE void add_group(const std::byte* group) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const V element = load_vector<T>(group + v * kWidth * kSize<T>);
      const V square = element * element;
      const V part = (square + splitter) - splitter;
      x.v[v] = x.v[v] + element;
      upper.v[v] = upper.v[v] + part;
      lower.v[v] = lower.v[v] + (square - part);
    }
  }
};

template <class T>
HWY_INLINE Sums plain_chunk(const std::byte* x, std::int64_t n, int exponent) {
  PlainLanes lanes;
  lanes.x.clear();
  lanes.upper.clear();
  lanes.lower.clear();
  lanes.splitter = splat(plain_splitter(exponent));
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) lanes.add_group<T>(x + i * kSize<T>);
  if (i < n) lanes.add_group<T>(Rest<T>(x + i * kSize<T>, n - i).bytes);
  return {{sum_of_lanes(lanes.x.fold())},
          lnorm::two_sum(sum_of_lanes(lanes.upper.fold()), sum_of_lanes(lanes.lower.fold()))};
}

Sums plain_sums(const RowsIn& row, int exponent) {
  Chunk chunk;
  Sums total;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = std::min(kChunk, row.row_length - start);
    const RowsIn part = part_of(row, start, n);
    const bool done = with_float_type(
        part, [&]<class T>(T) HWY_ATTR { total += plain_chunk<T>(part.data, n, exponent); });
    if (done) continue;
    with_chunk(row, start, n, chunk, [&]<class T>(T, const std::byte* x, const double*) HWY_ATTR {
      total += plain_chunk<T>(x, n, exponent);
    });
  }
  return total;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
