// The range and the plain sums of a row in SIMD; see plain_sums.hpp.

#if defined(LNORM_KERNEL_SIMD_PLAIN_SUMS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_SIMD_PLAIN_SUMS_INL_HPP_
#undef LNORM_KERNEL_SIMD_PLAIN_SUMS_INL_HPP_
#else
#define LNORM_KERNEL_SIMD_PLAIN_SUMS_INL_HPP_
#endif

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lnorm/kernel/plain_sums.hpp"
#include "lnorm/kernel/simd-inl.hpp"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

using Floats = hn::CappedTag<float, static_cast<std::size_t>(kLanes)>;
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
  static constexpr std::int64_t kGroup = 2 * kLanes;
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

Range range(const RowsIn& row) noexcept {
  Range result;
  const bool done = with_float_type(
      row, [&]<class T>(T) HWY_ATTR { result = range_of<T>(row.data, row.row_length); });
  // What is not finite is to be counted.
  return done && result.greatest < std::numeric_limits<double>::infinity() ? result
                                                                           : portable_range(row);
}

template <class T>
PlainSums plain_sums_of(const std::byte* x, std::int64_t n, int exponent) {
  const V splitter = splat(plain_splitter(exponent));
  PlainSums sums;
  for (std::int64_t start = 0; start < n; start += kChunk) {
    Lanes elements;
    Lanes upper;
    Lanes lower;
    const auto add_group = [&](const std::byte* group) HWY_ATTR {
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const V element = load_vector<T>(group + v * kWidth * kSize<T>);
        const V square = hn::Mul(element, element);
        const V part = hn::Sub(hn::Add(square, splitter), splitter);
        elements.v[v] = hn::Add(elements.v[v], element);
        upper.v[v] = hn::Add(upper.v[v], part);
        lower.v[v] = hn::Add(lower.v[v], hn::Sub(square, part));
      }
    };
    const std::int64_t end = std::min(start + kChunk, n);
    std::int64_t i = start;
    for (; i + kLanes <= end; i += kLanes) add_group(x + i * kSize<T>);
    if (i < end) add_group(Rest<T>(x + i * kSize<T>, end - i).bytes);
    sums.add(elements.fold(), upper.fold(), lower.fold());
  }
  return sums;
}

PlainSums plain_sums(const RowsIn& row, int exponent) noexcept {
  PlainSums result;
  const bool done = with_float_type(row, [&]<class T>(T) HWY_ATTR {
    result = plain_sums_of<T>(row.data, row.row_length, exponent);
  });
  return done ? result : portable_plain_sums(row, exponent);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
#endif
