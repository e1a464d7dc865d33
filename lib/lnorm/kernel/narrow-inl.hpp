// The narrow passes (statistics.hpp).

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/statistics.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

using Words = hn::RebindToUnsigned<F>;
constexpr Words kWords;

// The lanes of the sums of d and d^2 over at most a chunk, where d = x - center.
struct NarrowLanes {
  Lanes sums;
  Lanes squares;

  HWY_INLINE void clear() {
    sums.clear();
    squares.clear();
  }

  template <class Elements>
  HWY_INLINE void add(const Elements& d, std::int64_t n) {
    Lanes s = sums;
    Lanes q = squares;
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      d.read_ahead(i);
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const V term = d(i + v * kWidth);
        s.v[v] = s.v[v] + term;
        q.v[v] = hn::MulAdd(term, term, q.v[v]);
      }
    }
    for (std::int64_t v = 0; v < kVectors && i < n; ++v, i += kWidth) {
      const V term = hn::IfThenElseZero(mask_of(kDoubles, n - i), d(i));
      s.v[v] = s.v[v] + term;
      q.v[v] = hn::MulAdd(term, term, q.v[v]);
    }
    sums = s;
    squares = q;
  }
};

bool is_float32(const RowsIn& part) {
  return part.dtype == DType::float32 && part.byte_order == std::endian::native;
}

Sums narrow_sums(const RowsIn& part, double center) {
  Sums total;
  NarrowLanes lanes;
  lanes.clear();
  const auto add = [&](std::int64_t start, std::int64_t n, const auto& d) HWY_ATTR {
    lanes.add(d, n);
    if ((start + n) % kChunk != 0 && start + n != part.row_length) return;
    total += Sums{{sum_of_lanes(lanes.sums.fold())}, {sum_of_lanes(lanes.squares.fold())}};
    lanes.clear();
  };
  for_each_stretch(part, center, is_float32(part), add);
  return total;
}

// weight and bias from some element on, where they are.
struct TermsAt {
  const double* weight;
  const double* bias;
  const double* lower;  // Affine::bias_with_lower
  const double* upper;

  TermsAt(const Affine& affine, std::int64_t index)
      : weight(affine.weight().empty() ? nullptr : affine.weight().high(index)),
        bias(affine.bias().empty() ? nullptr : affine.bias().high(index)),
        lower(affine.bias().empty() ? nullptr : affine.bias_with_lower(index)),
        upper(affine.bias().empty() ? nullptr : affine.bias_with_upper(index)) {}
};

HWY_INLINE bool is_zero(hn::Vec<Words> words) {
  return hn::AllTrue(kWords, hn::Eq(words, hn::Zero(kWords)));
}

// What the floats of a vector round to. open: not 0 where that is not decided.
struct Results {
  hn::Vec<F> y;
  hn::Vec<Words> open;
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

// The same of a narrower dtype: the interval is smaller than an ulp of float, where y is not tiny. There y is decided
// if the nearest float is not within two of its ulps of a point halfway between two results.
template <class Out>
struct HalfResults {
  std::uint32_t tiny = 0;  // floats whose bits, less the next number, are below are not decided
  std::uint32_t not_tiny = 0;

  HalfResults() = default;
  // error: of y.
  explicit HalfResults(double error) {
    constexpr double kMinNormal = std::is_same_v<Out, Float16> ? 0x1p-14 : 0x1p-126;
    const double bound = 0x1p24 * error * (1 + 0x1p-8);
    const auto least = static_cast<float>(std::max(kMinNormal, bound * (1 + 0x1p-20)));
    // Without an error zero is zero.
    not_tiny = error == 0 ? 1 : 0;
    tiny = std::bit_cast<std::uint32_t>(least) - not_tiny;
  }

