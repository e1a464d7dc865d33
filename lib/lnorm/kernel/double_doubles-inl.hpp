// Sums and results in double-doubles (statistics.hpp).

#if defined(LNORM_KERNEL_DOUBLE_DOUBLES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_DOUBLE_DOUBLES_INL_HPP_
#undef LNORM_KERNEL_DOUBLE_DOUBLES_INL_HPP_
#else
#define LNORM_KERNEL_DOUBLE_DOUBLES_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>

#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/results-inl.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "lnorm/kernel/statistics.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// The low parts add up without error-free transforms: their own errors are of second order. Where it is not
// centered, the center is 0 and there are no low parts.
template <bool centered>
struct DoubleDoubleLanes {
  CompensatedSums<kVectors> sums;
  CompensatedSums<kVectors> squares;
  V minus_center;

  // An element less the center, exactly: a 64-bit integer is the sum of two doubles that are integers, and so is
  // the center then. A pair about another center than 0 is off by 3 u^2 of the result.
  HWY_INLINE V2 deviation(const double* x, const double* low, std::int64_t i) const {
    const V element = hn::LoadU(kDoubles, x + i);
    if constexpr (!centered) return {element, hn::Zero(kDoubles)};
    const V2 d = two_sum(element, minus_center);
    if (low == nullptr) return d;
    return two_sum(d.high, d.low + hn::LoadU(kDoubles, low + i));
  }

  HWY_INLINE void add_group(const double* x, const double* low, std::int64_t i) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const V2 d = deviation(x, low, i + v * kWidth);
      V2 square = two_product(d.high, d.high);
      if constexpr (centered) {
        sums.v[v].add(d);
        square.low = hn::MulAdd(d.high + d.high, d.low, square.low);
      } else {
        sums.v[v].add(d.high);
      }
      squares.v[v].add(square);
    }
  }

  // After n elements there is room for whole groups.
  HWY_INLINE void add(double* x, double* low, std::int64_t n, double center) {
    sums.clear();
    squares.clear();
    minus_center = splat(-center);
    const std::int64_t whole = (n + kLanes - 1) / kLanes * kLanes;
    std::fill(x + n, x + whole, center);
    if (low != nullptr) std::fill(low + n, low + whole, 0.0);
    for (std::int64_t i = 0; i < whole; i += kLanes) add_group(x, low, i);
  }

  HWY_INLINE Sums fold() const { return {sums.fold(), squares.fold()}; }
};

template <bool centered>
Sums double_double_sums_about(const RowsIn& part, double center) {
  Sums total;
  for_each_chunk(part, 0, [&](std::int64_t, std::int64_t n, Chunk& chunk) HWY_ATTR {
    DoubleDoubleLanes<centered> lanes;
    lanes.add(chunk.high, low_of(part, chunk), n, center);
    total += lanes.fold();
  });
  return total;
}

Sums double_double_sums(const RowsIn& part, double center) {
  const bool centered = center != 0 || has_low(part.dtype);
  return centered ? double_double_sums_about<true>(part, center)
                  : double_double_sums_about<false>(part, center);
}

// Bounds of a vector of results, as doubles. relative: what rounding to double may add to the error, for outputs
// that are rounded once more.
template <bool has_weight, bool has_bias>
struct DoubleDoubleWriter {
  V2 rstd;
  V error;
  V relative;
  const Affine& affine;

  HWY_INLINE DoubleDoubleWriter(const DoubleDoubleStatistics& statistics, const Affine& terms,
                                DType out)
      : DoubleDoubleWriter(splat(statistics.rstd), splat(statistics.error()), terms, out) {}

  // Takes a row in every lane. xhat_error: DoubleDoubleStatistics::error() of each.
  HWY_INLINE DoubleDoubleWriter(V2 of_row, V xhat_error, const Affine& terms, DType out)
      : rstd(of_row), affine(terms) {
    const double weight = has_weight ? affine.weight().max_abs() : 1;
    const double bias = has_bias ? affine.bias().max_abs() : 0;
    const V lost =
        hn::IfThenElseZero(hn::Gt(xhat_error, splat(0)), splat(kLostBits * (1 + weight)));
    const V bound = xhat_error * splat(weight) + splat(bound::kBias * kUnit2 * bias);
    error = bound * splat(kSlack) + lost;
    relative = splat(rounding_of_ends(out));
  }

  // deviation: x - mean. i: the number of the first element. load(p): what of the terms from p on belongs to it.
  template <class Load>
  HWY_INLINE Ends bounds(V2 deviation, std::int64_t i, const Load& load) const {
    V2 y = xhat_of(deviation, rstd);
    if constexpr (has_weight) {
      const V weight = load(affine.weight().high(i));
      const double* const low = affine.weight().low(i);
      y = low == nullptr ? y * weight : y * V2{weight, load(low)};
    }
    if constexpr (has_bias) {
      const V bias = load(affine.bias().high(i));
      const double* const low = affine.bias().low(i);
      y = low == nullptr ? y + bias : y + V2{bias, load(low)};
    }
    return ends_of(y, error + relative * hn::Abs(y.high));
  }
};

void double_double_write(const RowsIn& part, const DoubleDoubleStatistics& statistics,
                         const Affine& affine, const RowPlace& place, const RowsOut& y,
                         const Resolver& resolver) {
  const bool repeats = affine.layout().repeat > 1;
  alignas(64) double low_ends[kChunk];
  alignas(64) double high_ends[kChunk];
  for_each_chunk(part, 0, [&](std::int64_t start, std::int64_t n, Chunk& chunk) HWY_ATTR {
    double* const low = low_of(part, chunk);
    with_terms(affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
      const DoubleDoubleWriter<has_weight(), has_bias()> writer(statistics, affine, y.dtype);
      const V2 minus_mean = splat(-statistics.mean);
      const auto load_terms = [repeats](const double* from) HWY_ATTR {
        return repeats ? splat(*from) : hn::LoadU(kDoubles, from);
      };
      for (std::int64_t i = 0; i < n; i += kWidth) {
        const V x = hn::Load(kDoubles, chunk.high + i);
        const V2 deviation =
            low == nullptr ? minus_mean + x : minus_mean + V2{x, hn::Load(kDoubles, low + i)};
        const auto ends =
            writer.bounds(deviation, place.number + (repeats ? 0 : start + i), load_terms);
        hn::Store(ends.low, kDoubles, low_ends + i);
        hn::Store(ends.high, kDoubles, high_ends + i);
      }
    });
    write_decided(low_ends, high_ends, n, row_of(y, 1, start), [&](std::int64_t i) {
      const Number x{chunk.high[i], low == nullptr ? 0 : low[i]};
      return resolver.resolve(place.element + start + i, x);
    });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
