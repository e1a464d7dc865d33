#include "lnorm/kernel/row_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lnorm/kernel/bracket.hpp"

namespace lnorm {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// How often a narrow row is summed, each time about a better center.
constexpr int kMaxTries = 2;

// What the folds of wide gradient sums add to wide_growth(). With m additions in a lane, what is lost is at most m u. Up
// to five additions to it lose 5 m u^2, which is less than m^2 / 2 + 40.
constexpr double kFolds = 40;

Number weight_at(const AffineTerm& weight, std::int64_t index) {
  return weight.empty() ? Number{1} : weight.number(index);
}

void fill(const RowsOut& dx, std::int64_t count, double value) {
  const auto size = static_cast<std::int64_t>(item_size(dx.dtype));
  for (std::int64_t i = 0; i < count; ++i) store(&value, 1, dx.dtype, dx.data + i * size);
}

// Calls see(i, x, dy) for every pair of elements of a part.
template <class See>
void for_each_pair_of(const GradientPart& part, See see) {
  Chunk x;
  std::fill_n(x.low, std::min(kChunk, part.x.row_length), 0.0);
  for_each_element(part.dy, [&](std::int64_t i, Number dy) {
    const std::int64_t at = i % kChunk;
    if (at == 0) load_chunk(part.x, i, x);
    see(i, Number{x.high[at], x.low[at]}, dy);
  });
}

}  // namespace

bool is_narrow_setting(const GradientSetting& setting) noexcept {
  return setting.kernel.passes != nullptr && is_narrow(setting.x, setting.dx) &&
         is_narrow(setting.dy, setting.dx) && !setting.in_parts && setting.wants_dx &&
         !is_float8(setting.dx) && setting.weight.is_within(kMaxNarrowAffine);
}

bool may_be_constant(double g_sum, double g_squares, std::int64_t n) noexcept {
  return g_sum * g_sum >= static_cast<double>(n) * g_squares * (1 - 0x1p-20);
}

RowGradient::RowGradient(const GradientSetting& setting, const RowSample& sample,
                         const SavedStatistics* saved, ReadGradientRow read_row)
    : setting_(setting), sample_(sample), read_row_(std::move(read_row)) {
  if (saved != nullptr) {
    saved_ = *saved;
    if (setting.formula.rms) saved_->mean = {};
    is_defined_ = std::isfinite(saved_->mean.high) && std::isfinite(saved_->rstd.high);
    has_derivative_ = is_defined_;
    if (!is_defined_) return;
  }
  const bool is_fast = setting.kernel.passes != nullptr && (!saved_ || is_plain(*saved_));
  if (!is_fast) {
    find_exact();
  } else if (is_narrow_setting(setting)) {
    start_narrow();
  } else {
    start_wide();
  }
}

void RowGradient::start_narrow() {
  pass_ = Pass::narrow;
  center_ = saved_ ? saved_->mean.high : setting_.formula.rms ? 0 : sample_.center;
}

void RowGradient::start_wide() {
  pass_ = Pass::wide;
  // As of RowNormalizer: about 0 a deviation is the element itself, and 64-bit integers are near one of them.
  const bool about_zero = sample_.first.low == 0 || setting_.formula.rms;
  center_ = saved_ ? saved_->mean.high : about_zero ? 0 : sample_.first.high;
}

GradientSums RowGradient::sums(const GradientPart& part) const {
  const KernelTable& passes = *setting_.kernel.passes;
  if (!setting_.wants_dx) return {.x = passes.wide_sums(part.x, center_)};
  return pass_ == Pass::narrow ? passes.narrow_gradient_sums(part, center_, setting_.weight)
                               : passes.wide_gradient_sums(part, center_, setting_.weight);
}

void RowGradient::take(const GradientSums& row) {
  return pass_ == Pass::narrow ? take_narrow(row) : take_wide(row);
}