  HWY_INLINE Results operator()(V value) const {
    const auto y = to_floats(value);
    const auto bits = hn::BitCast(kWords, y);
    constexpr std::uint32_t kUlp = std::uint32_t{1} << (std::is_same_v<Out, Float16> ? 13 : 16);
    const auto from_half =
        hn::And(hn::Add(bits, hn::Set(kWords, kUlp / 2 + 2)), hn::Set(kWords, kUlp - 1));
    const auto size = hn::And(bits, hn::Set(kWords, 0x7fffffffu));
    const auto is_tiny = hn::Lt(hn::Sub(size, hn::Set(kWords, not_tiny)), hn::Set(kWords, tiny));
    const auto is_open = hn::Or(hn::Lt(from_half, hn::Set(kWords, 5u)), is_tiny);
    return {y, hn::VecFromMask(kWords, is_open)};
  }
};

template <class Out>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> to_halves(hn::Vec<F> y) {
  const hn::Rebind<std::uint16_t, D> halves;
  if constexpr (std::is_same_v<Out, BFloat16>) {
    // To nearest, of what is no tie: half an ulp is added, and the lower half dropped.
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
      bits[j] = to_float16(static_cast<double>(floats[j])).bits;
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

// Whether results go past the caches from there. Less than 16 bytes at a time there are no instructions for.
template <class Out>
bool streams_to(const std::byte* out, bool non_temporal) {
  constexpr std::int64_t kBytes = kWidth * kSize<Out>;
  return non_temporal && kBytes >= 16 && reinterpret_cast<std::uintptr_t>(out) % kBytes == 0;
}

// A vector of results, of which the first count are wanted. resolve(j, to) puts result j where it belongs.
template <class Out, class Resolve>
HWY_INLINE void write_results(const Results& r, std::int64_t count, std::byte* to,
                              const Resolve& resolve) {
  const auto open = hn::IfThenElseZero(mask_of(kWords, count), r.open);
  if (count >= kWidth) {
    store_results<Out, false>(r.y, to);
  } else {
    alignas(64) std::byte y[kWidth * kSize<Out>];
    store_results<Out, false>(r.y, y);
    std::memcpy(to, y, static_cast<std::size_t>(count * kSize<Out>));
  }
  if (HWY_LIKELY(is_zero(open))) return;
  alignas(64) std::uint32_t is_open[kWidth];
  hn::Store(open, kWords, is_open);
  for (std::int64_t j = 0; j < std::min(kWidth, count); ++j) {
    if (is_open[j] != 0) resolve(j, to + j * kSize<Out>);
  }
}

// Results of a row or a part of it, from d = x - center. Out is float, Float16 or BFloat16. A float's result is decided
// where the two ends of the interval in which y is are rounded alike.
template <class Out, bool has_weight, bool has_bias>
struct NarrowWriter {
  static constexpr bool kIsFloat = std::is_same_v<Out, float>;

  V rstd;
  V lower;  // xhat less its error; xhat of a narrower dtype
  V upper;
  HalfResults<Out> halves;

  // xhat = d * factor + product, within error.
  HWY_INLINE NarrowWriter(double factor, double product, double error, const Affine& affine)
      : NarrowWriter(splat(factor), splat(product), splat(error), error, affine) {}

  // The same with a row in every lane. most: the greatest error.
  HWY_INLINE NarrowWriter(V factor, V product, V error, double most, const Affine& affine)
      : rstd(factor), lower(product), upper(product + error) {
    if constexpr (kIsFloat) {
      lower = lower - error;
    } else {
      const double weight = has_weight ? affine.weight().max_abs() : 1;
      const double bias = has_bias ? affine.bias().max_abs() : 0;
      halves = HalfResults<Out>(most * weight + 0x1p-51 * bias);
    }
  }

  // load(p): what of the terms from p on belongs to d.
  template <class Load>
  HWY_INLINE Results results(V d, std::int64_t i, const TermsAt& terms, const Load& load) const {
    V low = hn::MulAdd(d, rstd, lower);
    if constexpr (kIsFloat) {
      V high = hn::MulAdd(d, rstd, upper);
      if constexpr (has_weight) {
        const V weight = load(terms.weight + i);
        // A product that is zero becomes +0.
        low = hn::MulAdd(low, weight, has_bias ? load(terms.lower + i) : splat(0));
        high = hn::MulAdd(high, weight, has_bias ? load(terms.upper + i) : splat(0));
      } else if constexpr (has_bias) {
        low = low + load(terms.lower + i);
        high = high + load(terms.upper + i);
      }
      return float_results(low, high);
    } else {
      if constexpr (has_weight) {
        low = hn::MulAdd(low, load(terms.weight + i), has_bias ? load(terms.bias + i) : splat(0));
      } else if constexpr (has_bias) {
        low = low + load(terms.bias + i);
      }
      return halves(low);
    }
  }

  template <class Elements>
  HWY_INLINE Results results(const Elements& elements, std::int64_t i, const TermsAt& terms) const {
    return results(elements(i), i, terms,
                   [](const double* from) HWY_ATTR { return hn::LoadU(kDoubles, from); });
  }

  // A vector of results, or its first ones. resolve(i, to) puts result i where it belongs.
  template <class Elements, class Resolve>
  HWY_INLINE void write_vector(const Elements& d, std::int64_t i, std::int64_t n,
                               const TermsAt& terms, std::byte* out, const Resolve& resolve) const {
    write_results<Out>(results(d, i, terms), n - i, out + i * kSize<Out>,
                       [&](std::int64_t j, std::byte* to) { resolve(i + j, to); });
  }

  // By value: what has no address stays in registers.
  template <class Elements, class Resolve>
  static HWY_NOINLINE void write_one_by_one(NarrowWriter writer, Elements d, std::int64_t i,
                                            const TermsAt& terms, std::byte* out,
                                            const Resolve& resolve) {
    for (std::int64_t v = 0; v < kLanes; v += kWidth) {
      writer.write_vector(d, i + v, i + kLanes, terms, out, resolve);
    }
  }

  template <bool stream, class Elements, class Resolve>
  HWY_INLINE std::int64_t write_groups(const Elements& d, std::int64_t n, const TermsAt& terms,
                                       std::byte* out, const Resolve& resolve) const {
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      d.read_ahead(i);
      hn::Vec<F> y[kVectors];
      auto open = hn::Zero(kWords);
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const Results r = results(d, i + v * kWidth, terms);
        y[v] = r.y;
        open = hn::Or(open, r.open);
      }
      if (HWY_UNLIKELY(!is_zero(open))) {
        write_one_by_one(*this, d, i, terms, out, resolve);
        continue;
      }
      for (std::int64_t v = 0; v < kVectors; ++v) {
        store_results<Out, stream>(y[v], out + (i + v * kWidth) * kSize<Out>);
      }
    }
    return i;
  }

  template <class Elements, class Resolve>
  HWY_INLINE void write(const Elements& d, std::int64_t n, const TermsAt& terms, std::byte* out,
                        bool non_temporal, const Resolve& resolve) const {
    std::int64_t i = streams_to<Out>(out, non_temporal)
                         ? write_groups<true>(d, n, terms, out, resolve)
                         : write_groups<false>(d, n, terms, out, resolve);
    for (; i < n; i += kWidth) write_vector(d, i, n, terms, out, resolve);
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

// Results that are rounded to float already, as Float8: right but where a float lies halfway between two numbers of
// Float8, for what was rounded then decides.
template <class Out>
struct Float8Writer {
  static constexpr int kMantissa = Out::kMantissaBits;
  static constexpr std::uint32_t kMin = 127 + lnorm::detail::kMinNormal<Out>;
  static constexpr F kFloats{};

  hn::Vec<F> most;  // of a result; far beyond the greatest number where that is no limit

  HWY_INLINE explicit Float8Writer(const RowsOut& y)
      : most(hn::Set(kFloats,
                     y.saturates ? static_cast<float>(float_format(y.dtype).greatest) : 0x1p20F)) {}

  // |y| and a number whose last place is that of the result, so that their sum is rounded there.
  struct Aligned {
    hn::Vec<Words> exponent;
    hn::Vec<F> size;
    hn::Vec<F> aligner;
    hn::Vec<F> sum;
  };
  HWY_INLINE Aligned aligned(hn::Vec<F> y) const {
    Aligned a;
    a.size = hn::Min(hn::Abs(y), most);
    a.exponent = hn::Max(hn::ShiftRight<23>(hn::BitCast(kWords, a.size)), hn::Set(kWords, kMin));
    a.aligner = power(hn::Add(a.exponent, hn::Set(kWords, 23U - kMantissa)));
    a.sum = hn::Add(a.size, a.aligner);
    return a;
  }
  static HWY_INLINE hn::Vec<F> power(hn::Vec<Words> exponent) {
    return hn::BitCast(kFloats, hn::ShiftLeft<23>(exponent));
  }

  HWY_INLINE hn::Mask<F> is_halfway(const Aligned& a) const {
    const auto rest = hn::Abs(hn::Sub(a.size, hn::Sub(a.sum, a.aligner)));
    return hn::Eq(rest, power(hn::Sub(a.exponent, hn::Set(kWords, 1U + kMantissa))));
  }

  // The significand stands in the last bits of the sum.
  HWY_INLINE hn::Vec<Words> bits(const Aligned& a, hn::Vec<F> y) const {
    const auto significand =
        hn::And(hn::BitCast(kWords, a.sum), hn::Set(kWords, (4U << kMantissa) - 1));
    const auto binades = hn::Sub(a.exponent, hn::Set(kWords, kMin));
    const auto size = hn::Min(hn::Add(hn::ShiftLeft<kMantissa>(binades), significand),
                              hn::Set(kWords, std::uint32_t{Out::kBeyond}));
    return hn::Or(size,
                  hn::And(hn::ShiftRight<24>(hn::BitCast(kWords, y)), hn::Set(kWords, 0x80U)));
  }

  // floats: with room for a vector behind them, as out. resolve(i) gives the float of result i that is one of Float8.
  template <class Resolve>
  HWY_INLINE void write(float* floats, std::int64_t n, std::byte* out,
                        const Resolve& resolve) const {
    const hn::RebindToSigned<F> integers;
    const hn::Rebind<std::uint8_t, D> bytes;
    for (std::int64_t i = 0; i < n; i += kWidth) {
      auto y = hn::Load(kFloats, floats + i);
      Aligned a = aligned(y);
      if (HWY_UNLIKELY(!hn::AllFalse(kFloats, is_halfway(a)))) {
        resolve_halfway(floats, i, std::min(n, i + kWidth), resolve);
        y = hn::Load(kFloats, floats + i);
        a = aligned(y);
      }
      hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(integers, bits(a, y))), bytes,
                 reinterpret_cast<std::uint8_t*>(out + i));
    }
  }

  template <class Resolve>
  HWY_NOINLINE void resolve_halfway(float* floats, std::int64_t i, std::int64_t end,
                                    const Resolve& resolve) const {
    for (; i < end; ++i) {
      if (hn::AllTrue(kFloats, is_halfway(aligned(hn::Set(kFloats, floats[i]))))) resolve(i);
    }
  }
};

// Calls use(Out{}) with the type of a narrow output dtype that is no float8.
template <class Use>
HWY_INLINE void with_narrow_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::float16:
      return use(Float16{});
    case DType::bfloat16:
      return use(BFloat16{});
    case DType::float32:
      return use(float{});
    case DType::boolean:
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
    case DType::uint8:
    case DType::uint16:
    case DType::uint32:
    case DType::uint64:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::float64:
    case DType::float64_pair:
      break;
  }
  HWY_ABORT("results of %s are written elsewhere", name(dtype).data());
}

