// The narrow passes (statistics.hpp), and many short rows at once by them.

#if defined(LNORM_KERNEL_NARROW_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_NARROW_INL_HPP_
#undef LNORM_KERNEL_NARROW_INL_HPP_
#else
#define LNORM_KERNEL_NARROW_INL_HPP_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "lnorm/kernel/row_normalizer.hpp"
#include "lnorm/kernel/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

using Words = hn::RebindToUnsigned<F>;

// Sums of d and d^2 over a chunk.
struct NarrowLanes {
  Lanes sums;
  Lanes squares;
  V center;

  template <class T, bool whole>
  HWY_INLINE void add_group(const std::byte* x, std::int64_t count) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      V d = load_vector<T>(x + v * kWidth * kSize<T>) - center;
      if constexpr (!whole) d = hn::IfThenElseZero(mask_of(kDoubles, count, v), d);
      sums.v[v] = sums.v[v] + d;
      squares.v[v] = hn::MulAdd(d, d, squares.v[v]);
    }
  }

  // room: how many elements can be read from x on, the row's or others. ahead: what will be summed soon.
  template <class T>
  HWY_INLINE void add(const std::byte* x, std::int64_t n, std::int64_t room, double about,
                      const std::byte* ahead) {
    constexpr std::int64_t kLine = 64;
    sums.clear();
    squares.clear();
    center = splat(about);
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (std::int64_t byte = 0; byte < kLanes * kSize<T>; byte += kLine) {
        hwy::Prefetch(ahead + i * kSize<T> + byte);
      }
      add_group<T, true>(x + i * kSize<T>, kLanes);
    }
    if (i == n) return;
    if (i + kLanes <= room) {
      add_group<T, false>(x + i * kSize<T>, n - i);
    } else {
      add_group<T, false>(Rest<T>(x + i * kSize<T>, n - i).bytes, n - i);
    }
  }
};

