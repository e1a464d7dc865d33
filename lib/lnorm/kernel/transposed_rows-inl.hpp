// Many short rows at once, one in every lane: of a few elements in doubles, and in double-doubles (statistics.hpp).

#if defined(LNORM_KERNEL_TRANSPOSED_ROWS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_TRANSPOSED_ROWS_INL_HPP_
#undef LNORM_KERNEL_TRANSPOSED_ROWS_INL_HPP_
#else
#define LNORM_KERNEL_TRANSPOSED_ROWS_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "lnorm/kernel/double_doubles-inl.hpp"
#include "lnorm/kernel/row_normalizer.hpp"
#include "lnorm/kernel/short_rows-inl.hpp"
#include "lnorm/kernel/simd-inl.hpp"
#include "lnorm/kernel/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

constexpr std::int64_t kMaxTinyRows = 128;  // at once

// Every row is about its own mean: that of few elements is often far from 0. One that is not usable is normalized by itself.
template <class Out>
class TinyRows : ShortDoubleRows<kMaxTinyRows> {
 public:
  static constexpr std::int64_t kMaxElements = 16;  // of a row

  TinyRows(const RowSetting& setting, const RowsIn& x, const RowsOut& y)
      : ShortDoubleRows(setting, x, y, 1) {}

  void run() {
    const std::int64_t at_once = std::min(kMaxTinyRows, (kChunk - kWidth) / n_ / kWidth * kWidth);
    for_each_block(at_once, [&](auto has_weight, auto has_bias) HWY_ATTR {
      decode_row(elements(), 0, elements_, ahead_of(x_));
      sum_rows();
      find_statistics();
      find_results<has_weight(), has_bias()>();
      store_rows();
      for (const std::int64_t r : alone_) normalize_alone(r);
      alone_.clear();
    });
  }

 private:
  static constexpr std::int64_t kRoom = 64;  // for what whole vectors take in besides

  // The vector of elements j of row r and those after it.
  HWY_INLINE double* column(std::int64_t r, std::int64_t j) {
    return columns_ + r * n_ + j * kWidth;
  }
  HWY_INLINE V load_column(std::int64_t r, std::int64_t j) {
    return hn::Load(kDoubles, column(r, j));
  }

