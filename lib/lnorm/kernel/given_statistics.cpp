#include "lnorm/kernel/given_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/affine_steps.hpp"
#include "lnorm/kernel/bracket.hpp"
#include "lnorm/kernel/dyadic.hpp"
#include "lnorm/kernel/exact_row.hpp"
#include "lnorm/kernel/exact_sums.hpp"
#include "lnorm/kernel/kernel_table.hpp"

namespace lnorm {

namespace {

// Elements of which the range is found, and which are written then: the second-level cache keeps them.
constexpr std::int64_t kRangeElements = 16384;

// What x-hat is off by, of itself: the deviation, rstd and their product are rounded once each, or their pairs are; the rest is
// for the weight, as in statistics.hpp.
constexpr double kDoubleSlope = bound::kSlope * kUnit;
constexpr double kPairSlope = (2 * bound::kXhat + bound::kRstd) * kUnit2;
// What underflows on the way.
constexpr double kLostInDoubles = 0x1p-900;

// Between these no product of doubles loses bits to the ends of the range.
constexpr double kMaxElement = 0x1p500;
constexpr double kMaxRstd = 0x1p300;

class GivenRow final : public Resolver {
 public:
  GivenRow(const Backend& backend, const GivenStatistics& given, const Affine& affine,
           const Formula& formula, const RowsIn& x, DType out)
      : backend_(backend), affine_(affine), formula_(formula), out_(out) {
    mean_ = given.mean_of(x.first_row);
    const double spread = given.spread_of(x.first_row);
    is_rstd_ = given.is_rstd || std::isinf(spread);
    spread_ = given.is_rstd || !is_rstd_ ? spread : 0;  // 1 / infinity
    first_number_ = affine.layout().first(x.first_row);
    find_rstd();
    fits_doubles_ = fits_doubles(x.dtype, out) && affine.is_within(kMaxDoubleAffine);
  }

  // All of the row, or a part of it from an offset on.
  void write(const RowsIn& row, std::int64_t offset, const RowsOut& y) const {
    for (std::int64_t start = 0; start < row.row_length; start += kRangeElements) {
      const std::int64_t count = std::min(kRangeElements, row.row_length - start);
      const RowsIn part = part_of(row, start, count);
      const double reach = reach_of(part);
      for (std::int64_t i = start; i < start + count;) {
        const std::int64_t run = affine_.layout().run(offset + i, offset + start + count);
        write_run(part_of(row, i, run), offset + i, reach, row_of(y, 1, i));
        i += run;
      }
    }
  }

  double resolve(std::int64_t index, Number x) const override {
    const std::int64_t number = affine_.layout().number(first_number_, index);
    const Number weight = affine_.weight().number_or(1, number);
    const Number bias = affine_.bias().number_or(0, number);
    if (!is_regular_ || !std::isfinite(x.high) || !std::isfinite(weight.high) ||
        !std::isfinite(bias.high)) {
      return rounded(by_ieee_rules(x.high, weight, bias), out_);
    }
    const bool is_within =
        is_fast_ && std::fabs(x.high) <= kMaxElement && affine_.is_within(kMaxDoubleDoubleAffine);
    if (is_within) {
      const DoubleDouble deviation = DoubleDouble{x.high, x.low} + -mean_;
      if (deviation.high == 0 && affine_.scale() == 1) {
        return rounded(DoubleDouble{bias.high, bias.low}, out_);
      }
      const DoubleDouble xhat = deviation * rstd_;
      const DoubleDouble y =
          xhat * DoubleDouble{weight.high, weight.low} + DoubleDouble{bias.high, bias.low};
      const double error = (kPairSlope * std::fabs(xhat.high) * std::fabs(weight.high) +
                            bound::kBias * kUnit2 * std::fabs(bias.high)) *
                               kSlack +
                           kLostBits * (1 + std::fabs(weight.high));
      const Bracket known = bracket(y, error, out_);
      if (known.is_decided()) return known.least;
    }
    return exactly(x, number);
  }

 private:
  // 1/s, and whether the passes can take it.
  void find_rstd() {
    if (is_rstd_) {
      rstd_ = {spread_};
    } else {
      const DoubleDouble root = formula_.eps_on == EpsOn::variance
                                    ? sqrt(DoubleDouble{spread_} + formula_.eps)
                                    : sqrt(DoubleDouble{spread_}) + formula_.eps;
      rstd_ = root.high > 0           ? DoubleDouble{1} / root
              : std::isnan(root.high) ? DoubleDouble{NAN}
                                      : DoubleDouble{kInfinity};
    }
    is_regular_ = std::isfinite(mean_) && std::isfinite(rstd_.high);
    const bool has_range = spread_ == 0 || (spread_ >= 1 / kMaxElement && spread_ <= kMaxElement);
    is_fast_ = backend_.table != nullptr && is_regular_ && has_range &&
               std::fabs(mean_) <= kMaxElement && rstd_.high <= kMaxRstd &&
               rstd_.high >= 1 / kMaxRstd;
  }

