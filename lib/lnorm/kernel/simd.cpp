// The two passes in SIMD, written once and compiled for every target that Highway can choose from at
// run time. The 16 lanes are one, two or more vectors; every step is the portable one's.

// Targets that would bring nothing: they differ from others in what is not used here, or have vectors
// whose length is not known when this is compiled.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lnorm/kernel/simd.cpp"  // compiled once more for every target
// foreach_target.h has to come before highway.h.
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/each_row.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/simd-inl.hpp"
#include "lnorm/kernel/simd.hpp"
#include "lnorm/kernel/simd_plain_sums-inl.hpp"
#include "lnorm/kernel/two_pass.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {

// Without vectors the portable kernel is faster.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

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
  template <class T>
  HWY_INLINE void add(const std::byte* x, std::int64_t n, const std::byte* ahead) {
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      hwy::Prefetch(ahead + i * kSize<T>);
      add_group<T, true>(x + i * kSize<T>, kLanes);
    }
    if (i < n) add_group<T, false>(Rest<T>(x + i * kSize<T>, n - i).bytes, n - i);
  }

  HWY_INLINE Sums fold() { return Sums{} + Sums{{sums.fold()}, {squares.fold()}}; }
};

// The sum of a sample, not folded yet.
template <class T>
V sum_sample(const std::byte* x, std::int64_t count) {
  Lanes sums;
  if (count < kLanes) return sum_sample<T>(Rest<T>(x, count).bytes, kLanes);
  for (std::int64_t v = 0; v < kVectors; ++v) {
    sums.v[v] = load_vector<T>(x + v * kWidth * kSize<T>);
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

  HWY_INLINE void write(const std::byte* x, std::int64_t n, const double* weight,
                        const double* bias, std::byte* out, bool past_caches) {
    // Less than 16 bytes at a time there are no instructions for.
    constexpr std::int64_t kBytes = kWidth * kSize<Out>;
    const bool streams =
        past_caches && kBytes >= 16 && reinterpret_cast<std::uintptr_t>(out) % kBytes == 0;
    const std::int64_t i = streams ? write_groups<true>(x, n, weight, bias, out)
                                   : write_groups<false>(x, n, weight, bias, out);
    if (i == n) return;
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
      lanes.add<T>(x, chunk_length(part, start), x + kChunk * kSize<T>);
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
          writer.write(x, chunk_length(part, start), weight, bias, y, out.past_caches);
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

// Double-doubles in vectors: see core/double_double.hpp.
struct V2 {
  V high;
  V low;
};

HWY_INLINE V2 two_sum(V a, V b) {
  const V sum = hn::Add(a, b);
  const V b_part = hn::Sub(sum, a);
  return {sum, hn::Add(hn::Sub(a, hn::Sub(sum, b_part)), hn::Sub(b, b_part))};
}

HWY_INLINE V2 fast_two_sum(V a, V b) {
  const V sum = hn::Add(a, b);
  return {sum, hn::Sub(b, hn::Sub(sum, a))};
}

HWY_INLINE V2 split(V a) {
  const V scaled = hn::Mul(splat(0x1p27 + 1), a);
  const V high = hn::Sub(scaled, hn::Sub(scaled, a));
  return {high, hn::Sub(a, high)};
}

HWY_INLINE V2 two_product(V a, V b) {
  const V2 x = split(a);
  const V2 y = split(b);
  const V product = hn::Mul(a, b);
  V low = hn::Sub(hn::Mul(x.high, y.high), product);
  low = hn::Add(low, hn::Mul(x.high, y.low));
  low = hn::Add(low, hn::Mul(x.low, y.high));
  return {product, hn::Add(low, hn::Mul(x.low, y.low))};
}

HWY_INLINE V2 operator+(V2 a, V2 b) {
  const V2 high = two_sum(a.high, b.high);
  const V2 low = two_sum(a.low, b.low);
  const V2 sum = fast_two_sum(high.high, hn::Add(high.low, low.high));
  return fast_two_sum(sum.high, hn::Add(sum.low, low.low));
}

HWY_INLINE V2 operator*(V2 a, V2 b) {
  const V2 product = two_product(a.high, b.high);
  const V cross = hn::Add(hn::Mul(a.high, b.low), hn::Mul(a.low, b.high));
  return fast_two_sum(product.high, hn::Add(product.low, cross));
}

HWY_INLINE V2 splat(DoubleDouble value) { return {splat(value.high), splat(value.low)}; }

// Vector v of a group of elements, less the centre.
template <class T>
HWY_INLINE V2 deviation(const std::byte* x, const double* low, std::int64_t v, V minus_center) {
  const V2 d = two_sum(load_vector<T>(x + v * kWidth * kSize<T>), minus_center);
  const V low_part = low == nullptr ? hn::Zero(kDoubles) : hn::LoadU(kDoubles, low + v * kWidth);
  return fast_two_sum(d.high, hn::Add(d.low, low_part));
}

struct WideLanes {
  V2 sums[kVectors];
  V2 squares[kVectors];
  V largest = hn::Zero(kDoubles);
  V minus_center;

  HWY_INLINE explicit WideLanes(double center) : minus_center(splat(-center)) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      sums[v] = squares[v] = {hn::Zero(kDoubles), hn::Zero(kDoubles)};
    }
  }

  template <class T, bool whole>
  HWY_INLINE void add_group(const std::byte* x, const double* low, std::int64_t count) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      V2 d = deviation<T>(x, low, v, minus_center);
      if constexpr (!whole) {
        const auto mask = mask_of(count, v);
        d = {hn::IfThenElseZero(mask, d.high), hn::IfThenElseZero(mask, d.low)};
      }
      largest = hn::Max(largest, hn::Abs(d.high));
      const V2 sum = two_sum(sums[v].high, d.high);
      sums[v] = {sum.high, hn::Add(sums[v].low, hn::Add(sum.low, d.low))};
      const V2 square = two_product(d.high, d.high);
      const V2 square_sum = two_sum(squares[v].high, square.high);
      const V cross = hn::Mul(hn::Mul(splat(2), d.high), d.low);
      squares[v] = {square_sum.high,
                    hn::Add(squares[v].low, hn::Add(square_sum.low, hn::Add(square.low, cross)))};
    }
  }

  template <class T>
  HWY_INLINE void add(const std::byte* x, const double* low, std::int64_t n) {
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      add_group<T, true>(x + i * kSize<T>, low == nullptr ? nullptr : low + i, kLanes);
    }
    if (i == n) return;
    Rest<double> low_rest;
    if (low != nullptr) low_rest.copy(reinterpret_cast<const std::byte*>(low + i), n - i);
    add_group<T, false>(Rest<T>(x + i * kSize<T>, n - i).bytes,
                        reinterpret_cast<const double*>(low_rest.bytes), n - i);
  }

  HWY_INLINE Sums fold(std::int64_t n) {
    return {fold(sums, n), fold(squares, n), hn::GetLane(hn::MaxOfLanes(kDoubles, largest))};
  }

 private:
  static HWY_INLINE DoubleDouble fold(const V2 (&vectors)[kVectors], std::int64_t n) {
    alignas(64) double high[kLanes];
    alignas(64) double low[kLanes];
    DoubleDouble lanes[kLanes];
    for (std::int64_t v = 0; v < kVectors; ++v) {
      hn::Store(vectors[v].high, kDoubles, high + v * kWidth);
      hn::Store(vectors[v].low, kDoubles, low + v * kWidth);
    }
    for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] = {high[j], low[j]};
    return lnorm::fold(lanes, n);
  }
};

