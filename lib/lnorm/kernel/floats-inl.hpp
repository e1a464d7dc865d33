// Results of 16 and 8 bits from floats, of which a vector holds twice as many as doubles (docs/numbers.md, "Results in floats").

#if defined(LNORM_KERNEL_FLOATS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_FLOATS_INL_HPP_
#undef LNORM_KERNEL_FLOATS_INL_HPP_
#else
#define LNORM_KERNEL_FLOATS_INL_HPP_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/results-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

constexpr auto kFloats = static_cast<std::int64_t>(hn::MaxLanes(Floats()));

// Whether results of Out come from floats. One float at a time gains nothing.
template <class Out>
constexpr bool kFitsFloats = kFloats > 1 && kSize<Out> <= 2 &&
                             (!std::is_same_v<Out, Float16> || kHasFloat16);

// Calls use(Out()) with the type of results that may come from floats.
template <class Use>
HWY_INLINE bool with_narrow(DType out, const Use& use) {
  return with_type<BFloat16, Float16>(out, use) || with_float8(out, use);
}

// Whether elements and results are of dtypes that have code here.
inline bool fits_floats(const RowsIn& x, DType out) {
  bool fits = false;
  with_narrow(out, [&]<class Out>(Out) { fits = kFitsFloats<Out>; });
  return fits && with_floats(x, [](auto) {});
}

// Decodes a row whose elements load_floats() loads. There is room for a vector behind it. ahead: see Encoded.
inline void decode_floats(const RowsIn& row, float* to, std::int64_t ahead) {
  with_floats(row, [&]<class T>(T) HWY_ATTR {
    const std::int64_t n = row.row_length;
    std::int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats) {
      if (ahead != 0) prefetch(row.data + ahead + i * kSize<T>, kFloats * kSize<T>);
      hn::StoreU(load_floats<T>(row.data + i * kSize<T>), Floats(), to + i);
    }
    if (i == n) return;
    alignas(64) std::byte rest[kFloats * kSize<T>] = {};
    std::memcpy(rest, row.data + i * kSize<T>, static_cast<std::size_t>((n - i) * kSize<T>));
    hn::StoreU(load_floats<T>(rest), Floats(), to + i);
  });
}

// Elements that are decoded so. As many elements, of item bytes each, are read ahead from next on, unless that is null.
struct DecodedFloats {
  const float* x;
  const std::byte* next = nullptr;
  std::int64_t item = 0;

  HWY_INLINE hn::Vec<Floats> operator()(std::int64_t i) const { return hn::LoadU(Floats(), x + i); }
  HWY_INLINE void read_ahead(std::int64_t i) const {
    if (next != nullptr) prefetch(next + i * item, kVectors * kFloats * item);
  }
};

// weight and bias of a row or a part of it. Where all elements have one number, every vector reads the same copies of it.
struct FloatTermsAt {
  const float* weight;
  const float* bias;
  std::int64_t of_index;  // a mask: all bits of an index, or none

  HWY_INLINE FloatTermsAt(const Affine& affine, std::int64_t number, float* same)
      : weight(affine.weight_floats(number)), bias(affine.bias_floats(number)), of_index(~0) {
    if (affine.layout().repeat == 1) return;
    of_index = 0;
    if (weight != nullptr) weight = std::fill_n(same, kFloats, *weight) - kFloats;
    if (bias != nullptr) bias = std::fill_n(same + kFloats, kFloats, *bias) - kFloats;
  }
};

// What a vector of floats rounds to in Out. undecided: not 0 where that is not decided.
template <class Out>
struct HalvesOfFloats {
  static constexpr bool kIsFloat16 = std::is_same_v<Out, Float16>;
  using Bits16 = hn::Rebind<std::uint16_t, Floats>;
  using Bits32 = hn::RebindToUnsigned<Floats>;
  using Tag = std::conditional_t<kIsFloat16, Bits16, Bits32>;

  hn::Vec<Bits16> y;
  hn::Vec<Tag> undecided;

