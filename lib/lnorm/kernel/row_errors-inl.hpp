// What a check asks of every row: see row_errors.hpp.

#if defined(LNORM_KERNEL_ROW_ERRORS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_ROW_ERRORS_INL_HPP_
#undef LNORM_KERNEL_ROW_ERRORS_INL_HPP_
#else
#define LNORM_KERNEL_ROW_ERRORS_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>

#include "lnorm/kernel/row_errors.hpp"
#include "lnorm/kernel/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

void decode_all(const RowsIn& row, double* to) {
  if (!has_low(row.dtype)) return decode_row(row, 0, to, 0);
  Chunk chunk;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    std::copy_n(chunk.high, load_chunk(row, start, chunk), to + start);
  }
}

// The sum over a row of what term says of each vector.
template <class Term>
HWY_INLINE double sum_of_terms(const double* x, std::int64_t count, const Term& term) {
  Lanes sums;
  sums.clear();
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      sums.v[v] = sums.v[v] + term(hn::LoadU(kDoubles, x + i + v * kWidth));
    }
  }
  double total = sum_of_lanes(sums.fold());
  for (; i < count; ++i) {
    total += hn::GetLane(term(splat(x[i])));
  }
  return total;
}

RowSizes row_sizes(const double* x, std::int64_t count, bool about_zero) {
  const auto n = static_cast<double>(count);
  V max = hn::Zero(kDoubles);
  RowSizes sizes;
  const double sum = sum_of_terms(x, count, [](V v) HWY_ATTR { return v; });
  sizes.mean_abs = sum_of_terms(x, count,
                                [&](V v) HWY_ATTR {
                                  const V size = hn::Abs(v);
                                  max = hn::Max(max, size);
                                  return size;
                                }) /
                   n;
  sizes.max_abs = hn::GetLane(hn::MaxOfLanes(kDoubles, max));
  sizes.mean = about_zero ? 0 : sum / n;
  const V center = splat(sizes.mean);
  sizes.squares = sum_of_terms(x, count, [&](V v) HWY_ATTR {
    const V d = v - center;
    return d * d;
  });
  if (about_zero) return sizes;
  const double rest = sum_of_terms(x, count, [&](V v) HWY_ATTR { return v - center; });
  sizes.squares -= rest * (rest / n);
  return sizes;
}

// One row's numbers in vectors.
template <bool is_exact_known>
class Screen {
 public:
  HWY_INLINE Screen(const RowLine& line, double limit, const LastRounding& rounding)
      : center_(splat(line.center)),
        inverse_(splat(line.inverse)),
        base_(splat(line.center_error * line.inverse_high + line.smallest)),
        by_size_(splat(line.unit * (line.inverse_high + line.inverse) +
                       (line.inverse_high - line.inverse))),
        by_x_(splat(line.x_unit * line.inverse_high)),
        affine_unit_(splat(line.affine_unit)),
        smallest_(splat(line.smallest)),
        limit_(splat(limit)),
        half_unit_(splat(is_exact_known ? 2 * rounding.half_unit : rounding.half_unit)),
        smallest_half_(
            splat(is_exact_known ? 2 * rounding.smallest_half : rounding.smallest_half)) {
    excess_ = not_finite_ = ww_ = wp_ = pp_ = ew_ = ep_ = equal_ = hn::Zero(kDoubles);
  }

  HWY_INLINE void add(V x, V actual, V exact, V weight, V bias) {
    const V d = x - center_;
    const V product = d * inverse_ * weight;
    const V y = is_exact_known ? exact : product + bias;
    const V off = actual - y;
    const auto is_equal = hn::Eq(actual, exact);
    const V counted = hn::IfThenZeroElse(is_equal, hn::Abs(off));
    const V affine = hn::MulAdd(affine_unit_, hn::Abs(product) + hn::Abs(bias), smallest_);
    const V xhat_error = hn::MulAdd(by_x_, hn::Abs(x), hn::MulAdd(by_size_, hn::Abs(d), base_));
    const V error = hn::MulAdd(hn::Abs(weight), xhat_error, affine);
    const V power = hn::And(hn::Abs(y) + error, exponents());
    const V all = error + hn::Max(power * half_unit_, smallest_half_);
    excess_ = hn::Max(excess_, hn::NegMulAdd(limit_, all, counted));
    equal_ = equal_ + hn::IfThenElseZero(is_equal, splat(1.0));
    not_finite_ = not_finite_ + ((actual - actual) + (exact - exact));
    ww_ = hn::MulAdd(weight, weight, ww_);
    wp_ = hn::MulAdd(weight, product, wp_);
    pp_ = hn::MulAdd(product, product, pp_);
    ew_ = hn::MulAdd(off, weight, ew_);
    ep_ = hn::MulAdd(off, product, ep_);
  }

  HWY_INLINE RowScreen result() const {
    return {.exceeds = hn::GetLane(hn::MaxOfLanes(kDoubles, excess_)) > 0,
            .is_finite = sum_of_lanes(not_finite_) == 0,
            .equal = static_cast<std::int64_t>(sum_of_lanes(equal_)),
            .ww = sum_of_lanes(ww_),
            .wp = sum_of_lanes(wp_),
            .pp = sum_of_lanes(pp_),
            .ew = sum_of_lanes(ew_),
            .ep = sum_of_lanes(ep_)};
  }

 private:
  static HWY_INLINE V exponents() {
    const hn::RebindToUnsigned<D> bits;
    return hn::BitCast(kDoubles, hn::Set(bits, std::uint64_t{0x7ff0'0000'0000'0000}));
  }

  V center_;
  V inverse_;
  V base_;
  V by_size_;
  V by_x_;
  V affine_unit_;
  V smallest_;
  V limit_;
  V half_unit_;
  V smallest_half_;
  V excess_;
  V not_finite_;
  V ww_;
  V wp_;
  V pp_;
  V ew_;
  V ep_;
  V equal_;
};

template <bool is_exact_known>
HWY_INLINE RowScreen screen(const RowLine& line, double limit, const LastRounding& rounding,
                            const ScreenedRow& row) {
  Screen<is_exact_known> sums(line, limit, rounding);
  std::int64_t i = 0;
  for (; i + kWidth <= row.count; i += kWidth) {
    sums.add(hn::LoadU(kDoubles, row.x + i), hn::LoadU(kDoubles, row.actual + i),
             hn::LoadU(kDoubles, row.exact + i), hn::LoadU(kDoubles, row.weight + i),
             hn::LoadU(kDoubles, row.bias + i));
  }
  RowScreen result;
  if (i < row.count) {
    // Elements that add nothing stand in for those that are not there.
    alignas(64) double rest[5][kWidth] = {};
    std::fill_n(rest[0], kWidth, line.center);
    const double* const from[] = {row.x, row.actual, row.exact, row.weight, row.bias};
    for (std::size_t k = 0; k < 5; ++k) std::copy(from[k] + i, from[k] + row.count, rest[k]);
    sums.add(hn::Load(kDoubles, rest[0]), hn::Load(kDoubles, rest[1]), hn::Load(kDoubles, rest[2]),
             hn::Load(kDoubles, rest[3]), hn::Load(kDoubles, rest[4]));
    result = sums.result();
    result.equal -= kWidth - (row.count - i);
    return result;
  }
  return sums.result();
}

RowScreen screen_row(const RowLine& line, double limit, const LastRounding& rounding,
                     const ScreenedRow& row) {
  return rounding.is_exact_known ? screen<true>(line, limit, rounding, row)
                                 : screen<false>(line, limit, rounding, row);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
