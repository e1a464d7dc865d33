// The moments, the range and the sum of a row: see plain_moments.hpp, range.hpp, statistics.hpp.

#if defined(LNORM_KERNEL_MOMENTS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_MOMENTS_INL_HPP_
#undef LNORM_KERNEL_MOMENTS_INL_HPP_
#else
#define LNORM_KERNEL_MOMENTS_INL_HPP_
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lnorm/core/moments.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/join_lanes-inl.hpp"
#include "lnorm/kernel/plain_moments.hpp"
#include "lnorm/kernel/range.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/simd-inl.hpp"
#include "lnorm/kernel/statistics.hpp"
#include "lnorm/kernel/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

Range range_of_doubles(const RowsIn& row) {
  const V infinity = splat(kInfinity);
  V min = infinity;
  V max = hn::Neg(infinity);
  V least = infinity;
  V not_finite = hn::Zero(kDoubles);  // NaN, if an element is that or infinite
  for_each_chunk(row, 0, [&](std::int64_t, std::int64_t n, Chunk& chunk) HWY_ATTR {
    const std::int64_t whole = (n + kWidth - 1) / kWidth * kWidth;
    std::fill(chunk.high + n, chunk.high + whole, chunk.high[0]);
    for (std::int64_t i = 0; i < whole; i += kWidth) {
      const V x = hn::Load(kDoubles, chunk.high + i);
      const V size = hn::Abs(x);
      min = hn::Min(min, x);
      max = hn::Max(max, x);
      least = hn::Min(least, hn::IfThenElse(hn::Eq(size, hn::Zero(kDoubles)), infinity, size));
      not_finite = not_finite + (x - x);
    }
  });
  if (sum_of_lanes(not_finite) != 0) return range_one_by_one(row);
  return {.min = hn::GetLane(hn::MinOfLanes(kDoubles, min)) + 0.0,
          .max = hn::GetLane(hn::MaxOfLanes(kDoubles, max)) + 0.0,
          .least = hn::GetLane(hn::MinOfLanes(kDoubles, least))};
}

Range range(const RowsIn& row) {
  return has_low(row.dtype) || row.row_length == 0 ? range_one_by_one(row) : range_of_doubles(row);
}

TripleSum triple_sum(const RowsIn& row) {
  constexpr std::int64_t kAtOnce = 32 * kChunk;  // elements: then lanes are added up
  V high[kVectors];
  V middle[kVectors];
  V low[kVectors];
  V any_low[kVectors];
  TripleSum total;
  for_each_chunk(row, 0, [&](std::int64_t start, std::int64_t n, Chunk& chunk) HWY_ATTR {
    if (start % kAtOnce == 0) {
      for (std::int64_t v = 0; v < kVectors; ++v) {
        high[v] = middle[v] = low[v] = any_low[v] = hn::Zero(kDoubles);
      }
    }
    const std::int64_t whole = (n + kLanes - 1) / kLanes * kLanes;
    std::fill(chunk.high + n, chunk.high + whole, 0.0);
    for (std::int64_t i = 0; i < whole; i += kLanes) {
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const V2 first = two_sum(high[v], hn::Load(kDoubles, chunk.high + i + v * kWidth));
        const V2 second = two_sum(middle[v], first.low);
        high[v] = first.high;
        middle[v] = second.high;
        low[v] = low[v] + second.low;
        any_low[v] = hn::Or(any_low[v], second.low);
      }
    }
    const std::int64_t end = start + n;
    if (end % kAtOnce != 0 && end != row.row_length) return;
    TripleSum some;
    alignas(64) double lanes[4][kWidth];
    for (std::int64_t v = 0; v < kVectors; ++v) {
      hn::Store(high[v], kDoubles, lanes[0]);
      hn::Store(middle[v], kDoubles, lanes[1]);
      hn::Store(low[v], kDoubles, lanes[2]);
      hn::Store(any_low[v], kDoubles, lanes[3]);
      for (std::int64_t j = 0; j < kWidth; ++j) {
        some += {lanes[0][j], lanes[1][j], lanes[2][j], kAtOnce / kLanes, lanes[3][j] == 0};
      }
    }
    total += some;
  });
  return total;
}

