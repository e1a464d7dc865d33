// How vectors of results within an error are rounded and written, and which of them that leaves undecided.

#if defined(LNORM_KERNEL_RESULTS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_RESULTS_INL_HPP_
#undef LNORM_KERNEL_RESULTS_INL_HPP_
#else
#define LNORM_KERNEL_RESULTS_INL_HPP_
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/small_float.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/simd-inl.hpp"
#include "lnorm/kernel/statistics.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// What rounds to any narrower dtype as value does: the number on either side of it whose last bit is odd, or value
// itself.  [Boldo, Melquiond 2008, "Emulation of a FMA and correctly rounded sums"]
template <class Tag>
HWY_INLINE hn::Vec<Tag> to_odd(Tag tag, hn::Vec<Tag> high, hn::Vec<Tag> low) {
  const hn::RebindToUnsigned<Tag> words;
  constexpr int kSign = 8 * sizeof(hn::TFromD<Tag>) - 1;
  const auto bits = hn::BitCast(words, high);
  // The number toward zero.
  const auto less = hn::ShiftRight<kSign>(hn::Xor(bits, hn::BitCast(words, low)));
  const auto odd = hn::BitCast(tag, hn::Or(hn::Sub(bits, less), hn::Set(words, 1u)));
  return hn::IfThenElse(hn::Eq(low, hn::Zero(tag)), high, odd);
}
HWY_INLINE V to_odd(V2 value) { return to_odd(kDoubles, value.high, value.low); }

// A number rounded to odd to the 24 bits of a float, so that the double is a float if it is in the range of normal ones.
HWY_INLINE V to_odd_float(V value) {
  const hn::RebindToUnsigned<D> words;
  constexpr std::uint64_t kBelow = (std::uint64_t{1} << 29) - 1;
  const auto bits = hn::BitCast(words, value);
  const auto below = hn::And(bits, hn::Set(words, kBelow));
  // Carries into the last bit that is kept.
  const auto sticky = hn::And(hn::Add(below, hn::Set(words, kBelow)), hn::Set(words, kBelow + 1));
  return hn::BitCast(kDoubles, hn::Or(hn::Sub(bits, below), sticky));
}

// Rounds a vector to Out: float, Float16, BFloat16 or double.
template <class Out>
struct Nearest {
  // The lanes that write leaves undecided: what is not finite, or not in the range where all targets convert alike; of
  // bfloat16 what is below the normal floats.
  static HWY_INLINE hn::Mask<D> undecided(V high) {
    const V size = hn::Abs(high);
    const V end = splat(std::is_same_v<Out, double> ? kInfinity : 0x1p127);
    const auto is_undecided = hn::Not(hn::Lt(size, end));  // true for NaN
    if constexpr (std::is_same_v<Out, BFloat16>) {
      const auto is_tiny = hn::And(hn::Lt(size, splat(0x1p-126)), hn::Gt(size, splat(0)));
      return hn::Or(is_undecided, is_tiny);
    }
    return is_undecided;
  }

  // value: exactly. high is the nearest double; of a double low does not matter.
  static HWY_INLINE void write(V2 value, std::byte* to) {
    if constexpr (std::is_same_v<Out, double>) {
      hn::StoreU(value.high, kDoubles, reinterpret_cast<double*>(to));
    } else if constexpr (std::is_same_v<Out, float>) {
      hn::StoreU(hn::DemoteTo(F(), to_odd(value)), F(), reinterpret_cast<float*>(to));
    } else if constexpr (std::is_same_v<Out, BFloat16> || kHasFloat16) {
      write_float(hn::DemoteTo(F(), to_odd_float(to_odd(value))), to);
    } else {
      alignas(64) double odd[kWidth];
      hn::Store(to_odd(value), kDoubles, odd);
      for (std::int64_t j = 0; j < kWidth; ++j) {
        const auto half = rounded_to<Float16>(odd[j]);
        std::memcpy(to + j * kSize<Float16>, &half, sizeof half);
      }
    }
  }

