#include "lnorm/kernel/exact_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/dyadic.hpp"

namespace lnorm {

namespace {

constexpr double kMinLog2 = -5000;

// A number known to lie from low to high, in units of 2^-bits.
struct Interval {
  Integer low = 0;
  Integer high = 0;
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

class Row {
 public:
  Row(const ReadRow& read_row, Number max) : read_row_(read_row), max_(max) {}

  // max - x >= 0
  Dyadic size(Number x) const { return max_ - Dyadic(x); }

  // The sum of exp(x - max). is_open: high is not reached.
  Interval sum(std::int64_t bits, bool& is_open) const {
    Interval total;
    is_open = false;
    std::int64_t vanishing = 0;
    const auto add = [&](std::int64_t, Number x) {
      if (std::isinf(x.high)) return;  // masked
      const Dyadic d = size(x);
      if (d.sign() != 0 && compare_positive(d, Dyadic(-kMinLog2)) > 0) {  // ln 2 < 1
        ++vanishing;
        return;
      }
      const Interval e = exp_of_minus(d, bits);
      total.low += e.low;
      total.high += e.high;
    };
    read_row_([&](const RowsIn& part) { for_each_element(part, add); });
    if (vanishing > 0) {
      const bool is_exact = total.low == total.high;
      total.high +=
          fixed_point({Integer(vanishing), static_cast<std::int64_t>(kMinLog2)}, bits) + 1;
      is_open = is_exact;
    }
    return total;
  }

 private:
  const ReadRow& read_row_;
  Dyadic max_;
};

}  // namespace

double exact_softmax(const ReadRow& read_row, Number x, Number max, DType dtype,
                     const SoftmaxResult& known) {
  if (known.scale == 0) return 0;
  const Row values(read_row, max);
  const FloatOrder order(dtype);
  const Dyadic size = values.size(x);
  const Dyadic scale(std::fabs(known.scale));
  const bool is_negative = known.scale < 0;
  // exp of less is below half of the smallest number.
  if (size.sign() != 0 && compare_positive(size, Dyadic(2000.0)) > 0) {
    return std::copysign(0.0, known.scale);
  }
  const double least = std::max(0.0, is_negative ? -known.most : known.least);
  const double most = is_negative ? -known.least : known.most;
  for (std::int64_t bits = 4096;; bits *= 2) {
    bool is_open = false;
    const Interval sum = values.sum(bits, is_open);
    const Interval e = exp_of_minus(size, bits);
    bool is_decided = true;
    const double result =
        nearest(order, order.index(least), order.index(most), 0, [&](const Dyadic& m) {
          const int low = compare(Dyadic(e.low, 0) * scale, m * Dyadic(sum.high, 0));
          const int high = compare(Dyadic(e.high, 0) * scale, m * Dyadic(sum.low, 0));
          if (low == high || (is_open && high == 0)) return low;
          is_decided = false;
          return 0;
        });
    if (is_decided) return std::copysign(result, known.scale);
  }
}

}  // namespace lnorm
