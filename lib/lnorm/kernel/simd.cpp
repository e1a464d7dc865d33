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

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/each_row.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/simd-inl.hpp"
#include "lnorm/kernel/simd.hpp"
#include "lnorm/kernel/simd_narrow-inl.hpp"
#include "lnorm/kernel/simd_plain_sums-inl.hpp"
#include "lnorm/kernel/simd_wide-inl.hpp"
#include "lnorm/kernel/two_pass.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {

// Without vectors the portable kernel is faster.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

namespace {

double mean(const RowsIn& sample) noexcept {
  const std::int64_t n = sample.row_length;
  Chunk chunk;
  double result = 0;
  with_chunk(sample, 0, chunk, [&]<class T>(T, const std::byte* x, const double*) HWY_ATTR {
    result = fold_vector(kDoubles, sum_sample<T>(x, n, n)) / static_cast<double>(n);
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

  // From the start of a row to the end of the last one.
  std::int64_t room(std::int64_t r) const noexcept { return (x_.rows - first_ - r) * n_; }

  void sum_rows() noexcept {
    const std::int64_t rows = rows_;
    const std::int64_t n = n_;
    const std::byte* const first = row(0);
    if (formula_.rms) {
      std::fill_n(centers_, rows, 0.0);
    } else {
      const std::int64_t count = sample_length(n);
      const std::int64_t start = sample_start(n);
      const std::byte* sample = first + start * kSize<T>;
      for (std::int64_t r = 0; r < rows; ++r, sample += n * kSize<T>) {
        hn::Store(sum_sample<T>(sample, count, room(r) - start), kDoubles, lanes_[r]);
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        const double sum = fold_vector(kDoubles, hn::Load(kDoubles, lanes_[r]));
        centers_[r] = as_center(sum / static_cast<double>(count));
      }
    }
    const std::byte* x = first;
    for (std::int64_t r = 0; r < rows; ++r, x += n * kSize<T>) {
      NarrowLanes lanes(centers_[r]);
      lanes.add<T>(x, n, room(r), x + rows * n * kSize<T>);
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
          writer.write(x, n, room(r), weight, bias, y, past_caches);
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
