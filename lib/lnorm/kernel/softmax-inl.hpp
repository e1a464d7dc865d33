// Softmax by doubles (kernel/softmax.cpp): what they decide.

#if defined(LNORM_KERNEL_SOFTMAX_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_SOFTMAX_INL_HPP_
#undef LNORM_KERNEL_SOFTMAX_INL_HPP_
#else
#define LNORM_KERNEL_SOFTMAX_INL_HPP_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/exp.hpp"
#include "lnorm/kernel/results-inl.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "lnorm/kernel/softmax_bounds.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// The largest of floats and, as the integers that their bits are, of their sizes: a NaN's are larger than infinity's.
template <class T>
double largest_float(const RowsIn& row) {
  const Floats floats;
  const hn::RebindToUnsigned<Floats> bits;
  auto max = hn::Set(floats, -std::numeric_limits<float>::infinity());
  auto greatest = hn::Zero(bits);
  for_each_group<T, hn::MaxLanes(floats)>(
      row, [&](const std::byte* from, const std::byte*) HWY_ATTR {
        const auto x = load_floats<T>(from);
        max = hn::Max(max, x);
        greatest = hn::Max(greatest, hn::BitCast(bits, hn::Abs(x)));
      });
  constexpr std::uint32_t kInfinity = 0x7f800000;
  if (hn::GetLane(hn::MaxOfLanes(bits, greatest)) > kInfinity) {
    return kNan;
  }
  return static_cast<double>(hn::GetLane(hn::MaxOfLanes(floats, max)));
}

// The largest element of any dtype without low parts.
double largest_double(const RowsIn& row) {
  const V least = splat(-kInfinity);
  V max = least;
  auto is_nan = hn::IsNaN(least);
  for_each_chunk(row, 0, [&](std::int64_t, std::int64_t n, const Chunk& chunk) HWY_ATTR {
    for (std::int64_t i = 0; i < n; i += kWidth) {
      const V x =
          hn::IfThenElse(mask_of(kDoubles, n - i), hn::Load(kDoubles, chunk.high + i), least);
      max = hn::Max(max, x);
      is_nan = hn::Or(is_nan, hn::IsNaN(x));
    }
  });
  if (!hn::AllFalse(kDoubles, is_nan)) return kNan;
  return hn::GetLane(hn::MaxOfLanes(kDoubles, max));
}

double largest(const RowsIn& row) {
  double result = 0;
  const auto find = [&]<class T>(T) HWY_ATTR { result = largest_float<T>(row); };
  const bool is_found = row.row_length > 0 && with_floats(row, find);
  return is_found ? result : largest_double(row);
}

// exp(d) = 2^(k div 64) T[k mod 64] exp(r), as in exp.hpp.
struct ReducedVector {
  using Integers = hn::RebindToSigned<D>;

  V multiple;  // k
  hn::Vec<Integers> index;
  V power;  // 2^(k div 64), of a normal number

  HWY_INLINE explicit ReducedVector(V d) {
    const Integers integers;
    const V rounder = splat(Exp::kRounder);
    const V shifted = hn::MulAdd(d, splat(Exp::kStepsPerUnit), rounder);
    multiple = shifted - rounder;
    const auto k = hn::Sub(hn::BitCast(integers, shifted), hn::BitCast(integers, rounder));
    index = hn::And(k, hn::Set(integers, Exp::kSteps - 1));
    const auto exponent = hn::ShiftLeft<52 - Exp::kStepBits>(hn::Sub(k, index));
    const auto one = hn::Set(integers, std::int64_t{1023} << 52);
    power = hn::BitCast(kDoubles, hn::Add(exponent, one));
  }
};

// Exp::in_double of a vector. d is not below Exp::kMinDouble.
HWY_INLINE V exp_in_doubles(V d) {
  const hn::RebindToSigned<D> integers;
  const V rounder = splat(Exp::kRounder);
  const V shifted = hn::MulAdd(d, splat(Exp::kPerLn2), rounder);
  const V k = shifted - rounder;
  const V r = hn::NegMulAdd(k, splat(Exp::kLn2Middle), hn::NegMulAdd(k, splat(Exp::kLn2High), d));
  V series = splat(Exp::kSeries[0]);
  HWY_UNROLL(11)
  for (std::size_t i = 1; i < std::size(Exp::kSeries); ++i) {
    series = hn::MulAdd(r, series, splat(Exp::kSeries[i]));
  }
  const auto one = hn::Set(integers, std::int64_t{1023} << 52);
  const auto power = hn::Add(hn::ShiftLeft<52>(hn::BitCast(integers, shifted)), one);
  const V factor = hn::BitCast(kDoubles, power);
  return hn::MulAdd(hn::MulAdd(r * r, series, r), factor, factor);
}

