#include "lnorm/kernel/row_normalizer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/affine_steps.hpp"
#include "lnorm/kernel/exact_sums.hpp"

namespace lnorm {

namespace {

// Zero, or between the reciprocals.
bool is_within(double term, double most) {
  const double size = std::fabs(term);
  return size == 0 || (size <= most && size >= 1 / most);
}

// By saved statistics, xhat is off by this part of itself: the deviation, rstd and their product are rounded once each, or their
// double-doubles are; the rest is for the weight, as in statistics.hpp.
constexpr double kSavedSlope = bound::kSlope * kUnit;
constexpr double kSavedSlope2 = (2 * bound::kXhat + bound::kRstd) * kUnit2;
// What underflows on the way, in doubles; and an xhat that is so small counts as this.
constexpr double kLostInDoubles = 0x1p-900;

// Between these and their reciprocals no product of doubles loses bits to the ends of the range.
constexpr double kMaxElement = 0x1p500;
constexpr double kMaxRstd = 0x1p300;

// Elements whose squares can leave the range of doubles, or that have low parts. About 0 doubles may still do:
// a deviation is the element then, and within u of its high part.
bool fits_doubles_about_zero(DType in, DType out) {
  return (in == DType::float64 || in == DType::float64_pair) && out != DType::float64;
}

// The term of the bounds that weight scales, then that of the bias. unit: u or u^2.
template <class Statistics>
double error_of(const Statistics& statistics, double xhat, double weight, double bias,
                double unit) {
  const double of_xhat = statistics.offset + statistics.slope * std::fabs(xhat);
  return (of_xhat * std::fabs(weight) + bound::kBias * unit * std::fabs(bias)) * kSlack;
}

// What the numbers within error of y round to, divided. No quotient that counts is so small that bits of it are lost.
template <class Real>
Bracket quotient(Real y, double error, const RowNormalizer::Quotient& by) {
  if (by.divisor == 1) return bracket(y, error, by.dtype);
  constexpr bool is_double = std::is_same_v<Real, double>;
  const Real value = y / Real{by.divisor};
  const double size = std::fabs(DoubleDouble{value}.high);
  const double of_division = (is_double ? kUnit : 16 * kUnit2) * size + (size > 0 ? 0x1p-1000 : 0);
  return bracket(value, (error / by.divisor + of_division) * kSlack, by.dtype);
}

}  // namespace

RowNormalizer::RowNormalizer(const RowSetting& setting, const RowSample& sample, ReadRow read_row)
    : RowLadder(setting, sample, std::move(read_row)) {
  const bool may_be_in_doubles = !setting.saves_statistics && !setting.needs_double_doubles &&
                                 setting.affine.is_within(kMaxDoubleAffine);
  if (setting.backend.table == nullptr) {
    find_exact();
  } else if (may_be_in_doubles && fits_doubles(setting.in, setting.out)) {
    start(Precision::doubles, center());
  } else if (may_be_in_doubles && fits_doubles_about_zero(setting.in, setting.out)) {
    start(Precision::doubles, 0);
  } else {
    start_double_doubles();
  }
}

RowNormalizer::RowNormalizer(const RowSetting& setting, const RowSample& sample, ReadRow read_row,
                             const DoubleStatistics& statistics)
    : RowLadder(setting, sample, std::move(read_row)) {
  doubles_ = statistics;
}

RowNormalizer::RowNormalizer(const RowSetting& setting, const SavedStatistics& saved)
    : RowLadder(setting, {}, {}) {
  saved_ = saved;
  if (saved.variance && std::isinf(saved.variance->high)) saved_ = {saved.mean, {0}, {}};
  setting_.needs_double_doubles = true;  // or else exact integers
  const DoubleDouble rstd = saved_->reciprocal(setting.formula);
  const double mean = saved_->mean.high;
  if (setting.backend.table == nullptr || !(std::fabs(mean) <= kMaxElement) ||
      !(rstd.high >= 1 / kMaxRstd && rstd.high <= kMaxRstd) ||
      !is_within(saved_->variance.value_or(Number{}).high, kMaxElement)) {
    return;
  }
  double_doubles_ = {{mean}, rstd, 0, 0, kSavedSlope2, 0};
  if (fits_doubles(setting.in, setting.out)) {
    doubles_ = {mean, 0, rstd.high, kLostInDoubles, kSavedSlope, 0};
  }
}

std::unique_ptr<RowNormalizer> RowNormalizer::again(const RowSetting& setting) const {
  return std::make_unique<RowNormalizer>(setting, sample_, read_row_);
}

Sums RowNormalizer::sums(const RowsIn& part) const {
  const KernelTable& table = *setting_.backend.table;
  return summing_ == Precision::doubles ? table.double_sums(part, center_)
                                        : table.double_double_sums(part, center_);
}

void RowNormalizer::take_doubles(const Sums& row) {
  const std::int64_t n = setting_.row_length;
  const bool about_zero = fits_doubles_about_zero(setting_.in, setting_.out);
  if (about_zero) {
    const double squares = row.squares.high;
    if (!(squares >= kMinDoubleDoubleSquares && squares <= kMaxDoubleDoubleSquares))
      return start_double_doubles();
  } else if (!std::isfinite(row.sum.high) || !std::isfinite(row.squares.high)) {
    state_ = State::not_finite;  // finite elements are too small to overflow
    return;
  }
  // Results of float64 elements may be below all doubles, where no relative bound holds.
  const DoubleBounds bounds(n, setting_.backend.table->lanes,
                            !setting_.formula.has_mean() && !about_zero);
  doubles_ = double_statistics(row, center_, n, setting_.formula, bounds);
  if (doubles_) return;
  if (about_zero || !starts_about_mean(row.sum.high)) start_double_doubles();
}

void RowNormalizer::take_double_doubles(const Sums& row) {
  const std::int64_t n = setting_.row_length;
  if (!find_centered(row, double_double_growth(n, setting_.backend.table->lanes))) return;
  if (centered_ && centered_->is_constant() && setting_.formula.eps == 0) {
    state_ = State::undefined;
    return;
  }
  if (centered_) double_doubles_ = double_double_statistics(*centered_, n, setting_.formula);
  if (!double_doubles_ && !setting_.is_scaled && !find_scaled()) find_exact();
  if (!double_doubles_) return;
  const double rstd = double_doubles_->rstd.high;
  if (fits_doubles(setting_.in, setting_.out) && rstd >= 1 / kMaxDivisor &&
      rstd <= 1 / kMinDivisor) {
    doubles_ = double_statistics(*double_doubles_);
  }
}

bool RowNormalizer::find_scaled() {
  if (has_low(setting_.in)) return false;
  double most = 0;
  read_row_([&](const RowsIn& part) {
    for_each_element(part, [&](std::int64_t, Number x) { most = larger_size(most, x); });
  });
  if (!std::isfinite(most) || most == 0) return false;
  auto scaled = std::make_unique<Scaled>(Scaled{Scaling(most, setting_.formula)});
  RowSetting setting = setting_;
  setting.in = DType::float64;
  setting.formula = scaled->x.formula;
  setting.needs_double_doubles = setting.is_scaled = true;
  scaled->row = std::make_unique<RowNormalizer>(
      setting, scaled->x.of(sample_),
      [read = read_row_, exponent = scaled->x.exponent](const auto& see) {
        read([&](const RowsIn& part) {
          std::vector<double> buffer;
          see(times_power(part, exponent, buffer));
        });
      });
  return take_scaled(std::move(scaled));
}

void RowNormalizer::find_exact() {
  exact_ = make_exact();
  if (!exact_) {
    state_ = State::not_finite;
  } else if (!exact_->is_defined()) {
    state_ = State::undefined;
  }
}

std::unique_ptr<const ExactRow> RowNormalizer::make_exact() const {
  if (saved_) return std::make_unique<ExactRow>(*saved_, setting_.formula);
  ExactSums sums;
  read_row_([&](const RowsIn& part) { sums += exact_sums(part); });
  if (!sums.finite) return nullptr;
  return std::make_unique<ExactRow>(sums, setting_.row_length, setting_.formula);
}

std::optional<double> RowNormalizer::sum_divided_by(std::int64_t n) const {
  if (!centered_ || has_low(setting_.in) || setting_.backend.table == nullptr) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (!triple_sum_) {
    triple_sum_.emplace();
    read_row_(
        [&](const RowsIn& part) { *triple_sum_ += setting_.backend.table->triple_sum(part); });
  }
  const auto length = static_cast<double>(setting_.row_length);
  const double mean = centered_->mean.high;
  const double squares = centered_->squares.high + length * mean * mean;
  const DoubleDouble sum = triple_sum_->rounded();
  const auto divisor = static_cast<double>(n);
  const bool is_power = std::has_single_bit(static_cast<std::uint64_t>(n));
  if (triple_sum_->is_exact && ((is_power && std::fabs(sum.high) > 0x1p-900) || sum.high == 0)) {
    return sum.high / divisor + 0.0;  // rounded once, though it may be a tie
  }
  const double error = triple_sum_->error(std::sqrt(length * squares) * kSlack);
  const DoubleDouble quotient = sum / DoubleDouble{divisor};
  return decided(quotient, error / divisor + 16 * kUnit2 * std::fabs(quotient.high));
}

double RowNormalizer::sum() const {
  if (state_ == State::not_finite) return kNan;
  auto fast = centered_ ? decided(centered_->sum, centered_->sum_error) : std::nullopt;
  if (!fast) fast = sum_divided_by(1);
  return fast ? *fast : exact().sum();
}

double RowNormalizer::mean() const {
  if (state_ == State::not_finite) return kNan;
  if (!setting_.formula.has_mean()) return 0;
  auto fast = centered_ ? decided(centered_->mean, centered_->mean_error) : std::nullopt;
  if (!fast) fast = sum_divided_by(setting_.row_length);
  return fast ? *fast : exact().mean();
}

double RowNormalizer::variance() const {
  if (state_ == State::not_finite) return kNan;
  const std::int64_t freedom = setting_.formula.freedom(setting_.row_length);
  const auto fast = centered_ ? centered_->rounded_variance(freedom) : std::nullopt;
  return fast ? *fast : exact().variance();
}

double RowNormalizer::rstd() const {
  if (state_ != State::regular) return kNan;
  const auto& known = double_doubles_;
  const auto fast =
      known ? decided(known->rstd, known->rstd_error * known->rstd.high) : std::nullopt;
  return fast ? *fast : exact().rstd();
}

void RowNormalizer::write(const RowsIn& part, std::int64_t offset, const RowsOut& y) const {
  // The range of some elements is found before they are written: the second-level cache keeps them.
  constexpr std::int64_t kRangeElements = 16384;
  const std::int64_t at_once = saved_ ? kRangeElements : part.row_length;
  const AffineLayout& layout = setting_.affine.layout();
  for (std::int64_t start = 0; start < part.row_length;) {
    const std::int64_t end = std::min(start + at_once, part.row_length);
    std::optional<double> reach;
    if (saved_) reach = reach_of(part_of(part, start, end - start));
    while (start < end) {
      const std::int64_t count = layout.run(offset + start, offset + end);
      write_run(part_of(part, start, count), offset + start, reach, row_of(y, 1, start));
      start += count;
    }
  }
}

std::optional<double> RowNormalizer::reach_of(const RowsIn& part) const {
  if (!double_doubles_ || !setting_.affine.is_within(kMaxDoubleDoubleAffine)) return {};
  const Range range = setting_.backend.table->range(part);
  if (range.non_finite > 0 || range.min < -kMaxElement || range.max > kMaxElement) return {};
  const double mean = saved_->mean.high;
  const double most = std::max(std::fabs(range.max - mean), std::fabs(range.min - mean));
  if (most == 0) return 0;
  return std::max(most * double_doubles_->rstd.high * kSlack, kLostInDoubles);
}

void RowNormalizer::write_run(const RowsIn& run, std::int64_t offset, std::optional<double> reach,
                              const RowsOut& y) const {
  const auto of_run = [&](auto statistics) {
    if (reach) statistics.reach = *reach;
    return statistics;
  };
  const bool by_table = !saved_ || reach;
  const Affine& affine = setting_.affine;
  const KernelTable* const table = setting_.backend.table;
  const RowPlace place{offset, affine.layout().number(setting_.first_number, offset)};
  if (state_ != State::regular) {
    fill(y, run.row_length, kNan);
  } else if (by_table && doubles_ && affine.is_within(kMaxDoubleAffine)) {
    table->double_write(run, of_run(*doubles_), affine, place, y, *this);
  } else if (by_table && double_doubles_ && affine.is_within(kMaxDoubleDoubleAffine)) {
    table->double_double_write(run, of_run(*double_doubles_), affine, place, y, *this);
  } else {
    write_each(run, y, [&](std::int64_t i, Number x) { return resolve(offset + i, x); });
  }
  take_steps(setting_.backend, affine, y, run.row_length, place.number);
}

double RowNormalizer::resolve(std::int64_t index, Number x) const {
  const Quotient itself{1, setting_.out};
  if (state_ == State::regular && doubles_) {
    const Affine& affine = setting_.affine;
    const std::int64_t number = affine.layout().number(setting_.first_number, index);
    const Bracket known = in_doubles(*doubles_, x.high, affine.weight().high_or(1, number),
                                     affine.bias().high_or(0, number), itself);
    if (known.is_decided()) return known.least;
  }
  return resolve(index, x, itself);
}

RowNormalizer::Element RowNormalizer::element(std::int64_t index, Number x,
                                              const Quotient& quotient) const {
  const Affine& affine = setting_.affine;
  const std::int64_t number = affine.layout().number(setting_.first_number, index);
  return {number, x, affine.weight().number_or(1, number), affine.bias().number_or(0, number),
          quotient};
}

bool RowNormalizer::has_number(std::int64_t index, Number x) const {
  const Element e = element(index, x, {});
  double numbers = e.x.high * 0 + e.weight.high * 0 + e.bias.high * 0;
  if (saved_) numbers += saved_->mean.high * 0 + saved_rstd() * 0;
  return state_ == State::regular && numbers == 0;
}

bool RowNormalizer::is_zero(std::int64_t index, Number x) const {
  return is_zero(element(index, x, {1, DType::float64}));
}

bool RowNormalizer::is_zero(const Element& e) const {
  if (doubles_) {
    // What is within an error of 0 is 0 without one.
    const Bracket known = in_doubles(e);
    if (known.is_decided()) return known.least == 0;
  }
  return exact().is_zero(e.x, {e.weight, e.bias});
}

double RowNormalizer::resolve(std::int64_t index, Number x, const Quotient& quotient) const {
  if (state_ != State::regular) return kNan;
  const Element element = this->element(index, x, quotient);
  if (saved_ && !(std::fabs(x.high) <= kMaxElement)) return exactly(element, {});
  if (!scaled_) return decide(element);
  Element scaled = element;
  scaled.x = scaled_->x.of(x);
  const Bracket known = scaled_->row->in_double_doubles(scaled);
  return known.is_decided() ? known.least : exactly(element, known);
}

bool RowNormalizer::Element::has_terms_within(double most) const noexcept {
  return is_within(weight.high, most) && is_within(bias.high, most);
}

Bracket RowNormalizer::in_doubles(const DoubleStatistics& s, double x, double weight, double bias,
                                  const Quotient& by) {
  if (!is_within(weight, kMaxDoubleAffine) || !is_within(bias, kMaxDoubleAffine)) return {};
  const double xhat = xhat_of(x - s.center, s.rstd, -s.shift * s.rstd);
  const double y = y_of(xhat, weight, bias);
  return quotient(y, error_of(s, xhat, weight, bias, kUnit), by);
}

Bracket RowNormalizer::in_double_doubles(const Element& e) const {
  if (!e.has_terms_within(kMaxDoubleDoubleAffine)) return {};
  const DoubleDouble deviation = DoubleDouble{e.x.high, e.x.low} - double_doubles_->mean;
  const DoubleDouble xhat = xhat_of(deviation, double_doubles_->rstd);
  const DoubleDouble y =
      y_of(xhat, DoubleDouble{e.weight.high, e.weight.low}, DoubleDouble{e.bias.high, e.bias.low});
  // Of a row that was scaled 0 may be a number that has become too small.
  const bool is_zero = deviation.high == 0 && !setting_.is_scaled;
  const double lost = is_zero ? 0 : kLostBits * (1 + std::fabs(e.weight.high));
  const double error = error_of(*double_doubles_, xhat.high, e.weight.high, e.bias.high, kUnit2);
  return quotient(y, error + lost, e.quotient);
}

// Of what is finite the sign is right, and no more: a variance may be so large, or so small, that a double-double has no 1 / s.
double RowNormalizer::saved_rstd() const {
  if (!saved_->variance) return saved_->rstd.high;
  if (!std::isfinite(saved_->variance->high)) return saved_->variance->high;
  // By a mean that is none no result is finite, whatever it is multiplied with.
  return !std::isfinite(saved_->mean.high) || exact().is_defined() ? 1 : kInfinity;
}

double RowNormalizer::exactly(const Element& e, const Bracket& known) const {
  const Affine& affine = setting_.affine;
  const ExactTerms terms{affine.unscaled_weight().number_or(1, e.number),
                         affine.unscaled_bias().number_or(0, e.number), affine.scale(),
                         e.quotient.divisor};
  const double mean = saved_ ? saved_->mean.high : 0;
  const double rstd = saved_ ? saved_rstd() : 1;
  const double numbers[] = {e.x.high, mean, rstd, terms.weight.high, terms.bias.high};
  if (std::all_of(std::begin(numbers), std::end(numbers),
                  [](double v) { return std::isfinite(v); })) {
    return exact().element(e.x, terms, e.quotient.dtype, known.least, known.most);
  }
  // Of what is finite the sign is all that counts.
  const auto sign_of = [](double v) {
    return std::isfinite(v) ? static_cast<double>((v > 0) - (v < 0)) : v;
  };
  const double deviation = !saved_ ? exact().deviation_sign(e.x)
                           : std::isfinite(e.x.high) && std::isfinite(mean)
                               ? (e.x.high > mean) - (e.x.high < mean)
                               : e.x.high - mean;
  const double xhat = deviation * sign_of(rstd);
  return (xhat * sign_of(terms.weight.high) + sign_of(terms.bias.high)) * terms.scale;
}

}  // namespace lnorm