  // Floats that are exact, or rounded to odd, to a 16-bit dtype.
  static HWY_INLINE void write_float(hn::Vec<F> value, std::byte* to) {
    if constexpr (std::is_same_v<Out, BFloat16>) {
      const hn::Rebind<std::uint16_t, D> halves;
      const hn::RebindToUnsigned<F> words;
      const hn::RebindToSigned<F> integers;
      const auto bits = hn::BitCast(words, value);
      const auto last = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1u));
      const auto sum = hn::Add(hn::Add(bits, hn::Set(words, 0x7fffu)), last);
      hn::StoreU(hn::DemoteTo(halves, hn::BitCast(integers, hn::ShiftRight<16>(sum))), halves,
                 reinterpret_cast<std::uint16_t*>(to));
    } else {
      const hn::Rebind<hwy::float16_t, D> halves;
      hn::StoreU(hn::DemoteTo(halves, value), halves, reinterpret_cast<hwy::float16_t*>(to));
    }
  }
};

using Words = hn::RebindToUnsigned<F>;
constexpr Words kWords;

template <class Tag>
HWY_INLINE bool is_zero(Tag tag, hn::Vec<Tag> words) {
  return hn::AllTrue(tag, hn::Eq(words, hn::Zero(tag)));
}
HWY_INLINE bool is_zero(hn::Vec<Words> words) { return is_zero(kWords, words); }

// What the floats of a vector round to. undecided: not 0 where that is not decided.
struct Results {
  using Tag = Words;

  hn::Vec<F> y;
  hn::Vec<Words> undecided;
};

// Numbers beyond the range of floats become infinity; Highway's scalar code stops at the greatest float.
HWY_INLINE hn::Vec<F> to_floats(V value) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(F(), static_cast<float>(hn::GetLane(value)));
#else
  return hn::DemoteTo(F(), value);
#endif
}

// What numbers in an interval of floats round to.
HWY_INLINE Results float_results(V low, V high) {
  const auto y = to_floats(low);
  return {y, hn::Xor(hn::BitCast(kWords, y), hn::BitCast(kWords, to_floats(high)))};
}

// What numbers round to in a narrower dtype: the interval is smaller than an ulp of float, where y is not tiny. There y is decided
// if the nearest float is not within two of its ulps of a point halfway between two results.
// subnormal: subnormal results of float16 are decided, too, which takes time. All of a gradient may be subnormal.
template <class Out, bool subnormal = false>
struct HalfResults {
  static constexpr bool kIsFloat16 = std::is_same_v<Out, Float16>;
  static constexpr bool kSubnormal = subnormal && kIsFloat16;  // bfloat16 has too few to matter
  static constexpr double kMinNormal = kIsFloat16 ? 0x1p-14 : 0x1p-126;

  std::uint32_t tiny = 0;  // floats whose bits, less the next number, are below are not decided
  std::uint32_t not_tiny = 0;

  HalfResults() = default;
  // error: of y.
  explicit HalfResults(double error) {
    double least = std::max(kMinNormal, 0x1p24 * error * kSlack * (1 + 0x1p-20));
    // So small an error leaves subnormal results undecided only where it hides their sign.
    if (kSubnormal && least == kMinNormal) least = error == 0 ? 0 : std::max(0x1p-149, 2 * error);
    // Without an error zero is zero.
    not_tiny = !kSubnormal && error == 0 ? 1 : 0;
    tiny = std::bit_cast<std::uint32_t>(static_cast<float>(least)) - not_tiny;
    // Beside so large an error infinity may be any number.
    if (std::isinf(static_cast<float>(least))) ++tiny;
  }