  struct Limit {  // they have none
    explicit Limit(const RowsOut&) {}
  };
  // Of numbers within an error, but not at its ends, unless it is 0.
  HWY_INLINE HalvesOfFloats(hn::Vec<Floats> value, hn::Vec<Floats> error, const Limit&) {
    const auto low = hn::Sub(value, error);
    const auto high = hn::Add(value, error);
    if constexpr (kIsFloat16) {
      const hn::Rebind<hwy::float16_t, Floats> halves;
      y = hn::BitCast(Bits16(), hn::DemoteTo(halves, low));
      undecided = hn::Xor(y, hn::BitCast(Bits16(), hn::DemoteTo(halves, high)));
    } else {
      // Half an ulp is added, and the lower half dropped. A tie rounds away from zero so; the number is none.
      const Bits32 bits;
      const auto half = hn::Set(bits, 0x8000u);
      const auto sum = hn::Add(hn::BitCast(bits, low), half);
      const auto other = hn::Add(hn::BitCast(bits, high), half);
      undecided = hn::ShiftRight<16>(hn::Xor(sum, other));
      const hn::RebindToSigned<Floats> integers;
      y = hn::DemoteTo(Bits16(), hn::BitCast(integers, hn::ShiftRight<16>(sum)));
    }
  }
};

// The same in a float8.
template <class Out>
struct BytesOfFloats {
  using Tag = hn::RebindToUnsigned<Floats>;

  hn::Vec<hn::Rebind<std::uint8_t, Floats>> y;
  hn::Vec<Tag> undecided;

  struct Limit {
    hn::Vec<Floats> most;
    explicit Limit(const RowsOut& y) : most(hn::Set(Floats(), most_of(y))) {}
  };
  HWY_INLINE BytesOfFloats(hn::Vec<Floats> value, hn::Vec<Floats> error, const Limit& limit) {
    const Float8Bits<Out, Floats> rounded(value, limit.most);
    // Twice the error is less than what is left to any such point, on either side. The sign is known as well.
    const auto is_near = hn::Not(hn::Gt(rounded.from_halfway(), hn::Add(error, error)));
    const auto may_be_zero = hn::Lt(hn::Abs(value), error);
    y = rounded.bytes();
    undecided = hn::BitCast(Tag(), hn::VecFromMask(Floats(), hn::Or(is_near, may_be_zero)));
  }
};

template <class Out>
using ResultsOfFloats =
    std::conditional_t<kSize<Out> == 1, BytesOfFloats<Out>, HalvesOfFloats<Out>>;

// The statistics of a row in floats.
struct FloatStatistics {
  bool are_usable = false;
  bool is_far = false;  // the mean is far from 0, and is subtracted first, in two parts
  float mean_high = 0;
  float mean_low = 0;
  float rstd = 0;
  float at_center = 0;  // -mean * rstd, unless it is far
  float exact = 0;      // the mean, where it is exact; or else NaN
  float error = 0;      // of y, but for roundings in proportion to y or its terms

  FloatStatistics() = default;
  // s.offset is 0 where the mean is exact.
  FloatStatistics(const DoubleStatistics& s, const Affine& affine) {
    constexpr double kNear = 0.5;  // in deviations
    constexpr double kFarthest = 0x1p20;
    constexpr double kLost = 0x1p-140;  // more than what is lost below the normal floats
    const DoubleDouble mean = lnorm::two_sum(s.center, s.shift);
    const double deviations = std::fabs(mean.high) * s.rstd;
    are_usable = s.rstd >= 0x1p-100 && s.rstd <= 0x1p100 && s.reach <= 0x1p60 &&
                 std::fabs(mean.high) <= 0x1p100 && deviations <= kFarthest;
    if (!are_usable) return;
    rstd = static_cast<float>(s.rstd);
    double of_xhat = s.offset;
    is_far = deviations > kNear || (s.offset == 0 && mean.high != 0);
    if (is_far) {
      mean_high = static_cast<float>(mean.high);
      const double rest = mean.high - double{mean_high};
      mean_low = static_cast<float>(rest);
      of_xhat += (std::fabs(rest - double{mean_low}) + std::fabs(mean.low)) * s.rstd;
    } else {
      at_center = static_cast<float>(0 - mean.high * s.rstd);
      // x rstd is larger than xhat: its roundings, and that of at_center.
      of_xhat += 0x1.8p-23 * deviations;
    }
    exact = of_xhat == 0 ? mean_high : std::numeric_limits<float>::quiet_NaN();
    const double weight = affine.weight().empty() ? 1 : affine.weight().max_abs();
    const double of_y = (of_xhat * weight * kSlack + kLost * (1 + weight)) * kSlack;
    error = static_cast<float>(std::min(of_y, 0x1p100));
  }
};

