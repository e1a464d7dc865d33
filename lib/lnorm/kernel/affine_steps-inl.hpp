// Steps that follow on a rounded result (affine_steps.hpp).

#if defined(LNORM_KERNEL_AFFINE_STEPS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_AFFINE_STEPS_INL_HPP_
#undef LNORM_KERNEL_AFFINE_STEPS_INL_HPP_
#else
#define LNORM_KERNEL_AFFINE_STEPS_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lnorm/kernel/affine_steps.hpp"
#include "lnorm/kernel/results-inl.hpp"
#include "lnorm/kernel/statistics.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// A vector of elements takes a step in doubles.
//
// short_weight: its product with an element has all bits in a double.
template <class Out, bool has_weight, bool has_bias, bool short_weight>
struct StepInDoubles {
  V2 result;

  // terms: of these elements.
  HWY_INLINE StepInDoubles(const std::byte* from, const double* weight, const double* bias) {
    const V element = load_vector<Out>(from) + hn::Zero(kDoubles);  // without the sign of a zero
    result = step(element, has_weight ? hn::LoadU(kDoubles, weight) : splat(1),
                  has_bias ? hn::LoadU(kDoubles, bias) : hn::Zero(kDoubles));
  }

  HWY_INLINE bool is_undecided() const {
    return !hn::AllFalse(kDoubles, Nearest<Out>::undecided(result.high));
  }
  HWY_INLINE void write(std::byte* to) const { Nearest<Out>::write(result, to); }

 private:
  // Exactly but for the size of what lies below the high part: its sign is all that rounding to odd asks for. A double is
  // rounded once.
  static HWY_INLINE V2 step(V element, V weight, V bias) {
    const V zero = hn::Zero(kDoubles);
    if constexpr (std::is_same_v<Out, double>) {
      if constexpr (has_weight) return {hn::MulAdd(element, weight, bias), zero};
      return {element + bias, zero};
    } else if constexpr (!has_weight) {
      return two_sum(element, bias);
    } else if constexpr (short_weight) {
      return two_sum(element * weight, bias);  // zero is +0
    } else {
      const V2 product = two_product(element, weight);
      const V2 sum = two_sum(product.high, bias);
      if constexpr (!has_bias) return {sum.high, product.low};
      // The low parts add up to less than an ulp of the high one.
      const V2 rest = two_sum(sum.low, product.low);
      const V2 total = two_sum(sum.high, rest.high);
      return {total.high, hn::IfThenElse(hn::Eq(total.low, zero), rest.low, total.low)};
    }
  }
};

// The steps in floats. They are for float16 and bfloat16, where weight and bias are floats, and products of elements and weight
// have all bits in a float.
template <class Out, bool has_weight, bool has_bias>
struct StepInFloats {
  static constexpr double kMax = 0x1p20;  // of terms, and their reciprocals
  static constexpr int kPrecision = std::is_same_v<Out, BFloat16> ? 16 : 13;  // of weight

  hn::Vec<F> high;
  hn::Vec<F> low;
  hn::Mask<F> is_tiny;

  HWY_INLINE StepInFloats(const std::byte* from, const double* weight, const double* bias) {
    const F floats;
    const auto zero = hn::Zero(floats);
    const auto element = hn::Add(load(from), zero);
    auto product = element;
    if constexpr (has_weight) {
      product = hn::Mul(element, hn::DemoteTo(floats, hn::LoadU(kDoubles, weight)));
    }
    auto term = zero;
    if constexpr (has_bias) term = hn::DemoteTo(floats, hn::LoadU(kDoubles, bias));
    high = hn::Add(product, term);
    const auto part = hn::Sub(high, product);
    low = hn::Add(hn::Sub(product, hn::Sub(high, part)), hn::Sub(term, part));
    if constexpr (!has_bias) low = zero;
    // The smallest product of float16 is a normal float, too.
    const auto size = hn::Abs(element);
    is_tiny = hn::And(hn::Lt(size, hn::Set(floats, 0x1p-100F)), hn::Gt(size, zero));
  }

  HWY_INLINE bool is_undecided() const {
    const F floats;
    const auto is_finite = hn::Lt(hn::Abs(high), hn::Set(floats, HUGE_VALF));  // false for NaN
    const auto undecided =
        std::is_same_v<Out, BFloat16> ? hn::Or(hn::Not(is_finite), is_tiny) : hn::Not(is_finite);
    return !hn::AllFalse(floats, undecided);
  }

  HWY_INLINE void write(std::byte* to) const {
    Nearest<Out>::write_float(has_bias ? to_odd(F(), high, low) : high, to);
  }

