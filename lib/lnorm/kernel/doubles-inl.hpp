// Sums and results in doubles (statistics.hpp).

#if defined(LNORM_KERNEL_DOUBLES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_DOUBLES_INL_HPP_
#undef LNORM_KERNEL_DOUBLES_INL_HPP_
#else
#define LNORM_KERNEL_DOUBLES_INL_HPP_
#endif

#include <cstdint>
#include <type_traits>

#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/floats-inl.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/results-inl.hpp"
#include "lnorm/kernel/statistics.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// The lanes of the sums of d and d^2 over at most a chunk, where d = x - center.
struct DoubleLanes {
  Lanes sums;
  Lanes squares;

  HWY_INLINE void clear() {
    sums.clear();
    squares.clear();
  }

  HWY_INLINE void add(std::int64_t v, V d) {
    sums.v[v] = sums.v[v] + d;
    squares.v[v] = hn::MulAdd(d, d, squares.v[v]);
  }
};

Sums double_sums(const RowsIn& part, double center) {
  Sums total;
  DoubleLanes lanes;
  lanes.clear();
  const auto add = [&](std::int64_t start, std::int64_t n, const auto& d) HWY_ATTR {
    add_to<true>(lanes, d, n);
    if ((start + n) % kChunk != 0 && start + n != part.row_length) return;
    total += Sums{{sum_of_lanes(lanes.sums.fold())}, {sum_of_lanes(lanes.squares.fold())}};
    lanes.clear();
  };
  if constexpr (kHasFloat16) {
    for_each_stretch<float, BFloat16, Float16>(part, center, true, add);
  } else {
    for_each_stretch<float, BFloat16>(part, center, true, add);
  }
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

// Results of a row or a part of it, from d = x - center. Out is float, Float16 or BFloat16. A float's result is decided
// where the two ends of the interval in which y is are rounded alike.
//
// repeats: all elements have one number of weight and bias.
template <class Out, bool has_weight, bool has_bias, bool repeats = false>
struct DoubleWriter : GroupWriter<DoubleWriter<Out, has_weight, has_bias, repeats>, Out, Results> {
  static constexpr bool kIsFloat = std::is_same_v<Out, float>;

  V lower_rstd;
  V upper_rstd;
  V lower;  // xhat less its error; xhat of a narrower dtype
  V upper;
  HalfResults<Out> halves;

  // xhat = xhat_of(d, rstd, at_center), within error + relative |xhat|. relative is 0 where there is a bias.
  HWY_INLINE DoubleWriter(double rstd, double at_center, double error, double relative,
                          const Affine& affine)
      : DoubleWriter(splat(rstd), splat(at_center), splat(error), error, relative, affine) {}

  // Takes a row in every lane. most: the greatest error.
  HWY_INLINE DoubleWriter(V rstd, V at_center, V error, double most, double relative,
                          const Affine& affine)
      : lower_rstd(rstd - rstd * splat(relative)),
        upper_rstd(rstd + rstd * splat(relative)),
        lower(at_center),
        upper(at_center + error) {
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
    V low = xhat_of(d, lower_rstd, lower);
    if constexpr (kIsFloat) {
      V high = xhat_of(d, upper_rstd, upper);
      if constexpr (has_weight) {
        const V weight = load(terms.weight + i);
        // A product that is zero becomes +0.
        low = y_of(low, weight, has_bias ? load(terms.lower + i) : splat(0));
        high = y_of(high, weight, has_bias ? load(terms.upper + i) : splat(0));
      } else if constexpr (has_bias) {
        low = low + load(terms.lower + i);
        high = high + load(terms.upper + i);
      }
      return float_results(low, high);
    } else {
      if constexpr (has_weight) {
        low = y_of(low, load(terms.weight + i), has_bias ? load(terms.bias + i) : splat(0));
      } else if constexpr (has_bias) {
        low = low + load(terms.bias + i);
      }
      return halves(low);
    }
  }

  template <class Elements>
  HWY_INLINE Results results(const Elements& elements, std::int64_t i, const TermsAt& terms) const {
    if constexpr (repeats) {
      return results(elements(i), 0, terms,
                     [](const double* from) HWY_ATTR { return splat(*from); });
    } else {
      return results(elements(i), i, terms,
                     [](const double* from) HWY_ATTR { return hn::LoadU(kDoubles, from); });
    }
  }
};

// The affine's numbers for a stretch of a part.
struct StretchTerms {
  const Affine& affine;
  std::int64_t number;  // of its first element

  StretchTerms(const Affine& terms, std::int64_t of_part, std::int64_t start)
      : affine(terms), number(repeats() ? of_part : of_part + start) {}

  bool repeats() const { return affine.layout().repeat > 1; }

  // Calls use(has_weight, has_bias, repeats), all of them types.
  template <class Use>
  HWY_INLINE void with_types(const Use& use) const {
    with_terms(affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
      if constexpr (has_weight() || has_bias()) {
        if (repeats()) return use(has_weight, has_bias, std::true_type{});
      }
      use(has_weight, has_bias, std::false_type{});
    });
  }
};

