// The narrow passes (two_pass.hpp) in SIMD.

#if defined(LNORM_KERNEL_SIMD_NARROW_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_SIMD_NARROW_INL_HPP_
#undef LNORM_KERNEL_SIMD_NARROW_INL_HPP_
#else
#define LNORM_KERNEL_SIMD_NARROW_INL_HPP_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lnorm/kernel/simd-inl.hpp"
#include "lnorm/kernel/two_pass.hpp"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// Sums of d and d^2 over a chunk.
struct NarrowLanes {
  Lanes sums;
  Lanes squares;
  V center;

  HWY_INLINE explicit NarrowLanes(double about) : center(splat(about)) {}

  template <class T, bool whole>
  HWY_INLINE void add_group(const std::byte* x, std::int64_t count) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      V d = hn::Sub(load_vector<T>(x + v * kWidth * kSize<T>), center);
      if constexpr (!whole) d = hn::IfThenElseZero(mask_of(count, v), d);
      sums.v[v] = hn::Add(sums.v[v], d);
      squares.v[v] = hn::Add(squares.v[v], hn::Mul(d, d));
    }
  }

  // ahead: what will be summed soon.
  // room: how many elements can be read from x on, the row's or others.
  template <class T>
  HWY_INLINE void add(const std::byte* x, std::int64_t n, std::int64_t room,
                      const std::byte* ahead) {
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      hwy::Prefetch(ahead + i * kSize<T>);
      add_group<T, true>(x + i * kSize<T>, kLanes);
    }
    if (i == n) return;
    if (i + kLanes <= room) {
      add_group<T, false>(x + i * kSize<T>, n - i);
    } else {
      add_group<T, false>(Rest<T>(x + i * kSize<T>, n - i).bytes, n - i);
    }
  }

  HWY_INLINE Sums fold() { return Sums{} + Sums{{sums.fold()}, {squares.fold()}}; }
};

// The sum of a sample, not folded yet.
template <class T>
V sum_sample(const std::byte* x, std::int64_t count, std::int64_t room) {
  Lanes sums;
  if (room < kLanes) return sum_sample<T>(Rest<T>(x, count).bytes, kLanes, kLanes);
  for (std::int64_t v = 0; v < kVectors; ++v) {
    const V elements = load_vector<T>(x + v * kWidth * kSize<T>);
    sums.v[v] = count < kLanes ? hn::IfThenElseZero(mask_of(count, v), elements) : elements;
  }
  return sums.fold_vectors();
}

// Results of a row or a part of it from its elements; weight and bias begin with those of the part.
template <class T, class Out, bool has_weight, bool has_bias>
struct NarrowWriter {
  V center;
  V shift;
  V rstd;
  V largest = hn::Zero(kDoubles);

  HWY_INLINE NarrowWriter(double c, double s, double r)
      : center(splat(c)), shift(splat(s)), rstd(splat(r)) {}

