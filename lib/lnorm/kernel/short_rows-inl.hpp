// Many short rows at once: what all ways of them share, and rows of up to a chunk in doubles (statistics.hpp).

#if defined(LNORM_KERNEL_SHORT_ROWS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_SHORT_ROWS_INL_HPP_
#undef LNORM_KERNEL_SHORT_ROWS_INL_HPP_
#else
#define LNORM_KERNEL_SHORT_ROWS_INL_HPP_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "lnorm/kernel/affine_steps-inl.hpp"
#include "lnorm/kernel/doubles-inl.hpp"
#include "lnorm/kernel/row_normalizer.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// Rows of one length, some at a time.
class ShortRows {
 protected:
  ShortRows(const RowSetting& setting, const RowsIn& x, const RowsOut& y)
      : setting_(setting), x_(x), y_(y), n_(x.row_length) {}

  // Calls use(has_weight, has_bias) with some rows at hand, up to so many, after another.
  template <class Use>
  HWY_INLINE void for_each_block(std::int64_t at_once, Use use) {
    with_terms(setting_.affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
      for (first_ = 0; first_ < x_.rows; first_ += at_once) {
        rows_ = std::min(at_once, x_.rows - first_);
        use(has_weight, has_bias);
      }
    });
  }

  // Row r of those at hand.
  RowsIn row(std::int64_t r) const { return row_of(x_, first_ + r); }
  template <class Out>
  HWY_INLINE std::byte* out(std::int64_t r) const {
    return y_.data + (first_ + r) * n_ * kSize<Out>;
  }

  // The elements of the rows at hand.
  RowsIn elements() const {
    RowsIn all = row(0);
    all.row_length = rows_ * n_;
    return all;
  }

  // What is read of weight and bias for row r.
  RowSetting setting_of(std::int64_t r) const { return setting_.of_row(x_.first_row + first_ + r); }

  void normalize_alone(std::int64_t r) const {
    RowNormalizer alone(setting_of(r), sample_of(row(r)),
                        [row = row(r)](const auto& see) { see(row); });
    alone.sum_up();
    alone.write(row(r), 0, row_of(y_, n_, first_ + r));
  }

  const RowSetting& setting_;
  const RowsIn& x_;
  const RowsOut& y_;
  const std::int64_t n_;
  std::int64_t first_ = 0;  // of the rows at hand
  std::int64_t rows_ = 0;   // their number
};

// 1 / sqrt(v) within 2.1 u, for v whose float is normal: two steps by Newton's method from that of floats, which divide
// and take roots several times as fast as doubles.
HWY_INLINE V reciprocal_root(V v) {
  V r = hn::PromoteTo(kDoubles, hn::Div(hn::Set(F(), 1.0F), hn::Sqrt(to_floats(v))));
  for (int step = 0; step < 2; ++step) {
    r = hn::MulAdd(r * splat(0.5), hn::NegMulAdd(v * r, r, splat(1)), r);
  }
  return r;
}

// What double_statistics() finds, with a row in every lane.
struct DoubleRows {
  V shift;
  V rstd;  // 0 where a row is not usable

  HWY_INLINE DoubleRows(V sum, V squares, std::int64_t n, const Formula& formula)
      : shift(formula.has_mean() ? sum * splat(1 / static_cast<double>(n)) : hn::Zero(kDoubles)) {
    const V centered = squares_about_mean(squares, sum, shift);
    const V variance = centered * splat(1 / static_cast<double>(formula.freedom(n)));
    const V square = variance + splat(formula.eps);
    const auto known = hn::Le(shift * sum, centered);
    if (HWY_LIKELY(formula.eps_on == EpsOn::variance &&
                   hn::AllTrue(kDoubles, is_within(square, 0x1p-100, 0x1p100)))) {
      rstd = hn::IfThenElseZero(known, reciprocal_root(square));
      return;
    }
    const V s = Divisors<V>(variance, formula).s;
    const auto usable = hn::And(known, is_within(s, kMinDivisor, kMaxDivisor));
    rstd = hn::IfThenElseZero(usable, hn::Div(splat(1), s));
  }

  HWY_INLINE V xhat_at_center() const { return negated(shift * rstd); }
};