  HWY_INLINE Results operator()(V value) const {
    const auto y = to_floats(value);
    const auto size = hn::Abs(y);
    auto bits = hn::BitCast(kWords, size);
    auto from_zero = bits;
    if constexpr (kSubnormal) {
      // Subnormal results lie as those in the first binade of the normal ones.
      const auto normal = hn::Set(F(), static_cast<float>(kMinNormal));
      bits = hn::BitCast(kWords, hn::IfThenElse(hn::Lt(size, normal), hn::Add(size, normal), size));
    } else {
      from_zero = hn::Sub(bits, hn::Set(kWords, not_tiny));
    }
    constexpr std::uint32_t kUlp = std::uint32_t{1} << (kIsFloat16 ? 13 : 16);
    const auto from_half =
        hn::And(hn::Add(bits, hn::Set(kWords, kUlp / 2 + 2)), hn::Set(kWords, kUlp - 1));
    const auto is_undecided =
        hn::Or(hn::Lt(from_half, hn::Set(kWords, 5u)), hn::Lt(from_zero, hn::Set(kWords, tiny)));
    return {y, hn::VecFromMask(kWords, is_undecided)};
  }
};

template <class Out>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> to_halves(hn::Vec<F> y) {
  const hn::Rebind<std::uint16_t, D> halves;
  if constexpr (std::is_same_v<Out, BFloat16>) {
    // This rounds what is no tie to nearest: half an ulp is added, and the lower half dropped.
    const hn::RebindToSigned<F> integers;
    const auto sum = hn::Add(hn::BitCast(kWords, y), hn::Set(kWords, 0x8000u));
    return hn::DemoteTo(halves, hn::BitCast(integers, hn::ShiftRight<16>(sum)));
  } else if constexpr (kHasFloat16) {
    return hn::BitCast(halves, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), y));
  } else {
    alignas(64) float floats[kWidth];
    alignas(64) std::uint16_t bits[kWidth];
    hn::Store(y, F(), floats);
    for (std::int64_t j = 0; j < kWidth; ++j) {
      bits[j] = rounded_to<Float16>(static_cast<double>(floats[j])).bits;
    }
    return hn::Load(halves, bits);
  }
}

template <class Out, bool stream>
HWY_INLINE void store_results(hn::Vec<F> y, std::byte* to) {
  if constexpr (std::is_same_v<Out, float>) {
    if constexpr (stream) {
      hn::Stream(y, F(), reinterpret_cast<float*>(to));
    } else {
      hn::StoreU(y, F(), reinterpret_cast<float*>(to));
    }
  } else {
    const hn::Rebind<std::uint16_t, D> halves;
    const auto bits = to_halves<Out>(y);
    if constexpr (stream) {
      hn::Stream(bits, halves, reinterpret_cast<std::uint16_t*>(to));
    } else {
      hn::StoreU(bits, halves, reinterpret_cast<std::uint16_t*>(to));
    }
  }
}

// Results of 16 and 8 bits as they are.
template <class Out>
using BitsOf = std::conditional_t<kSize<Out> == 1, std::uint8_t, std::uint16_t>;
template <class Out, bool stream>
HWY_INLINE void store_results(hn::Vec<hn::Rebind<BitsOf<Out>, Floats>> y, std::byte* to) {
  const hn::Rebind<BitsOf<Out>, Floats> bits;
  if constexpr (stream) {
    hn::Stream(y, bits, reinterpret_cast<BitsOf<Out>*>(to));
  } else {
    hn::StoreU(y, bits, reinterpret_cast<BitsOf<Out>*>(to));
  }
}

// Whether results go past the caches from there, a vector at a time. Less than 16 bytes there are no instructions for.
template <class Out, std::int64_t width = kWidth>
bool streams_to(const std::byte* out, bool non_temporal) {
  constexpr std::int64_t kBytes = width * kSize<Out>;
  return non_temporal && kBytes >= 16 && reinterpret_cast<std::uintptr_t>(out) % kBytes == 0;
}

// A vector of results, of which the first count are wanted. resolve(j, to) puts result j where it belongs.
template <class Out, class AnyResults, class Resolve>
HWY_INLINE void write_results(const AnyResults& r, std::int64_t count, std::byte* to,
                              const Resolve& resolve) {
  constexpr typename AnyResults::Tag kTag;
  constexpr auto kCount = static_cast<std::int64_t>(hn::MaxLanes(kTag));
  const auto undecided = hn::IfThenElseZero(mask_of(kTag, count), r.undecided);
  write_first<Out, kCount>(count, to,
                           [&](std::byte* out) HWY_ATTR { store_results<Out, false>(r.y, out); });
  if (HWY_LIKELY(is_zero(kTag, undecided))) return;
  alignas(64) hn::TFromD<typename AnyResults::Tag> is_undecided[kCount];
  hn::Store(undecided, kTag, is_undecided);
  for (std::int64_t j = 0; j < std::min(kCount, count); ++j) {
    if (is_undecided[j] != 0) resolve(j, to + j * kSize<Out>);
  }
}

