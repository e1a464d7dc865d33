// The wide passes (two_pass.hpp) in SIMD.

#if defined(LNORM_KERNEL_SIMD_WIDE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_SIMD_WIDE_INL_HPP_
#undef LNORM_KERNEL_SIMD_WIDE_INL_HPP_
#else
#define LNORM_KERNEL_SIMD_WIDE_INL_HPP_
#endif

#include <cmath>
#include <cstdint>
#include <limits>

#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/simd-inl.hpp"
#include "lnorm/kernel/two_pass.hpp"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// Double-doubles in vectors: see core/double_double.hpp.
struct V2 {
  V high;
  V low;
};

HWY_INLINE V2 two_sum(V a, V b) {
  const V sum = hn::Add(a, b);
  const V b_part = hn::Sub(sum, a);
  return {sum, hn::Add(hn::Sub(a, hn::Sub(sum, b_part)), hn::Sub(b, b_part))};
}

HWY_INLINE V2 fast_two_sum(V a, V b) {
  const V sum = hn::Add(a, b);
  return {sum, hn::Sub(b, hn::Sub(sum, a))};
}

HWY_INLINE V2 split(V a) {
  const V scaled = hn::Mul(splat(0x1p27 + 1), a);
  const V high = hn::Sub(scaled, hn::Sub(scaled, a));
  return {high, hn::Sub(a, high)};
}

HWY_INLINE V2 two_product(V a, V b) {
  const V2 x = split(a);
  const V2 y = split(b);
  const V product = hn::Mul(a, b);
  V low = hn::Sub(hn::Mul(x.high, y.high), product);
  low = hn::Add(low, hn::Mul(x.high, y.low));
  low = hn::Add(low, hn::Mul(x.low, y.high));
  return {product, hn::Add(low, hn::Mul(x.low, y.low))};
}

HWY_INLINE V2 operator+(V2 a, V2 b) {
  const V2 high = two_sum(a.high, b.high);
  const V2 low = two_sum(a.low, b.low);
  const V2 sum = fast_two_sum(high.high, hn::Add(high.low, low.high));
  return fast_two_sum(sum.high, hn::Add(sum.low, low.low));
}

HWY_INLINE V2 operator*(V2 a, V2 b) {
  const V2 product = two_product(a.high, b.high);
  const V cross = hn::Add(hn::Mul(a.high, b.low), hn::Mul(a.low, b.high));
  return fast_two_sum(product.high, hn::Add(product.low, cross));
}

HWY_INLINE V2 splat(DoubleDouble value) { return {splat(value.high), splat(value.low)}; }

// Vector v of a group of elements, less the centre.
template <class T>
HWY_INLINE V2 deviation(const std::byte* x, const double* low, std::int64_t v, V minus_center) {
  const V2 d = two_sum(load_vector<T>(x + v * kWidth * kSize<T>), minus_center);
  const V low_part = low == nullptr ? hn::Zero(kDoubles) : hn::LoadU(kDoubles, low + v * kWidth);
  return fast_two_sum(d.high, hn::Add(d.low, low_part));
}

struct WideLanes {
  V2 sums[kVectors];
  V2 squares[kVectors];
  V largest = hn::Zero(kDoubles);
  V minus_center;

  HWY_INLINE explicit WideLanes(double center) : minus_center(splat(-center)) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      sums[v] = squares[v] = {hn::Zero(kDoubles), hn::Zero(kDoubles)};
    }
  }

  template <class T, bool whole>
  HWY_INLINE void add_group(const std::byte* x, const double* low, std::int64_t count) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      V2 d = deviation<T>(x, low, v, minus_center);
      if constexpr (!whole) {
        const auto mask = mask_of(count, v);
        d = {hn::IfThenElseZero(mask, d.high), hn::IfThenElseZero(mask, d.low)};
      }
      largest = hn::Max(largest, hn::Abs(d.high));
      const V2 sum = two_sum(sums[v].high, d.high);
      sums[v] = {sum.high, hn::Add(sums[v].low, hn::Add(sum.low, d.low))};
      const V2 square = two_product(d.high, d.high);
      const V2 square_sum = two_sum(squares[v].high, square.high);
      const V cross = hn::Mul(hn::Mul(splat(2), d.high), d.low);
      squares[v] = {square_sum.high,
                    hn::Add(squares[v].low, hn::Add(square_sum.low, hn::Add(square.low, cross)))};
    }
  }

  template <class T>
  HWY_INLINE void add(const std::byte* x, const double* low, std::int64_t n) {
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      add_group<T, true>(x + i * kSize<T>, low == nullptr ? nullptr : low + i, kLanes);
    }
    if (i == n) return;
    Rest<double> low_rest;
    if (low != nullptr) low_rest.copy(reinterpret_cast<const std::byte*>(low + i), n - i);
    add_group<T, false>(Rest<T>(x + i * kSize<T>, n - i).bytes,
                        reinterpret_cast<const double*>(low_rest.bytes), n - i);
  }

  HWY_INLINE Sums fold(std::int64_t n) {
    return {fold(sums, n), fold(squares, n), hn::GetLane(hn::MaxOfLanes(kDoubles, largest))};
  }

 private:
  static HWY_INLINE DoubleDouble fold(const V2 (&vectors)[kVectors], std::int64_t n) {
    alignas(64) double high[kLanes];
    alignas(64) double low[kLanes];
    DoubleDouble lanes[kLanes];
    for (std::int64_t v = 0; v < kVectors; ++v) {
      hn::Store(vectors[v].high, kDoubles, high + v * kWidth);
      hn::Store(vectors[v].low, kDoubles, low + v * kWidth);
    }
    for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] = {high[j], low[j]};
    return lnorm::fold(lanes, n);
  }
};

