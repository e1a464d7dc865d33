#include "lnorm/kernel/softmax_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lnorm/kernel/exact_softmax.hpp"
#include "lnorm/kernel/exp.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

namespace {

constexpr double kSlack = 1 + 0x1p-8;

// Sums are kept apart, so that elements go through few additions each.
constexpr std::int64_t kLanes = 16;

// exp of which is far below the smallest double, and below the smallest float8 for any scale.
constexpr double kMin = -1200;

// exp(x - max). The difference is off by 3 u^2 of itself where both have low parts, and else exact.
Exp::Wide exp_of(Number x, Number max, bool is_tiny) {
  if (is_tiny) return Exp::shared().wide({kMin});
  return Exp::shared().wide(two_sum(x.high, -max.high) + two_sum(x.low, -max.low));
}

}  // namespace

Number largest_element(const ReadRow& read_row) {
  Number largest{-std::numeric_limits<double>::infinity()};
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
      const Exp::Wide e = exp_of(x, max_, is_tiny(x));
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
  const double of_exp = Exp::kWideError - 3 * kMin * kUnit * kUnit;
  error_ = (2 * of_exp + (3 * additions + 13) * kUnit * kUnit) * kSlack;
}

double SoftmaxRow::result(Number x, DType dtype) const {
  if (std::isinf(x.high)) return 0;  // masked
  if (is_tiny(x)) return std::copysign(0.0, scale_);
  if (const auto narrow = narrow_result(x, dtype)) return *narrow;
  // Where results lie halfway all elements are the same.
  if (last_ && last_->x.high == x.high && last_->x.low == x.low) return last_->y;
  const Exp::Wide e = exp_of(x, max_, false);
  const DoubleDouble y = e.m / sum_ * factor_;
  const double margin = std::fabs(y.high) * (error_ + 4 * kUnit * kUnit);
  const double least = rounded(y + -margin, e.exponent + exponent_, dtype);
  const double most = rounded(y + margin, e.exponent + exponent_, dtype);
  if (same_result(least, most)) return least;
  last_ = Exact{x, exact_softmax(read_row_, x, max_, dtype, {scale_, least, most})};
  return last_->y;
}

// x - max is off by u |x - max|, which is a relative error of its exponential; the sum in double, and the quotient, by u each.
std::optional<double> SoftmaxRow::narrow_result(Number x, DType dtype) const {
  constexpr double kMinNarrow = -700;
  const double d = x.high - max_.high;
  const bool is_narrow = dtype != DType::float64 && scale_ == 1 && x.low == 0 && max_.low == 0;
  if (!is_narrow || d < kMinNarrow) return std::nullopt;
  const double y = Exp::shared().narrow(d) / sum_.high;
  const double margin = y * (Exp::kNarrowError + (4 - d) * kUnit) * kSlack;
  const double least = rounded(y - margin, dtype);
  if (!same_result(least, rounded(y + margin, dtype))) return std::nullopt;
  return least;
}

bool SoftmaxRow::is_tiny(Number x) const {
  return (x.high - max_.high) + (x.low - max_.low) < kMin;
}

}  // namespace lnorm