Sums narrow_sums(const RowsIn& part, double center) {
  Chunk chunk;
  Sums total;
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const std::int64_t n = std::min(kChunk, part.row_length - start);
    with_chunk(part, start, n, chunk, [&]<class T>(T, const std::byte* x, const double*) HWY_ATTR {
      NarrowLanes lanes;
      lanes.add<T>(x, n, n, center, x + n * kSize<T>);
      total += Sums{{sum_of_lanes(lanes.sums.fold())}, {sum_of_lanes(lanes.squares.fold())}};
    });
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

// What the floats of a vector round to, and which of them are not decided.
struct Results {
  hn::Vec<F> y;
  hn::Mask<Words> open;
};

// Results of a row or a part of it. Out is float, Float16 or BFloat16.
//
// A float's result is decided where the two ends of the interval in which y is are rounded alike. Of a narrower
// dtype the interval is smaller than an ulp of float, where y is not tiny: there y is decided if the nearest float
// is not within two of its ulps of a point halfway between two results.
template <class T, class Out, bool has_weight, bool has_bias>
struct NarrowWriter {
  static constexpr bool kIsFloat = std::is_same_v<Out, float>;

  V center;
  V rstd;
  V lower;  // xhat less its error; xhat of a narrower dtype
  V upper;
  std::uint32_t tiny;  // floats whose bits, less the next number, are below are not decided
  std::uint32_t not_tiny;

  HWY_INLINE NarrowWriter(double about, double shift, double factor, double error,
                          const Affine& affine) {
    const double product = 0.0 - shift * factor;
    center = splat(about);
    rstd = splat(factor);
    lower = splat(kIsFloat ? product - error : product);
    upper = splat(product + error);
    if constexpr (!kIsFloat) {
      const double weight = has_weight ? affine.weight().max_abs() : 1;
      const double bias = has_bias ? affine.bias().max_abs() : 0;
      const double bound = 0x1p24 * (error * weight + 0x1p-51 * bias) * (1 + 0x1p-8);
      constexpr double kLeastNormal = std::is_same_v<Out, Float16> ? 0x1p-14 : 0x1p-126;
      const auto least = static_cast<float>(std::max(kLeastNormal, bound * (1 + 0x1p-20)));
      // Without an error zero is zero.
      not_tiny = error == 0 ? 1 : 0;
      tiny = std::bit_cast<std::uint32_t>(least) - not_tiny;
    }
  }

  HWY_INLINE Results results(const std::byte* x, std::int64_t i, const TermsAt& terms) const {
    const V d = load_vector<T>(x) - center;
    V low = hn::MulAdd(d, rstd, lower);
    if constexpr (kIsFloat) {
      V high = hn::MulAdd(d, rstd, upper);
      if constexpr (has_weight) {
        const V weight = hn::LoadU(kDoubles, terms.weight + i);
        // A product that is zero becomes +0.
        low = hn::MulAdd(low, weight, has_bias ? hn::LoadU(kDoubles, terms.lower + i) : splat(0));
        high = hn::MulAdd(high, weight, has_bias ? hn::LoadU(kDoubles, terms.upper + i) : splat(0));
      } else if constexpr (has_bias) {
        low = low + hn::LoadU(kDoubles, terms.lower + i);
        high = high + hn::LoadU(kDoubles, terms.upper + i);
      }
      const auto from_low = hn::DemoteTo(F(), low);
      const auto from_high = hn::DemoteTo(F(), high);
      return {from_low, hn::Ne(hn::BitCast(Words(), from_low), hn::BitCast(Words(), from_high))};
    } else {
      if constexpr (has_weight) {
        low = hn::MulAdd(low, hn::LoadU(kDoubles, terms.weight + i),
                         has_bias ? hn::LoadU(kDoubles, terms.bias + i) : splat(0));
      } else if constexpr (has_bias) {
        low = low + hn::LoadU(kDoubles, terms.bias + i);
      }
      const auto y = hn::DemoteTo(F(), low);
      const Words words;
      const auto bits = hn::BitCast(words, y);
      constexpr std::uint32_t kUlp = std::uint32_t{1} << (std::is_same_v<Out, Float16> ? 13 : 16);
      const auto from_half =
          hn::And(hn::Add(bits, hn::Set(words, kUlp / 2 + 2)), hn::Set(words, kUlp - 1));
      const auto size = hn::And(bits, hn::Set(words, 0x7fffffffu));
      const auto is_tiny = hn::Lt(hn::Sub(size, hn::Set(words, not_tiny)), hn::Set(words, tiny));
      return {y, hn::Or(hn::Lt(from_half, hn::Set(words, 5u)), is_tiny)};
    }
  }

  template <bool stream>
  static HWY_INLINE void store_results(hn::Vec<F> y, std::byte* to) {
    if constexpr (kIsFloat) {
      if constexpr (stream) {
        hn::Stream(y, F(), reinterpret_cast<float*>(to));
      } else {
        hn::StoreU(y, F(), reinterpret_cast<float*>(to));
      }
    } else {
      const hn::Rebind<std::uint16_t, D> halves;
      const auto bits = to_halves(y);
      if constexpr (stream) {
        hn::Stream(bits, halves, reinterpret_cast<std::uint16_t*>(to));
      } else {
        hn::StoreU(bits, halves, reinterpret_cast<std::uint16_t*>(to));
      }
    }
  }

  static HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> to_halves(hn::Vec<F> y) {
    const hn::Rebind<std::uint16_t, D> halves;
    if constexpr (std::is_same_v<Out, BFloat16>) {
      // To nearest, of what is no tie: half an ulp is added, and the lower half dropped.
      const hn::RebindToSigned<F> integers;
      const auto sum = hn::Add(hn::BitCast(Words(), y), hn::Set(Words(), 0x8000u));
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

  // Up to a group of results, with those that are not decided settled.
  HWY_NOINLINE void settle_group(const std::byte* x, std::int64_t i, std::int64_t count,
                                 const TermsAt& terms, std::int64_t index, std::byte* out,
                                 const Settler& settler) const {
    alignas(64) std::byte y[kLanes * kSize<Out>];
    alignas(64) std::uint32_t open[kLanes];
    alignas(64) double elements[kLanes];
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const std::byte* const at = x + v * kWidth * kSize<T>;
      const Results r = results(at, i + v * kWidth, terms);
      store_results<false>(r.y, y + v * kWidth * kSize<Out>);
      hn::Store(hn::IfThenElseZero(r.open, hn::Set(Words(), 1u)), Words(), open + v * kWidth);
      hn::Store(load_vector<T>(at), kDoubles, elements + v * kWidth);
    }
    for (std::int64_t j = 0; j < count; ++j) {
      if (open[j] == 0) continue;
      const double result = settler.settle(index + i + j, {elements[j]});
      if constexpr (kIsFloat) {
        const auto element = static_cast<float>(result);
        std::memcpy(y + j * kSize<Out>, &element, sizeof element);
      } else if constexpr (std::is_same_v<Out, Float16>) {
        const Float16 element = to_float16(result);
        std::memcpy(y + j * kSize<Out>, &element, sizeof element);
      } else {
        const BFloat16 element = to_bfloat16(result);
        std::memcpy(y + j * kSize<Out>, &element, sizeof element);
      }
    }
    std::memcpy(out, y, static_cast<std::size_t>(count * kSize<Out>));
  }

  template <bool stream>
  HWY_INLINE std::int64_t write_groups(const std::byte* x, std::int64_t n, const TermsAt& terms,
                                       std::int64_t index, std::byte* out,
                                       const Settler& settler) const {
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const std::byte* const from = x + i * kSize<T>;
      std::byte* const to = out + i * kSize<Out>;
      Results group[kVectors];
      for (std::int64_t v = 0; v < kVectors; ++v) {
        group[v] = results(from + v * kWidth * kSize<T>, i + v * kWidth, terms);
      }
      auto open = group[0].open;
      for (std::int64_t v = 1; v < kVectors; ++v) open = hn::Or(open, group[v].open);
      if (HWY_UNLIKELY(!hn::AllFalse(Words(), open))) {
        settle_group(from, i, kLanes, terms, index, to, settler);
        continue;
      }
      for (std::int64_t v = 0; v < kVectors; ++v) {
        store_results<stream>(group[v].y, to + v * kWidth * kSize<Out>);
      }
    }
    return i;
  }

  // index: of the first element in the row, for the settler.
  HWY_INLINE void write(const std::byte* x, std::int64_t n, const TermsAt& terms,
                        std::int64_t index, std::byte* out, bool past_caches,
                        const Settler& settler) const {
    // Less than 16 bytes at a time there are no instructions for.
    constexpr std::int64_t kBytes = kWidth * kSize<Out>;
    const bool streams = past_caches && n >= kLanes && kBytes >= 16 &&
                         reinterpret_cast<std::uintptr_t>(out) % kBytes == 0;
    const std::int64_t i = streams ? write_groups<true>(x, n, terms, index, out, settler)
                                   : write_groups<false>(x, n, terms, index, out, settler);
    if (i < n) write_rest(x + i * kSize<T>, i, n - i, terms, index, out + i * kSize<Out>, settler);
  }

  // Fewer than a group.
  HWY_INLINE void write_rest(const std::byte* x, std::int64_t i, std::int64_t count,
                             const TermsAt& terms, std::int64_t index, std::byte* out,
                             const Settler& settler) const {
    const Rest<T> rest(x, count);
    alignas(64) std::byte y[kLanes * kSize<Out>];
    bool open = false;
    for (std::int64_t v = 0; v * kWidth < count; ++v) {
      const Results r = results(rest.bytes + v * kWidth * kSize<T>, i + v * kWidth, terms);
      open = open || !hn::AllFalse(Words(), hn::And(r.open, mask_of(Words(), count, v)));
      store_results<false>(r.y, y + v * kWidth * kSize<Out>);
    }
    if (HWY_UNLIKELY(open)) return settle_group(rest.bytes, i, count, terms, index, out, settler);
    std::memcpy(out, y, static_cast<std::size_t>(count * kSize<Out>));
  }
};

// Calls use(Out{}) with the type of a narrow output dtype.
template <class Use>
HWY_INLINE void with_narrow_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::float16:
      return use(Float16{});
    case DType::bfloat16:
      return use(BFloat16{});
    default:
      return use(float{});
  }
}

