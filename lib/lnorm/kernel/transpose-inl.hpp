// Squares of numbers, transposed.

#if defined(LNORM_KERNEL_TRANSPOSE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_TRANSPOSE_INL_HPP_
#undef LNORM_KERNEL_TRANSPOSE_INL_HPP_
#else
#define LNORM_KERNEL_TRANSPOSE_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lnorm/kernel/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// A square of doubles: row k at from + k * from_stride, column k of it to to + k * to_stride, which is stored before
// the next one is. No more than count columns are wanted.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void transpose(const double* from, std::int64_t, double* to, std::int64_t,
                          std::int64_t) {
  *to = *from;
}
#else
template <class Tag = D>
HWY_INLINE void transpose(const double* from, std::int64_t from_stride, double* to,
                          std::int64_t to_stride, std::int64_t count) {
  constexpr Tag tag;
  constexpr std::int64_t kLength = hn::MaxLanes(tag);
  if constexpr (kLength == 2) {
    const V a = hn::LoadU(tag, from);
    const V b = hn::LoadU(tag, from + from_stride);
    hn::StoreU(hn::InterleaveLower(tag, a, b), tag, to);
    hn::StoreU(hn::InterleaveUpper(tag, a, b), tag, to + to_stride);
  } else {
    // Half of the columns at a time. The lower half of a vector is from row k, the upper one from row k + kHalf: loads,
    // unlike shuffles, cost little.
    constexpr std::int64_t kHalf = kLength / 2;
    const hn::Half<Tag> half;
    for (std::int64_t c = 0; c < std::min(kLength, count); c += kHalf, from += kHalf) {
      const auto rows = [&](std::int64_t k) HWY_ATTR {
        return hn::Combine(tag, hn::LoadU(half, from + (k + kHalf) * from_stride),
                           hn::LoadU(half, from + k * from_stride));
      };
      const auto store = [&](V column) HWY_ATTR {
        hn::StoreU(column, tag, to);
        to += to_stride;
      };
      const V a = rows(0);
      const V b = rows(1);
      const V lower = hn::InterleaveLower(tag, a, b);
      const V upper = hn::InterleaveUpper(tag, a, b);
      if constexpr (kLength == 4) {
        store(lower);
        store(upper);
      } else {
        static_assert(kLength == 8);
        const V e = rows(2);
        const V f = rows(3);
        const V lower_2 = hn::InterleaveLower(tag, e, f);
        const V upper_2 = hn::InterleaveUpper(tag, e, f);
        store(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(lower_2), lower));
        store(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(upper_2), upper));
        store(hn::OddEvenBlocks(lower_2, hn::SwapAdjacentBlocks(lower)));
        store(hn::OddEvenBlocks(upper_2, hn::SwapAdjacentBlocks(upper)));
      }
    }
  }
}
#endif

// Transposes floats, which may lie at any address, and of which all columns are wanted.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void transpose(const float* from, std::int64_t, float* to, std::int64_t, std::int64_t) {
  std::memcpy(to, from, sizeof *to);
}
#else
template <class Tag = F>
HWY_INLINE void transpose(const float* from, std::int64_t from_stride, float* to,
                          std::int64_t to_stride, std::int64_t) {
  constexpr Tag tag;
  constexpr std::int64_t kLength = hn::MaxLanes(tag);
  if constexpr (kLength == 2) {
    const auto a = hn::LoadU(tag, from);
    const auto b = hn::LoadU(tag, from + from_stride);
    hn::StoreU(hn::InterleaveLower(tag, a, b), tag, to);
    hn::StoreU(hn::InterleaveUpper(tag, a, b), tag, to + to_stride);
  } else {
    constexpr std::int64_t kBlock = 4;
    const hn::RepartitionToWide<Tag> pairs;
    for (std::int64_t c = 0; c < kLength; c += kBlock, from += kBlock) {
      const auto rows = [&](std::int64_t k) HWY_ATTR {
        if constexpr (kLength == kBlock) {
          return hn::LoadU(tag, from + k * from_stride);
        } else {
          const hn::Half<Tag> half;
          return hn::Combine(tag, hn::LoadU(half, from + (k + kBlock) * from_stride),
                             hn::LoadU(half, from + k * from_stride));
        }
      };
      const auto store = [&](auto a, auto b) HWY_ATTR {
        const auto first = hn::BitCast(pairs, a);
        const auto second = hn::BitCast(pairs, b);
        hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(pairs, first, second)), tag, to);
        hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(pairs, first, second)), tag,
                   to + to_stride);
        to += 2 * to_stride;
      };
      const auto a = rows(0);
      const auto b = rows(1);
      const auto e = rows(2);
      const auto f = rows(3);
      store(hn::InterleaveLower(tag, a, b), hn::InterleaveLower(tag, e, f));
      store(hn::InterleaveUpper(tag, a, b), hn::InterleaveUpper(tag, e, f));
    }
  }
}
#endif

// Calls square(j) for squares of columns from j on that make up all n. The last two may overlap.
template <class Square>
HWY_INLINE void for_each_square(std::int64_t n, const Square& square) {
  const std::int64_t last = std::max<std::int64_t>(0, n - kWidth);
  for (std::int64_t j = 0; j < last; j += kWidth) square(j);
  square(last);
}

// Element j of kWidth rows of n, which follow each other, to columns + j * kWidth. A vector more is read than there are
// elements, and, if n is less than that, so many columns are written.
HWY_INLINE void to_columns(const double* rows, std::int64_t n, double* columns) {
  for_each_square(
      n, [&](std::int64_t j) HWY_ATTR { transpose(rows + j, n, columns + j * kWidth, kWidth, n); });
}

// The way back. A vector more is written.
template <class T>
HWY_INLINE void to_rows(const T* columns, std::int64_t n, T* rows) {
  for_each_square(n, [&](std::int64_t j) HWY_ATTR {
    transpose(columns + j * kWidth, kWidth, rows + j, n, kWidth);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
