#include "lnorm/kernel/softmax_row.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/bracket.hpp"
#include "lnorm/kernel/dyadic.hpp"
#include "lnorm/kernel/exp.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

namespace {

// Sums are kept apart, so that elements go through few additions each.
constexpr std::int64_t kLanes = 16;

// exp of which is far below the smallest double, and below the smallest float8 for any scale.
constexpr double kMin = -1200;

// exp(x - max). The difference is off by 3 u^2 of itself where both have low parts, and else exact.
Exp::Power exp_of(Number x, Number max, bool is_tiny) {
  if (is_tiny) return Exp::shared().in_double_double({kMin});
  return Exp::shared().in_double_double(two_sum(x.high, -max.high) + two_sum(x.low, -max.low));
}

constexpr double kMinLog2 = -5000;

// A number known to lie from low to high, in units of 2^-bits. is_open: high is not reached.
struct Interval {
  Integer low = 0;
  Integer high = 0;
  bool is_open = false;
};

// floor(value * 2^bits)
Integer fixed_point(const Dyadic& value, std::int64_t bits) {
  const std::int64_t shift = value.exponent + bits;
  if (shift >= 0) return value.significand << static_cast<unsigned>(shift);
  return value.significand >> static_cast<unsigned>(-shift);
}

// exp(-size), size >= 0, in units of 2^-bits. With r = size / 2^halvings < 2^-8, exp(-r) is a Taylor series, which is then
// squared so often.
Interval exp_of_minus(const Dyadic& size, std::int64_t bits) {
  if (size.sign() == 0)
    return {Integer(1) << static_cast<unsigned>(bits), Integer(1) << static_cast<unsigned>(bits)};
  const std::int64_t halvings = std::max<std::int64_t>(0, size.magnitude() + 9);
  const std::int64_t inner = bits + 2 * halvings + 32;
  const Integer one = Integer(1) << static_cast<unsigned>(inner);
  const Integer r = fixed_point({size.significand, size.exponent - halvings}, inner);
  Integer term = one;
  Integer sum = one;
  for (int i = 1; term != 0; ++i) {
    term = (term * r) >> static_cast<unsigned>(inner);
    term /= i;
    sum += i % 2 == 1 ? Integer(-term) : term;
  }
  for (std::int64_t i = 0; i < halvings; ++i) sum = (sum * sum) >> static_cast<unsigned>(inner);
  // r, each of fewer than bits terms, and what follows the last one are off by an inner unit or two; each
  // squaring doubles the error, and adds a unit. That is less than 2^(halvings + 32) units.
  const Integer result = sum >> static_cast<unsigned>(inner - bits);
  return {result - 1, result + 2};
}

// The sum of exp(x - max).
Interval sum_of_exp(const ReadRow& read_row, const Dyadic& max, std::int64_t bits) {
  Interval total;
  std::int64_t vanishing = 0;
  const auto add = [&](std::int64_t, Number x) {
    if (std::isinf(x.high)) return;  // masked
    const Dyadic size = max - Dyadic(x);
    if (size.sign() != 0 && compare_positive(size, Dyadic(-kMinLog2)) > 0) {  // ln 2 < 1
      ++vanishing;
      return;
    }
    const Interval e = exp_of_minus(size, bits);
    total.low += e.low;
    total.high += e.high;
  };
  read_row([&](const RowsIn& part) { for_each_element(part, add); });
  if (vanishing > 0) {
    total.is_open = total.low == total.high;
    total.high += fixed_point({Integer(vanishing), static_cast<std::int64_t>(kMinLog2)}, bits) + 1;
  }
  return total;
}

}  // namespace

Number largest_element(const ReadRow& read_row) {
  Number largest{-kInfinity};
  read_row([&](const RowsIn& part) {
    for_each_element(part, [&](std::int64_t, Number x) {
      const bool larger = x.high > largest.high || (x.high == largest.high && x.low > largest.low);
      if (larger || std::isnan(x.high)) largest = x;
    });
  });
  return largest;
}