void narrow_write(const RowsIn& part, const NarrowStatistics& statistics, const Affine& affine,
                  std::int64_t offset, const RowsOut& y, const Settler& settler) {
  Chunk chunk;
  for (std::int64_t start = 0; start < part.row_length; start += kChunk) {
    const std::int64_t n = std::min(kChunk, part.row_length - start);
    const TermsAt terms(affine, offset + start);
    std::byte* const out = row_of(y, start, 1).data;
    with_chunk(part, start, n, chunk, [&]<class T>(T, const std::byte* x, const double*) HWY_ATTR {
      with_narrow_type(y.dtype, [&]<class Out>(Out) HWY_ATTR {
        with_terms(affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
          const NarrowWriter<T, Out, has_weight(), has_bias()> writer(
              statistics.center, statistics.shift, statistics.rstd, statistics.error(), affine);
          writer.write(x, n, terms, offset + start, out, y.past_caches, settler);
        });
      });
    });
  }
}

// Rows of one chunk at most. What is long in one row (a chain of additions, a division, a root) the machine can do
// for many rows at once, if these follow each other: so every step is taken for some rows before the next one is.
template <class T, class Out>
class ShortRows final : public Settler {
 public:
  ShortRows(const RowSetting& setting, const RowsIn& x, const RowsOut& y)
      : setting_(setting),
        x_(x),
        y_(y),
        n_(x.row_length),
        bounds_(n_, kLanes),
        error_(bounds_.offset(1) + bounds_.slope() * bounds_.reach(1)) {}