// The results of a stretch of a part.
template <class Out, class Elements>
HWY_INLINE void write_stretch(const Elements& d, std::int64_t n, const DoubleStatistics& s,
                              const StretchTerms& stretch, const RowsOut& y,
                              const PartResolver& resolve) {
  const TermsAt terms(stretch.affine, stretch.number);
  stretch.with_types([&](auto has_weight, auto has_bias, auto repeats) HWY_ATTR {
    const double relative = s.relative(has_bias());
    const DoubleWriter<Out, has_weight(), has_bias(), repeats()> writer(
        s.rstd, 0.0 - s.shift * s.rstd, relative > 0 ? 0 : s.error(), relative, stretch.affine);
    writer.write(d, n, terms, y.data, y.non_temporal, resolve);
  });
}

// Writes results of 16 and 8 bits in floats, where they may go so.
bool write_in_floats(const RowsIn& part, const DoubleStatistics& s, const Affine& affine,
                     const RowPlace& place, const RowsOut& y, const Resolver& resolver) {
  if (!affine.have_floats() || !fits_floats(part, y.dtype)) return false;
  const FloatStatistics floats(s, affine);
  if (!floats.are_usable) return false;
  with_narrow(y.dtype, [&]<class Out>(Out) HWY_ATTR {
    if constexpr (kFitsFloats<Out>) {
      alignas(64) float x[kChunk + kFloats];
      for_each_part(part, [&](std::int64_t start, const RowsIn& some) HWY_ATTR {
        decode_floats(some, x, ahead_of(some));
        const FloatPart decoded{{x},
                                some.row_length,
                                place.element + start,
                                StretchTerms(affine, place.number, start).number};
        write_floats<Out>(decoded, floats, affine, row_of(y, 1, start), resolver);
      });
    }
  });
  return true;
}

void double_write(const RowsIn& part, const DoubleStatistics& s, const Affine& affine,
                  const RowPlace& place, const RowsOut& y, const Resolver& resolver) {
  if (write_in_floats(part, s, affine, place, y, resolver)) return;
  const auto write = [&](std::int64_t start, std::int64_t n, const auto& d) HWY_ATTR {
    const RowsOut out = row_of(y, 1, start);
    const bool is_byte = is_float8(y.dtype);
    const PartResolver resolve{resolver, part_of(part, start, n), place.element + start,
                               is_byte ? DType::float32 : y.dtype};
    const StretchTerms terms(affine, place.number, start);
    if constexpr (std::is_same_v<decltype(d), const Decoded&>) {
      const bool is_written = with_type<BFloat16, Float16>(y.dtype, [&]<class Out>(Out) HWY_ATTR {
        write_stretch<Out>(d, n, s, terms, out, resolve);
      });
      if (is_written) return;
    }
    if (!is_byte) return write_stretch<float>(d, n, s, terms, out, resolve);
    write_float8(n, out, resolve, [&](std::byte* floats) HWY_ATTR {
      write_stretch<float>(d, n, s, terms, {floats, DType::float32}, resolve);
    });
  };
  const bool by_way_of_floats = y.dtype == DType::float32 || is_float8(y.dtype);
  for_each_stretch<float>(part, s.center, by_way_of_floats, write);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