Sums wide_sums(const RowsIn& part, double center) noexcept {
  Chunk chunk;
  Sums total;
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const std::int64_t n = chunk_length(part, start);
    WideLanes lanes(center);
    with_chunk(part, start, chunk, [&]<class T>(T, const std::byte* x, const double* low) HWY_ATTR {
      lanes.add<T>(x, low, n);
    });
    total = total + lanes.fold(n);
  }
  return total;
}

// One vector of results, from the deviations and what the affine parameters have for it. index: of
// its first element in the row.
HWY_INLINE V wide_results(V2 d, V2 minus_shift, V2 rstd, const Affine& affine, std::int64_t index) {
  const V2 y = (d + minus_shift) * rstd;
  V2 result = y;
  if (!affine.weight.empty()) {
    result = result * V2{hn::LoadU(kDoubles, affine.weight.high(index)),
                         hn::LoadU(kDoubles, affine.weight.low(index))};
  }
  if (!affine.bias.empty()) {
    result = result + V2{hn::LoadU(kDoubles, affine.bias.high(index)),
                         hn::LoadU(kDoubles, affine.bias.low(index))};
  }
  const auto finite = hn::Lt(hn::Abs(result.high), splat(std::numeric_limits<double>::infinity()));
  if (hn::AllTrue(kDoubles, finite)) return result.high;
  alignas(64) double results[kWidth];
  alignas(64) double high[kWidth];
  alignas(64) double low[kWidth];
  hn::Store(result.high, kDoubles, results);
  hn::Store(y.high, kDoubles, high);
  hn::Store(y.low, kDoubles, low);
  for (std::int64_t j = 0; j < kWidth; ++j) {
    if (std::isfinite(results[j])) continue;
    results[j] = overflowed_element({high[j], low[j]}, affine, index + j);
  }
  return hn::Load(kDoubles, results);
}

