#include "lnorm/kernel/row_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "lnorm/core/non_finite.hpp"

namespace lnorm {

namespace {

// Products of two doubles from here on are exact sums of two.
constexpr double kLeastProduct = 0x1p-900;

// The terms of the bounds of an element.
double error_of(const GradientBounds& bounds, double g, double deviation) {
  return (bounds.g_error * std::fabs(g) + bounds.x_error * std::fabs(deviation) + bounds.offset) *
         kSlack;
}

constexpr double kMostUnscaledWeight = 0x1p64;

// Whether g may be a line in x, c + b x (without a mean b x), whose dx is 0 without eps, as far as its sums tell.
bool may_be_line(const GradientSums& sums, std::int64_t n, const Formula& formula) {
  if (formula.eps != 0) return false;
  const auto count = static_cast<double>(n);
  const double x = sums.x.sum.high;
  const double g = sums.g.high;
  const double product = sums.gx.high - x * g / count;
  const double x_squares = sums.x.squares.high - x * x / count;
  const double g_squares = sums.g_squares - g * g / count;
  return product * product >= x_squares * g_squares * (1 - 0x1p-20);
}

}  // namespace

bool starts_in_doubles(const GradientSetting& setting) noexcept {
  return setting.backend.table != nullptr && fits_doubles(setting.x, setting.dx) &&
         fits_doubles(setting.dy, setting.dx) && !setting.needs_double_doubles &&
         setting.wants_dx && !is_float8(setting.dx) && setting.weight.is_within(kMaxDoubleAffine);
}

RowGradient::RowGradient(const GradientSetting& setting, const RowSample& sample,
                         const SavedStatistics* saved, ReadGradientRow read_row)
    : RowLadder(setting, sample, std::move(read_row)) {
  if (saved != nullptr) {
    saved_ = *saved;
    if (!std::isfinite(saved->mean.high) ||
        !std::isfinite(saved->variance.value_or(saved->rstd).high)) {
      has_ = Has::nothing;
      return;
    }
  }
  const bool is_fast =
      setting.backend.table != nullptr && (!saved_ || plain_rstd(*saved_, setting.formula));
  if (!is_fast) {
    find_exact();
  } else if (starts_in_doubles(setting)) {
    start(Precision::doubles, saved_ ? saved_->mean.high : center());
  } else {
    start_double_doubles();
  }
}

std::unique_ptr<RowGradient> RowGradient::again(const GradientSetting& setting) const {
  return std::make_unique<RowGradient>(setting, sample_, saved(), read_row_);
}

void RowGradient::start_double_doubles() {
  start(Precision::double_doubles, saved_ ? saved_->mean.high : center());
}

GradientSums RowGradient::sums(const GradientPart& part) const {
  const KernelTable& table = *setting_.backend.table;
  if (!setting_.wants_dx) return {.x = table.double_double_sums(part.x, center_)};
  if (summing_ != Precision::doubles) {
    return table.double_double_gradient_sums(part, center_, setting_.weight);
  }
  GradientRowSums row{.center = {center_}};
  table.double_gradient_sums(part, setting_.weight, row);
  return {{{row.x[0]}, {row.x_squares[0]}}, {row.g[0]}, {row.gx[0]}, row.g_squares[0]};
}

void RowGradient::take_doubles(const GradientSums& row) {
  // Finite elements are too small to overflow.
  const bool is_g_finite = std::isfinite(row.g_squares);
  if (!std::isfinite(row.x.squares.high)) return limit_to(Has::nothing);
  if (!is_g_finite) limit_to(Has::xhat);
  // The sums of x tell x-hat, whatever g is.
  const GradientSums sums = is_g_finite ? row : GradientSums{.x = row.x};
  DoubleGradients& gradients = doubles_.emplace();
  const GradientRowSums of_row{{center_},     {sums.x.sum.high}, {sums.x.squares.high},
                               {sums.g.high}, {sums.gx.high},    {sums.g_squares}};
  setting_.backend.table->double_gradients(GradientRule(setting_), of_row, 1, saved(), gradients);
  const bool is_usable = gradients.usable != 0;
  if (is_usable && is_g_finite && is_dx_zero(sums)) return limit_to(Has::dx_of_zeros);
  if (is_usable && (!is_g_finite || gradients.decides != 0)) return;
  doubles_.reset();
  if (is_usable || saved_ || !starts_about_mean(row.x.sum.high)) start_double_doubles();
}

void RowGradient::take_double_doubles(const GradientSums& row) {
  const std::int64_t n = setting_.row_length;
  const Formula& formula = setting_.formula;
  const double growth = double_double_growth(n, setting_.backend.table->gradient_lanes);
  if (!saved_ && !find_centered(row.x, growth)) return;
  const bool is_constant = centered_ && centered_->is_constant();
  const bool has_derivative = !is_constant || (formula.eps > 0 && formula.eps_on != EpsOn::std);
  if (!has_derivative) limit_to(formula.eps > 0 ? Has::xhat : Has::nothing);
  GradientSums sums = row;
  bool has_sums = row.g_squares > 0 || !setting_.wants_dx;
  if (!std::isfinite(row.g_squares) && !is_g_finite()) {
    limit_to(Has::xhat);
    sums = {.x = row.x};
    has_sums = true;
  }
  // What has become 0 by scaling says nothing.
  const bool may_be_zero = setting_.wants_dx && has_ == Has::dx && !setting_.is_scaled;
  if (may_be_zero && is_dx_zero(sums)) limit_to(Has::dx_of_zeros);
  // Sums that overflow, or lose all their bits, decide nothing.
  if ((has_sums || has_ == Has::dx_of_zeros) && (saved_ || (centered_ && has_derivative))) {
    double_doubles_ =
        double_double_gradient(sums, saved_ ? nullptr : &*centered_, n, formula, saved(), growth);
  }
  if (!double_doubles_ && !setting_.is_scaled && !find_scaled()) find_exact();
}

// dx(x, dy w) = 2^(a - b - c) dx(2^a x, 2^b dy 2^c w), where eps is 2^(2 a) times as large (on the standard deviation 2^a times).
// Returns false where that does not help.
bool RowGradient::find_scaled() {
  if (saved_ || has_low(setting_.x) || has_low(setting_.dy)) return false;
  double most_x = 0;
  double most_dy = 0;
  double least_dy = kInfinity;
  read_row_([&](const GradientPart& part) {
    for_each_element(part, [&](std::int64_t, Number x, Number dy) {
      most_x = larger_size(most_x, x);
      most_dy = larger_size(most_dy, dy);
      if (dy.high != 0) least_dy = std::min(least_dy, std::fabs(dy.high));
    });
  });
  if (most_x == 0 || !std::isfinite(most_x) || !std::isfinite(most_dy)) return false;
  auto scaled = std::make_unique<Scaled>(Scaled{Scaling(most_x, setting_.formula)});
  scaled->dy = most_dy == 0 ? 0 : -std::ilogb(most_dy);
  // A large weight would show what a small dy loses.
  if (times_power(least_dy, scaled->dy) < std::numeric_limits<double>::min()) return false;
  const AffineTerm& weight = setting_.weight;
  const bool keeps_weight = weight.is_within(kMostUnscaledWeight) || weight.has_low_parts() ||
                            !std::isfinite(weight.max_abs());
  if (!keeps_weight) {
    scaled->weight_exponent = -std::ilogb(weight.max_abs());
    std::vector<double> numbers = weight.numbers();
    for (double& number : numbers) {
      const bool is_zero = number == 0;
      number = times_power(number, scaled->weight_exponent);
      if (!is_zero && std::fabs(number) < std::numeric_limits<double>::min()) return false;
    }
    scaled->weight = AffineTerm(std::move(numbers), {});
  }
  const GradientSetting setting{.backend = setting_.backend,
                                .x = DType::float64,
                                .dy = DType::float64,
                                .dx = setting_.dx,
                                .row_length = setting_.row_length,
                                .weight = keeps_weight ? weight : scaled->weight,
                                .formula = scaled->x.formula,
                                .needs_double_doubles = true,
                                .wants_dx = setting_.wants_dx,
                                .is_scaled = true};
  scaled->row = std::make_unique<RowGradient>(
      setting, scaled->x.of(sample_), nullptr,
      [read = read_row_, x = scaled->x.exponent, dy = scaled->dy](const auto& see) {
        read([&](const GradientPart& part) {
          std::vector<double> buffers[2];
          see({times_power(part.x, x, buffers[0]), times_power(part.dy, dy, buffers[1]),
               part.offset});
        });
      });
  if (!take_scaled(std::move(scaled))) return false;
  limit_to(scaled_->row->has_);
  return true;
}

bool RowGradient::is_g_finite() const {
  bool is_finite = true;
  read_row_([&](const GradientPart& part) {
    for_each_element(part.dy, [&](std::int64_t i, Number dy) {
      const Number w = setting_.weight.number_or(1, part.offset + i);
      is_finite = is_finite && std::isfinite(dy.high) && std::isfinite(w.high);
    });
  });
  return is_finite;
}

void RowGradient::find_exact() {
  exact_ = make_exact();
  if (!exact_ || !exact_->is_defined()) {
    limit_to(Has::nothing);
  } else if (!exact_->has_dx()) {
    limit_to(Has::xhat);
  }
}

std::unique_ptr<const ExactGradient> RowGradient::make_exact() const {
  ExactGradientSums sums;
  read_row_([&](const GradientPart& part) {
    if (setting_.wants_dx) {
      add_exact_sums(part, setting_.weight, sums);
    } else {
      sums.x += exact_sums(part.x);
    }
  });
  if (!sums.x.finite) return nullptr;
  return std::make_unique<ExactGradient>(sums, setting_.row_length, setting_.formula, saved());
}

// Without eps, dx is 0 where g is a line in x as well: (g - g0) (x1 - x0) = (g1 - g0) (x - x0) for all elements. Without a mean
// g0 and x0 are 0. Products of doubles tell, where differences are doubles.
bool RowGradient::is_line() const {
  bool is_exact = true;
  std::optional<std::pair<double, double>> first;  // x0, g0
  std::optional<std::pair<double, double>> other;  // x1 - x0, g1 - g0
  if (!setting_.formula.has_mean()) first = {0, 0};
  const auto difference = [&](double a, double b) {
    const DoubleDouble exact = two_sum(a, -b);
    is_exact = is_exact && exact.low == 0;
    return exact.high;
  };
  const auto product = [&](double a, double b) {
    const DoubleDouble exact = two_product(a, b);
    is_exact = is_exact && std::isfinite(exact.low) &&
               (a == 0 || b == 0 || std::fabs(exact.high) > kLeastProduct);
    return exact;
  };
  bool is_line = true;
  read_row_([&](const GradientPart& part) {
    if (!is_line || !is_exact) return;
    for_each_element(part, [&](std::int64_t i, Number x, Number dy) {
      if (!is_line || !is_exact) return;
      const Number weight = setting_.weight.number_or(1, part.offset + i);
      const DoubleDouble g = weight.high == 1 ? DoubleDouble{dy.high}  // saves time
                                              : product(dy.high, weight.high);
      is_exact = is_exact && x.low == 0 && dy.low == 0 && weight.low == 0 && g.low == 0;
      if (!first) first = {x.high, g.high};
      const double d = difference(x.high, first->first);
      const double e = difference(g.high, first->second);
      if (!other && d != 0) other = {d, e};
      if (other && other->first == other->second) {  // dy is x, most often
        is_line = d == e;
        return;
      }
      const DoubleDouble left = other ? product(e, other->first) : DoubleDouble{e};
      const DoubleDouble right = other ? product(other->second, d) : DoubleDouble{};
      is_line = left.high == right.high && left.low == right.low;
    });
  });
  return is_line && is_exact;
}

// dx is 0 where g is 0, and where g is the same for all elements, unless mean and s are not those of the row. That is
// so common (the gradient of a sum, masked rows) that integers should not have to decide it.
bool RowGradient::is_dx_zero(const GradientSums& sums) const {
  const AffineTerm& weight = setting_.weight;
  const bool any = setting_.formula.has_mean() && !saved_ && weight.is_uniform();
  const bool may_be = sums.g_squares == 0 ||
                      (any && may_be_constant(sums.g.high, sums.g_squares, setting_.row_length));
  if (!may_be) {
    return !saved_ && may_be_line(sums, setting_.row_length, setting_.formula) && is_line();
  }
  std::optional<Number> first;
  bool constant = true;
  read_row_([&](const GradientPart& part) {
    if (!constant) return;
    const RowsIn& dy = part.dy;
    // Most often the first two tell.
    constexpr std::int64_t kFew = 2;
    for (std::int64_t start = 0; constant && start < dy.row_length;) {
      const std::int64_t count = std::min(start == 0 ? kFew : kChunk, dy.row_length - start);
      for_each_element(part_of(dy, start, count), [&](std::int64_t i, Number g) {
        const Number w = weight.number_or(1, part.offset + start + i);
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

void RowGradient::write(const GradientPart& part, const RowsOut& dx,
                        ColumnGradients* columns) const {
  const bool has_dx = has_ >= Has::dx_of_zeros;
  const bool by_passes = has_dx && (doubles_ || double_doubles_);
  RowsOut rest_of_dx = dx;
  if (by_passes) {
    RowsOut of_passes = dx;
    (has_ == Has::dx_of_zeros ? of_passes : rest_of_dx).data = nullptr;
    if (of_passes.data != nullptr || columns != nullptr) write_by_table(part, of_passes, columns);
  }
  if (rest_of_dx.data != nullptr) write_dx(part, rest_of_dx);
  if (columns == nullptr || by_passes) return;
  columns->in_double_doubles(part.offset);
  for_each_element(part, [&](std::int64_t i, Number x, Number dy) {
    add_term(part.offset + i, x, dy, *columns);
  });
}

void RowGradient::write_by_table(const GradientPart& part, const RowsOut& dx,
                                 ColumnGradients* columns) const {
  const KernelTable& table = *setting_.backend.table;
  if (doubles_) {
    const ColumnSums at =
        columns == nullptr ? ColumnSums() : columns->in_doubles(doubles_->xhat, 1);
    table.double_gradient_write(part, *doubles_, 0, setting_.weight, dx, at, *this);
  } else {
    const ColumnSums at =
        columns == nullptr ? ColumnSums() : columns->in_double_doubles(part.offset);
    table.double_double_gradient_write(part, *double_doubles_, setting_.weight, dx, at, *this);
  }
}

// What the kernel table does not write.
void RowGradient::write_dx(const GradientPart& part, const RowsOut& dx) const {
  if (has_ != Has::dx) return fill(dx, part.x.row_length, has_ == Has::dx_of_zeros ? 0 : kNan);
  for_each_element(part, [&](std::int64_t i, Number x, Number dy) {
    const double result = resolve(0, part.offset + i, x, dy);
    store(&result, 1, dx, i);
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
    columns.mark_dweight_undecided(column);
  }
}

// dy * xhat, unless only integers tell.
std::optional<RowGradient::Term> RowGradient::term(Number x, Number dy) const {
  if (scaled_) x = scaled_->x.of(x);
  if (const auto& by = scaled_ ? scaled_->row->double_doubles_ : double_doubles_) {
    const DoubleDouble deviation = DoubleDouble{x.high, x.low} - by->mean;
    const DoubleDouble xhat = xhat_of(deviation, by->rstd);
    const double size = std::fabs(dy.high);
    const double lost = scaled_ ? kLostBits : std::min(std::fabs(deviation.high), kLostBits);
    const double error = by->xhat.offset + by->xhat.slope * std::fabs(xhat.high) + kLosses * lost;
    return Term{xhat * DoubleDouble{dy.high, dy.low}, size * error + std::min(size, lost)};
  }
  if (const auto& by = doubles_) {
    const double xhat = xhat_of(x.high - by->center[0] - by->shift[0], by->rstd[0], 0.0);
    const double error = by->xhat.offset + (by->xhat.slope + 4 * kUnit) * std::fabs(xhat);
    return Term{{dy.high * xhat}, std::fabs(dy.high) * error};
  }
  if (dy.high == 0 || exact().is_mean(x)) return Term{};
  return std::nullopt;
}

double RowGradient::resolve(std::int64_t, std::int64_t index, Number x, Number dy) const {
  const Number weight = setting_.weight.number_or(1, index);
  // Masked elements are common, and no bound tells that a number is 0.
  if (saved_ && saved_->are_constants() && (dy.high == 0 || weight.high == 0)) return 0;
  const Element element{index, x, dy, weight};
  if (!scaled_) return decide(element);
  const Element scaled{index,
                       scaled_->x.of(x),
                       {times_power(dy.high, scaled_->dy), 0},
                       scaled_->row->setting_.weight.number_or(1, index)};
  const Bracket known = scaled_->row->in_double_doubles(
      scaled, scaled_->x.exponent - scaled_->dy - scaled_->weight_exponent);
  return known.is_decided() ? known.least : exactly(element, known);
}

Bracket RowGradient::in_doubles(const Element& e) const {
  const DoubleGradients& s = *doubles_;
  const double d = e.x.high - s.center[0];
  const double g = e.dy.high * e.weight.high;
  const double dx = dx_of(g, d, s.rstd[0], s.slope[0], s.constant[0]);
  const GradientBounds bounds{s.g_error[0], s.x_error[0], s.offset[0]};
  return bracket(dx, error_of(bounds, g, d - s.shift[0]), setting_.dx);
}

Bracket RowGradient::in_double_doubles(const Element& e, int exponent) const {
  const DoubleDoubleGradient& s = *double_doubles_;
  const DoubleDouble deviation = DoubleDouble{e.x.high, e.x.low} - s.mean;
  const DoubleDouble g =
      DoubleDouble{e.dy.high, e.dy.low} * DoubleDouble{e.weight.high, e.weight.low};
  const DoubleDouble dx = dx_of(g, deviation, s.rstd, s.slope, s.constant);
  return bracket(dx, error_of(s.dx, g.high, deviation.high), setting_.dx, exponent);
}

double RowGradient::exactly(const Element& e, const Bracket& known) const {
  return exact().dx(e.x, Dyadic(e.dy) * Dyadic(e.weight), setting_.dx, known.least, known.most);
}

}  // namespace lnorm