// Writes the results of a row or a part of it, in groups of vectors. Writer has a vector of them from element i on:
//
//   AnyResults results(elements, i, terms) const
template <class Writer, class Out, class AnyResults>
struct GroupWriter {
  static constexpr typename AnyResults::Tag kTag{};
  static constexpr auto kStep = static_cast<std::int64_t>(hn::MaxLanes(kTag));
  static constexpr std::int64_t kGroup = kVectors * kStep;

  HWY_INLINE const Writer& self() const { return static_cast<const Writer&>(*this); }

  // A vector of results, or its first ones. resolve(i, to) puts result i where it belongs.
  template <class Elements, class Terms, class Resolve>
  HWY_INLINE void write_vector(const Elements& d, std::int64_t i, std::int64_t n,
                               const Terms& terms, std::byte* out, const Resolve& resolve) const {
    write_results<Out>(self().results(d, i, terms), n - i, out + i * kSize<Out>,
                       [&](std::int64_t j, std::byte* to) { resolve(i + j, to); });
  }

  // writer, d and terms come by value: what has no address stays in registers.
  template <class Elements, class Terms, class Resolve>
  static HWY_NOINLINE void write_one_by_one(Writer writer, Elements d, std::int64_t i, Terms terms,
                                            std::byte* out, const Resolve& resolve) {
    for (std::int64_t v = 0; v < kGroup; v += kStep) {
      writer.write_vector(d, i + v, i + kGroup, terms, out, resolve);
    }
  }

  template <bool stream, class Elements, class Terms, class Resolve>
  HWY_INLINE std::int64_t write_groups(const Elements& d, std::int64_t n, const Terms& terms,
                                       std::byte* out, const Resolve& resolve) const {
    std::int64_t i = 0;
    for (; i + kGroup <= n; i += kGroup) {
      d.read_ahead(i);
      decltype(AnyResults::y) y[kVectors];
      auto undecided = hn::Zero(kTag);
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const AnyResults r = self().results(d, i + v * kStep, terms);
        y[v] = r.y;
        undecided = hn::Or(undecided, r.undecided);
      }
      if (HWY_UNLIKELY(!is_zero(kTag, undecided))) {
        write_one_by_one(self(), d, i, terms, out, resolve);
        continue;
      }
      for (std::int64_t v = 0; v < kVectors; ++v) {
        store_results<Out, stream>(y[v], out + (i + v * kStep) * kSize<Out>);
      }
    }
    return i;
  }

  template <class Elements, class Terms, class Resolve>
  HWY_INLINE void write(const Elements& d, std::int64_t n, const Terms& terms, std::byte* out,
                        bool non_temporal, const Resolve& resolve) const {
    std::int64_t i = streams_to<Out, kStep>(out, non_temporal)
                         ? write_groups<true>(d, n, terms, out, resolve)
                         : write_groups<false>(d, n, terms, out, resolve);
    for (; i < n; i += kStep) write_vector(d, i, n, terms, out, resolve);
  }
};

// Has the resolver decide elements of a part of a row that begins at offset.
struct PartResolver {
  const Resolver& resolver;
  RowsIn part;
  std::int64_t offset;
  DType out;

  void operator()(std::int64_t i, std::byte* to) const {
    const double result = resolver.resolve(offset + i, element_of(part, i));
    store(&result, 1, out, to);
  }
};

// Calls use(Out()) with the type of a float8. Returns whether it is one.
template <class Use>
HWY_INLINE bool with_float8(DType dtype, const Use& use) {
  return with_type<Float8E4M3, Float8E5M2, Float8E4M3Fnuz>(dtype, use);
}

