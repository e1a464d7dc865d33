#include "lnorm/kernel/row_normalizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lnorm/kernel/affine_steps.hpp"
#include "lnorm/kernel/bracket.hpp"
#include "lnorm/kernel/exact_sums.hpp"

namespace lnorm {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Zero, or between the reciprocals.
bool is_within(Number term, double most) {
  const double size = std::fabs(term.high);
  return size == 0 || (size <= most && size >= 1 / most);
}

// How often a narrow row is summed, each time about a better center.
constexpr int kMaxTries = 2;

// Elements whose squares can leave the range of doubles, or that have low parts. About 0 narrow statistics may still do:
// a deviation is the element then, and within u of its high part.
bool is_narrow_about_zero(DType in, DType out) {
  return (in == DType::float64 || in == DType::float64_pair) && out != DType::float64;
}

}  // namespace

RowSample sample_of(const RowsIn& row) noexcept {
  constexpr std::int64_t kFew = 16;
  Chunk chunk;
  const std::int64_t n = load_chunk(part_of(row, 0, std::min(kFew, row.row_length)), 0, chunk);
  double sum = 0;
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += chunk.high[i];
    squares += chunk.high[i] * chunk.high[i];
  }
  const double mean = sum / static_cast<double>(n);
  const bool is_far_from_zero = 3 * mean * sum > squares;  // mean^2 > variance / 2
  return {element_of(row, 0), is_far_from_zero && std::isfinite(squares) ? mean : 0};
}

RowNormalizer::RowNormalizer(const RowSetting& setting, const RowSample& sample, ReadRow read_row)
    : setting_(setting), sample_(sample), read_row_(std::move(read_row)) {
  const bool may_be_narrow =
      !setting.saves_statistics && !setting.in_parts && setting.affine.is_within(kMaxNarrowAffine);
  if (setting.kernel.passes == nullptr) {
    find_exact();
  } else if (may_be_narrow && is_narrow(setting.in, setting.out)) {
    pass_ = Pass::narrow;
    center_ = setting.formula.rms ? 0 : sample.center;
  } else if (may_be_narrow && is_narrow_about_zero(setting.in, setting.out)) {
    pass_ = Pass::narrow;
  } else {
    start_wide();
  }
}

RowNormalizer::RowNormalizer(const RowSetting& setting, const RowSample& sample, ReadRow read_row,
                             const NarrowStatistics& narrow)
    : setting_(setting), sample_(sample), read_row_(std::move(read_row)), narrow_(narrow) {}

Sums RowNormalizer::sums(const RowsIn& part) const {
  const KernelTable& passes = *setting_.kernel.passes;
  return pass_ == Pass::narrow ? passes.narrow_sums(part, center_)
                               : passes.wide_sums(part, center_);
}

void RowNormalizer::take(const Sums& row) {
  if (pass_ == Pass::narrow) return take_narrow(row);
  take_wide(row);
}

void RowNormalizer::sum_up() {
  while (wants_sums()) {
    Sums total;
    read_row_([&](const RowsIn& part) { total += sums(part); });
    take(total);
  }
}

void RowNormalizer::take_narrow(const Sums& row) {
  pass_ = Pass::none;
  const std::int64_t n = setting_.row_length;
  const bool about_zero = is_narrow_about_zero(setting_.in, setting_.out);
  if (about_zero) {
    const double squares = row.squares.high;
    if (!(squares >= kMinWideSquares && squares <= kMaxWideSquares)) return start_wide();
  } else if (!std::isfinite(row.sum.high) || !std::isfinite(row.squares.high)) {
    is_finite_ = false;  // finite elements are too small to overflow
    return;
  }
  narrow_ = narrow_statistics(row, center_, n, setting_.formula,
                              NarrowBounds(n, setting_.kernel.passes->lanes));
  if (narrow_) return;
  if (about_zero || setting_.formula.rms || ++tries_ == kMaxTries) return start_wide();
  pass_ = Pass::narrow;
  center_ += row.sum.high / static_cast<double>(n);
}