void RowGradient::sum_up() {
  while (wants_sums()) {
    GradientSums total;
    read_row_([&](const GradientPart& part) { total += sums(part); });
    take(total);
  }
}

void RowGradient::take_narrow(const GradientSums& row) {
  pass_ = Pass::none;
  const std::int64_t n = setting_.row_length;
  // Finite elements are too small to overflow.
  is_x_finite_ = std::isfinite(row.x.squares.high);
  is_g_finite_ = std::isfinite(row.g_squares);
  if (!is_x_finite_) return;
  GradientSums sums = row;
  if (!is_g_finite_) {
    sums.g = sums.gx = {};
    sums.g_squares = 0;
  }
  const std::int64_t growth = narrow_growth(n, setting_.kernel.passes->gradient_lanes);
  narrow_ =
      narrow_gradient(sums, center_, n, setting_.formula, saved_ ? &*saved_ : nullptr, growth);
  if (narrow_) {
    is_zero_ = is_g_finite_ && is_dx_zero(sums);
    return;
  }
  if (setting_.formula.rms || saved_ || ++tries_ == kMaxTries) return start_wide();
  pass_ = Pass::narrow;
  center_ += row.x.sum.high / static_cast<double>(n);
}

void RowGradient::take_wide(const GradientSums& row) {
  pass_ = Pass::none;
  const std::int64_t n = setting_.row_length;
  const Formula& formula = setting_.formula;
  const double growth = wide_growth(n, setting_.kernel.passes->gradient_lanes) + kFolds;
  std::optional<CenteredSums> centered;
  if (!saved_) {
    centered = centered_sums(row.x, center_, n, formula.rms, growth);
    if (!centered && !formula.rms && center_ != sample_.first.high &&
        std::isfinite(row.x.squares.high)) {
      pass_ = Pass::wide;
      center_ = sample_.first.high;
      return;
    }
    if (!centered && row.x.squares.high == 0 && is_constant()) {
      centered = constant_sums(center_, n);
      is_defined_ = formula.eps > 0;
      has_derivative_ = is_defined_ && formula.eps_on == EpsOn::variance;
    }
  }
  GradientSums sums = row;
  bool has_sums = row.g_squares > 0 || !setting_.wants_dx;
  if (!std::isfinite(row.g_squares) && !find_g_finite()) {
    sums.g = sums.gx = {};
    sums.g_squares = 0;
    has_sums = true;
  }
  // Sums that overflow, or lose all their bits, are for integers to decide.
  is_zero_ = setting_.wants_dx && is_g_finite_ && is_dx_zero(sums);
  if ((has_sums || is_zero_) && (saved_ || (centered && has_derivative_))) {
    wide_ = wide_gradient(sums, centered ? &*centered : nullptr, n, formula,
                          saved_ ? &*saved_ : nullptr, growth);
  }
  if (!wide_) find_exact();
}

bool RowGradient::find_g_finite() {
  read_row_([&](const GradientPart& part) {
    for_each_element(part.dy, [&](std::int64_t i, Number dy) {
      const Number w = weight_at(setting_.weight, part.offset + i);
      is_g_finite_ = is_g_finite_ && std::isfinite(dy.high) && std::isfinite(w.high);
    });
  });
  return is_g_finite_;
}

void RowGradient::find_exact() {
  ExactGradientSums sums;
  read_row_([&](const GradientPart& part) { add_exact_sums(part, setting_.weight, sums); });
  is_x_finite_ = sums.x.finite;
  is_g_finite_ = sums.is_g_finite;
  if (!is_x_finite_) return;
  exact_ = std::make_unique<ExactGradient>(sums, setting_.row_length, setting_.formula,
                                           saved_ ? &*saved_ : nullptr);
  is_defined_ = exact_->is_defined();
  has_derivative_ = exact_->has_derivative();
}