// The greatest size of a float that is rounded to a float8; far beyond the greatest number where that is no limit.
inline float most_of(const RowsOut& y) {
  return y.saturates ? static_cast<float>(float_format(y.dtype).greatest) : 0x1p20F;
}

// A vector of floats, as Float8.
template <class Out, class Tag>
struct Float8Bits {
  static constexpr int kMantissa = Out::kMantissaBits;
  static constexpr std::uint32_t kMin = 127 + lnorm::detail::kMinNormal<Out>;
  static constexpr Tag kFloats{};
  static constexpr hn::RebindToUnsigned<Tag> kBits{};
  using Vector = hn::Vec<Tag>;
  using Bits = hn::Vec<hn::RebindToUnsigned<Tag>>;

  // |y| and a number whose last place is that of the result, so that their sum is rounded there.
  Vector y;
  Vector size;
  Bits exponent;
  Vector aligner;
  Vector sum;

  HWY_INLINE Float8Bits(Vector number, Vector most)
      : y(number),
        size(hn::Min(hn::Abs(y), most)),
        exponent(hn::Max(hn::ShiftRight<23>(hn::BitCast(kBits, size)), hn::Set(kBits, kMin))),
        aligner(power(hn::Add(exponent, hn::Set(kBits, 23U - kMantissa)))),
        sum(hn::Add(size, aligner)) {}

  static HWY_INLINE Vector power(Bits exponent) {
    return hn::BitCast(kFloats, hn::ShiftLeft<23>(exponent));
  }

  // How far |y| is from the next point halfway between two results; above a power of two that below it may be nearer, by half.
  HWY_INLINE Vector from_halfway() const {
    const auto rest = hn::Abs(hn::Sub(size, hn::Sub(sum, aligner)));
    return hn::Sub(power(hn::Sub(exponent, hn::Set(kBits, 1U + kMantissa))), rest);
  }

  // The significand stands in the last bits of the sum.
  HWY_INLINE Bits bits() const {
    const auto significand =
        hn::And(hn::BitCast(kBits, sum), hn::Set(kBits, (4U << kMantissa) - 1));
    const auto binades = hn::Sub(exponent, hn::Set(kBits, kMin));
    const auto of_size = hn::Min(hn::Add(hn::ShiftLeft<kMantissa>(binades), significand),
                                 hn::Set(kBits, std::uint32_t{Out::kBeyond}));
    auto sign = hn::And(hn::ShiftRight<24>(hn::BitCast(kBits, y)), hn::Set(kBits, 0x80U));
    if constexpr (Out::kNan == 0x80) {  // it has no -0
      sign = hn::IfThenZeroElse(hn::Eq(of_size, hn::Zero(kBits)), sign);
    }
    return hn::Or(of_size, sign);
  }

  HWY_INLINE auto bytes() const {
    const hn::Rebind<std::uint8_t, Tag> narrow;
    return hn::DemoteTo(narrow, hn::BitCast(hn::RebindToSigned<Tag>(), bits()));
  }
};

// Results that are rounded to float already, as Float8: right but where a float lies halfway between two numbers of
// Float8, for what was rounded then decides. floats: with room for a vector behind them, as out. resolve(i) gives the float of
// result i that is one of Float8.
template <class Out, class Resolve>
HWY_INLINE void write_bytes(float* floats, std::int64_t n, float most, std::byte* out,
                            const Resolve& resolve) {
  constexpr F kFloats{};
  const auto limit = hn::Set(kFloats, most);
  const auto zero = hn::Zero(kFloats);
  for (std::int64_t i = 0; i < n; i += kWidth) {
    Float8Bits<Out, F> y(hn::Load(kFloats, floats + i), limit);
    const auto from_halfway = y.from_halfway();
    if (HWY_UNLIKELY(!hn::AllFalse(kFloats, hn::Eq(from_halfway, zero)))) {
      alignas(64) float distances[kWidth];
      hn::Store(from_halfway, kFloats, distances);
      for (std::int64_t j = i; j < std::min(n, i + kWidth); ++j) {
        if (distances[j - i] == 0) resolve(j);
      }
      y = Float8Bits<Out, F>(hn::Load(kFloats, floats + i), limit);
    }
    hn::StoreU(y.bytes(), hn::Rebind<std::uint8_t, F>(), reinterpret_cast<std::uint8_t*>(out + i));
  }
}