template <class T>
HWY_INLINE void wide_results(const std::byte* x, const double* low, std::int64_t n,
                             const Statistics<DoubleDouble>& statistics, const Affine& affine,
                             std::int64_t offset, double* results) {
  const V minus_center = splat(-statistics.center);
  const V2 minus_shift = splat(-statistics.shift);
  const V2 rstd = splat(statistics.rstd);
  const auto do_group = [&](const std::byte* group, const double* low_group,
                            std::int64_t i) HWY_ATTR {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const V2 d = deviation<T>(group, low_group, v, minus_center);
      hn::StoreU(wide_results(d, minus_shift, rstd, affine, offset + i + v * kWidth), kDoubles,
                 results + i + v * kWidth);
    }
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    do_group(x + i * kSize<T>, low == nullptr ? nullptr : low + i, i);
  }
  if (i == n) return;
  Rest<double> low_rest;
  if (low != nullptr) low_rest.copy(reinterpret_cast<const std::byte*>(low + i), n - i);
  do_group(Rest<T>(x + i * kSize<T>, n - i).bytes, reinterpret_cast<const double*>(low_rest.bytes),
           i);
}

void wide_write(const RowsIn& part, const Statistics<DoubleDouble>& statistics,
                const Affine& affine, std::int64_t offset, const RowsOut& out) noexcept {
  Chunk chunk;
  alignas(64) double results[kChunk];
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const std::int64_t n = chunk_length(part, start);
    with_chunk(part, start, chunk, [&]<class T>(T, const std::byte* x, const double* low) HWY_ATTR {
      wide_results<T>(x, low, n, statistics, affine, offset + start, results);
    });
    store(results, n, out.dtype, row_of(out, start, 1).data);
  }
}

double mean(const RowsIn& sample) noexcept {
  const std::int64_t n = sample.row_length;
  Chunk chunk;
  double result = 0;
  with_chunk(sample, 0, chunk, [&]<class T>(T, const std::byte* x, const double*) HWY_ATTR {
    result = fold_vector(kDoubles, sum_sample<T>(x, n)) / static_cast<double>(n);
  });
  return result;
}

constexpr Passes kPasses{mean, narrow_sums, wide_sums, narrow_write, wide_write, range, plain_sums};

// Rows of one chunk at most. What is long in one row (a chain of additions, a division, a root) the
// machine can do for many rows at once, if these follow each other: so every step is taken for some
// rows before the next one is.
template <class T, class Out>
class NarrowRows {
 public:
  NarrowRows(const RowsIn& x, const RowsOut& y, const Affine& affine,
             const Formula& formula) noexcept
      : x_(x), y_(y), affine_(affine), formula_(formula), n_(x.row_length) {}