// Squares of deviations can be 0 where the deviations are not.
bool RowGradient::is_constant() const {
  bool constant = true;
  read_row_([&](const GradientPart& part) {
    if (!constant) return;
    for_each_element(part.x, [&](std::int64_t, Number x) {
      constant = constant && x.high == center_ && x.low == 0;
    });
  });
  return constant;
}

// Where g is the same for all elements dx is 0, unless mean and s are not those of the row; and where it is 0. That is
// so common (the gradient of a sum, masked rows) that integers should not have to decide it.
bool RowGradient::is_dx_zero(const GradientSums& sums) const {
  const AffineTerm& weight = setting_.weight;
  const bool any = !setting_.formula.rms && !saved_ && weight.is_uniform();
  const bool may_be = sums.g_squares == 0 ||
                      (any && may_be_constant(sums.g.high, sums.g_squares, setting_.row_length));
  if (!may_be) return false;
  std::optional<Number> first;
  bool constant = true;
  read_row_([&](const GradientPart& part) {
    if (!constant) return;
    const RowsIn& dy = part.dy;
    // As a rule the first two tell.
    constexpr std::int64_t kFew = 2;
    for (std::int64_t start = 0; constant && start < dy.row_length;) {
      const std::int64_t count = std::min(start == 0 ? kFew : kChunk, dy.row_length - start);
      for_each_element(part_of(dy, start, count), [&](std::int64_t i, Number g) {
        const Number w = weight_at(weight, part.offset + start + i);
        const bool is_zero = g.high == 0 || w.high == 0;
        if (is_zero) g = {};
        if (!first) first = g;
        constant = constant && g.high == first->high && g.low == first->low && (is_zero || any);
      });
      start += count;
    }
  });
  return constant;
}

const RowGradient& RowGradient::better() const {
  const std::lock_guard lock(mutex_);
  if (!better_) {
    GradientSetting setting = setting_;
    setting.in_parts = true;
    auto row =
        std::make_unique<RowGradient>(setting, sample_, saved_ ? &*saved_ : nullptr, read_row_);
    row->sum_up();
    better_ = std::move(row);
  }
  return *better_;
}

const ExactGradient& RowGradient::exact() const {
  const std::lock_guard lock(mutex_);
  if (!exact_) {
    ExactGradientSums sums;
    read_row_([&](const GradientPart& part) { add_exact_sums(part, setting_.weight, sums); });
    exact_ = std::make_unique<ExactGradient>(sums, setting_.row_length, setting_.formula,
                                             saved_ ? &*saved_ : nullptr);
  }
  return *exact_;
}

void RowGradient::write(const GradientPart& part, const RowsOut& dx,
                        ColumnGradients* columns) const {
  const KernelTable* const passes = setting_.kernel.passes;
  const bool is_regular = has_dx() && is_defined_;
  RowsOut regular_dx = dx;
  if (is_zero_) regular_dx.data = nullptr;
  ColumnGradients* rest = columns;
  if (is_regular && (narrow_ || wide_)) {
    if (regular_dx.data != nullptr || columns != nullptr) {
      if (narrow_) {
        std::optional<NarrowColumns> at;
        if (columns != nullptr) at = columns->narrow({&*narrow_, 1});
        passes->narrow_gradient_write(part, &*narrow_, setting_.weight, regular_dx,
                                      at ? &*at : nullptr, *this);
      } else {
        std::optional<WideColumns> at;
        if (columns != nullptr) at = columns->wide(part.offset);
        passes->wide_gradient_write(part, *wide_, setting_.weight, regular_dx, at ? &*at : nullptr,
                                    *this);
      }
    }
    if (regular_dx.data != nullptr) return;
    rest = nullptr;
  }
  if (dx.data != nullptr) write_dx(part, dx);
  if (rest != nullptr) add_terms(part, *rest);
}

