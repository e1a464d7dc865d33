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
        is_tiny_(n_ <= kMostTiny && setting.affine.steps().empty()),
        bounds_(n_, is_tiny_ ? 1 : kLanes),
        error_(bounds_.offset(1) + bounds_.slope() * bounds_.reach(1)) {
    for (std::int64_t k = 0; k < kWidth; ++k) row_starts_[k] = k * n_;
  }

  void run() {
    const std::int64_t rows_at_once =
        is_tiny_ ? kMostTinyRows : std::clamp<std::int64_t>(kElements / n_, 1, kMostRows);
    const bool has_center = !setting_.formula.rms && !is_tiny_;
    if (has_center) center_ = sample_of(row_of(x_, 0)).center;
    with_terms(setting_.affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
      for (first_ = 0; first_ < x_.rows; first_ += rows_at_once) {
        rows_ = std::min(rows_at_once, x_.rows - first_);
        decode_as<T>(x_.data + first_ * n_ * kSize<T>, rows_ * n_, center_, d_, 0);
        is_tiny_ ? sum_tiny_rows() : sum_rows();
        find_statistics();
        is_tiny_ ? write_tiny_rows<has_weight(), has_bias()>()
                 : write_rows<has_weight(), has_bias()>();
        // The next rows are about where these are. A usable row that is near 0 needs no center.
        const double next = center_ + shifts_[rows_ - 1];
        const double rstd = rstds_[rows_ - 1];
        const bool is_near_zero = rstd > 0 && std::fabs(next) * rstd <= 0.7;
        if (has_center && std::isfinite(next)) center_ = is_near_zero ? 0 : next;
      }
    });
  }

  // Of the row that is being written.
  double settle(std::int64_t index, Number x) const override {
    if (!settled_) {
      const std::int64_t r = row_ - first_;
      settled_.emplace(setting_, sample_of(row_of(x_, row_)), reader(),
                       NarrowStatistics{is_tiny_ ? centers_[r] : center_, shifts_[r], rstds_[r],
                                        bounds_.offset(spreads_[r]), bounds_.slope(),
                                        bounds_.reach(spreads_[r])});
    }
    return settled_->settle(index, x);
  }

 private:
  static constexpr std::int64_t kElements = 2 * kChunk;  // fit the first-level cache
  static constexpr std::int64_t kMostRows = 16;          // at once
  static constexpr std::int64_t kMostTinyRows = 64;      // the same of tiny ones
  static constexpr std::int64_t kMostTiny = 8;           // elements of a tiny row

  struct DecodedRow : Decoded {
    const std::byte* next;

    HWY_INLINE void read_ahead(std::int64_t i) const {
      prefetch(next + i * kSize<T>, kLanes * kSize<T>);
    }
  };

  ReadRow reader() const {
    return [this](const auto& see) { see(row_of(x_, row_)); };
  }

  void sum_rows() {
    for (std::int64_t r = 0; r < rows_; ++r) {
      NarrowLanes lanes;
      lanes.clear();
      lanes.add(Decoded{d_ + r * n_}, n_);
      store_sums(lanes.sums.fold(), lanes.squares.fold(), sums_ + 2 * r);
    }
  }

  // Tiny rows go through a vector of rows at a time. This is element j of row r and of those after it.
  HWY_INLINE V column(std::int64_t r, std::int64_t j) const {
    const hn::RebindToSigned<D> integers;
    return hn::GatherIndex(kDoubles, d_ + r * n_ + j, hn::Load(integers, row_starts_));
  }

  void sum_tiny_rows() {
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      // Each row is about its own mean: that of few elements is often far from 0.
      V center = hn::Zero(kDoubles);
      if (!setting_.formula.rms) {
        for (std::int64_t j = 0; j < n_; ++j) center = center + column(r, j);
        center = hn::Div(center, splat(static_cast<double>(n_)));
      }
      hn::Store(center, kDoubles, centers_ + r);
      V sum = hn::Zero(kDoubles);
      V squares = sum;
      for (std::int64_t j = 0; j < n_; ++j) {
        const V d = column(r, j) - center;
        sum = sum + d;
        squares = hn::MulAdd(d, d, squares);
      }
      hn::StoreInterleaved2(sum, squares, kDoubles, sums_ + 2 * r);
    }
  }

  // As narrow_statistics() does, for a vector of rows.
  void find_statistics() {
    const Formula& formula = setting_.formula;
    const V n = splat(1 / static_cast<double>(n_));
    const V freedom = splat(1 / static_cast<double>(n_ - formula.ddof));
    const V eps = splat(formula.eps);
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      V sum;
      V squares;
      hn::LoadInterleaved2(kDoubles, sums_ + 2 * r, sum, squares);
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
      hn::Store(hn::Zero(kDoubles) - shift * rstd, kDoubles, products_ + r);
      hn::Store(rstd * hn::Sqrt(squares * n), kDoubles, spreads_ + r);
    }
  }

  template <bool has_weight, bool has_bias>
  void write_rows() {
    const TermsAt terms(setting_.affine, 0);
    const std::int64_t bytes = n_ * kSize<T>;
    for (std::int64_t r = 0; r < rows_; ++r) {
      row_ = first_ + r;
      // While results are written, the elements of as many rows further on are read.
      const DecodedRow d{{d_ + r * n_}, x_.data + (row_ + rows_) * bytes};
      for (std::int64_t i = n_ - n_ % kLanes; i < n_; i += kLanes) d.read_ahead(i);
      std::byte* const out = y_.data + row_ * n_ * kSize<Out>;
      if (rstds_[r] > 0) {
        const NarrowWriter<Out, has_weight, has_bias> writer(rstds_[r], products_[r],
                                                             error_ * spreads_[r], setting_.affine);
        const auto settle_element = [this](std::int64_t i, std::byte* to) {
          PartSettler{*this, row_of(x_, row_), 0, y_.dtype}(i, to);
        };
        writer.write(d, n_, terms, out, y_.past_caches, settle_element);
        if (settled_) settled_.reset();
        for (const AffineStep& step : setting_.affine.steps()) {
          step_row<Out>(step, out, n_, 0);
        }
      } else {
        write_alone();
      }
    }
  }

  void write_alone() const {
    RowNormalizer alone(setting_, sample_of(row_of(x_, row_)), reader());
    alone.sum_up();
    alone.write(row_of(x_, row_), 0, row_of(y_, n_, row_));
  }

  template <bool has_weight, bool has_bias>
  void write_tiny_rows() {
    const TermsAt terms(setting_.affine, 0);
    const auto same = [](const double* term) HWY_ATTR { return splat(*term); };
    alignas(64) std::byte columns[kMostTiny * kWidth * kSize<Out>];
    alignas(64) std::uint32_t open[kMostTiny * kWidth];
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      const V center = hn::Load(kDoubles, centers_ + r);
      const V rstd = hn::Load(kDoubles, rstds_ + r);
      const auto usable = hn::Gt(rstd, hn::Zero(kDoubles));
      const V error = hn::IfThenElseZero(usable, hn::Load(kDoubles, spreads_ + r)) * splat(error_);
      const double most = hn::GetLane(hn::MaxOfLanes(kDoubles, error));
      const NarrowWriter<Out, has_weight, has_bias> writer(rstd, hn::Load(kDoubles, products_ + r),
                                                           error, most, setting_.affine);
      auto any_open = hn::Zero(kWords);
      for (std::int64_t j = 0; j < n_; ++j) {
        const Results results = writer.results(column(r, j) - center, j, terms, same);
        store_results<Out, false>(results.y, columns + j * kWidth * kSize<Out>);
        hn::Store(results.open, kWords, open + j * kWidth);
        any_open = hn::Or(any_open, results.open);
      }
      const std::int64_t count = std::min(kWidth, rows_ - r);
      write_columns(columns, count, first_ + r);
      if (HWY_LIKELY(hn::AllTrue(kDoubles, usable) && is_zero(any_open))) continue;
      for (std::int64_t k = 0; k < count; ++k) settle_tiny_row(r + k, open + k);
    }
  }

  void write_columns(const std::byte* columns, std::int64_t rows, std::int64_t first) const {
    std::byte* to = y_.data + first * n_ * kSize<Out>;
    for (std::int64_t k = 0; k < rows; ++k) {
      for (std::int64_t j = 0; j < n_; ++j, to += kSize<Out>) {
        std::memcpy(to, columns + (j * kWidth + k) * kSize<Out>, sizeof(Out));
      }
    }
  }

  // open: of the row's element 0; that of the next element is kWidth further on.
  HWY_NOINLINE void settle_tiny_row(std::int64_t r, const std::uint32_t* open) {
    row_ = first_ + r;
    if (!(rstds_[r] > 0)) return write_alone();
    const PartSettler settle{*this, row_of(x_, row_), 0, y_.dtype};
    for (std::int64_t j = 0; j < n_; ++j) {
      if (open[j * kWidth] != 0) settle(j, y_.data + (row_ * n_ + j) * kSize<Out>);
    }
    if (settled_) settled_.reset();
  }

  const RowSetting& setting_;
  const RowsIn& x_;
  const RowsOut& y_;
  std::int64_t n_;
  bool is_tiny_;
  NarrowBounds bounds_;
  double error_;            // where the spread is 1
  double center_ = 0;       // of the rows that are being done; 0 of tiny ones, which have their own
  std::int64_t first_ = 0;  // of them
  std::int64_t rows_ = 0;   // their number
  std::int64_t row_ = 0;    // that is being written
  alignas(64) double d_[kElements + kLanes] = {};    // x - center
  alignas(64) double sums_[2 * kMostTinyRows] = {};  // of d, and of d^2
  alignas(64) double centers_[kMostTinyRows];        // of tiny rows
  alignas(64) double shifts_[kMostTinyRows];
  alignas(64) double rstds_[kMostTinyRows];     // 0 where a row is not usable
  alignas(64) double products_[kMostTinyRows];  // -shift * rstd
  alignas(64) double spreads_[kMostTinyRows];
  alignas(64) std::int64_t row_starts_[kWidth];  // in d_, from that of the first row of a vector
  mutable std::optional<RowNormalizer> settled_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