  void run() noexcept {
    const std::int64_t rows_at_once = std::clamp<std::int64_t>(kElements / n_, 1, kMostRows);
    for (std::int64_t first = 0; first < x_.rows; first += rows_at_once) {
      first_ = first;
      rows_ = std::min(rows_at_once, x_.rows - first);
      sum_rows();
      find_statistics();
      write_rows();
    }
  }

 private:
  static constexpr std::int64_t kElements = 8 * kChunk;  // fit the first-level cache
  static constexpr std::int64_t kMostRows = 16;

  const std::byte* row(std::int64_t r) const noexcept {
    return x_.data + (first_ + r) * n_ * kSize<T>;
  }

  void sum_rows() noexcept {
    const std::int64_t rows = rows_;
    const std::int64_t n = n_;
    const std::byte* const first = row(0);
    if (formula_.rms) {
      std::fill_n(centers_, rows, 0.0);
    } else {
      const std::int64_t count = sample_length(n);
      const std::byte* sample = first + sample_start(n) * kSize<T>;
      for (std::int64_t r = 0; r < rows; ++r, sample += n * kSize<T>) {
        hn::Store(sum_sample<T>(sample, count), kDoubles, lanes_[r]);
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        const double sum = fold_vector(kDoubles, hn::Load(kDoubles, lanes_[r]));
        centers_[r] = as_center(sum / static_cast<double>(count));
      }
    }
    const std::byte* x = first;
    for (std::int64_t r = 0; r < rows; ++r, x += n * kSize<T>) {
      NarrowLanes lanes(centers_[r]);
      lanes.add<T>(x, n, x + rows * n * kSize<T>);
      hn::Store(lanes.sums.fold_vectors(), kDoubles, lanes_[r]);
      hn::Store(lanes.squares.fold_vectors(), kDoubles, square_lanes_[r]);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      sums_[r] = fold_vector(kDoubles, hn::Load(kDoubles, lanes_[r]));
      squares_[r] = fold_vector(kDoubles, hn::Load(kDoubles, square_lanes_[r]));
    }
  }

  // As Centering does, for a vector of rows; not usable are those that it would want new sums for, too.
  void find_statistics() noexcept {
    const V n = splat(static_cast<double>(n_));
    const V freedom = splat(static_cast<double>(n_ - formula_.ddof));
    const V eps = splat(formula_.eps);
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      const V sum = hn::Load(kDoubles, sums_ + r);
      const V shift = formula_.rms ? hn::Zero(kDoubles) : hn::Div(sum, n);
      const V correction = hn::Mul(shift, sum);
      const V centered = hn::Sub(hn::Load(kDoubles, squares_ + r), correction);
      const V variance = hn::Div(centered, freedom);
      const V denominator = formula_.eps_on == EpsOn::variance ? hn::Sqrt(hn::Add(variance, eps))
                                                               : hn::Add(hn::Sqrt(variance), eps);
      const auto in_range = hn::And(hn::Ge(denominator, splat(kLeastDenominator)),
                                    hn::Le(denominator, splat(kLargestDenominator)));
      const auto usable = hn::And(in_range, hn::Le(correction, centered));
      hn::Store(shift, kDoubles, shifts_ + r);
      hn::Store(hn::IfThenElseZero(usable, hn::Div(splat(1), denominator)), kDoubles, rstds_ + r);
    }
  }

  void write_rows() noexcept {
    with_terms(affine_, [&](auto has_weight, auto has_bias) HWY_ATTR {
      const double* const weight = has_weight() ? affine_.weight.high(0) : nullptr;
      const double* const bias = has_bias() ? affine_.bias.high(0) : nullptr;
      const std::int64_t n = n_;
      const bool past_caches = y_.past_caches;
      const std::byte* x = row(0);
      std::byte* y = y_.data + first_ * n * kSize<Out>;
      for (std::int64_t r = 0; r < rows_; ++r, x += n * kSize<T>, y += n * kSize<Out>) {
        if (rstds_[r] > 0) {
          NarrowWriter<T, Out, has_weight(), has_bias()> writer(centers_[r], shifts_[r], rstds_[r]);
          writer.write(x, n, weight, bias, y, past_caches);
          if (!has_bias() || !bias_cancels(writer.largest_y(), affine_)) continue;
        }
        layer_norm_row(kPasses, row_of(x_, first_ + r), row_of(y_, n, first_ + r), affine_,
                       formula_, {});
      }
    });
  }

  const RowsIn& x_;
  const RowsOut& y_;
  const Affine& affine_;
  const Formula& formula_;
  std::int64_t n_;
  std::int64_t first_ = 0;  // of the rows that are being done
  std::int64_t rows_ = 0;   // their number
  alignas(64) double lanes_[kMostRows][kWidth];
  alignas(64) double square_lanes_[kMostRows][kWidth];
  alignas(64) double centers_[kMostRows];
  alignas(64) double sums_[kMostRows] = {};
  alignas(64) double squares_[kMostRows] = {};
  alignas(64) double shifts_[kMostRows];
  alignas(64) double rstds_[kMostRows];  // 0 where a row is not to be done narrow, or not here
};

