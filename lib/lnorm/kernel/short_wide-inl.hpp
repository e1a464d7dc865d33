// Many short rows at once by the wide way (statistics.hpp), a vector of rows at a time.

#include <algorithm>
#include <cstdint>

#include "lnorm/kernel/row_normalizer.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

// Rows without low parts, about 0. One that is not usable, or of which a result is open, is normalized by itself.
class ShortWideRows {
 public:
  static constexpr std::int64_t kMaxElements = 255;  // of a row

  ShortWideRows(const RowSetting& setting, const RowsIn& x, const RowsOut& y)
      : setting_(setting),
        x_(x),
        y_(y),
        n_(x.row_length),
        per_element_(reciprocal(n_)),
        per_freedom_(reciprocal(n_ - setting.formula.ddof)),
        bounds_(n_, n_ - setting.formula.ddof, 1) {}

  void run() {
    const RowsIn all{x_.data, x_.dtype, x_.byte_order, 1, x_.rows * n_};
    const std::int64_t rows_at_once = std::max(kWidth, kChunk / n_ / kWidth * kWidth);
    with_terms(setting_.affine, [&](auto has_weight, auto has_bias) HWY_ATTR {
      for (std::int64_t first = 0; first < x_.rows; first += rows_at_once) {
        const std::int64_t rows = std::min(rows_at_once, x_.rows - first);
        const RowsIn part = part_of(all, first * n_, rows * n_);
        decode_row(part, 0, elements_, ahead_of(part));
        auto any_open = hn::Zero(kBits);
        for (std::int64_t r = 0; r < rows; r += kWidth) {
          const auto open = write_vector<has_weight(), has_bias()>(r);
          any_open = hn::Or(any_open, open);
          hn::Store(open, kBits, open_ + r);
        }
        copy_out(results_, rows * n_, row_of(y_, n_, first).data, y_.non_temporal);
        if (!hn::AllTrue(kBits, hn::Eq(any_open, hn::Zero(kBits)))) write_open(first, rows);
      }
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

  // As centered_sums() and wide_statistics() do, with products for quotients by n.
  HWY_INLINE Statistics statistics(const Totals& t) const {
    const Formula& formula = setting_.formula;
    const V zero = hn::Zero(kDoubles);
    V2 minus_mean{zero, zero};
    V2 centered = t.squares;
    if (!formula.rms) {
      minus_mean = -(t.sum * splat(per_element_));
      centered = centered + minus_mean * t.sum;
    }
    const V2 variance = centered * splat(per_freedom_);
    const V2 s = formula.eps_on == EpsOn::variance ? root(variance + splat(formula.eps))
                                                   : root(variance) + splat(formula.eps);
    const V2 rstd = V2{splat(1), zero} / s;
    const V squares_error = splat(bounds_.squares) * t.squares.high;
    const auto in_range = hn::And(is_within(t.squares.high, kMinWideSquares, kMaxWideSquares),
                                  is_within(s.high, kMinWideS, kMaxWideS));
    const auto has_bits = hn::Le(squares_error, splat(kMaxSquaresError) * centered.high);
    const V most = t.most * rstd.high;
    const V reach = hn::Min(most + most, splat(bounds_.reach));
    const V slope = hn::MulAdd(squares_error / centered.high, splat(0.5), splat(bounds_.slope));
    const V error = hn::MulAdd(slope, reach, most * splat(bounds_.offset));
    return {minus_mean, rstd, error, hn::And(in_range, has_bits)};
  }

  // The rows from r on. Returns what is not 0 where a row has to be normalized by itself.
  template <bool has_weight, bool has_bias>
  HWY_INLINE hn::Vec<Bits> write_vector(std::int64_t r) {
    to_columns(elements_ + r * n_, n_, columns_);
    const Statistics s = statistics(totals());
    const WideWriter<has_weight, has_bias> writer(s.rstd, s.error, setting_.affine, y_.dtype);
    const auto same = [](const double* term) HWY_ATTR { return splat(*term); };
    auto open = hn::BitCast(kBits, hn::VecFromMask(kDoubles, hn::Not(s.usable)));
    for (std::int64_t j = 0; j < n_; ++j) {
      double* const column = columns_ + j * kWidth;
      const auto ends = writer.bounds(s.minus_mean + hn::Load(kDoubles, column), j, same);
      hn::Store(ends.low, kDoubles, column);
      open = hn::Or(open, hn::Xor(hn::BitCast(kBits, ends.low), hn::BitCast(kBits, ends.high)));
    }
    to_rows(columns_, n_, results_ + r * n_);
    return open;
  }

  HWY_NOINLINE void write_open(std::int64_t first, std::int64_t rows) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      if (open_[r] != 0) normalize_alone(setting_, x_, y_, first + r);
    }
  }

  alignas(64) double elements_[kElements + kRoom] = {};
  alignas(64) double columns_[kMaxElements * kWidth + kRoom] = {};
  alignas(64) double results_[kElements + kRoom];
  alignas(64) std::uint64_t open_[kChunk];
  const RowSetting& setting_;
  const RowsIn& x_;
  const RowsOut& y_;
  std::int64_t n_;
  DoubleDouble per_element_;
  DoubleDouble per_freedom_;
  WideBounds bounds_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();