template <class Out, bool is_far, bool has_weight, bool has_bias>
struct FloatWriter
    : GroupWriter<FloatWriter<Out, is_far, has_weight, has_bias>, Out, ResultsOfFloats<Out>> {
  using Vector = hn::Vec<Floats>;

  // Of |xhat weight| and of |y|. Roundings: of rstd and of its product; two of the deviation from a mean that is far, or one of the
  // sum with at_center; of weight and the product with it; of bias and the sum; and of the ends of the interval.
  static constexpr float kOfXhat = is_far ? 5 : kHasFusedMultiplyAdd ? 3 : 4;
  static constexpr float kOfProduct = (kOfXhat + (has_weight ? 2 : 0) + 0.25F) * 0x1p-24F;
  static constexpr float kOfSum = 3.25F * 0x1p-24F;

  Vector mean_high;
  Vector mean_low;
  Vector rstd;
  Vector at_center;
  Vector exact;
  Vector error;
  [[no_unique_address]] typename ResultsOfFloats<Out>::Limit limit;

  HWY_INLINE FloatWriter(const FloatStatistics& s, const RowsOut& y)
      : mean_high(set(s.mean_high)),
        mean_low(set(s.mean_low)),
        rstd(set(s.rstd)),
        at_center(set(s.at_center)),
        exact(set(s.exact)),
        error(set(s.error)),
        limit(y) {}

  static HWY_INLINE Vector set(float value) { return hn::Set(Floats(), value); }

  HWY_INLINE ResultsOfFloats<Out> results(const DecodedFloats& elements, std::int64_t i,
                                          const FloatTermsAt& terms) const {
    Vector d = elements(i);
    Vector lost = hn::IfThenZeroElse(hn::Eq(d, exact), error);
    if constexpr (is_far) d = hn::Sub(hn::Sub(d, mean_high), mean_low);
    Vector product = hn::MulAdd(d, rstd, at_center);
    if constexpr (has_weight) {
      const Vector weight = hn::LoadU(Floats(), terms.weight + (i & terms.of_index));
      product = hn::MulAdd(product, weight, hn::Zero(Floats()));
    }
    Vector y = product;
    lost = hn::MulAdd(hn::Abs(product), set(kOfProduct), lost);
    if constexpr (has_bias) {
      y = hn::Add(product, hn::LoadU(Floats(), terms.bias + (i & terms.of_index)));
      lost = hn::MulAdd(hn::Abs(y), set(kOfSum), lost);
    }
    return {y, lost, limit};
  }
};

// A part of a row, decoded.
struct FloatPart {
  DecodedFloats x;
  std::int64_t count;
  std::int64_t first;   // element of the row
  std::int64_t number;  // of weight and bias there
};

// Writes the results of a part of a row.
template <class Out, bool is_far, bool has_weight, bool has_bias>
HWY_NOINLINE void write_part(const FloatPart& part, const FloatStatistics& s, const Affine& affine,
                             const RowsOut& y, const Resolver& resolver) {
  alignas(64) float same[2 * kFloats];
  const FloatWriter<Out, is_far, has_weight, has_bias> writer(s, y);
  writer.write(part.x, part.count, FloatTermsAt(affine, part.number, same), y.data, y.non_temporal,
               [&](std::int64_t i, std::byte* to) {
                 const double result = resolver.resolve(part.first + i, {part.x.x[i], 0});
                 store(&result, 1, dtype_of<Out>(), to, y.saturates);
               });
}

template <class Out>
void write_floats(const FloatPart& part, const FloatStatistics& s, const Affine& affine,
                  const RowsOut& y, const Resolver& resolver) {
  with_terms(affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
    if (s.is_far) {
      write_part<Out, true, has_weight(), has_bias()>(part, s, affine, y, resolver);
    } else {
      write_part<Out, false, has_weight(), has_bias()>(part, s, affine, y, resolver);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
