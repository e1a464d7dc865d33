// Exact numbers, each a sum of two doubles, rounded once to an output dtype, a vector at a time.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lnorm/core/float16.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// What rounds to any narrower dtype as value does: the double on either side of it whose last bit is odd, or value
// itself.  [Boldo, Melquiond 2008, "Emulation of a FMA and correctly rounded sums"]
HWY_INLINE V to_odd(V2 value) {
  const hn::RebindToUnsigned<D> words;
  const auto high = hn::BitCast(words, value.high);
  // The double toward zero.
  const auto less = hn::ShiftRight<63>(hn::Xor(high, hn::BitCast(words, value.low)));
  const auto odd = hn::BitCast(kDoubles, hn::Or(hn::Sub(high, less), hn::Set(words, 1u)));
  return hn::IfThenElse(hn::Eq(value.low, hn::Zero(kDoubles)), value.high, odd);
}

// The same to the 24 bits of a float, so that the double is a float if it is in the range of normal ones.
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
  // The lanes that write leaves open: what is not finite, or not in the range where all targets convert alike; of
  // bfloat16 what is below the normal floats.
  static HWY_INLINE hn::Mask<D> open(V high) {
    const V size = hn::Abs(high);
    const V end = splat(std::is_same_v<Out, double> ? HUGE_VAL : 0x1p127);
    const auto is_open = hn::Not(hn::Lt(size, end));  // true for NaN
    if constexpr (std::is_same_v<Out, BFloat16>) {
      const auto is_tiny = hn::And(hn::Lt(size, splat(0x1p-126)), hn::Gt(size, splat(0)));
      return hn::Or(is_open, is_tiny);
    }
    return is_open;
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
        const Float16 half = to_float16(odd[j]);
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

template <class Out>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<Out, Float16>) return DType::float16;
  if constexpr (std::is_same_v<Out, BFloat16>) return DType::bfloat16;
  return std::is_same_v<Out, float> ? DType::float32 : DType::float64;
}

// Calls use(Out{}) with the C++ type of an output dtype.
template <class Use>
HWY_INLINE void with_output_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::float16:
      return use(Float16{});
    case DType::bfloat16:
      return use(BFloat16{});
    case DType::float32:
      return use(float{});
    case DType::float64:
      return use(double{});
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
    case DType::float64_pair:
      break;
  }
  HWY_ABORT("results of %s are written elsewhere", name(dtype).data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
