// Many short rows at once by the narrow way (statistics.hpp).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "lnorm/kernel/row_normalizer.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// The sums of each of two vectors' lanes.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void store_sums(V a, V b, double* to) {
  to[0] = hn::GetLane(a);
  to[1] = hn::GetLane(b);
}
#else
template <class Tag, class Vector>
HWY_INLINE void store_sums_of_blocks(Tag tag, Vector v, double* to) {
  if constexpr (hn::MaxLanes(tag) == 2) {
    hn::StoreU(v, tag, to);
  } else {
    const hn::Half<Tag> half;
    store_sums_of_blocks(half, hn::LowerHalf(half, v) + hn::UpperHalf(half, v), to);
  }
}
HWY_INLINE void store_sums(V a, V b, double* to) {
  const V pairs = hn::InterleaveLower(kDoubles, a, b) + hn::InterleaveUpper(kDoubles, a, b);
  store_sums_of_blocks(kDoubles, pairs, to);
}
#endif

// 1 / sqrt(v) within 2.1 u, for v whose float is normal: two steps by Newton's method from that of floats, which divide
// and take roots several times as fast as doubles.
HWY_INLINE V reciprocal_root(V v) {
  V r = hn::PromoteTo(kDoubles, hn::Div(hn::Set(F(), 1.0F), hn::Sqrt(to_floats(v))));
  for (int step = 0; step < 2; ++step) {
    r = hn::MulAdd(r * splat(0.5), hn::NegMulAdd(v * r, r, splat(1)), r);
  }
  return r;
}

// As narrow_statistics() finds them, with a row in every lane.
struct NarrowRows {
  V shift;
  V rstd;  // 0 where a row is not usable

  HWY_INLINE NarrowRows(V sum, V squares, std::int64_t n, const Formula& formula)
      : shift(formula.rms ? hn::Zero(kDoubles) : sum * splat(1 / static_cast<double>(n))) {
    const V correction = shift * sum;
    const V centered = squares - correction;
    const V variance = centered * splat(1 / static_cast<double>(n - formula.ddof));
    const V eps = splat(formula.eps);
    const bool on_variance = formula.eps_on == EpsOn::variance;
    const V square = variance + eps;
    const auto known = hn::Le(correction, centered);
    if (HWY_LIKELY(on_variance && hn::AllTrue(kDoubles, is_within(square, 0x1p-100, 0x1p100)))) {
      rstd = hn::IfThenElseZero(known, reciprocal_root(square));
      return;
    }
    const V s = on_variance ? hn::Sqrt(square) : hn::Sqrt(variance) + eps;
    const auto usable = hn::And(known, is_within(s, kMinDivisor, kMaxDivisor));
    rstd = hn::IfThenElseZero(usable, hn::Div(splat(1), s));
  }

  HWY_INLINE V product() const { return hn::Zero(kDoubles) - shift * rstd; }
};

// Normalizes row r by itself.
inline void normalize_alone(const RowSetting& setting, const RowsIn& x, const RowsOut& y,
                            std::int64_t r) {
  const RowsIn row = row_of(x, r);
  RowNormalizer alone(setting, sample_of(row), [&](const auto& see) { see(row); });
  alone.sum_up();
  alone.write(row, 0, row_of(y, x.row_length, r));
}

// Rows of one chunk at most. What is long in one row (a chain of additions, a division, a root) the machine can do
// for many rows at once, if these follow each other: so every step is taken for some rows before the next one is.
template <class Out>
class ShortRows final : public Resolver {
 public:
  ShortRows(const RowSetting& setting, const RowsIn& x, const RowsOut& y)
      : setting_(setting),
        x_(x),
        y_(y),
        n_(x.row_length),
        item_(static_cast<std::int64_t>(item_size(x.dtype))),
        bounds_(n_, kLanes),
        error_(bounds_.offset(1) + bounds_.slope() * bounds_.reach(1)) {}