// Exp::in_double_double of a vector, times its power of two, by steps. Each is a long chain: the processor has more to do
// if several vectors take one before they take the next. d is not below kMinDoubleDouble.
class DoubleDoublePower {
 public:
  HWY_INLINE void reduce(V2 d) {
    const ReducedVector k(d.high);
    index_ = k.index;
    power_ = k.power;
    const V2 high = two_sum(hn::NegMulAdd(k.multiple, splat(Exp::kHigh), d.high),
                            hn::Neg(k.multiple * splat(Exp::kMiddle)));
    r_ = two_sum(high.high, high.low + hn::NegMulAdd(k.multiple, splat(Exp::kLow), d.low));
  }
  HWY_INLINE void add_last_terms() {
    const V h = r_.high;
    V rest = hn::MulAdd(h, splat(1.0 / 39916800), splat(1.0 / 3628800));
    rest = hn::MulAdd(h, rest, splat(1.0 / 362880));
    rest = hn::MulAdd(h, rest, splat(1.0 / 40320));
    rest = hn::MulAdd(h, rest, splat(1.0 / 5040));
    rest = hn::MulAdd(h, rest, splat(1.0 / 720));
    const V from_fifth = hn::MulAdd(h, rest, splat(1.0 / 120));
    series_ = splat(Exp::kFourth) + r_ * from_fifth;
  }
  HWY_INLINE void add_third() { series_ = splat(Exp::kThird) + r_ * series_; }
  HWY_INLINE void add_second() { series_ = r_ * (splat(DoubleDouble{0.5}) + r_ * series_); }
  HWY_INLINE void add_first() { series_ = splat(DoubleDouble{1}) + (r_ + r_ * series_); }
  HWY_INLINE V2 result(const Exp& exp) const {
    const V2 table{hn::GatherIndex(kDoubles, exp.highs(), index_),
                   hn::GatherIndex(kDoubles, exp.lows(), index_)};
    const V2 m = table * series_;
    return {m.high * power_, m.low * power_};
  }

 private:
  hn::Vec<ReducedVector::Integers> index_;
  V power_;
  V2 r_;
  V2 series_;
};

// A chunk of a row on its way: x - max, not below Exp::kMinDouble, and exp of it.
struct Exponentials {
  Chunk d;
  alignas(64) double e[kChunk + kLanes];

  // Returns their sum.
  double find(const RowsIn& part, double max) {
    decode(part, max, d);
    const V least = splat(Exp::kMinDouble);
    const std::int64_t n = part.row_length;
    Lanes sums;
    sums.clear();
    for (std::int64_t i = 0; i < n; i += kLanes) {
      for (std::int64_t v = 0; v < kVectors && i + v * kWidth < n; ++v) {
        const std::int64_t at = i + v * kWidth;
        const V clamped = hn::Max(hn::Load(kDoubles, d.high + at), least);
        const V power = exp_in_doubles(clamped);
        hn::Store(clamped, kDoubles, d.high + at);
        hn::Store(power, kDoubles, e + at);
        sums.v[v] = sums.v[v] + hn::IfThenElseZero(mask_of(kDoubles, n - at), power);
      }
    }
    return sum_of_lanes(sums.fold());
  }
};

// Half of the smallest bfloat16 is more.
constexpr double kBelowBFloat16 = 0x1p-135;

// What a quotient within a relative error rounds to, at both ends of its interval.
template <class Out>
HWY_INLINE void write_both_ends(V quotient, V relative, std::byte* low, std::byte* high) {
  const V zero = hn::Zero(kDoubles);
  V end = hn::MulAdd(quotient, relative, quotient);
  if constexpr (std::is_same_v<Out, BFloat16>) {  // not decided
    end = hn::IfThenElse(Nearest<Out>::undecided(end), splat(2), end);
  }
  Nearest<Out>::write({hn::NegMulAdd(quotient, relative, quotient), zero}, low);
  Nearest<Out>::write({end, zero}, high);
}