SoftmaxRow::SoftmaxRow(ReadRow read_row, std::int64_t row_length, Number max, double scale)
    : read_row_(std::move(read_row)),
      max_(max),
      scale_(scale),
      factor_(std::frexp(scale, &exponent_)) {
  DoubleDouble lanes[kLanes];
  std::int64_t before = 0;
  read_row_([&](const RowsIn& part) {
    for_each_element(part, [&](std::int64_t i, Number x) {
      const Exp::Power e = exp_of(x, max_, is_tiny(x));
      // What is below 2^-1000 does not show in a sum that is at least 1.
      const double power = Exp::power_of_two(std::max<std::int64_t>(e.exponent, -1000));
      DoubleDouble& lane = lanes[(before + i) % kLanes];
      lane = lane + DoubleDouble{e.m.high * power, e.m.low * power};
    });
    before += part.row_length;
  });
  for (const DoubleDouble& lane : lanes) sum_ = sum_ + lane;
  // Every addition is off by 3 u^2, the quotient by 10 u^2, the product with the scale by 3 u^2. Both exponentials have their errors.
  const std::int64_t in_lane = row_length / kLanes + 1;
  const auto additions = static_cast<double>(in_lane + kLanes);
  const double of_exp = Exp::kDoubleDoubleError - 3 * kMin * kUnit2;
  error_ = (2 * of_exp + (3 * additions + 13) * kUnit2) * kSlack;
}

double SoftmaxRow::result(Number x, DType dtype) const {
  if (std::isinf(x.high)) return 0;  // masked
  if (is_tiny(x)) return std::copysign(0.0, scale_);
  if (const auto y = double_result(x, dtype)) return *y;
  // Results lie halfway only where all elements are the same.
  if (last_ && last_->x.high == x.high && last_->x.low == x.low) return last_->y;
  const Exp::Power e = exp_of(x, max_, false);
  const DoubleDouble y = e.m / sum_ * factor_;
  const double margin = std::fabs(y.high) * (error_ + bound::kRounding * kUnit2);
  const double least = rounded(y + -margin, e.exponent + exponent_, dtype);
  const double most = rounded(y + margin, e.exponent + exponent_, dtype);
  if (same_result(least, most)) return least;
  last_ = Exact{x, exact_softmax(read_row_, x, max_, dtype, scale_, least, most)};
  return last_->y;
}

// x - max is off by u |x - max|, which is a relative error of its exponential; the sum in double, and the quotient, by u each.
std::optional<double> SoftmaxRow::double_result(Number x, DType dtype) const {
  constexpr double kMinDouble = -700;
  const double d = x.high - max_.high;
  const bool fits_doubles = dtype != DType::float64 && scale_ == 1 && x.low == 0 && max_.low == 0;
  if (!fits_doubles || d < kMinDouble) return std::nullopt;
  const double y = Exp::in_double(d) / sum_.high;
  const Bracket known = bracket(y, y * (Exp::kDoubleError + (4 - d) * kUnit) * kSlack, dtype);
  return known.is_decided() ? std::optional(known.least) : std::nullopt;
}

bool SoftmaxRow::is_tiny(Number x) const {
  return (x.high - max_.high) + (x.low - max_.low) < kMin;
}

double exact_softmax(const ReadRow& read_row, Number x, Number max, DType dtype, double scale,
                     double least, double most) {
  if (scale == 0) return 0;
  const FloatOrder order(dtype);
  const Dyadic size = Dyadic(max) - Dyadic(x);
  const Dyadic factor(std::fabs(scale));
  // exp of less is below half of the smallest number.
  if (size.sign() != 0 && compare_positive(size, Dyadic(2000.0)) > 0) {
    return std::copysign(0.0, scale);
  }
  const std::int64_t first = order.index(std::max(0.0, scale < 0 ? -most : least));
  const std::int64_t last = order.index(scale < 0 ? -least : most);
  for (std::int64_t bits = 4096;; bits *= 2) {
    const Interval sum = sum_of_exp(read_row, Dyadic(max), bits);
    const Interval e = exp_of_minus(size, bits);
    bool is_decided = true;
    const double result = nearest(order, first, last, 0, [&](const Dyadic& m) {
      const int low = compare(Dyadic(e.low, 0) * factor, m * Dyadic(sum.high, 0));
      const int high = compare(Dyadic(e.high, 0) * factor, m * Dyadic(sum.low, 0));
      if (low == high || (sum.is_open && high == 0)) return low;
      is_decided = false;
      return 0;
    });
    if (is_decided) return std::copysign(result, scale);
  }
}

}  // namespace lnorm