  // Each step is taken for all rows before the next one is, so that divisions and roots overlap.
  void sum_rows() {
    const Count count(n_);
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      to_columns(elements_ + r * n_, n_, column(r, 0));
      V center = hn::Zero(kDoubles);
      if (setting_.formula.has_mean()) {
        for (std::int64_t j = 0; j < n_; ++j) center = center + load_column(r, j);
        center = quotient(center, count);  // exactly where all elements are equal
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

  // They come from sums, squares and the largest |d|, which is no less than the root of the mean
  // d^2.
  void find_statistics() {
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      const DoubleRows rows(hn::Load(kDoubles, shifts_ + r), hn::Load(kDoubles, rstds_ + r), n_,
                            setting_.formula);
      const V spread = rows.rstd * hn::Load(kDoubles, spreads_ + r);
      const auto usable = hn::Gt(rows.rstd, hn::Zero(kDoubles));
      put(r, rows, hn::IfThenElseZero(usable, spread));
    }
  }

  template <bool has_weight, bool has_bias>
  void find_results() {
    const TermsAt terms(setting_.affine, 0);
    const auto same = [](const double* term) HWY_ATTR { return splat(*term); };
    for (std::int64_t r = 0; r < rows_; r += kWidth) {
      const V center = hn::Load(kDoubles, centers_ + r);
      const V rstd = hn::Load(kDoubles, rstds_ + r);
      const V at_center = negated(hn::Load(kDoubles, shifts_ + r) * rstd);
      const V error = hn::Load(kDoubles, spreads_ + r) * splat(error_);
      const double most =
          std::is_same_v<Out, float> ? 0 : hn::GetLane(hn::MaxOfLanes(kDoubles, error));
      const DoubleWriter<Out, has_weight, has_bias> writer(rstd, at_center, error, most, relative_,
                                                           setting_.affine);
      auto any_undecided = hn::Zero(kWords);
      for (std::int64_t j = 0; j < n_; ++j) {
        const Results results = writer.results(load_column(r, j) - center, j, terms, same);
        hn::Store(results.y, F(), y_columns_ + j * kWidth);
        hn::Store(results.undecided, kWords, undecided_ + j * kWidth);
        any_undecided = hn::Or(any_undecided, results.undecided);
      }
      to_rows(y_columns_, n_, results_ + r * n_);
      const bool all_usable = hn::AllTrue(kDoubles, hn::Gt(rstd, hn::Zero(kDoubles)));
      if (HWY_UNLIKELY(!all_usable || !is_zero(any_undecided))) resolve(r);
    }
  }

  // The vector of rows from r on.
  HWY_NOINLINE void resolve(std::int64_t r) {
    for (std::int64_t k = 0; k < std::min(kWidth, rows_ - r); ++k) {
      if (rstds_[r + k] > 0) {
        resolve_row(r + k, undecided_ + k);
      } else {
        alone_.push_back(r + k);
      }
    }
  }

  // undecided: of the row's element 0; that of the next element is kWidth further on.
  void resolve_row(std::int64_t r, const std::uint32_t* undecided) {
    std::optional<RowNormalizer> resolver;
    for (std::int64_t j = 0; j < n_; ++j) {
      if (undecided[j * kWidth] == 0) continue;
      results_[r * n_ + j] =
          static_cast<float>(resolve_by(resolver, r, centers_[r], j, element_of(row(r), j)));
    }
  }

  void store_rows() const {
    const std::int64_t n = rows_ * n_;
    std::byte* const y = this->template out<Out>(0);
    for (std::int64_t i = 0; i < n; i += kWidth) {
      const auto floats = hn::Load(F(), results_ + i);
      write_first<Out>(n - i, y + i * kSize<Out>,
                       [&](std::byte* to) HWY_ATTR { store_results<Out, false>(floats, to); });
    }
  }

  alignas(64) double elements_[kChunk + kRoom] = {};
  alignas(64) double columns_[kChunk + kRoom] = {};
  alignas(64) float y_columns_[kMaxElements * kWidth + kRoom] = {};  // of a vector of rows
  alignas(64) float results_[kChunk + kRoom];
  alignas(64) double centers_[kMaxTinyRows];
  // At first shifts_, rstds_ and spreads_ have the sums, the squares and the largest |d| of rows.
  alignas(64) std::uint32_t undecided_[kMaxElements * kWidth];
  std::vector<std::int64_t> alone_;
};

// Rows without low parts, about 0. One that is not usable, or of which a result is undecided, is normalized by itself.
class ShortDoubleDoubleRows : ShortRows {
 public:
  static constexpr std::int64_t kMaxElements = 255;  // of a row

  ShortDoubleDoubleRows(const RowSetting& setting, const RowsIn& x, const RowsOut& y)
      : ShortRows(setting, x, y),
        per_element_(reciprocal(n_)),
        per_freedom_(reciprocal(setting.formula.freedom(n_))),
        bounds_(n_, setting.formula.freedom(n_), 1) {}

  void run() {
    const std::int64_t at_once = std::max(kWidth, kChunk / n_ / kWidth * kWidth);
    for_each_block(at_once, [&](auto has_weight, auto has_bias) HWY_ATTR {
      decode_row(elements(), 0, elements_, ahead_of(x_));
      auto any_undecided = hn::Zero(kBits);
      for (std::int64_t r = 0; r < rows_; r += kWidth) {
        const auto undecided = write_vector<has_weight(), has_bias()>(r);
        any_undecided = hn::Or(any_undecided, undecided);
        hn::Store(undecided, kBits, undecided_ + r);
      }
      copy_out(results_, rows_ * n_, out<double>(0), y_.non_temporal);
      if (!hn::AllTrue(kBits, hn::Eq(any_undecided, hn::Zero(kBits)))) write_undecided();
    });
  }

 private:
  static constexpr std::int64_t kElements = std::max(kChunk, kMaxElements* kWidth);
  static constexpr std::int64_t kRoom = 64;  // for what whole vectors take in besides

  using Bits = hn::RebindToUnsigned<D>;
  static constexpr Bits kBits{};

  static DoubleDouble reciprocal(std::int64_t count) {
    return DoubleDouble{1} / DoubleDouble{static_cast<double>(count)};
  }