  void run() {
    const std::int64_t rows_at_once = std::clamp<std::int64_t>(kElements / n_, 1, kMaxRows);
    const bool has_center = !setting_.formula.rms;
    if (has_center) center_ = sample_of(row_of(x_, 0)).center;
    with_terms(setting_.affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
      for (first_ = 0; first_ < x_.rows; first_ += rows_at_once) {
        rows_ = std::min(rows_at_once, x_.rows - first_);
        decode_row({x_.data + first_ * n_ * item_, x_.dtype, x_.byte_order, 1, rows_ * n_}, center_,
                   d_, 0);
        sum_rows();
        find_statistics();
        write_rows<has_weight(), has_bias()>();
        // The next rows are about where these are. A usable row that is near 0 needs no center.
        const double next = center_ + shifts_[rows_ - 1];
        const double rstd = rstds_[rows_ - 1];
        const bool is_near_zero = rstd > 0 && std::fabs(next) * rstd <= 0.7;
        if (has_center && std::isfinite(next)) center_ = is_near_zero ? 0 : next;
      }
    });
  }

  // Of the row that is being written.
  double resolve(std::int64_t index, Number x) const override {
    if (!resolved_) {
      const std::int64_t r = row_ - first_;
      resolved_.emplace(
          setting_, sample_of(row_of(x_, row_)), [this](const auto& see) { see(row_of(x_, row_)); },
          NarrowStatistics{center_, shifts_[r], rstds_[r], bounds_.offset(spreads_[r]),
                           bounds_.slope(), bounds_.reach(spreads_[r])});
    }
    return resolved_->resolve(index, x);
  }

 private:
  static constexpr std::int64_t kElements = 2 * kChunk;  // fit the first-level cache
  static constexpr std::int64_t kMaxRows = 16;           // at once

  struct DecodedRow : Decoded {
    const std::byte* next;
    std::int64_t item;

    HWY_INLINE void read_ahead(std::int64_t i) const { prefetch(next + i * item, kLanes * item); }
  };

  void sum_rows() {
    for (std::int64_t r = 0; r < rows_; ++r) {
      NarrowLanes lanes;
      lanes.clear();
      lanes.add(Decoded{d_ + r * n_}, n_);
      store_sums(lanes.sums.fold(), lanes.squares.fold(), sums_ + 2 * r);
    }
  }

  void find_statistics() {
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      V sum;
      V squares;
      hn::LoadInterleaved2(kDoubles, sums_ + 2 * r, sum, squares);
      const NarrowRows rows(sum, squares, n_, setting_.formula);
      hn::Store(rows.shift, kDoubles, shifts_ + r);
      hn::Store(rows.rstd, kDoubles, rstds_ + r);
      hn::Store(rows.product(), kDoubles, products_ + r);
      const V mean_square = squares * splat(1 / static_cast<double>(n_));
      hn::Store(rows.rstd * hn::Sqrt(mean_square), kDoubles, spreads_ + r);
    }
  }

  template <bool has_weight, bool has_bias>
  void write_rows() {
    const TermsAt terms(setting_.affine, 0);
    const std::int64_t bytes = n_ * item_;
    for (std::int64_t r = 0; r < rows_; ++r) {
      row_ = first_ + r;
      // While results are written, the elements of as many rows further on are read.
      const DecodedRow d{{d_ + r * n_}, x_.data + (row_ + rows_) * bytes, item_};
      for (std::int64_t i = n_ - n_ % kLanes; i < n_; i += kLanes) d.read_ahead(i);
      std::byte* const out = y_.data + row_ * n_ * kSize<Out>;
      if (!(rstds_[r] > 0)) {
        normalize_alone(setting_, x_, y_, row_);
        continue;
      }
      const NarrowWriter<Out, has_weight, has_bias> writer(rstds_[r], products_[r],
                                                           error_ * spreads_[r], setting_.affine);
      const auto resolve_element = [this](std::int64_t i, std::byte* to) {
        PartResolver{*this, row_of(x_, row_), 0, y_.dtype}(i, to);
      };
      writer.write(d, n_, terms, out, y_.non_temporal, resolve_element);
      if (resolved_) resolved_.reset();
      for (const AffineStep& step : setting_.affine.steps()) step_row<Out>(step, out, n_, 0);
    }
  }

  const RowSetting& setting_;
  const RowsIn& x_;
  const RowsOut& y_;
  std::int64_t n_;
  std::int64_t item_;  // bytes of an element
  NarrowBounds bounds_;
  double error_;                                   // where the spread is 1
  double center_ = 0;                              // of the rows that are being done
  std::int64_t first_ = 0;                         // of them
  std::int64_t rows_ = 0;                          // their number
  std::int64_t row_ = 0;                           // that is being written
  alignas(64) double d_[kElements + kLanes] = {};  // x - center
  alignas(64) double sums_[2 * kMaxRows] = {};     // of d, and of d^2
  alignas(64) double shifts_[kMaxRows];
  alignas(64) double rstds_[kMaxRows];     // 0 where a row is not usable
  alignas(64) double products_[kMaxRows];  // -shift * rstd
  alignas(64) double spreads_[kMaxRows];
  mutable std::optional<RowNormalizer> resolved_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