  void run() {
    const std::int64_t rows_at_once = std::clamp<std::int64_t>(kElements / n_, 1, kMostRows);
    if (!setting_.formula.rms) center_ = sample_mean();
    for (std::int64_t first = 0; first < x_.rows; first += rows_at_once) {
      first_ = first;
      rows_ = std::min(rows_at_once, x_.rows - first);
      sum_rows();
      find_statistics();
      write_rows();
      // The next rows are about where these are.
      const double next = center_ + shifts_[rows_ - 1];
      if (!setting_.formula.rms && std::isfinite(next)) center_ = next;
    }
  }

  // Of the row that is being written.
  double settle(std::int64_t index, Number x) const override {
    if (!settled_ || settled_row_ != row_) {
      const std::int64_t r = row_ - first_;
      settled_row_ = row_;
      settled_.emplace(setting_, element_of(row_of(x_, row_), 0), reader(),
                       NarrowStatistics{center_, shifts_[r], rstds_[r], bounds_.offset(spreads_[r]),
                                        bounds_.slope(), bounds_.reach(spreads_[r])});
    }
    return settled_->settle(index, x);
  }

 private:
  static constexpr std::int64_t kElements = 8 * kChunk;  // fit the first-level cache
  static constexpr std::int64_t kMostRows = 16;

  RowNormalizer::ReadRow reader() const {
    return [this](const auto& see) { see(row_of(x_, row_)); };
  }

  const std::byte* row(std::int64_t r) const { return x_.data + (first_ + r) * n_ * kSize<T>; }

  double sample_mean() const {
    Chunk chunk;
    const std::int64_t n =
        load_chunk(part_of(row_of(x_, 0), 0, std::min<std::int64_t>(n_, 16)), 0, chunk);
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += chunk.high[i];
    return std::isfinite(sum) ? sum / static_cast<double>(n) : 0;
  }

  void sum_rows() {
    const std::byte* x = row(0);
    const std::int64_t bytes = n_ * kSize<T>;
    std::int64_t room =
        (x_.rows - first_) * n_;  // from the start of a row to the end of the last one
    alignas(64) double lanes[kMostRows][kWidth];
    alignas(64) double square_lanes[kMostRows][kWidth];
    for (std::int64_t r = 0; r < rows_; ++r, x += bytes, room -= n_) {
      NarrowLanes row_lanes;
      row_lanes.add<T>(x, n_, room, center_, x + rows_ * bytes);
      hn::Store(row_lanes.sums.fold(), kDoubles, lanes[r]);
      hn::Store(row_lanes.squares.fold(), kDoubles, square_lanes[r]);
    }
    for (std::int64_t r = 0; r < rows_; ++r) {
      sums_[r] = sum_of_lanes(hn::Load(kDoubles, lanes[r]));
      squares_[r] = sum_of_lanes(hn::Load(kDoubles, square_lanes[r]));
    }
  }