// The floats of a chunk. error: relative, less d u.
template <class Resolve>
HWY_INLINE void write_floats(const Exponentials& x, std::int64_t n, double factor, double error,
                             std::byte* out, const Resolve& resolve) {
  const V unit = splat(-kSoftmaxUnit);
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const V quotient = hn::Load(kDoubles, x.e + i) * splat(factor);
    const V relative = hn::MulAdd(hn::Load(kDoubles, x.d.high + i), unit, splat(error));
    const Results results = float_results(hn::NegMulAdd(quotient, relative, quotient),
                                          hn::MulAdd(quotient, relative, quotient));
    write_results<float>(results, n - i, out + i * kSize<float>,
                         [&](std::int64_t j, std::byte* to) { resolve(i + j, to); });
  }
}

// Both ends of the results of a chunk. Results of 16 bits are decided so: all errors are less than an ulp of float.
template <class Out>
void write_half_ends(const Exponentials& x, std::int64_t n, double factor, double error,
                     std::byte* low, std::byte* high) {
  const V unit = splat(-kSoftmaxUnit);
  const HalfResults<Out> halves(0);
  for (std::int64_t i = 0; i < n; i += kWidth) {
    V quotient = hn::Load(kDoubles, x.e + i) * splat(factor);
    if constexpr (std::is_same_v<Out, BFloat16>) {
      quotient = hn::IfThenZeroElse(hn::Lt(quotient, splat(kBelowBFloat16)), quotient);
    }
    const Results results = halves(quotient);
    if (HWY_LIKELY(is_zero(results.undecided))) {
      store_results<Out, false>(results.y, low + i * kSize<Out>);
      store_results<Out, false>(results.y, high + i * kSize<Out>);
    } else {
      const V relative = hn::MulAdd(hn::Load(kDoubles, x.d.high + i), unit, splat(error));
      write_both_ends<Out>(quotient, relative, low + i * kSize<Out>, high + i * kSize<Out>);
    }
  }
}

// Results of a chunk that begins at offset of the row.
template <class Out>
void write_softmax(const Exponentials& x, const RowsIn& part, double factor, double error,
                   std::int64_t offset, std::byte* out, const Resolver& resolver) {
  const std::int64_t n = part.row_length;
  const PartResolver resolve{resolver, part, offset, dtype_of<Out>()};
  if constexpr (std::is_same_v<Out, float>) {
    write_floats(x, n, factor, error, out, resolve);
  } else {
    alignas(64) std::byte low[(kChunk + kLanes) * kSize<Out>];
    alignas(64) std::byte high[(kChunk + kLanes) * kSize<Out>];
    write_half_ends<Out>(x, n, factor, error, low, high);
    const auto bytes = static_cast<std::size_t>(n * kSize<Out>);
    std::memcpy(out, low, bytes);
    if (HWY_LIKELY(std::memcmp(low, high, bytes) == 0)) return;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = i * kSize<Out>;
      if (std::memcmp(low + at, high + at, sizeof(Out)) != 0) resolve(i, out + at);
    }
  }
}

void double_softmax(const RowsIn& row, double max, double scale, const RowsOut& y,
                    const Resolver& resolver) {
  Exponentials x;
  DoubleDouble sum;
  const std::int64_t n = row.row_length;
  for_each_part(row,
                [&](std::int64_t, const RowsIn& part) HWY_ATTR { sum = sum + x.find(part, max); });
  const double factor = scale / sum.high;
  const double error = softmax_error(n, chunk_growth(std::min(n, kChunk), kLanes));
  for_each_part(row, [&](std::int64_t start, const RowsIn& part) HWY_ATTR {
    if (n > kChunk) x.find(part, max);
    const RowsOut out = row_of(y, 1, start);
    const bool is_written =
        with_type<Float16, BFloat16, float>(y.dtype, [&]<class Out>(Out) HWY_ATTR {
          write_softmax<Out>(x, part, factor, error, start, out.data, resolver);
        });
    if (is_written) return;
    const PartResolver resolve{resolver, part, start, DType::float32};
    write_float8(part.row_length, out, resolve, [&](std::byte* floats) HWY_ATTR {
      write_softmax<float>(x, part, factor, error, start, floats, resolver);
    });
  });
}

// ---- By double-doubles, to float64.

// exp of it has a low part that is a normal number.
constexpr double kMinDoubleDouble = -600;
// exp of it is far below the smallest double, as if it were masked.
constexpr double kAsMasked = -1200;