// Writes up to a chunk of either float8 by way of floats, which write_floats(out) writes, and resolve decides.
template <class WriteFloats>
void write_float8(std::int64_t n, const RowsOut& y, const PartResolver& resolve,
                  const WriteFloats& write_floats) {
  alignas(64) float floats[kChunk + kWidth];
  alignas(64) std::byte results[kChunk + kWidth];
  const auto place_of = [&](std::int64_t i) { return reinterpret_cast<std::byte*>(floats + i); };
  write_floats(place_of(0));
  std::fill_n(floats + n, kWidth, 0.0F);
  with_float8(y.dtype, [&]<class Out>(Out) HWY_ATTR {
    write_bytes<Out>(floats, n, most_of(y), results,
                     [&](std::int64_t i) { resolve(i, place_of(i)); });
  });
  std::memcpy(y.data, results, static_cast<std::size_t>(n));
}

// Low parts, where the row's dtype has them.
inline double* low_of(const RowsIn& row, Chunk& chunk) {
  return has_low(row.dtype) ? chunk.low : nullptr;
}

// What rounding to double adds to the error of the ends of an interval: more for outputs that are rounded once more.
inline double rounding_of_ends(DType out) {
  return out == DType::float64 ? bound::kRounding * kUnit2 : 2 * kUnit;
}

// Copies results, past the caches if these cannot hold them.
HWY_INLINE void copy_out(const double* results, std::int64_t n, std::byte* out, bool non_temporal) {
  constexpr std::int64_t kBytes = kWidth * kSize<double>;
  std::int64_t i = 0;
  if (non_temporal && reinterpret_cast<std::uintptr_t>(out) % kBytes == 0) {
    for (; i + kWidth <= n; i += kWidth) {
      hn::Stream(hn::Load(kDoubles, results + i), kDoubles,
                 reinterpret_cast<double*>(out + i * kSize<double>));
    }
  }
  std::memcpy(out + i * kSize<double>, results + i,
              static_cast<std::size_t>(n - i) * sizeof(double));
}

// Writes results that lie between bounds, which take them in; resolve(i) gives those that are not decided, as those between
// NaNs are not. After n bounds there is room for a vector.
template <class Resolve>
HWY_INLINE void write_decided(double* low_ends, const double* high_ends, std::int64_t n,
                              const RowsOut& y, const Resolve& resolve) {
  if (y.dtype == DType::float32) {
    for (std::int64_t i = 0; i < n; i += kWidth) {
      Results results =
          float_results(hn::Load(kDoubles, low_ends + i), hn::Load(kDoubles, high_ends + i));
      const auto is_nan = hn::VecFromMask(F(), hn::IsNaN(results.y));
      results.undecided = hn::Or(results.undecided, hn::BitCast(kWords, is_nan));
      write_results<float>(results, n - i, y.data + i * kSize<float>,
                           [&](std::int64_t j, std::byte* to) {
                             const double result = resolve(i + j);
                             store(&result, 1, y.dtype, to);
                           });
    }
    return;
  }
  if (y.dtype == DType::float64) {
    for (std::int64_t i = 0; i < n; i += kWidth) {
      const auto is_decided =
          hn::Eq(hn::Load(kDoubles, low_ends + i), hn::Load(kDoubles, high_ends + i));
      if (HWY_LIKELY(hn::AllTrue(kDoubles, is_decided))) continue;
      for (std::int64_t j = i; j < std::min(n, i + kWidth); ++j) {
        if (low_ends[j] != high_ends[j]) low_ends[j] = resolve(j);
      }
    }
    return copy_out(low_ends, n, y.data, y.non_temporal);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const double result = rounded(low_ends[i], y.dtype);
    const bool is_decided =
        !std::isnan(result) && same_result(result, rounded(high_ends[i], y.dtype));
    low_ends[i] = is_decided ? result : resolve(i);
  }
  store(low_ends, n, y, 0);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