Sums wide_sums(const RowsIn& part, double center) noexcept {
  Chunk chunk;
  Sums total;
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const std::int64_t n = chunk_length(part, start);
    WideLanes lanes(center);
    with_chunk(part, start, chunk, [&]<class T>(T, const std::byte* x, const double* low) HWY_ATTR {
      lanes.add<T>(x, low, n);
    });
    total = total + lanes.fold(n);
  }
  return total;
}

// One vector of results, from the deviations and what the affine parameters have for it. index: of
// its first element in the row.
HWY_INLINE V wide_results(V2 d, V2 minus_shift, V2 rstd, const Affine& affine, std::int64_t index) {
  const V2 y = (d + minus_shift) * rstd;
  V2 result = y;
  if (!affine.weight.empty()) {
    result = result * V2{hn::LoadU(kDoubles, affine.weight.high(index)),
                         hn::LoadU(kDoubles, affine.weight.low(index))};
  }
  if (!affine.bias.empty()) {
    result = result + V2{hn::LoadU(kDoubles, affine.bias.high(index)),
                         hn::LoadU(kDoubles, affine.bias.low(index))};
  }
  const auto finite = hn::Lt(hn::Abs(result.high), splat(std::numeric_limits<double>::infinity()));
  if (hn::AllTrue(kDoubles, finite)) return result.high;
  alignas(64) double results[kWidth];
  alignas(64) double high[kWidth];
  alignas(64) double low[kWidth];
  hn::Store(result.high, kDoubles, results);
  hn::Store(y.high, kDoubles, high);
  hn::Store(y.low, kDoubles, low);
  for (std::int64_t j = 0; j < kWidth; ++j) {
    if (std::isfinite(results[j])) continue;
    results[j] = overflowed_element({high[j], low[j]}, affine, index + j);
  }
  return hn::Load(kDoubles, results);
}

template <class T>
HWY_INLINE void wide_results(const std::byte* x, const double* low, std::int64_t n,
                             const Statistics<DoubleDouble>& statistics, const Affine& affine,
                             std::int64_t offset, double* results) {
  const V minus_center = splat(-statistics.center);
  const V2 minus_shift = splat(-statistics.shift);
  const V2 rstd = splat(statistics.rstd);
  const auto do_group = [&](const std::byte* group, const double* low_group,
                            std::int64_t i) HWY_ATTR {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const V2 d = deviation<T>(group, low_group, v, minus_center);
      hn::StoreU(wide_results(d, minus_shift, rstd, affine, offset + i + v * kWidth), kDoubles,
                 results + i + v * kWidth);
    }
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    do_group(x + i * kSize<T>, low == nullptr ? nullptr : low + i, i);
  }
  if (i == n) return;
  Rest<double> low_rest;
  if (low != nullptr) low_rest.copy(reinterpret_cast<const std::byte*>(low + i), n - i);
  do_group(Rest<T>(x + i * kSize<T>, n - i).bytes, reinterpret_cast<const double*>(low_rest.bytes),
           i);
}

void wide_write(const RowsIn& part, const Statistics<DoubleDouble>& statistics,
                const Affine& affine, std::int64_t offset, const RowsOut& out) noexcept {
  Chunk chunk;
  alignas(64) double results[kChunk];
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const std::int64_t n = chunk_length(part, start);
    with_chunk(part, start, chunk, [&]<class T>(T, const std::byte* x, const double* low) HWY_ATTR {
      wide_results<T>(x, low, n, statistics, affine, offset + start, results);
    });
    store(results, n, out.dtype, row_of(out, start, 1).data);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
#endif