void RowNormalizer::start_wide() {
  pass_ = Pass::wide;
  // About 0 a deviation is the element itself. A 64-bit integer is no double, but its deviation from a rounded
  // one of them is one.
  const bool about_zero = sample_.first.low == 0 || setting_.formula.rms;
  center_ = about_zero ? 0 : sample_.first.high;
}

void RowNormalizer::take_wide(const Sums& row) {
  pass_ = Pass::none;
  const std::int64_t n = setting_.row_length;
  const double growth = wide_growth(n, setting_.kernel.passes->lanes);
  const Formula& formula = setting_.formula;
  centered_ = centered_sums(row, center_, n, formula.rms, growth);
  if (!centered_ && !formula.rms && center_ != sample_.first.high &&
      std::isfinite(row.squares.high)) {
    pass_ = Pass::wide;
    center_ = sample_.first.high;
    return;
  }
  if (!centered_ && row.squares.high == 0 && is_constant()) {
    centered_ = constant_sums(center_, n);
    is_defined_ = formula.eps > 0;
  }
  if (centered_) wide_ = wide_statistics(*centered_, n, formula);
  if (!wide_ && is_defined_) return find_exact();
  if (wide_ && is_narrow(setting_.in, setting_.out) && wide_->rstd.high >= 1 / kMaxDivisor &&
      wide_->rstd.high <= 1 / kMinDivisor) {
    narrow_ = narrow_statistics(*wide_);
  }
}

ExactSums RowNormalizer::read_exact_sums() const {
  ExactSums sums;
  read_row_([&](const RowsIn& part) { sums += exact_sums(part); });
  return sums;
}

void RowNormalizer::find_exact() {
  const ExactSums sums = read_exact_sums();
  is_finite_ = sums.finite;
  if (!is_finite_) return;
  exact_ = std::make_unique<ExactRow>(sums, setting_.row_length, setting_.formula);
  is_defined_ = exact_->is_defined();
}

// Squares of deviations can be 0 where the deviations are not.
bool RowNormalizer::is_constant() const {
  bool constant = true;
  read_row_([&](const RowsIn& part) {
    if (!constant) return;
    for_each_element(part, [&](std::int64_t, Number x) {
      constant = constant && x.high == center_ && x.low == 0;
    });
  });
  return constant;
}

const RowNormalizer& RowNormalizer::better() const {
  const std::lock_guard lock(mutex_);
  if (!better_) {
    RowSetting setting = setting_;
    setting.saves_statistics = true;
    auto row = std::make_unique<RowNormalizer>(setting, sample_, read_row_);
    row->sum_up();
    better_ = std::move(row);
  }
  return *better_;
}

const ExactRow& RowNormalizer::exact() const {
  const std::lock_guard lock(mutex_);
  if (!exact_) {
    exact_ = std::make_unique<ExactRow>(read_exact_sums(), setting_.row_length, setting_.formula);
  }
  return *exact_;
}

std::optional<double> RowNormalizer::sum_divided_by(std::int64_t n) const {
  if (!centered_ || has_low(setting_.in) || setting_.kernel.passes == nullptr) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (!triple_sum_) {
    triple_sum_.emplace();
    read_row_(
        [&](const RowsIn& part) { *triple_sum_ += setting_.kernel.passes->triple_sum(part); });
  }
  const auto length = static_cast<double>(setting_.row_length);
  const double mean = centered_->mean.high;
  const double squares = centered_->squares.high + length * mean * mean;
  const double error = triple_error(setting_.row_length, squares * (1 + 0x1p-8));
  const DoubleDouble quotient = triple_sum_->rounded() / DoubleDouble{static_cast<double>(n)};
  return decided(quotient,
                 error / static_cast<double>(n) + 16 * kUnit * kUnit * std::fabs(quotient.high));
}

double RowNormalizer::sum() const {
  if (!is_finite_) return kNan;
  auto fast = centered_ ? centered_->rounded_sum() : std::nullopt;
  if (!fast) fast = sum_divided_by(1);
  return fast ? *fast : exact().sum();
}

