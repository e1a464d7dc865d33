// Rows of a few elements by the narrow way (statistics.hpp), a vector of rows at a time.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "lnorm/kernel/row_normalizer.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// Every row is about its own mean: that of few elements is often far from 0. One that is not usable is normalized by itself.
template <class Out>
class TinyRows {
 public:
  static constexpr std::int64_t kMaxElements = 16;  // of a row

  TinyRows(const RowSetting& setting, const RowsIn& x, const RowsOut& y)
      : setting_(setting),
        x_(x),
        y_(y),
        n_(x.row_length),
        bounds_(n_, 1),
        error_(bounds_.offset(1) + bounds_.slope() * bounds_.reach(1)) {}

  void run() {
    const RowsIn all{x_.data, x_.dtype, x_.byte_order, 1, x_.rows * n_};
    const std::int64_t rows_at_once = std::min(kMaxRows, (kChunk - kWidth) / n_ / kWidth * kWidth);
    with_terms(setting_.affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
      for (first_ = 0; first_ < x_.rows; first_ += rows_at_once) {
        rows_ = std::min(rows_at_once, x_.rows - first_);
        const RowsIn part = part_of(all, first_ * n_, rows_ * n_);
        decode_row(part, 0, elements_, ahead_of(part));
        sum_rows();
        find_statistics();
        find_results<has_weight(), has_bias()>();
        store_rows();
        for (const std::int64_t r : alone_) normalize_alone(setting_, x_, y_, r);
        alone_.clear();
      }
    });
  }

 private:
  static constexpr std::int64_t kMaxRows = 128;  // at once
  static constexpr std::int64_t kRoom = 64;      // for what whole vectors take in besides

  // The vector of elements j of row r and those after it.
  HWY_INLINE double* column(std::int64_t r, std::int64_t j) {
    return columns_ + r * n_ + j * kWidth;
  }
  HWY_INLINE V load_column(std::int64_t r, std::int64_t j) {
    return hn::Load(kDoubles, column(r, j));
  }

  // Each step is taken for all rows before the next one is, so that divisions and roots overlap.
  void sum_rows() {
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      to_columns(elements_ + r * n_, n_, column(r, 0));
      V center = hn::Zero(kDoubles);
      if (!setting_.formula.rms) {
        for (std::int64_t j = 0; j < n_; ++j) center = center + load_column(r, j);
        // Of equal elements both quotients are exact.
        const auto n = static_cast<double>(n_);
        const bool is_power_of_two = (n_ & (n_ - 1)) == 0;
        center = is_power_of_two ? center * splat(1 / n) : hn::Div(center, splat(n));
      }
      V sum = hn::Zero(kDoubles);
      V squares = sum;
      V most = sum;
      for (std::int64_t j = 0; j < n_; ++j) {
        const V d = load_column(r, j) - center;
        sum = sum + d;
        squares = hn::MulAdd(d, d, squares);
        most = hn::Max(most, hn::Abs(d));
      }
      hn::Store(center, kDoubles, centers_ + r);
      hn::Store(sum, kDoubles, shifts_ + r);
      hn::Store(squares, kDoubles, rstds_ + r);
      hn::Store(most, kDoubles, spreads_ + r);
    }
  }

  // From sums, squares and the largest |d|, which is no less than the root of the mean d^2.
  void find_statistics() {
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      const NarrowRows rows(hn::Load(kDoubles, shifts_ + r), hn::Load(kDoubles, rstds_ + r), n_,
                            setting_.formula);
      const V spread = rows.rstd * hn::Load(kDoubles, spreads_ + r);
      const auto usable = hn::Gt(rows.rstd, hn::Zero(kDoubles));
      hn::Store(rows.shift, kDoubles, shifts_ + r);
      hn::Store(rows.rstd, kDoubles, rstds_ + r);
      hn::Store(hn::IfThenElseZero(usable, spread), kDoubles, spreads_ + r);
    }
  }

  template <bool has_weight, bool has_bias>
  void find_results() {
    const TermsAt terms(setting_.affine, 0);
    const auto same = [](const double* term) HWY_ATTR { return splat(*term); };
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      const V center = hn::Load(kDoubles, centers_ + r);
      const V rstd = hn::Load(kDoubles, rstds_ + r);
      const V product = hn::Zero(kDoubles) - hn::Load(kDoubles, shifts_ + r) * rstd;
      const V error = hn::Load(kDoubles, spreads_ + r) * splat(error_);
      const double most =
          std::is_same_v<Out, float> ? 0 : hn::GetLane(hn::MaxOfLanes(kDoubles, error));
      const NarrowWriter<Out, has_weight, has_bias> writer(rstd, product, error, most,
                                                           setting_.affine);
      auto any_open = hn::Zero(kWords);
      for (std::int64_t j = 0; j < n_; ++j) {
        const Results results = writer.results(load_column(r, j) - center, j, terms, same);
        hn::Store(results.y, F(), y_columns_ + j * kWidth);
        hn::Store(results.open, kWords, open_ + j * kWidth);
        any_open = hn::Or(any_open, results.open);
      }
      to_rows(y_columns_, n_, results_ + r * n_);
      const bool all_usable = hn::AllTrue(kDoubles, hn::Gt(rstd, hn::Zero(kDoubles)));
      if (HWY_UNLIKELY(!all_usable || !is_zero(any_open))) resolve(r);
    }
  }

  // The vector of rows from r on.
  HWY_NOINLINE void resolve(std::int64_t r) {
    for (std::int64_t k = 0; k < std::min(kWidth, rows_ - r); ++k) {
      if (rstds_[r + k] > 0) {
        resolve_row(r + k, open_ + k);
      } else {
        alone_.push_back(first_ + r + k);
      }
    }
  }

  // open: of the row's element 0; that of the next element is kWidth further on.
  void resolve_row(std::int64_t r, const std::uint32_t* open) {
    const RowsIn row = row_of(x_, first_ + r);
    std::optional<RowNormalizer> resolver;
    for (std::int64_t j = 0; j < n_; ++j) {
      if (open[j * kWidth] == 0) continue;
      if (!resolver) {
        resolver.emplace(
            setting_, sample_of(row), [&](const auto& see) { see(row); },
            NarrowStatistics{centers_[r], shifts_[r], rstds_[r], bounds_.offset(spreads_[r]),
                             bounds_.slope(), bounds_.reach(spreads_[r])});
      }
      results_[r * n_ + j] = static_cast<float>(resolver->resolve(j, element_of(row, j)));
    }
  }

  void store_rows() const {
    const std::int64_t n = rows_ * n_;
    std::byte* const y = y_.data + first_ * n_ * kSize<Out>;
    for (std::int64_t i = 0; i < n; i += kWidth) {
      const auto floats = hn::Load(F(), results_ + i);
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

  alignas(64) double elements_[kChunk + kRoom] = {};
  alignas(64) double columns_[kChunk + kRoom] = {};
  alignas(64) float y_columns_[kMaxElements * kWidth + kRoom] = {};  // of a vector of rows
  alignas(64) float results_[kChunk + kRoom];
  alignas(64) double centers_[kMaxRows];
  alignas(64) double shifts_[kMaxRows];   // first sums
  alignas(64) double rstds_[kMaxRows];    // first squares; 0 where a row is not usable
  alignas(64) double spreads_[kMaxRows];  // first the largest |d|
  alignas(64) std::uint32_t open_[kMaxElements * kWidth];
  std::vector<std::int64_t> alone_;
  const RowSetting& setting_;
  const RowsIn& x_;
  const RowsOut& y_;
  std::int64_t n_;
  NarrowBounds bounds_;
  double error_;            // where the spread is 1
  std::int64_t first_ = 0;  // of the rows that are being done
  std::int64_t rows_ = 0;   // their number
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