// By way of float, whose interval is decided first.
template <class Out>
void narrow_write_float8(const RowsIn& part, const NarrowStatistics& s, const Affine& affine,
                         std::int64_t offset, const RowsOut& y, const Resolver& resolver) {
  alignas(64) float floats[kChunk + kWidth];
  alignas(64) std::byte results[kChunk + kWidth];
  const Float8Writer<Out> to_float8(y);
  for_each_stretch(
      part, s.center, is_float32(part),
      [&](std::int64_t start, std::int64_t n, const auto& d) HWY_ATTR {
        const PartResolver resolve{resolver, part_of(part, start, n), offset + start,
                                   DType::float32};
        const auto place_of = [&](std::int64_t i) {
          return reinterpret_cast<std::byte*>(floats + i);
        };
        with_terms(affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
          const NarrowWriter<float, has_weight(), has_bias()> writer(s.rstd, 0.0 - s.shift * s.rstd,
                                                                     s.error(), affine);
          writer.write(d, n, TermsAt(affine, offset + start), place_of(0), false, resolve);
        });
        std::fill_n(floats + n, kWidth, 0.0F);
        to_float8.write(floats, n, results, [&](std::int64_t i) { resolve(i, place_of(i)); });
        std::memcpy(y.data + start, results, static_cast<std::size_t>(n));
      });
}