// The statistics of rows in doubles.
template <std::int64_t kMaxRows>
class ShortDoubleRows : protected ShortRows {
 protected:
  // lanes: of sums.
  ShortDoubleRows(const RowSetting& setting, const RowsIn& x, const RowsOut& y, std::int64_t lanes)
      : ShortRows(setting, x, y),
        bounds_(n_, lanes, !setting.formula.has_mean()),
        relative_(!setting.formula.has_mean() && setting.affine.bias().empty() ? bounds_.slope()
                                                                               : 0),
        error_(relative_ > 0 ? 0 : bounds_.offset(1) + bounds_.slope() * bounds_.reach(1)) {}

  HWY_INLINE void put(std::int64_t r, const DoubleRows& rows, V spread) {
    hn::Store(rows.shift, kDoubles, shifts_ + r);
    hn::Store(rows.rstd, kDoubles, rstds_ + r);
    hn::Store(spread, kDoubles, spreads_ + r);
  }

  // The statistics of row r about its center; rstd is 0 where they are not usable.
  DoubleStatistics statistics_of(std::int64_t r, double center) const {
    return {center,          shifts_[r],
            rstds_[r],       bounds_.offset(spreads_[r]),
            bounds_.slope(), bounds_.reach(spreads_[r])};
  }

  // Decides element i of that row: by doubles, or else by the resolver, which is made then.
  double resolve_by(std::optional<RowNormalizer>& resolver, std::int64_t r, double center,
                    std::int64_t i, Number x) const {
    const DoubleStatistics statistics = statistics_of(r, center);
    if (!resolver) {
      const Affine& affine = setting_.affine;
      const AffineLayout& layout = affine.layout();
      const std::int64_t number = layout.number(layout.first(x_.first_row + first_ + r), i);
      const Bracket known =
          RowNormalizer::in_doubles(statistics, x.high, affine.weight().high_or(1, number),
                                    affine.bias().high_or(0, number), {1, setting_.out});
      if (known.is_decided()) return known.least;
      resolver.emplace(
          setting_of(r), sample_of(row(r)), [row = row(r)](const auto& see) { see(row); },
          statistics);
    }
    return resolver->resolve(i, x);
  }

  DoubleBounds bounds_;
  double relative_;  // the error of a row is relative, or else this:
  double error_;     // where the spread is 1
  alignas(64) double shifts_[kMaxRows];
  alignas(64) double rstds_[kMaxRows];  // 0 where a row is not usable
  alignas(64) double spreads_[kMaxRows];
};

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

// Rows of one chunk at most. What is long in one row (a chain of additions, a division, a root) the machine can do
// for many rows at once, if these follow each other: so every step is taken for some rows before the next one is.
constexpr std::int64_t kMaxChunkRows = 16;  // at once

// Element: double, or float for outputs of 16 and 8 bits.
template <class Out, class Element>
class ChunkRows final : public Resolver, ShortDoubleRows<kMaxChunkRows> {
 public:
  ChunkRows(const RowSetting& setting, const RowsIn& x, const RowsOut& y)
      : ShortDoubleRows(setting, x, y, kLanes),
        item_(static_cast<std::int64_t>(item_size(x.dtype))) {}

  void run() {
    const bool has_center = setting_.formula.has_mean();
    if (has_center) center_ = sample_of(row_of(x_, 0)).center;
    const std::int64_t at_once = std::clamp<std::int64_t>(kElements / n_, 1, kMaxChunkRows);
    for_each_block(at_once, [&](auto has_weight, auto has_bias) HWY_ATTR {
      if constexpr (kInFloats) {
        decode_floats(elements(), elements_, 0);
      } else {
        decode_row(elements(), center_, elements_, 0);
      }
      sum_rows();
      find_statistics();
      if constexpr (kInFloats) {
        write_in_floats();
      } else if (setting_.affine.layout().repeat > 1) {
        write_rows<has_weight(), has_bias(), true>();
      } else {
        write_rows<has_weight(), has_bias(), false>();
      }
      // The next rows are about where these are. A usable row that is near 0 needs no center.
      const double next = center_ + shifts_[rows_ - 1];
      const double rstd = rstds_[rows_ - 1];
      const bool is_near_zero = rstd > 0 && std::fabs(next) * rstd <= 0.7;
      if (has_center && std::isfinite(next)) center_ = is_near_zero ? 0 : next;
    });
  }

  // Decides an element of the row that is being written.
  double resolve(std::int64_t index, Number x) const override {
    return resolve_by(resolver_, row_, center_, index, x);
  }

 private:
  static constexpr bool kInFloats = std::is_same_v<Element, float>;
  static constexpr std::int64_t kElements = 2 * kChunk;  // fit the first-level cache
  static constexpr std::int64_t kGroup = kVectors * (kInFloats ? kFloats : kWidth);