// Does all rows if they are of one chunk at most and of the usual dtypes.
bool do_narrow_rows(const RowsIn& x, const RowsOut& y, const Affine& affine,
                    const Formula& formula) {
  if (x.row_length > kChunk || x.byte_order != std::endian::native || !affine.finite()) {
    return false;
  }
  if (x.dtype == DType::float32 && y.dtype == DType::float32) {
    NarrowRows<float, float>(x, y, affine, formula).run();
    return true;
  }
  if (x.dtype == DType::bfloat16 && y.dtype == DType::bfloat16) {
    NarrowRows<BFloat16, BFloat16>(x, y, affine, formula).run();
    return true;
  }
  if constexpr (kHasFloat16) {
    if (x.dtype == DType::float16 && y.dtype == DType::float16) {
      NarrowRows<Float16, Float16>(x, y, affine, formula).run();
      return true;
    }
  }
  return false;
}

void layer_norm(const RowsIn& x, const RowsOut& y, const Affine& affine, const Formula& formula,
                const RowStats& stats) noexcept {
  // More than the second-level cache of a core holds will not be found there by who reads it.
  constexpr std::int64_t kPastCaches = std::int64_t{4} << 20;
  RowsOut out = y;
  out.past_caches =
      x.rows * x.row_length * static_cast<std::int64_t>(item_size(y.dtype)) >= kPastCaches;
  const bool wants_stats = stats.mean != nullptr || stats.rstd != nullptr;
  if (wants_stats || !do_narrow_rows(x, out, affine, formula)) {
    each_row(x, out, stats,
             [&](const RowsIn& row, const RowsOut& y_row, const RowStats& row_stats) {
               layer_norm_row(kPasses, row, y_row, affine, formula, row_stats);
             });
  }
  if (out.past_caches) hwy::FlushStream();
}

}  // namespace

Kernel kernel(const char* name) { return {name, layer_norm, &kPasses}; }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lnorm {

namespace {

// Highway's own choice at run time is in its shared library, which spends milliseconds on start-up to
// measure timers that nobody here asks for.
#if HWY_ARCH_X86
bool supports_f16c() {  // which compilers do not all know by name
  unsigned int eax = 0;
  unsigned int ebx = 0;
  unsigned int ecx = 0;
  unsigned int edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
bool supports_sse4() {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
         __builtin_cpu_supports("aes");
}
bool supports_avx2() {
  return supports_sse4() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && supports_f16c();
}
bool supports_avx512() {
  return supports_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
}
#endif

}  // namespace

std::vector<Kernel> simd_kernels() {
  std::vector<Kernel> kernels;
#if HWY_TARGETS & HWY_AVX3
  if (supports_avx512()) kernels.push_back(N_AVX3::kernel("avx512"));
#endif
#if HWY_TARGETS & HWY_AVX2
  if (supports_avx2()) kernels.push_back(N_AVX2::kernel("avx2"));
#endif
#if HWY_TARGETS & HWY_SSE4
  if (supports_sse4()) kernels.push_back(N_SSE4::kernel("sse4"));
#endif
#if HWY_ARCH_ARM
  kernels.push_back(HWY_NAMESPACE::kernel("neon"));
#endif
  return kernels;
}

}  // namespace lnorm
#endif