  struct Statistics {
    V2 minus_mean;
    V2 rstd;
    V error;  // of xhat
    hn::Mask<D> usable;
  };

  struct Totals {
    V2 sum;
    V2 squares;
    V most;  // the largest |x|
  };

  HWY_INLINE Totals totals() const {
    const V zero = hn::Zero(kDoubles);
    Totals t{{zero, zero}, {zero, zero}, zero};
    for (std::int64_t j = 0; j < n_; ++j) {
      const V x = hn::Load(kDoubles, columns_ + j * kWidth);
      const V2 sum = two_sum(t.sum.high, x);
      t.sum = {sum.high, t.sum.low + sum.low};
      const V2 square = two_product(x, x);
      const V2 squares = two_sum(t.squares.high, square.high);
      t.squares = {squares.high, t.squares.low + (squares.low + square.low)};
      t.most = hn::Max(t.most, hn::Abs(x));
    }
    return {two_sum(t.sum.high, t.sum.low), two_sum(t.squares.high, t.squares.low), t.most};
  }

  // Does what centered_sums() and double_double_statistics() do, with products for quotients by n.
  HWY_INLINE Statistics statistics(const Totals& t) const {
    const V zero = hn::Zero(kDoubles);
    const bool has_mean = setting_.formula.has_mean();
    const V2 mean = has_mean ? t.sum * splat(per_element_) : V2{zero, zero};
    const V2 centered = has_mean ? squares_about_mean(t.squares, t.sum, mean) : t.squares;
    const V2 s = Divisors<V2>(centered * splat(per_freedom_), setting_.formula).s;
    const V2 rstd = V2{splat(1), zero} / s;
    const V squares_error = splat(bounds_.squares) * t.squares.high;
    const auto in_range =
        hn::And(is_within(t.squares.high, kMinDoubleDoubleSquares, kMaxDoubleDoubleSquares),
                is_within(s.high, kMinDoubleDoubleS, kMaxDoubleDoubleS));
    const auto has_bits = hn::Le(squares_error, splat(kMaxSquaresError) * centered.high);
    const V most = t.most * rstd.high;
    const V reach = hn::Min(most + most, splat(bounds_.reach));
    const V slope = hn::MulAdd(squares_error / centered.high, splat(0.5), splat(bounds_.slope));
    const V error = hn::MulAdd(slope, reach, most * splat(bounds_.offset));
    return {-mean, rstd, error, hn::And(in_range, has_bits)};
  }

  // The rows from r on. Returns what is not 0 where a row has to be normalized by itself.
  template <bool has_weight, bool has_bias>
  HWY_INLINE hn::Vec<Bits> write_vector(std::int64_t r) {
    to_columns(elements_ + r * n_, n_, columns_);
    const Statistics s = statistics(totals());
    const DoubleDoubleWriter<has_weight, has_bias> writer(s.rstd, s.error, setting_.affine,
                                                          y_.dtype);
    const auto same = [](const double* term) HWY_ATTR { return splat(*term); };
    auto undecided = hn::BitCast(kBits, hn::VecFromMask(kDoubles, hn::Not(s.usable)));
    for (std::int64_t j = 0; j < n_; ++j) {
      double* const column = columns_ + j * kWidth;
      const auto ends = writer.bounds(s.minus_mean + hn::Load(kDoubles, column), j, same);
      hn::Store(ends.low, kDoubles, column);
      undecided =
          hn::Or(undecided, hn::Xor(hn::BitCast(kBits, ends.low), hn::BitCast(kBits, ends.high)));
    }
    to_rows(columns_, n_, results_ + r * n_);
    return undecided;
  }

  HWY_NOINLINE void write_undecided() const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      if (undecided_[r] != 0) normalize_alone(r);
    }
  }

  alignas(64) double elements_[kElements + kRoom] = {};
  alignas(64) double columns_[kMaxElements * kWidth + kRoom] = {};
  alignas(64) double results_[kElements + kRoom];
  alignas(64) std::uint64_t undecided_[kChunk];
  DoubleDouble per_element_;
  DoubleDouble per_freedom_;
  DoubleDoubleBounds bounds_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