// exp(x - max) of a chunk of a row: 0 of what is masked, NaN where it is left to the resolver.
struct DoubleDoubleExponentials {
  Chunk x;
  alignas(64) double high[kChunk + kLanes];
  alignas(64) double low[kChunk + kLanes];

  // Returns their sum.
  DoubleDouble find(const RowsIn& part, double max) {
    decode(part, 0, x);
    const Exp& exp = Exp::shared();
    const V zero = hn::Zero(kDoubles);
    const V minus_max = splat(-max);
    const V least = splat(kMinDoubleDouble);
    const std::int64_t n = part.row_length;
    CompensatedSums<kVectors> sums;
    sums.clear();
    for (std::int64_t i = 0; i < n; i += kLanes) {
      const std::int64_t vectors = std::min(kVectors, (n - i + kWidth - 1) / kWidth);
      DoubleDoublePower powers[kVectors];
      const auto for_each = [&](const auto& step) HWY_ATTR {
        for (std::int64_t v = 0; v < vectors; ++v) step(powers[v], i + v * kWidth);
      };
      const auto deviation = [&](std::int64_t at) HWY_ATTR {
        return two_sum(hn::Load(kDoubles, x.high + at), minus_max);
      };
      for_each([&](DoubleDoublePower& power, std::int64_t at) HWY_ATTR {
        const V2 d = deviation(at);
        const auto is_near = hn::Ge(d.high, least);
        power.reduce({hn::IfThenElse(is_near, d.high, zero), hn::IfThenElseZero(is_near, d.low)});
      });
      for_each([](DoubleDoublePower& power, std::int64_t) HWY_ATTR { power.add_last_terms(); });
      for_each([](DoubleDoublePower& power, std::int64_t) HWY_ATTR { power.add_third(); });
      for_each([](DoubleDoublePower& power, std::int64_t) HWY_ATTR { power.add_second(); });
      for_each([](DoubleDoublePower& power, std::int64_t) HWY_ATTR { power.add_first(); });
      for_each([&](const DoubleDoublePower& power, std::int64_t at) HWY_ATTR {
        const V2 e = power.result(exp);
        const V d = deviation(at).high;
        const auto is_near = hn::Ge(d, least);
        const auto counts = hn::And(is_near, mask_of(kDoubles, n - at));
        sums.v[(at - i) / kWidth].add(
            V2{hn::IfThenElseZero(counts, e.high), hn::IfThenElseZero(counts, e.low)});
        const V far = hn::IfThenElseZero(hn::Ge(d, splat(kAsMasked)), splat(kNan));
        hn::Store(hn::IfThenElse(is_near, e.high, far), kDoubles, high + at);
        hn::Store(hn::IfThenElseZero(is_near, e.low), kDoubles, low + at);
      });
    }
    return sums.fold();
  }
};

// The results of a chunk. error: of each, relative.
void write_double_double_softmax(const DoubleDoubleExponentials& x, const RowsIn& part,
                                 DoubleDouble factor, double error, std::int64_t offset,
                                 const RowsOut& y, const Resolver& resolver) {
  const V2 factors = splat(factor);
  const V errors = splat(error);
  const std::int64_t n = part.row_length;
  alignas(64) double low_ends[kChunk];
  alignas(64) double high_ends[kChunk];
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const V2 result = V2{hn::Load(kDoubles, x.high + i), hn::Load(kDoubles, x.low + i)} * factors;
    const Ends ends = ends_of(result, result.high * errors);
    hn::Store(ends.low, kDoubles, low_ends + i);
    hn::Store(ends.high, kDoubles, high_ends + i);
  }
  write_decided(low_ends, high_ends, n, y,
                [&](std::int64_t i) { return resolver.resolve(offset + i, element_of(part, i)); });
}

void double_double_softmax(const RowsIn& row, double max, const RowsOut& y,
                           const Resolver& resolver) {
  DoubleDoubleExponentials x;
  DoubleDouble sum;
  const std::int64_t n = row.row_length;
  for_each_part(row,
                [&](std::int64_t, const RowsIn& part) HWY_ATTR { sum = sum + x.find(part, max); });
  const DoubleDouble factor = DoubleDouble{1} / sum;
  const double error = double_double_softmax_error(n, kLanes);
  for_each_part(row, [&](std::int64_t start, const RowsIn& part) HWY_ATTR {
    if (n > kChunk) x.find(part, max);
    write_double_double_softmax(x, part, factor, error, start, row_of(y, 1, start), resolver);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