double RowNormalizer::mean() const {
  if (!is_finite_) return kNan;
  if (setting_.formula.rms) return 0;
  auto fast = centered_ ? centered_->rounded_mean() : std::nullopt;
  if (!fast) fast = sum_divided_by(setting_.row_length);
  return fast ? *fast : exact().mean();
}

double RowNormalizer::variance() const {
  if (!is_finite_) return kNan;
  const std::int64_t freedom = setting_.row_length - setting_.formula.ddof;
  const auto fast = centered_ ? centered_->rounded_variance(freedom) : std::nullopt;
  return fast ? *fast : exact().variance();
}

double RowNormalizer::rstd() const {
  if (!is_finite_ || !is_defined_) return kNan;
  const auto fast =
      wide_ ? decided(wide_->rstd, wide_->rstd_error * wide_->rstd.high) : std::nullopt;
  return fast ? *fast : exact().rstd();
}

void RowNormalizer::write(const RowsIn& part, std::int64_t offset, const RowsOut& y) const {
  const Affine& affine = setting_.affine;
  if (!is_finite_ || !is_defined_) {
    for (std::int64_t i = 0; i < part.row_length; ++i) store(&kNan, 1, y, i);
  } else if (narrow_ && affine.is_within(kMaxNarrowAffine)) {
    setting_.kernel.passes->narrow_write(part, *narrow_, affine, offset, y, *this);
  } else if (wide_ && affine.is_within(kMaxWideAffine)) {
    setting_.kernel.passes->wide_write(part, *wide_, affine, offset, y, *this);
  } else {
    for_each_element(part, [&](std::int64_t i, Number x) {
      const double result = resolve(offset + i, x);
      store(&result, 1, y, i);
    });
  }
  take_steps(setting_.kernel, affine, y, part.row_length, offset);
}

double RowNormalizer::resolve(std::int64_t index, Number x) const {
  const Affine& affine = setting_.affine;
  const Number weight = affine.weight().number_or(1, index);
  const Number bias = affine.bias().number_or(0, index);
  const auto are_within = [&](double most) {
    return is_within(weight, most) && is_within(bias, most);
  };
  // The term of the bounds that weight scales, then that of the bias, for which wide numbers need more.
  const auto error_of = [&](const auto& statistics, double xhat, double unit) {
    const double error =
        (statistics.offset + statistics.slope * std::fabs(xhat)) * std::fabs(weight.high) +
        8 * unit * std::fabs(bias.high);
    return error * (1 + 0x1p-8);
  };
  Bracket result;
  if (narrow_ && are_within(kMaxNarrowAffine)) {
    const double deviation = x.high - narrow_->center;
    const double xhat = deviation * narrow_->rstd - narrow_->shift * narrow_->rstd;
    const double y = xhat * weight.high + bias.high;
    result = bracket(y, error_of(*narrow_, xhat, kUnit), setting_.out);
    if (result.is_decided()) return result.least;
  }
  if (wide_ && are_within(kMaxWideAffine)) {
    const DoubleDouble deviation = DoubleDouble{x.high, x.low} - wide_->mean;
    const DoubleDouble xhat = deviation * wide_->rstd;
    const DoubleDouble y =
        xhat * DoubleDouble{weight.high, weight.low} + DoubleDouble{bias.high, bias.low};
    const double lost = deviation.high == 0 ? 0 : kLostBits * (1 + std::fabs(weight.high));
    result = bracket(y, error_of(*wide_, xhat.high, kUnit * kUnit) + lost, setting_.out);
    if (result.is_decided()) return result.least;
  }
  if (!wide_ && !exact_ && !setting_.saves_statistics) return better().resolve(index, x);
  const ExactTerms terms{affine.unscaled_weight().number_or(1, index),
                         affine.unscaled_bias().number_or(0, index), affine.scale()};
  if (std::isfinite(terms.weight.high) && std::isfinite(terms.bias.high)) {
    return exact().element(x, terms, setting_.out, result.least, result.most);
  }
  // Of xhat the sign is all that counts.
  return (exact().deviation_sign(x) * terms.weight.high + terms.bias.high) * terms.scale;
}

}  // namespace lnorm