  // The largest |x-hat| of a part; NaN if the passes cannot take it.
  double reach_of(const RowsIn& part) const {
    if (!is_fast_ || (!fits_doubles_ && !affine_.is_within(kMaxDoubleDoubleAffine))) return NAN;
    const Range range = backend_.table->range(part);
    if (range.non_finite > 0 || range.min < -kMaxElement || range.max > kMaxElement) return NAN;
    const double most = std::max(std::fabs(range.max - mean_), std::fabs(range.min - mean_));
    return most * rstd_.high * kSlack;
  }

  void write_run(const RowsIn& run, std::int64_t offset, double reach, const RowsOut& y) const {
    const RowPlace place{offset, affine_.layout().number(first_number_, offset)};
    if (std::isnan(reach)) {
      write_each(run, y, [&](std::int64_t i, Number x) { return resolve(offset + i, x); });
    } else if (fits_doubles_) {
      const DoubleStatistics statistics{mean_, 0, rstd_.high, kLostInDoubles, kDoubleSlope, reach};
      backend_.table->double_write(run, statistics, affine_, place, y, *this);
    } else {
      const DoubleDoubleStatistics statistics{{mean_}, rstd_, 0, kLostBits, kPairSlope, reach};
      backend_.table->double_double_write(run, statistics, affine_, place, y, *this);
    }
    take_steps(backend_, affine_, y, run.row_length, place.number);
  }

  // Something is not finite, or s is 0. Of what is finite the sign alone counts then.
  double by_ieee_rules(double x, Number weight, Number bias) const {
    const auto sign_of = [](double value) {
      return std::isfinite(value) ? static_cast<double>((value > 0) - (value < 0)) : value;
    };
    const double deviation =
        std::isfinite(x) && std::isfinite(mean_) ? (x > mean_) - (x < mean_) : x - mean_;
    const double product = deviation * sign_of(rstd_.high) * sign_of(weight.high);
    return (product + sign_of(bias.high)) * sign_of(affine_.scale());
  }

  double exactly(Number x, std::int64_t number) const {
    const ExactTerms terms{affine_.unscaled_weight().number_or(1, number),
                           affine_.unscaled_bias().number_or(0, number), affine_.scale()};
    if (!is_rstd_) return exact().element(x, terms, out_);
    const Dyadic xhat = (Dyadic(x) - Dyadic(mean_)) * Dyadic(spread_);
    return rounded((xhat * Dyadic(terms.weight) + Dyadic(terms.bias)) * Dyadic(terms.scale), out_);
  }

  const ExactRow& exact() const {
    const std::lock_guard lock(mutex_);
    if (!exact_) exact_ = std::make_unique<ExactRow>(given_row(mean_, spread_, formula_));
    return *exact_;
  }

  const Backend& backend_;
  const Affine& affine_;
  const Formula& formula_;
  DType out_;
  double mean_ = 0;
  double spread_ = 0;
  bool is_rstd_ = false;
  DoubleDouble rstd_;
  bool is_regular_ = false;    // mean and 1/s are finite
  bool is_fast_ = false;       // they are in the range of the passes
  bool fits_doubles_ = false;  // which are in doubles
  std::int64_t first_number_ = 0;
  mutable std::unique_ptr<const ExactRow> exact_;
  mutable std::mutex mutex_;
};

}  // namespace

ExactRow given_row(double mean, double variance, const Formula& formula) {
  Formula of_one = formula;
  of_one.ddof = 0;
  of_one.rms = false;
  const Dyadic exact_mean(mean);
  return {ExactSums{true, exact_mean, square(exact_mean) + Dyadic(variance)}, 1, of_one};
}

void normalize_by(const Backend& backend, const GivenStatistics& given, const RowsIn& x,
                  const RowsOut& y, const Affine& affine, const Formula& formula,
                  std::int64_t offset) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const RowsIn row = row_of(x, r);
    GivenRow(backend, given, affine, formula, row, y.dtype)
        .write(row, offset, row_of(y, x.row_length, r));
  }
}

}  // namespace lnorm
