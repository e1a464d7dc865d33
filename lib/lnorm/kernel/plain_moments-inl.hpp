// The moments of rows by plain sums: see plain_moments.hpp.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "lnorm/core/moments.hpp"
#include "lnorm/kernel/plain_moments.hpp"
#include "lnorm/kernel/range.hpp"
#include "lnorm/kernel/statistics.hpp"

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

  HWY_INLINE Range range() {
    const Floats floats;
    const Bits bits;
    for (std::int64_t p = 1; p < kParts; ++p) {
      min[0] = hn::Min(min[0], min[p]);
      max[0] = hn::Max(max[0], max[p]);
      least[0] = hn::Min(least[0], least[p]);
    }
    const std::uint32_t least_bits = hn::GetLane(hn::MinOfLanes(bits, least[0])) + 1;
    Range range;
    range.min = static_cast<double>(hn::GetLane(hn::MinOfLanes(floats, min[0]))) + 0.0;
    range.max = static_cast<double>(hn::GetLane(hn::MaxOfLanes(floats, max[0]))) + 0.0;
    if (least_bits != 0) range.least = static_cast<double>(std::bit_cast<float>(least_bits));
    return range;
  }
};

template <class T>
Range float_range(const RowsIn& row) {
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
  return lanes.range();
}

// What a row has plain sums by. Of NaN and infinity the sums tell.
Range plain_range(const RowsIn& row) {
  if (row.byte_order == std::endian::native) {
    if (row.dtype == DType::float32) return float_range<float>(row);
    if (row.dtype == DType::bfloat16) return float_range<BFloat16>(row);
    if constexpr (kHasFloat16) {
      if (row.dtype == DType::float16) return float_range<Float16>(row);
    }
  }
  return range_of_doubles(row);
}

// Of a chunk: x, and x^2 in two sums.
struct PlainLanes {
  Lanes x;
  Lanes squares;  // from the start on
  Lanes rests;    // that were rounded off

  HWY_INLINE void clear(V start) {
    x.clear();
    rests.clear();
    for (std::int64_t v = 0; v < kVectors; ++v) squares.v[v] = start;
  }

  template <class Elements>
  HWY_INLINE void add(const Elements& elements, std::int64_t n) {
    Lanes s = x;  // in registers
    Lanes q = squares;
    Lanes r = rests;
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (std::int64_t v = 0; v < kVectors; ++v) {
        add(elements(i + v * kWidth), s.v[v], q.v[v], r.v[v]);
      }
    }
    for (std::int64_t v = 0; v < kVectors && i < n; ++v, i += kWidth) {
      add(hn::IfThenElseZero(mask_of(kDoubles, n - i), elements(i)), s.v[v], q.v[v], r.v[v]);
    }
    x = s;
    squares = q;
    rests = r;
  }

  // A square is exact, whether or not it is fused with an addition.
  static HWY_INLINE void add(V element, V& sum, V& square, V& rest) {
    const V before = square;
    square = hn::MulAdd(element, element, before);
    rest = rest + hn::MulAdd(element, element, before - square);
    sum = sum + element;
  }

  HWY_INLINE Sums fold(V start) const {
    Lanes from_zero;
    for (std::int64_t v = 0; v < kVectors; ++v) from_zero.v[v] = squares.v[v] - start;
    return {{sum_of_lanes(x.fold())}, {sum_of_lanes(from_zero.fold()), sum_of_lanes(rests.fold())}};
  }
};

// The squares of a row of one chunk are in two parts that may overlap.
HWY_INLINE Sums plain_sums(const RowsIn& row, int exponent) {
  Sums total;
  const V start = splat(plain_start(exponent));
  PlainLanes lanes;
  lanes.clear(start);
  const bool is_fast_path = row.dtype == DType::float32 && row.byte_order == std::endian::native;
  for_each_stretch(row, 0, is_fast_path,
                   [&](std::int64_t first, std::int64_t n, const auto& elements) HWY_ATTR {
                     lanes.add(elements, n);
                     const std::int64_t end = first + n;
                     if (end % kChunk != 0 && end != row.row_length) return;
                     Sums sums = lanes.fold(start);
                     if (row.row_length <= kChunk) {
                       total = sums;
                     } else {
                       sums.squares = lnorm::two_sum(sums.squares.high, sums.squares.low);
                       total += sums;
                     }
                     lanes.clear(start);
                   });
  return total;
}

// Rounds numbers that are known within an error. Returns where that leaves no choice.
HWY_INLINE hn::Mask<D> decide(V2 value, V error, V& rounded) {
  const V margin = error + splat(4 * kUnit * kUnit) * hn::Abs(value.high);
  rounded = value.high + (value.low - margin);
  return hn::Eq(rounded, value.high + (value.low + margin));
}

