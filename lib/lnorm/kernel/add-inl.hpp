// Sums of two rows, and rows that are rounded: see add.hpp.

#if defined(LNORM_KERNEL_ADD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_ADD_INL_HPP_
#undef LNORM_KERNEL_ADD_INL_HPP_
#else
#define LNORM_KERNEL_ADD_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/results-inl.hpp"
#include "lnorm/kernel/rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// Both parts of a number, as they are.
struct PairOut {
  double high;
  double low;
};

// Writes up to a chunk of numbers: value(i) is a vector of them, of which low is 0 where high is not finite.
template <class Out, class Value>
HWY_INLINE void write_numbers(std::int64_t n, std::byte* to, const Value& value) {
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const std::int64_t count = std::min(kWidth, n - i);
    const V2 number = value(i);
    std::byte* const at = to + i * kSize<Out>;
    write_first<Out>(count, at, [&](std::byte* out) HWY_ATTR {
      if constexpr (std::is_same_v<Out, PairOut>) {
        hn::StoreInterleaved2(number.high, number.low, kDoubles, reinterpret_cast<double*>(out));
      } else {
        Nearest<Out>::write(number, out);
      }
    });
    if constexpr (!std::is_same_v<Out, PairOut>) {
      const auto undecided = Nearest<Out>::undecided(number.high);
      if (HWY_LIKELY(hn::AllFalse(kDoubles, undecided))) continue;
      alignas(64) double odd[kWidth];
      hn::Store(std::is_same_v<Out, double> ? number.high : to_odd(number), kDoubles, odd);
      store(odd, count, dtype_of<Out>(), at);
    }
  }
}

template <class Value>
HWY_INLINE void write_chunk(std::int64_t n, const RowsOut& to, const Value& value) {
  if (to.dtype == DType::float64_pair) return write_numbers<PairOut>(n, to.data, value);
  with_type<Float16, BFloat16, float, double>(
      to.dtype, [&]<class Out>(Out) HWY_ATTR { write_numbers<Out>(n, to.data, value); });
}

// Zero is +0.
HWY_INLINE V2 sum_of(V a, V b) {
  const V2 sum = two_sum(a, b);
  const auto is_finite = hn::Lt(hn::Abs(sum.high), splat(kInfinity));
  return {sum.high + hn::Zero(kDoubles), hn::IfThenElseZero(is_finite, sum.low)};
}

void add_floats(const std::byte* a, const std::byte* b, std::int64_t n, std::byte* sum) {
  const Floats floats;
  const auto width = static_cast<std::int64_t>(hn::Lanes(floats));
  const auto add = [&](const std::byte* x, const std::byte* y, std::byte* to) HWY_ATTR {
    const auto total = hn::Add(hn::LoadU(floats, reinterpret_cast<const float*>(x)),
                               hn::LoadU(floats, reinterpret_cast<const float*>(y)));
    const auto nan = hn::Set(floats, std::numeric_limits<float>::quiet_NaN());
    // Zero is +0, and every NaN the positive quiet one.
    const auto result = hn::IfThenElse(hn::IsNaN(total), nan, hn::Add(total, hn::Zero(floats)));
    hn::StoreU(result, floats, reinterpret_cast<float*>(to));
  };
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    add(a + i * kSize<float>, b + i * kSize<float>, sum + i * kSize<float>);
  }
  if (i >= n) return;
  alignas(64) float rest[3][hn::MaxLanes(floats)] = {};
  const auto bytes = static_cast<std::size_t>((n - i) * kSize<float>);
  std::memcpy(rest[0], a + i * kSize<float>, bytes);
  std::memcpy(rest[1], b + i * kSize<float>, bytes);
  add(reinterpret_cast<const std::byte*>(rest[0]), reinterpret_cast<const std::byte*>(rest[1]),
      reinterpret_cast<std::byte*>(rest[2]));
  std::memcpy(sum + i * kSize<float>, rest[2], bytes);
}

void add(const RowsIn& a, const RowsIn& b, const RowsOut& sum) {
  const bool are_floats = is_native(a, DType::float32) && is_native(b, DType::float32);
  if (are_floats && sum.dtype == DType::float32) {
    return add_floats(a.data, b.data, a.row_length, sum.data);
  }
  Chunk from_b;
  for_each_chunk(a, 0, [&](std::int64_t start, std::int64_t n, const Chunk& from_a) HWY_ATTR {
    decode(part_of(b, start, n), 0, from_b);
    write_chunk(n, row_of(sum, start, 1), [&](std::int64_t i) HWY_ATTR {
      return sum_of(hn::LoadU(kDoubles, from_a.high + i), hn::LoadU(kDoubles, from_b.high + i));
    });
  });
}

void round_row(const RowsIn& x, const RowsOut& y) {
  for_each_chunk(x, 0, [&](std::int64_t start, std::int64_t n, const Chunk& chunk) HWY_ATTR {
    const bool has_lows = has_low(x.dtype);
    write_chunk(n, row_of(y, start, 1), [&](std::int64_t i) HWY_ATTR {
      const V high = hn::LoadU(kDoubles, chunk.high + i);
      return V2{high, has_lows ? hn::LoadU(kDoubles, chunk.low + i) : hn::Zero(kDoubles)};
    });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