 private:
  static HWY_INLINE hn::Vec<F> load(const std::byte* from) {
    if constexpr (std::is_same_v<Out, BFloat16>) {
      return widen_bfloat16(F(), from);
    } else {
      const hn::Rebind<hwy::float16_t, F> halves;
      return hn::PromoteTo(F(), hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from)));
    }
  }
};

// Takes steps that vectors leave undecided, or cannot take.
template <class Out>
HWY_NOINLINE void step_one_by_one(const AffineStep& step, std::byte* y, std::int64_t n,
                                  std::int64_t index) {
  Chunk chunk;
  for (std::int64_t start = 0; start < n; start += kChunk) {
    const std::int64_t count = std::min(kChunk, n - start);
    std::byte* const at = y + start * kSize<Out>;
    load(at, dtype_of<Out>(), std::endian::native, count, chunk);
    for (std::int64_t i = 0; i < count; ++i) {
      chunk.high[i] = lnorm::take_step(step, index + start + i, chunk.high[i], dtype_of<Out>());
    }
    store(chunk.high, count, dtype_of<Out>(), at);
  }
}

template <class Out, class Step>
HWY_INLINE void step_vectors(const AffineStep& step, std::byte* y, std::int64_t n,
                             std::int64_t offset) {
  alignas(64) std::byte buffer[kWidth * kSize<Out>] = {};
  for (std::int64_t start = 0; start < n; start += kChunk) {
    const std::int64_t index = offset + start;
    // Nothing is read of one that is empty.
    const double* const weight = (step.weight.empty() ? step.bias : step.weight).high(index);
    const double* const bias = (step.bias.empty() ? step.weight : step.bias).high(index);
    const std::int64_t in_chunk = std::min(kChunk, n - start);
    for (std::int64_t i = 0; i < in_chunk; i += kWidth) {
      const std::int64_t count = std::min(kWidth, in_chunk - i);
      std::byte* const at = y + (start + i) * kSize<Out>;
      const auto bytes = static_cast<std::size_t>(count * kSize<Out>);
      if (count < kWidth) std::memcpy(buffer, at, bytes);
      const Step result(count < kWidth ? buffer : at, weight + i, bias + i);
      if (HWY_UNLIKELY(result.is_undecided())) {
        step_one_by_one<Out>(step, at, count, index + i);
      } else if (count < kWidth) {
        result.write(buffer);
        std::memcpy(at, buffer, bytes);
      } else {
        result.write(at);
      }
    }
  }
}

template <class Out, bool has_weight, bool has_bias>
void step_terms(const AffineStep& step, std::byte* y, std::int64_t n, std::int64_t offset) {
  const auto in_doubles = [&](auto short_weight) HWY_ATTR {
    step_vectors<Out, StepInDoubles<Out, has_weight, has_bias, short_weight()>>(step, y, n, offset);
  };
  if constexpr (sizeof(Out) == 2) {
    using InFloats = StepInFloats<Out, has_weight, has_bias>;
    const bool are_floats = step.weight.precision() <= InFloats::kPrecision &&
                            step.weight.is_within(InFloats::kMax) && step.bias.precision() <= 24 &&
                            step.bias.is_within(InFloats::kMax);
    if (are_floats) return step_vectors<Out, InFloats>(step, y, n, offset);
  }
  constexpr int kShort = 53 - 24;
  if (step.weight.precision() <= kShort) return in_doubles(std::true_type{});
  in_doubles(std::false_type{});
}

template <class Out>
void step_row(const AffineStep& step, std::byte* y, std::int64_t n, std::int64_t offset) {
  // Others have low parts, or are so large or small that bits might be lost.
  const auto is_fast_path = [](const AffineTerm& term) {
    return term.is_within(kMaxDoubleDoubleAffine) && !term.has_low_parts();
  };
  constexpr bool kIsDouble = std::is_same_v<Out, double>;
  const bool lacks_instruction = kIsDouble && !kHasFusedMultiplyAdd && !step.weight.empty();
  if constexpr (!std::is_same_v<Out, Float16> || kHasFloat16) {
    if (is_fast_path(step.weight) && is_fast_path(step.bias) && !lacks_instruction) {
      if (step.bias.empty()) return step_terms<Out, true, false>(step, y, n, offset);
      if (step.weight.empty()) return step_terms<Out, false, true>(step, y, n, offset);
      return step_terms<Out, true, true>(step, y, n, offset);
    }
  }
  step_one_by_one<Out>(step, y, n, offset);
}

void take_step(const AffineStep& step, const RowsOut& y, std::int64_t count, std::int64_t offset) {
  with_type<Float16, BFloat16, float, double>(
      y.dtype, [&]<class Out>(Out) HWY_ATTR { step_row<Out>(step, y.data, count, offset); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
