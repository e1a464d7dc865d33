// The sums of features: see features.hpp. Every lane is a feature, without fused operations: so all targets give the same bits.

#if defined(LNORM_KERNEL_FEATURES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_FEATURES_INL_HPP_
#undef LNORM_KERNEL_FEATURES_INL_HPP_
#else
#define LNORM_KERNEL_FEATURES_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lnorm/kernel/features.hpp"
#include "lnorm/kernel/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// Some rows of features, which are whole vectors: where they begin, so many bytes apart.
struct FeatureRows {
  static constexpr std::int64_t kAtOnce = 8;

  const std::byte* from;
  std::int64_t stride;
  std::int64_t rows;
  std::int64_t first;  // row
};

template <class T, bool leaves_out>
HWY_INLINE void add_vector(const FeatureRows& at, std::int64_t from, std::int64_t i,
                           FeatureStrip& strip) {
  const V zero = hn::Zero(kDoubles);
  const V one = splat(1);
  const V shift = hn::Load(kDoubles, strip.shift + i);
  V sum = hn::Load(kDoubles, strip.sum + i);
  V squares = hn::Load(kDoubles, strip.squares + i);
  V absmax = hn::Load(kDoubles, strip.absmax + i);
  V zeros = hn::Load(kDoubles, strip.zeros + i);
  V non_finite = hn::Load(kDoubles, strip.non_finite + i);
  V first_non_finite = hn::Load(kDoubles, strip.first_non_finite + i);
  for (std::int64_t r = 0; r < at.rows; ++r) {
    const V x = load_vector<T>(at.from + r * at.stride + from * kSize<T>);
    V deviation = x - shift;
    V size = hn::Abs(x);
    if constexpr (leaves_out) {
      const auto is_finite = hn::Eq(x - x, zero);
      deviation = hn::IfThenElseZero(is_finite, deviation);
      size = hn::IfThenElseZero(is_finite, size);
      non_finite = non_finite + hn::IfThenZeroElse(is_finite, one);
      const V row = splat(static_cast<double>(at.first + r));
      first_non_finite =
          hn::IfThenElse(is_finite, first_non_finite, hn::Min(first_non_finite, row));
    }
    sum = sum + deviation;
    squares = squares + deviation * deviation;
    absmax = hn::Max(absmax, size);
    zeros = zeros + hn::IfThenElseZero(hn::Eq(x, zero), one);
  }
  hn::Store(sum, kDoubles, strip.sum + i);
  hn::Store(squares, kDoubles, strip.squares + i);
  hn::Store(absmax, kDoubles, strip.absmax + i);
  hn::Store(zeros, kDoubles, strip.zeros + i);
  if constexpr (!leaves_out) return;
  hn::Store(non_finite, kDoubles, strip.non_finite + i);
  hn::Store(first_non_finite, kDoubles, strip.first_non_finite + i);
}

template <class T, bool leaves_out>
void add_rows(FeatureRows at, std::int64_t count, FeatureStrip& strip) {
  const std::int64_t whole = count - count % kWidth;
  for (std::int64_t i = 0; i < whole; i += kWidth) add_vector<T, leaves_out>(at, i, i, strip);
  if (whole == count) return;
  alignas(64) std::byte rest[FeatureRows::kAtOnce * kWidth * kSize<T>] = {};
  constexpr std::int64_t kStride = kWidth * kSize<T>;
  for (std::int64_t r = 0; r < at.rows; ++r) {
    std::memcpy(rest + r * kStride, at.from + r * at.stride + whole * kSize<T>,
                static_cast<std::size_t>((count - whole) * kSize<T>));
  }
  add_vector<T, leaves_out>({rest, kStride, at.rows, at.first}, 0, whole, strip);
}

template <class T>
void add_rows(const FeatureRows& at, std::int64_t count, bool leaves_out, FeatureStrip& strip) {
  if (leaves_out) return add_rows<T, true>(at, count, strip);
  add_rows<T, false>(at, count, strip);
}

// Rows that are decoded first.
void add_decoded(const RowsIn& x, std::int64_t row, std::int64_t rows, std::int64_t first,
                 std::int64_t count, bool leaves_out, FeatureStrip& strip) {
  alignas(64) double numbers[FeatureRows::kAtOnce][kFeatureStrip];
  Chunk chunk;
  for (std::int64_t r = 0; r < rows; ++r) {
    decode(part_of(row_of(x, row + r), first, count), 0, chunk);
    std::copy_n(chunk.high, count, numbers[r]);
  }
  add_rows<double>({reinterpret_cast<const std::byte*>(numbers), sizeof numbers[0], rows, row},
                   count, leaves_out, strip);
}

// Adds the features from the first on over all rows of x. leaves_out: what is not finite.
void add_features(const RowsIn& x, std::int64_t first, std::int64_t count, bool leaves_out,
                  FeatureStrip& strip) {
  for (std::int64_t row = 0; row < x.rows; row += FeatureRows::kAtOnce) {
    const std::int64_t rows = std::min(FeatureRows::kAtOnce, x.rows - row);
    const auto add = [&]<class T>(T) HWY_ATTR {
      add_rows<T>(
          {x.data + (row * x.row_length + first) * kSize<T>, x.row_length * kSize<T>, rows, row},
          count, leaves_out, strip);
    };
    const bool is_added =
        x.byte_order == std::endian::native && with_type<float, double, BFloat16>(x.dtype, add);
    if (!is_added) add_decoded(x, row, rows, first, count, leaves_out, strip);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