using Bits = hn::RebindToUnsigned<Floats>;

// What the lanes of a row, or of a chunk of it, are folded to.
struct RowFigures {
  V min;
  V max;
  V least;  // not of doubles
  V sum;
  V sum_rest;  // of doubles
  V sum_last;  // and what that is rounded by
  V squares;
  V squares_rest;
};

// The range of a row, but for NaNs and infinities. The sizes |x| are compared as the integers that their bits are.
struct RangeLanes {
  static constexpr auto kFloats = static_cast<std::int64_t>(hn::MaxLanes(Floats()));
  static constexpr std::int64_t kGroup = 32;
  static constexpr std::int64_t kParts = kGroup / kFloats;

  hn::Vec<Floats> min[kParts];
  hn::Vec<Floats> max[kParts];
  hn::Vec<Bits> least[kParts];  // less 1, so that 0 is the largest of all

  HWY_INLINE RangeLanes() {
    const Floats floats;
    const Bits bits;
    for (std::int64_t p = 0; p < kParts; ++p) {
      min[p] = hn::Set(floats, std::numeric_limits<float>::infinity());
      max[p] = hn::Neg(min[p]);
      least[p] = hn::Set(bits, ~0u);
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
    }
  }

  HWY_INLINE void fold_to(RowFigures& row) {
    for (std::int64_t p = 1; p < kParts; ++p) {
      min[0] = hn::Min(min[0], min[p]);
      max[0] = hn::Max(max[0], max[p]);
      least[0] = hn::Min(least[0], least[p]);
    }
    const Bits bits;
    const auto size = hn::Add(least[0], hn::Set(bits, 1u));
    const Floats floats;
    const auto infinity = hn::Set(floats, std::numeric_limits<float>::infinity());
    const auto is_zero = hn::Eq(hn::BitCast(floats, size), hn::Zero(floats));
    const auto not_zero = hn::IfThenElse(is_zero, infinity, hn::BitCast(floats, size));
    const auto minimum = [](auto a, auto b) HWY_ATTR { return hn::Min(a, b); };
    row.min = doubles_of(min[0], minimum);
    row.max = doubles_of(max[0], [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
    row.least = doubles_of(not_zero, minimum);
  }

 private:
  template <class Join>
  static HWY_INLINE V doubles_of(hn::Vec<Floats> lanes, const Join& join) {
#if HWY_TARGET == HWY_SCALAR
    (void)join;
    return hn::PromoteTo(kDoubles, lanes);
#else
    static_assert(kFloats == 2 * kWidth);
    const F half;
    return hn::PromoteTo(kDoubles, join(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
#endif
  }
};

// The sums of a chunk: of x, and of x^2 in two parts.
struct PlainLanes {
  Lanes x;
  Lanes squares;  // from the start on
  Lanes rests;    // that were rounded off

  HWY_INLINE void clear(V start) {
    x.clear();
    rests.clear();
    for (V& square : squares.v) square = start;
  }

  // A square is exact, whether or not it is fused with an addition.
  HWY_INLINE void add(std::int64_t i, V element) {
    const V before = squares.v[i];
    squares.v[i] = hn::MulAdd(element, element, before);
    rests.v[i] = rests.v[i] + hn::MulAdd(element, element, before - squares.v[i]);
    x.v[i] = x.v[i] + element;
  }

  HWY_INLINE void fold_to(RowFigures& row, V start) const {
    Lanes from_zero;
    for (std::int64_t v = 0; v < kVectors; ++v) from_zero.v[v] = squares.v[v] - start;
    row.sum = x.fold();
    row.squares = from_zero.fold();
    row.squares_rest = rests.fold();
  }
};

// The range of a row of doubles, and its parted sums (plain_moments.hpp).
struct PartedLanes {
  static constexpr std::int64_t kCount = 2;  // vectors of each, as many as registers hold

  V min[kCount];
  V max[kCount];
  V sums[kCount];
  V rests[kCount];
  V lasts[kCount];
  V squares[kCount];
  V square_rests[kCount];

  HWY_INLINE explicit PartedLanes(const PartedSums& parted) {
    for (std::int64_t v = 0; v < kCount; ++v) {
      min[v] = splat(kInfinity);
      max[v] = splat(-kInfinity);
      sums[v] = splat(parted.start);
      rests[v] = splat(parted.rest_start);
      squares[v] = splat(parted.squares_start);
      lasts[v] = square_rests[v] = hn::Zero(kDoubles);
    }
  }

  // in_range: x, or an element of the row where x is 0 beyond its end.
  HWY_INLINE void add(std::int64_t v, V x, V in_range) {
    min[v] = hn::Min(min[v], in_range);
    max[v] = hn::Max(max[v], in_range);
    const V2 sum = fast_two_sum(sums[v], x);
    const V2 rest = fast_two_sum(rests[v], sum.low);
    const V2 product = two_product(x, x);
    const V2 square = fast_two_sum(squares[v], product.high);
    sums[v] = sum.high;
    rests[v] = rest.high;
    lasts[v] = lasts[v] + rest.low;
    squares[v] = square.high;
    square_rests[v] = square_rests[v] + (square.low + product.low);
  }

  HWY_INLINE void add_row(const std::byte* x, std::int64_t n) {
    const auto load = [x](std::int64_t i)
                          HWY_ATTR { return load_vector<double>(x + i * kSize<double>); };
    std::int64_t i = 0;
    for (; i + kCount * kWidth <= n; i += kCount * kWidth) {
      for (std::int64_t v = 0; v < kCount; ++v) {
        const V element = load(i + v * kWidth);
        add(v, element, element);
      }
    }
    for (; i < n; i += kWidth) {
      alignas(64) double rest[kWidth] = {};
      std::memcpy(rest, x + i * kSize<double>,
                  sizeof(double) * static_cast<std::size_t>(std::min(kWidth, n - i)));
      double first;
      std::memcpy(&first, x, sizeof first);
      const V element = hn::Load(kDoubles, rest);
      add(0, element, hn::IfThenElse(mask_of(kDoubles, n - i), element, splat(first)));
    }
  }

  HWY_INLINE RowFigures fold(const PartedSums& parted) const {
    RowFigures row{min[0],
                   max[0],
                   splat(0),
                   sums[0] - splat(parted.start),
                   rests[0] - splat(parted.rest_start),
                   lasts[0],
                   squares[0] - splat(parted.squares_start),
                   square_rests[0]};
    for (std::int64_t v = 1; v < kCount; ++v) {
      row.min = hn::Min(row.min, min[v]);
      row.max = hn::Max(row.max, max[v]);
      row.sum = row.sum + (sums[v] - splat(parted.start));
      row.sum_rest = row.sum_rest + (rests[v] - splat(parted.rest_start));
      row.sum_last = row.sum_last + lasts[v];
      row.squares = row.squares + (squares[v] - splat(parted.squares_start));
      row.squares_rest = row.squares_rest + square_rests[v];
    }
    return row;
  }
};

// Rounds numbers that are known within an error. Returns where that leaves no choice.
HWY_INLINE hn::Mask<D> decide(V2 value, V error, V& rounded) {
  const Ends ends = ends_of(value, error + splat(bound::kRounding * kUnit2) * hn::Abs(value.high));
  rounded = ends.low;
  return hn::Eq(ends.low, ends.high);
}

// The figures of up to a chunk of floats.
template <class T>
HWY_INLINE RowFigures figures_of_floats(const RowsIn& part, int exponent) {
  const V start = splat(plain_start(exponent));
  RangeLanes range;
  PlainLanes lanes;
  lanes.clear(start);
  const auto add = [&](const std::byte* x, const std::byte* or_zero) HWY_ATTR {
    range.add_group<T>(x);
    for (std::int64_t i = 0; i < RangeLanes::kGroup; i += kLanes) {
      for (std::int64_t v = 0; v < kVectors; ++v) {
        lanes.add(v, load_vector<T>(or_zero + (i + v * kWidth) * kSize<T>));
      }
    }
  };
  for_each_group<T, RangeLanes::kGroup>(part, add);
  RowFigures row;
  range.fold_to(row);
  lanes.fold_to(row, start);
  return row;
}

// The same of a dtype that load_floats does not load.
HWY_NOINLINE RowFigures figures_of_decoded(const RowsIn& part, int exponent) {
  Chunk chunk;
  alignas(64) float floats[kChunk];
  decode(part, 0, chunk);
  for (std::int64_t i = 0; i < part.row_length; ++i) floats[i] = static_cast<float>(chunk.high[i]);
  const RowsIn row{reinterpret_cast<const std::byte*>(floats), DType::float32, std::endian::native,
                   1, part.row_length};
  return figures_of_floats<float>(row, exponent);
}

// Ranges and sums of some rows.
struct PlainRows {
  static constexpr std::int64_t kMax = 16;
  using Numbers = double[kMax];

  alignas(64) Numbers min;
  alignas(64) Numbers max;
  alignas(64) Numbers least;  // of floats
  alignas(64) Numbers sum;
  alignas(64) Numbers sum_low;
  alignas(64) Numbers squares;
  alignas(64) Numbers square_low;

  double greatest(std::int64_t r) const { return std::max(-min[r], max[r]); }
};

// Rows of one length on their way from sums to moments. A division takes as long for a vector of rows as for one.
// Ranges tell whether rows have plain sums; of NaN and infinity the sums tell.
class PlainMoments {
 public:
  // x: the rows, or those that come first.
  PlainMoments(const RowsIn& x, std::int64_t freedom)
      : n_(x.row_length),
        freedom_(static_cast<double>(freedom)),
        has_ties_(x.dtype != DType::float64 && n_ <= kMostTied && is_power_of_two(n_) &&
                  is_power_of_two(freedom)) {
    const Range first = range(part_of(row_of(x, 0), 0, std::min(n_, kSample)));
    exponent_ = plain_exponent(std::max(-first.min, first.max));
  }

  // Does what centered_sums() does about 0, with its roundings, for up to PlainRows::kMax rows. Says which are decided.
  void find(const RowsIn& x, Moments* moments, bool* decided) {
    const auto sum_up = [&]<class T>(T) HWY_ATTR { sum_up_as<T>(x); };
    if (!with_floats(x, sum_up) && !with_type<double>(x.dtype, sum_up)) sum_up_as<void>(x);
    exponent_ = plain_exponent(rows_.greatest(x.rows - 1));
    for (std::int64_t r = 0; r < x.rows; r += kWidth)
      find_vector(r, std::min(kWidth, x.rows - r), moments + r, decided + r);
  }

 private:
  static constexpr std::int64_t kSample = 256;  // elements, of which the first guess comes
  static constexpr std::int64_t kMostTied = 32;
  static constexpr std::int64_t kMostInLane = 16;

  static bool is_power_of_two(std::int64_t n) {
    return n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n));
  }

  // In one pass, which guesses the exponent: those of the rows before. T: double, void or what load_floats loads.
  template <class T>
  HWY_INLINE void sum_up_as(const RowsIn& x) {
    constexpr int kMost = PartedSums::kMaxExponent;
    constexpr bool are_floats = !std::is_same_v<T, double>;
    // Doubles have some bits to spare.
    const int guess = are_floats ? exponent_ + 1 : std::clamp(exponent_ + 5, -kMost, kMost);
    const bool are_long = are_floats && n_ > kChunk;
    std::int64_t first = 0;
    if constexpr (are_floats && !std::is_void_v<T>) {
      for (; n_ <= kMostInLane && first + kWidth <= x.rows; first += kWidth) {
        sum_up_lanes<T>(x, first);
      }
    }
    for (std::int64_t r = first; r < x.rows; ++r) {
      if (are_long) {
        sum_up_row<T>(x, r, guess);
      } else if (r % kWidth == 0) {
        sum_up_vector<T>(x, r, guess);
      }
      const double greatest = rows_.greatest(r);
      const bool has_bits = !are_floats || rows_.least[r] >= power_of_two(guess - 20);
      if (greatest < power_of_two(guess) && has_bits) continue;
      if (are_floats && is_plain(rows_.least[r], greatest)) {
        sum_up_row<T>(x, r, plain_exponent(greatest));
      } else {
        rows_.sum[r] = rows_.squares[r] = kInfinity;
      }
    }
  }

  template <class T>
  HWY_INLINE RowFigures figures_of(const RowsIn& x, int exponent) {
    if constexpr (std::is_same_v<T, double>) {
      constexpr std::int64_t kAtOnce = PartedLanes::kCount * kWidth;
      const PartedSums parted(exponent, n_, (n_ + kAtOnce - 1) / kAtOnce + 8);
      sum_error_ = parted.sum_error;
      squares_error_ = parted.squares_error;
      PartedLanes lanes(parted);
      lanes.add_row(x.data, n_);
      return lanes.fold(parted);
    } else if constexpr (std::is_void_v<T>) {
      return figures_of_decoded(x, exponent);
    } else {
      return figures_of_floats<T>(x, exponent);
    }
  }

  // A row of floats by itself, a chunk at a time.
  template <class T>
  HWY_NOINLINE void sum_up_row(const RowsIn& x, std::int64_t r, int exponent) {
    Range range;
    Sums total;
    for_each_part(row_of(x, r), [&](std::int64_t, const RowsIn& part) HWY_ATTR {
      const RowFigures row = figures_of<T>(part, exponent);
      range.min = std::min(range.min, hn::GetLane(hn::MinOfLanes(kDoubles, row.min)) + 0.0);
      range.max = std::max(range.max, hn::GetLane(hn::MaxOfLanes(kDoubles, row.max)) + 0.0);
      range.least = std::min(range.least, hn::GetLane(hn::MinOfLanes(kDoubles, row.least)));
      const DoubleDouble squares =
          lnorm::two_sum(sum_of_lanes(row.squares), sum_of_lanes(row.squares_rest));
      total += {{sum_of_lanes(row.sum)}, squares};
    });
    rows_.min[r] = range.min;
    rows_.max[r] = range.max;
    rows_.least[r] = range.least;
    rows_.sum[r] = total.sum.high;
    rows_.sum_low[r] = total.sum.low;
    rows_.squares[r] = total.squares.high;
    rows_.square_low[r] = total.squares.low;
  }

  // Rows of a few floats, one in every lane, each with its own exponent.
  template <class T>
  HWY_INLINE void sum_up_lanes(const RowsIn& x, std::int64_t r) {
    alignas(64) double elements[kWidth * (kMostInLane + 1)];
    alignas(64) double columns[kWidth * kMostInLane];
    const std::byte* const first = row_of(x, r).data;
    for (std::int64_t i = 0; i < n_ * kWidth; i += kWidth) {
      hn::Store(load_vector<T>(first + i * kSize<T>), kDoubles, elements + i);
    }
    to_columns(elements, n_, columns);
    const V zero = hn::Zero(kDoubles);  // of which a sum has no sign
    const V infinity = splat(kInfinity);
    V min = infinity;
    V max = negated(infinity);
    V least = infinity;
    for (std::int64_t j = 0; j < n_; ++j) {
      const V element = hn::Load(kDoubles, columns + j * kWidth);
      const V size = hn::Abs(element);
      min = hn::Min(min, element);
      max = hn::Max(max, element);
      least = hn::Min(least, hn::IfThenElse(hn::Eq(size, zero), infinity, size));
    }
    const V half = half_power(hn::Max(negated(min), max));
    const V start = half * half * splat(plain_start(1));
    PlainLanes lanes;
    lanes.clear(start);
    for (std::int64_t j = 0; j < n_; ++j) lanes.add(0, hn::Load(kDoubles, columns + j * kWidth));
    const auto is_plain = hn::Ge(least, half * splat(power_of_two(-19)));
    const auto if_plain = [&](V sum) HWY_ATTR { return hn::IfThenElse(is_plain, sum, infinity); };
    hn::Store(min + zero, kDoubles, rows_.min + r);
    hn::Store(max + zero, kDoubles, rows_.max + r);
    hn::Store(if_plain(lanes.x.v[0] + zero), kDoubles, rows_.sum + r);
    hn::Store(zero, kDoubles, rows_.sum_low + r);
    hn::Store(if_plain(lanes.squares.v[0] - start), kDoubles, rows_.squares + r);
    hn::Store(lanes.rests.v[0], kDoubles, rows_.square_low + r);
  }

  template <class T>
  HWY_INLINE void sum_up_vector(const RowsIn& x, std::int64_t r, int exponent) {
    RowFigures rows[kWidth];
    for (std::int64_t k = 0; k < kWidth; ++k) {
      rows[k] = figures_of<T>(row_of(x, std::min(r + k, x.rows - 1)), exponent);
    }
    const auto joined = [&](V RowFigures::*figure, const auto& join) HWY_ATTR {
      return join_each<V>([&](std::int64_t k) HWY_ATTR { return rows[k].*figure; }, join) +
             hn::Zero(kDoubles);
    };
    const auto minimum = [](V a, V b) HWY_ATTR { return hn::Min(a, b); };
    const auto maximum = [](V a, V b) HWY_ATTR { return hn::Max(a, b); };
    const auto plus = [](V a, V b) HWY_ATTR { return a + b; };
    V2 sum{joined(&RowFigures::sum, plus), hn::Zero(kDoubles)};
    if constexpr (std::is_same_v<T, double>) {
      sum = two_sum(sum.high, joined(&RowFigures::sum_rest, plus)) +
            joined(&RowFigures::sum_last, plus);
    } else {
      hn::Store(joined(&RowFigures::least, minimum), kDoubles, rows_.least + r);
    }
    hn::Store(joined(&RowFigures::min, minimum), kDoubles, rows_.min + r);
    hn::Store(joined(&RowFigures::max, maximum), kDoubles, rows_.max + r);
    hn::Store(sum.high, kDoubles, rows_.sum + r);
    hn::Store(sum.low, kDoubles, rows_.sum_low + r);
    hn::Store(joined(&RowFigures::squares, plus), kDoubles, rows_.squares + r);
    hn::Store(joined(&RowFigures::squares_rest, plus), kDoubles, rows_.square_low + r);
  }

  void find_vector(std::int64_t r, std::int64_t rows, Moments* moments, bool* decided) const {
    const double growth = plain_growth(n_);
    const V n = splat(static_cast<double>(n_));
    const V freedom = splat(freedom_);
    const V2 sum{hn::Load(kDoubles, rows_.sum + r), hn::Load(kDoubles, rows_.sum_low + r)};
    const V2 squares =
        two_sum(hn::Load(kDoubles, rows_.squares + r), hn::Load(kDoubles, rows_.square_low + r));
    const V2 mean = sum / n;
    const V2 centered = squares_about_mean(squares, sum, mean);
    const V squares_error =
        splat((3 * growth + bound::kCentered) * kUnit2 * kSlack) * squares.high +
        splat(squares_error_ * kSlack);
    const V variance_error = hn::Div(squares_error, freedom) * splat(kSlack);
    const V2 variance = centered / freedom;
    // NaN, of a row that is not plain or not finite, is not decided.
    V rounded_variance;
    auto is_decided =
        decide(variance, variance_error + splat(bound::kVariance * kUnit2) * variance.high,
               rounded_variance);
    if (has_ties_) {
      const V greatest = hn::Max(hn::Abs(hn::Load(kDoubles, rows_.min + r)),
                                 hn::Abs(hn::Load(kDoubles, rows_.max + r)));
      const V step = centered_step(greatest);
      const V2 exact = nearest_multiple(centered, step);
      const auto is_exact = hn::Lt(squares_error, splat(0.25) * step);
      rounded_variance = hn::IfThenElse(is_exact, hn::Div(exact.high, freedom), rounded_variance);
      is_decided = hn::Or(is_decided, is_exact);
    }
    // The sum of a chunk of floats is a double.
    V rounded_sum = sum.high;
    V rounded_mean = hn::Div(sum.high, n);
    if (n_ > kChunk || is_parted()) {
      const V size = is_parted() ? hn::Abs(mean.high) : hn::Sqrt(hn::Div(squares.high, n));
      const V error = splat((growth + bound::kMean) * kUnit2 * kSlack) * size +
                      hn::Div(splat(sum_error_ * kSlack), n);
      is_decided = hn::And(is_decided, decide(sum, error * n, rounded_sum));
      is_decided = hn::And(is_decided, decide(mean, error, rounded_mean));
    }
    alignas(64) double found[4][kWidth];
    hn::Store(rounded_sum, kDoubles, found[0]);
    hn::Store(rounded_mean, kDoubles, found[1]);
    hn::Store(rounded_variance, kDoubles, found[2]);
    hn::Store(hn::IfThenElseZero(is_decided, splat(1)), kDoubles, found[3]);
    for (std::int64_t k = 0; k < rows; ++k) {
      moments[k] = {.sum = found[0][k],
                    .mean = found[1][k],
                    .variance = found[2][k],
                    .min = rows_.min[r + k],
                    .max = rows_.max[r + k]};
      decided[k] = found[3][k] != 0;
    }
  }

  bool is_parted() const { return sum_error_ > 0; }

  // 2^(E - 1); 0 of zero.
  static V half_power(V greatest) {
    const hn::RebindToUnsigned<D> bits;
    const auto exponent = hn::And(hn::BitCast(bits, greatest), hn::Set(bits, 0x7ffull << 52));
    return hn::BitCast(kDoubles, exponent);
  }

  // What the sum of squares about the mean of 2^k elements is a multiple of, since x is one of 2^(E - 43).
  V centered_step(V greatest) const {
    const V half = half_power(greatest);
    return half * half * splat(power_of_two(-84) / static_cast<double>(n_));
  }

  // A number that is off by less than half a step.
  static V2 nearest_multiple(V2 number, V step) {
    const V start = splat(1.5 * power_of_two(52)) * step;
    const auto is_small = hn::Lt(hn::Abs(number.high), splat(power_of_two(50)) * step);
    const V low = hn::IfThenElse(is_small, number.high + number.low, number.low);
    return two_sum(hn::IfThenZeroElse(is_small, number.high), (low + start) - start);
  }

  std::int64_t n_;
  double freedom_;
  // Variances of few floats, of which n and the divisor are powers of two, often lie halfway between two doubles.
  bool has_ties_;
  int exponent_;          // of the row before
  double sum_error_ = 0;  // of parted sums
  double squares_error_ = 0;
  PlainRows rows_{};
};

void plain_moments(const RowsIn& x, std::int64_t freedom, Moments* moments, bool* decided) {
  PlainMoments some(x, freedom);
  for (std::int64_t first = 0; first < x.rows; first += PlainRows::kMax) {
    RowsIn rows = row_of(x, first);
    rows.rows = std::min(PlainRows::kMax, x.rows - first);
    some.find(rows, moments + first, decided + first);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