// What the passes do not write.
void RowGradient::write_dx(const GradientPart& part, const RowsOut& dx) const {
  if (!has_dx()) return fill(dx, part.x.row_length, kNan);
  if (is_zero_) return fill(dx, part.x.row_length, 0);
  const auto size = static_cast<std::int64_t>(item_size(dx.dtype));
  for_each_pair_of(part, [&](std::int64_t i, Number x, Number dy) {
    const double result = resolve(0, part.offset + i, x, dy);
    store(&result, 1, dx.dtype, dx.data + i * size);
  });
}

void RowGradient::add_terms(const GradientPart& part, ColumnGradients& columns) const {
  columns.wide(part.offset);
  for_each_pair_of(part, [&](std::int64_t i, Number x, Number dy) {
    add_term(part.offset + i, x, dy, columns);
  });
}

void RowGradient::add_term(std::int64_t column, Number x, Number dy,
                           ColumnGradients& columns) const {
  if (!std::isfinite(dy.high)) {
    columns.mark_dweight_nan(column);
    columns.mark_dbias_nan(column);
    return;
  }
  columns.add_dbias(column, dy);
  if (!has_xhat()) {
    columns.mark_dweight_nan(column);
  } else if (const auto known = term(x, dy)) {
    columns.add_dweight(column, known->value, known->error);
  } else {
    columns.open_dweight(column);
  }
}

// Of dy * xhat, unless only integers tell.
std::optional<RowGradient::WideTerm> RowGradient::term(Number x, Number dy) const {
  if (wide_) {
    const DoubleDouble xhat = (DoubleDouble{x.high, x.low} - wide_->mean) * wide_->rstd;
    const double error = wide_->xhat.offset + wide_->xhat.slope * std::fabs(xhat.high);
    return WideTerm{xhat * DoubleDouble{dy.high, dy.low}, std::fabs(dy.high) * error};
  }
  if (narrow_) {
    const double xhat = (x.high - narrow_->center - narrow_->shift) * narrow_->rstd;
    const double error = narrow_->xhat.offset + (narrow_->xhat.slope + 4 * kUnit) * std::fabs(xhat);
    return WideTerm{{dy.high * xhat}, std::fabs(dy.high) * error};
  }
  if (dy.high == 0 || exact().is_mean(x)) return WideTerm{};
  return std::nullopt;
}

Dyadic RowGradient::g_of(std::int64_t index, Number dy) const {
  return Dyadic(dy) * Dyadic(weight_at(setting_.weight, index));
}

double RowGradient::resolve(std::int64_t, std::int64_t index, Number x, Number dy) const {
  const Number w = weight_at(setting_.weight, index);
  const auto error_of = [](const GradientBounds& bounds, double g, double deviation) {
    return (bounds.g_error * std::fabs(g) + bounds.x_error * std::fabs(deviation) + bounds.offset) *
           (1 + 0x1p-8);
  };
  Bracket result;
  if (narrow_) {
    const double d = x.high - narrow_->center;
    const double g = dy.high * w.high;
    const double dx = g * narrow_->rstd + (d * narrow_->slope + narrow_->constant);
    result = bracket(dx, error_of(narrow_->dx, g, d - narrow_->shift), setting_.dx);
    if (result.is_decided()) return result.least;
  }
  if (wide_) {
    const DoubleDouble deviation = DoubleDouble{x.high, x.low} - wide_->mean;
    const DoubleDouble g = DoubleDouble{dy.high, dy.low} * DoubleDouble{w.high, w.low};
    const DoubleDouble dx = g * wide_->rstd + (deviation * wide_->slope + wide_->constant);
    result = bracket(dx, error_of(wide_->dx, g.high, deviation.high), setting_.dx);
    if (result.is_decided()) return result.least;
  }
  if (!wide_ && !exact_ && !setting_.in_parts) return better().resolve(0, index, x, dy);
  return exact().dx(x, g_of(index, dy), setting_.dx, result.least, result.most);
}

}  // namespace lnorm