  // This and write_rows stay out of line. In one function the compiler keeps sums and factors in memory.
  HWY_NOINLINE void sum_rows() {
    for (std::int64_t r = 0; r < rows_; ++r) {
      DoubleLanes lanes;
      lanes.clear();
      const auto* const row = reinterpret_cast<const std::byte*>(elements_ + r * n_);
      const auto add = [&](const auto& d) HWY_ATTR { add_to<false>(lanes, d, n_); };
      // Doubles are less the center already.
      with_encoded<Element>(row, kInFloats ? center_ : 0, 0, add);
      store_sums(lanes.sums.fold(), lanes.squares.fold(), sums_ + 2 * r);
    }
  }

  void find_statistics() {
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      V sum;
      V squares;
      hn::LoadInterleaved2(kDoubles, sums_ + 2 * r, sum, squares);
      const DoubleRows rows(sum, squares, n_, setting_.formula);
      hn::Store(rows.xhat_at_center(), kDoubles, xhats_at_center_ + r);
      const V mean_square = squares * splat(1 / static_cast<double>(n_));
      put(r, rows, rows.rstd * hn::Sqrt(mean_square));
    }
    if constexpr (kInFloats) {
      for (std::int64_t r = 0; r < rows_; ++r) {
        floats_[r] = FloatStatistics(statistics_of(r, center_), setting_.affine);
      }
    }
  }

  // Where the row lies that is read while row r is written, as many rows further on. Its last elements, which are no whole group,
  // are read now.
  const std::byte* begin_next(std::int64_t r) const {
    const std::byte* const next = x_.data + (first_ + r + rows_) * n_ * item_;
    prefetch(next + (n_ - n_ % kGroup) * item_, n_ % kGroup * item_);
    return next;
  }

  std::int64_t first_number() const {
    return setting_.affine.layout().first(x_.first_row + first_ + row_);
  }

  void write_in_floats() {
    for (row_ = 0; row_ < rows_; ++row_) {
      const FloatStatistics& s = floats_[row_];
      if (!s.are_usable) {
        normalize_alone(row_);
        continue;
      }
      const FloatPart part{{elements_ + row_ * n_, begin_next(row_), item_}, n_, 0, first_number()};
      RowsOut y = y_;
      y.data = out<Out>(row_);
      write_floats<Out>(part, s, setting_.affine, y, *this);
      finish_row(part.number);
    }
  }

  struct DecodedRow : Decoded {
    const std::byte* next;
    std::int64_t item;

    HWY_INLINE void read_ahead(std::int64_t i) const { prefetch(next + i * item, kLanes * item); }
  };

  // repeats: all elements of a row have one number of weight and bias.
  template <bool has_weight, bool has_bias, bool repeats>
  HWY_NOINLINE void write_rows() {
    for (row_ = 0; row_ < rows_; ++row_) {
      const DecodedRow d{{elements_ + row_ * n_}, begin_next(row_), item_};
      if (!(rstds_[row_] > 0)) {
        normalize_alone(row_);
        continue;
      }
      const std::int64_t number = first_number();
      const TermsAt terms(setting_.affine, number);
      const DoubleWriter<Out, has_weight, has_bias, repeats> writer(
          rstds_[row_], xhats_at_center_[row_], error_ * spreads_[row_], relative_,
          setting_.affine);
      const auto resolve_element = [this](std::int64_t i, std::byte* result) {
        PartResolver{*this, row(row_), 0, y_.dtype}(i, result);
      };
      writer.write(d, n_, terms, out<Out>(row_), y_.non_temporal, resolve_element);
      finish_row(number);
    }
  }

  void finish_row(std::int64_t number) {
    if (resolver_) resolver_.reset();
    if constexpr (kSize < Out >> 1) {
      for (const AffineStep& step : setting_.affine.steps()) {
        step_row<Out>(step, out<Out>(row_), n_, number);
      }
    }
  }

  std::int64_t item_;                                      // bytes of an element
  double center_ = 0;                                      // of the rows at hand
  std::int64_t row_ = 0;                                   // that is being written
  alignas(64) Element elements_[kElements + kLanes] = {};  // double: x - center; float: x
  alignas(64) double sums_[2 * kMaxChunkRows] = {};        // of d, and of d^2
  alignas(64) double xhats_at_center_[kMaxChunkRows];
  FloatStatistics floats_[kInFloats ? kMaxChunkRows : 1];
  mutable std::optional<RowNormalizer> resolver_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
