// Rows of a few elements by the narrow way (statistics.hpp), a vector of rows at a time.

#include <algorithm>
#include <cstdint>

#include "lnorm/kernel/row_normalizer.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

template <class Out>
class TinyRows {
 public:
  static constexpr std::int64_t kMostElements = 8;  // of a row

  TinyRows(const RowSetting& setting, const RowsIn& x, const RowsOut& y)
      : setting_(setting),
        x_(x),
        y_(y),
        n_(x.row_length),
        bounds_(n_, 1),
        error_(bounds_.offset(1) + bounds_.slope() * bounds_.reach(1)) {}

  void run() {
    const RowsIn elements{x_.data, x_.dtype, x_.byte_order, 1, x_.rows * n_};
    const std::int64_t rows_at_once = (kChunk - kWidth) / n_ / kWidth * kWidth;
    with_terms(setting_.affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
      for (first_ = 0; first_ < x_.rows; first_ += rows_at_once) {
        const std::int64_t rows = std::min(rows_at_once, x_.rows - first_);
        decode(part_of(elements, first_ * n_, rows * n_), 0, chunk_);
        std::int64_t alone = 0;
        for (std::int64_t r = 0; r < rows; r += kWidth) {
          write_vector<has_weight(), has_bias()>(r, std::min(kWidth, rows - r), alone);
        }
        store_rows(rows);
        for (std::int64_t k = 0; k < alone; ++k) normalize_alone(setting_, x_, y_, alone_[k]);
      }
    });
  }

 private:
  struct Statistics {
    V center;
    V shift;
    V rstd;
    V spread;  // rstd times the largest |d|, which is no less than the root of the mean d^2
  };

  HWY_INLINE V column(std::int64_t j) const { return hn::Load(kDoubles, columns_ + j * kWidth); }

  HWY_INLINE Statistics statistics() const {
    // Each row is about its own mean: that of few elements is often far from 0.
    V center = hn::Zero(kDoubles);
    if (!setting_.formula.rms) {
      for (std::int64_t j = 0; j < n_; ++j) center = center + column(j);
      // Not a product: of equal elements this is exact.
      center = hn::Div(center, splat(static_cast<double>(n_)));
    }
    V sum = hn::Zero(kDoubles);
    V squares = sum;
    V most = sum;
    for (std::int64_t j = 0; j < n_; ++j) {
      const V d = column(j) - center;
      sum = sum + d;
      squares = hn::MulAdd(d, d, squares);
      most = hn::Max(most, hn::Abs(d));
    }
    const NarrowRows rows(sum, squares, n_, setting_.formula);
    return {center, rows.shift, rows.rstd, rows.rstd * most};
  }

  // The count rows from r on. Those that are not usable go to alone_.
  template <bool has_weight, bool has_bias>
  HWY_INLINE void write_vector(std::int64_t r, std::int64_t count, std::int64_t& alone) {
    to_columns(chunk_.high + r * n_, n_, columns_);
    const Statistics s = statistics();
    const auto usable = hn::Gt(s.rstd, hn::Zero(kDoubles));
    const V error = hn::IfThenElseZero(usable, s.spread) * splat(error_);
    const double most =
        std::is_same_v<Out, float> ? 0 : hn::GetLane(hn::MaxOfLanes(kDoubles, error));
    const NarrowWriter<Out, has_weight, has_bias> writer(
        s.rstd, hn::Zero(kDoubles) - s.shift * s.rstd, error, most, setting_.affine);
    const TermsAt terms(setting_.affine, 0);
    const auto same = [](const double* term) HWY_ATTR { return splat(*term); };
    auto any_open = hn::Zero(kWords);
    for (std::int64_t j = 0; j < n_; ++j) {
      const Results results = writer.results(column(j) - s.center, j, terms, same);
      hn::Store(hn::PromoteTo(kDoubles, results.y), kDoubles, columns_ + j * kWidth);
      hn::Store(results.open, kWords, open_ + j * kWidth);
      any_open = hn::Or(any_open, results.open);
    }
    to_rows(columns_, n_, results_ + r * n_);
    if (HWY_LIKELY(hn::AllTrue(kDoubles, usable) && is_zero(any_open))) return;
    settle(s, r, count, alone);
  }

  HWY_NOINLINE void settle(const Statistics& s, std::int64_t r, std::int64_t count,
                           std::int64_t& alone) {
    alignas(64) double center[kWidth];
    alignas(64) double shift[kWidth];
    alignas(64) double rstd[kWidth];
    alignas(64) double spread[kWidth];
    hn::Store(s.center, kDoubles, center);
    hn::Store(s.shift, kDoubles, shift);
    hn::Store(s.rstd, kDoubles, rstd);
    hn::Store(s.spread, kDoubles, spread);
    for (std::int64_t k = 0; k < count; ++k) {
      if (!(rstd[k] > 0)) {
        alone_[alone++] = first_ + r + k;
        continue;
      }
      settle_row({center[k], shift[k], rstd[k], bounds_.offset(spread[k]), bounds_.slope(),
                  bounds_.reach(spread[k])},
                 r + k, open_ + k);
    }
  }

  // open: of the row's element 0; that of the next element is kWidth further on.
  void settle_row(const NarrowStatistics& s, std::int64_t r, const std::uint32_t* open) {
    const RowsIn row = row_of(x_, first_ + r);
    std::optional<RowNormalizer> settler;
    for (std::int64_t j = 0; j < n_; ++j) {
      if (open[j * kWidth] == 0) continue;
      if (!settler) {
        settler.emplace(
            setting_, sample_of(row), [&](const auto& see) { see(row); }, s);
      }
      results_[r * n_ + j] = settler->settle(j, element_of(row, j));
    }
  }

  void store_rows(std::int64_t rows) const {
    const std::int64_t n = rows * n_;
    std::byte* const y = y_.data + first_ * n_ * kSize<Out>;
    for (std::int64_t i = 0; i < n; i += kWidth) {
      const auto floats = to_floats(hn::Load(kDoubles, results_ + i));
      std::byte* const to = y + i * kSize<Out>;
      if (n - i >= kWidth) {
        store_results<Out, false>(floats, to);
      } else {
        alignas(64) std::byte rest[kWidth * kSize<Out>];
        store_results<Out, false>(floats, rest);
        std::memcpy(to, rest, static_cast<std::size_t>((n - i) * kSize<Out>));
      }
    }
  }

  const RowSetting& setting_;
  const RowsIn& x_;
  const RowsOut& y_;
  std::int64_t n_;
  NarrowBounds bounds_;
  double error_;            // where the spread is 1
  std::int64_t first_ = 0;  // of the rows that are being done
  Chunk chunk_{};
  alignas(64) double columns_[(kMostElements + kWidth) * kWidth];
  alignas(64) std::uint32_t open_[kMostElements * kWidth];
  alignas(64) double results_[kChunk + kWidth];  // floats
  std::int64_t alone_[kChunk];                   // rows
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