void narrow_write(const RowsIn& part, const NarrowStatistics& s, const Affine& affine,
                  std::int64_t offset, const RowsOut& y, const Resolver& resolver) {
  if (y.dtype == DType::float8_e4m3fn) {
    return narrow_write_float8<Float8E4M3>(part, s, affine, offset, y, resolver);
  }
  if (y.dtype == DType::float8_e5m2) {
    return narrow_write_float8<Float8E5M2>(part, s, affine, offset, y, resolver);
  }
  const auto write = [&](std::int64_t start, std::int64_t n, const auto& d) HWY_ATTR {
    const PartResolver resolve{resolver, part_of(part, start, n), offset + start, y.dtype};
    const TermsAt terms(affine, offset + start);
    with_narrow_type(y.dtype, [&]<class Out>(Out) HWY_ATTR {
      if constexpr (std::is_same_v<Out, float> || std::is_same_v<decltype(d), const Decoded&>) {
        with_terms(affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
          const NarrowWriter<Out, has_weight(), has_bias()> writer(s.rstd, 0.0 - s.shift * s.rstd,
                                                                   s.error(), affine);
          writer.write(d, n, terms, row_of(y, start, 1).data, y.non_temporal, resolve);
        });
      }
    });
  };
  for_each_stretch(part, s.center, is_float32(part) && y.dtype == DType::float32, write);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