  template <bool whole, bool stream>
  HWY_INLINE void write_group(const std::byte* x, std::int64_t count, const double* weight,
                              const double* bias, std::byte* out) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const V element = load_vector<T>(x + v * kWidth * kSize<T>);
      V y = hn::Mul(hn::Sub(hn::Sub(element, center), shift), rstd);
      if constexpr (has_weight) y = hn::Mul(y, hn::LoadU(kDoubles, weight + v * kWidth));
      if constexpr (has_bias) {
        y = hn::Add(y, hn::LoadU(kDoubles, bias + v * kWidth));
        V size = hn::Abs(y);
        if constexpr (!whole) size = hn::IfThenElseZero(mask_of(count, v), size);
        largest = hn::Max(largest, size);
      }
      store_vector<Out, stream>(y, out + v * kWidth * kSize<Out>);
    }
  }

  template <bool is_there>
  static HWY_INLINE const double* at(const double* term, std::int64_t i) {
    return is_there ? term + i : nullptr;
  }

  template <bool stream>
  HWY_INLINE std::int64_t write_groups(const std::byte* x, std::int64_t n, const double* weight,
                                       const double* bias, std::byte* out) {
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      write_group<true, stream>(x + i * kSize<T>, kLanes, at<has_weight>(weight, i),
                                at<has_bias>(bias, i), out + i * kSize<Out>);
    }
    return i;
  }

  // room: how many elements can be read from x on, and results written from out on, which will be
  // overwritten.
  HWY_INLINE void write(const std::byte* x, std::int64_t n, std::int64_t room, const double* weight,
                        const double* bias, std::byte* out, bool past_caches) {
    // Less than 16 bytes at a time there are no instructions for.
    constexpr std::int64_t kBytes = kWidth * kSize<Out>;
    const bool streams = past_caches && n >= kLanes && kBytes >= 16 &&
                         reinterpret_cast<std::uintptr_t>(out) % kBytes == 0;
    const std::int64_t i = streams ? write_groups<true>(x, n, weight, bias, out)
                                   : write_groups<false>(x, n, weight, bias, out);
    if (i == n) return;
    if (i + kLanes <= room && !streams) {
      return write_group<false, false>(x + i * kSize<T>, n - i, at<has_weight>(weight, i),
                                       at<has_bias>(bias, i), out + i * kSize<Out>);
    }
    alignas(64) std::byte rest[kLanes * kSize<Out>];
    write_group<false, false>(Rest<T>(x + i * kSize<T>, n - i).bytes, n - i,
                              at<has_weight>(weight, i), at<has_bias>(bias, i), rest);
    std::memcpy(out + i * kSize<Out>, rest, static_cast<std::size_t>((n - i) * kSize<Out>));
  }

  HWY_INLINE double largest_y() const {
    return has_bias ? hn::GetLane(hn::MaxOfLanes(kDoubles, largest)) : 0;
  }
};

// Calls use(has_weight, has_bias) with both as types.
template <class Use>
HWY_INLINE void with_terms(const Affine& affine, Use use) {
  const auto with_weight = [&](auto has_weight) HWY_ATTR {
    if (affine.bias.empty()) {
      use(has_weight, std::false_type{});
    } else {
      use(has_weight, std::true_type{});
    }
  };
  if (affine.weight.empty()) {
    with_weight(std::false_type{});
  } else {
    with_weight(std::true_type{});
  }
}

const double* high_of(const AffineTerm& term, std::int64_t index) {
  return term.empty() ? nullptr : term.high(index);
}

Sums narrow_sums(const RowsIn& part, double center) noexcept {
  Chunk chunk;
  Sums total;
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    NarrowLanes lanes(center);
    with_chunk(part, start, chunk, [&]<class T>(T, const std::byte* x, const double*) HWY_ATTR {
      const std::int64_t n = chunk_length(part, start);
      lanes.add<T>(x, n, n, x + kChunk * kSize<T>);
    });
    total = total + lanes.fold();
  }
  return total;
}

double narrow_write(const RowsIn& part, const Statistics<double>& statistics, const Affine& affine,
                    std::int64_t offset, const RowsOut& out) noexcept {
  const bool has_type = out.dtype != DType::float16 || kHasFloat16;
  if (!affine.finite() || !has_type) {
    return portable_passes.narrow_write(part, statistics, affine, offset, out);
  }
  Chunk chunk;
  double largest = 0;
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const double* const weight = high_of(affine.weight, offset + start);
    const double* const bias = high_of(affine.bias, offset + start);
    std::byte* const y = row_of(out, start, 1).data;
    with_chunk(part, start, chunk, [&]<class T>(T, const std::byte* x, const double*) HWY_ATTR {
      const auto write = [&]<class Out>(Out) HWY_ATTR {
        with_terms(affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
          NarrowWriter<T, Out, has_weight(), has_bias()> writer(statistics.center, statistics.shift,
                                                                statistics.rstd);
          const std::int64_t n = chunk_length(part, start);
          writer.write(x, n, n, weight, bias, y, out.past_caches);
          largest = std::max(largest, writer.largest_y());
        });
      };
      if (out.dtype == DType::float32) {
        write(float{});
      } else if (out.dtype == DType::bfloat16) {
        write(BFloat16{});
      } else if constexpr (kHasFloat16) {
        write(Float16{});
      }
    });
  }
  return largest;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
#endif