  // As narrow_statistics() does, for a vector of rows.
  void find_statistics() {
    const Formula& formula = setting_.formula;
    const V n = splat(1 / static_cast<double>(n_));
    const V freedom = splat(1 / static_cast<double>(n_ - formula.ddof));
    const V eps = splat(formula.eps);
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      const V sum = hn::Load(kDoubles, sums_ + r);
      const V squares = hn::Load(kDoubles, squares_ + r);
      const V shift = formula.rms ? hn::Zero(kDoubles) : sum * n;
      const V correction = shift * sum;
      const V centered = squares - correction;
      const V variance = centered * freedom;
      const V s =
          formula.eps_on == EpsOn::variance ? hn::Sqrt(variance + eps) : hn::Sqrt(variance) + eps;
      const auto in_range =
          hn::And(hn::Ge(s, splat(kLeastDivisor)), hn::Le(s, splat(kGreatestDivisor)));
      const auto usable = hn::And(in_range, hn::Le(correction, centered));
      const V rstd = hn::IfThenElseZero(usable, hn::Div(splat(1), s));
      hn::Store(shift, kDoubles, shifts_ + r);
      hn::Store(rstd, kDoubles, rstds_ + r);
      hn::Store(rstd * hn::Sqrt(squares * n), kDoubles, spreads_ + r);
    }
  }

  void write_rows() {
    const Affine& affine = setting_.affine;
    const TermsAt terms(affine, 0);
    with_terms(affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
      for (std::int64_t r = 0; r < rows_; ++r) {
        row_ = first_ + r;
        const RowsOut out = row_of(y_, n_, row_);
        if (rstds_[r] > 0) {
          const NarrowWriter<T, Out, has_weight(), has_bias()> writer(
              center_, shifts_[r], rstds_[r], error_ * spreads_[r], affine);
          writer.write(row(r), n_, terms, 0, out.data, y_.past_caches, *this);
        } else {
          RowNormalizer alone(setting_, element_of(row_of(x_, row_), 0), reader());
          alone.sum_up();
          alone.write(row_of(x_, row_), 0, out);
        }
      }
    });
    settled_.reset();
  }

  const RowSetting& setting_;
  const RowsIn& x_;
  const RowsOut& y_;
  std::int64_t n_;
  NarrowBounds bounds_;
  double error_;            // where the spread is 1
  double center_ = 0;       // of the rows that are being done
  std::int64_t first_ = 0;  // of them
  std::int64_t rows_ = 0;   // their number
  std::int64_t row_ = 0;    // that is being written
  alignas(64) double sums_[kMostRows] = {};
  alignas(64) double squares_[kMostRows] = {};
  alignas(64) double shifts_[kMostRows];
  alignas(64) double rstds_[kMostRows];  // 0 where a row is not usable
  alignas(64) double spreads_[kMostRows];
  mutable std::int64_t settled_row_ = -1;
  mutable std::optional<RowNormalizer> settled_;
};

bool short_rows(const RowSetting& setting, const RowsIn& x, const RowsOut& y) {
  if (x.row_length > kChunk || x.byte_order != std::endian::native ||
      !setting.affine.is_within(kMostNarrowAffine)) {
    return false;
  }
  const auto run = [&]<class T>(T) {
    ShortRows<T, T>(setting, x, y).run();
    return true;
  };
  if (x.dtype == DType::float32 && y.dtype == DType::float32) return run(float{});
  if (x.dtype == DType::bfloat16 && y.dtype == DType::bfloat16) return run(BFloat16{});
  if constexpr (kHasFloat16) {
    if (x.dtype == DType::float16 && y.dtype == DType::float16) return run(Float16{});
  }
  return false;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
