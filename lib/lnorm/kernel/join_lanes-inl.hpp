// The lanes of several vectors are joined at once: a vector for each row becomes a lane for each row.

#if defined(LNORM_KERNEL_JOIN_LANES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_JOIN_LANES_INL_HPP_
#undef LNORM_KERNEL_JOIN_LANES_INL_HPP_
#else
#define LNORM_KERNEL_JOIN_LANES_INL_HPP_
#endif

#include <cstdint>

#include "lnorm/kernel/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

template <class Shuffle>
HWY_INLINE V shuffled(V a, V b, const Shuffle& shuffle) {
  return shuffle(a, b);
}
template <class Shuffle>
HWY_INLINE V2 shuffled(V2 a, V2 b, const Shuffle& shuffle) {
  return {shuffle(a.high, b.high), shuffle(a.low, b.low)};
}

// Lane k is the lanes of load(k) joined, for kWidth vectors. T is V or V2.
template <class T, class Load, class Join>
HWY_INLINE T join_each(const Load& load, const Join& join) {
#if HWY_TARGET == HWY_SCALAR
  (void)join;
  return load(0);
#else
  const auto join_by = [&](T a, T b, const auto& first, const auto& second)
                           HWY_ATTR { return join(shuffled(a, b, first), shuffled(a, b, second)); };
  // Joins neighbors: a and b alternate.
  const auto pairs = [&](std::int64_t k, std::int64_t j) HWY_ATTR {
    return join_by(
        load(k), load(j), [](V a, V b) HWY_ATTR { return hn::InterleaveLower(kDoubles, a, b); },
        [](V a, V b) HWY_ATTR { return hn::InterleaveUpper(kDoubles, a, b); });
  };
  if constexpr (kWidth == 2) {
    return pairs(0, 1);
  } else {
    const auto halves = [&](T low, T high) HWY_ATTR {
      return join_by(
          low, high, [](V a, V b) HWY_ATTR { return hn::ConcatLowerLower(kDoubles, b, a); },
          [](V a, V b) HWY_ATTR { return hn::ConcatUpperUpper(kDoubles, b, a); });
    };
    if constexpr (kWidth == 4) {
      return halves(pairs(0, 1), pairs(2, 3));
    } else {
      return join_by(
          halves(pairs(0, 1), pairs(4, 5)), halves(pairs(2, 3), pairs(6, 7)),
          [](V a, V b) HWY_ATTR { return hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a); },
          [](V a, V b) HWY_ATTR { return hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a)); });
    }
  }
#endif
}

HWY_INLINE V sums_of_each(const V* vectors) {
  return join_each<V>([&](std::int64_t k) HWY_ATTR { return vectors[k]; },
                      [](V a, V b) HWY_ATTR { return a + b; });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