// Rows of one length on their way from sums to moments. A division takes as long for a vector of rows as for one.
class PlainMoments {
 public:
  static constexpr std::int64_t kMaxRows = 16;  // at once

  PlainMoments(std::int64_t n, std::int64_t freedom)
      : n_(n), freedom_(static_cast<double>(freedom)) {}

  void take(std::int64_t r, const Sums& sums) {
    sums_[r] = sums.sum.high;
    sum_lows_[r] = sums.sum.low;
    squares_[r] = sums.squares.high;
    square_lows_[r] = sums.squares.low;
  }

  // As centered_sums() does about 0, and its roundings. Fills what is decided, and says for which rows that is all.
  void find(std::int64_t rows, Moments* moments, bool* decided) const {
    for (std::int64_t r = 0; r < rows; r += kWidth)
      find_vector(r, std::min(kWidth, rows - r), moments + r, decided + r);
  }

 private:
  void find_vector(std::int64_t r, std::int64_t rows, Moments* moments, bool* decided) const {
    constexpr double kUnit2 = kUnit * kUnit;
    constexpr double kSlack = 1 + 0x1p-8;
    const double growth = plain_growth(n_);
    const V n = splat(static_cast<double>(n_));
    const V freedom = splat(freedom_);
    const V2 sum{hn::Load(kDoubles, sums_ + r), hn::Load(kDoubles, sum_lows_ + r)};
    const V2 squares =
        two_sum(hn::Load(kDoubles, squares_ + r), hn::Load(kDoubles, square_lows_ + r));
    const V2 mean = sum / n;
    const V2 centered = squares - mean * sum;
    const V squares_error = splat((3 * growth + 25) * kUnit2 * kSlack) * squares.high;
    const V variance_error = hn::Div(squares_error, freedom) * splat(kSlack);
    const V2 variance = centered / freedom;
    // NaN, of a row that is not plain or not finite, is not decided.
    V rounded_variance;
    auto is_decided =
        decide(variance, variance_error + splat(10 * kUnit2) * variance.high, rounded_variance);
    // The sum of a chunk is a double.
    V rounded_sum = sum.high;
    V rounded_mean = hn::Div(sum.high, n);
    if (n_ > kChunk) {
      const V error = splat((growth + 10) * kUnit2 * kSlack) * hn::Sqrt(hn::Div(squares.high, n));
      is_decided = hn::And(is_decided, decide(sum, error * n, rounded_sum));
      is_decided = hn::And(is_decided, decide(mean, error, rounded_mean));
    }
    alignas(64) double found[4][kWidth];
    hn::Store(rounded_sum, kDoubles, found[0]);
    hn::Store(rounded_mean, kDoubles, found[1]);
    hn::Store(rounded_variance, kDoubles, found[2]);
    hn::Store(hn::IfThenElseZero(is_decided, splat(1)), kDoubles, found[3]);
    for (std::int64_t k = 0; k < rows; ++k) {
      moments[k].sum = found[0][k];
      moments[k].mean = found[1][k];
      moments[k].variance = found[2][k];
      decided[k] = found[3][k] != 0;
    }
  }

  std::int64_t n_;
  double freedom_;
  alignas(64) double sums_[kMaxRows] = {};
  alignas(64) double sum_lows_[kMaxRows] = {};
  alignas(64) double squares_[kMaxRows] = {};
  alignas(64) double square_lows_[kMaxRows] = {};
};

void plain_moments(const RowsIn& x, std::int64_t freedom, Moments* moments, bool* decided) {
  constexpr std::int64_t kRows = PlainMoments::kMaxRows;
  PlainMoments some(x.row_length, freedom);
  Range ranges[kRows];
  const auto row_bytes = x.row_length * static_cast<std::int64_t>(item_size(x.dtype));
  RowsIn row = row_of(x, 0);
  for (std::int64_t first = 0; first < x.rows; first += kRows) {
    const std::int64_t rows = std::min(kRows, x.rows - first);
    const std::byte* const data = x.data + first * row_bytes;
    for (std::int64_t r = 0; r < rows; ++r) {
      row.data = data + r * row_bytes;
      ranges[r] = plain_range(row);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      row.data = data + r * row_bytes;
      const auto& [non_finite, min, max, least] = ranges[r];
      const double greatest = std::max(-min, max);
      if (is_plain(least, greatest)) {
        some.take(r, plain_sums(row, plain_exponent(greatest)));
      } else {
        some.take(r, {{HUGE_VAL}, {HUGE_VAL}});
      }
      moments[first + r] = {.min = min, .max = max};
    }
    some.find(rows, moments + first, decided + first);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
