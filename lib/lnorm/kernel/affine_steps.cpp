#include "lnorm/kernel/affine_steps.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/bracket.hpp"
#include "lnorm/kernel/dyadic.hpp"
#include "lnorm/kernel/kernel_table.hpp"

namespace lnorm {

namespace {

// The result where one of the three is not finite. A product of finite numbers is finite, however large.
double by_ieee_rules(double y, double weight, double bias) {
  const bool has_product = std::isfinite(y) && std::isfinite(weight);
  return has_product ? bias : y * weight + bias;
}

// Whether products and sums of double-doubles keep their bits.
bool keeps_bits(double y, Number weight, Number bias) {
  const double greatest = std::max({std::fabs(y), std::fabs(weight.high), std::fabs(bias.high)});
  const double product = std::fabs(y * weight.high);
  if (greatest > 0x1p900 || product > 0x1p1000) return false;
  return product >= 0x1p-900 || y == 0 || weight.high == 0;
}

}  // namespace

double take_step(const AffineStep& step, std::int64_t index, double y, DType dtype,
                 bool by_integers) {
  const Number weight = step.weight.number_or(1, index);
  const Number bias = step.bias.number_or(0, index);
  if (!std::isfinite(y) || !std::isfinite(weight.high) || !std::isfinite(bias.high)) {
    return by_ieee_rules(y, weight.high, bias.high);
  }
  const bool has_low = weight.low != 0 || bias.low != 0;
  if (!by_integers && dtype == DType::float64 && !has_low) {
    return std::fma(y + 0.0, weight.high, bias.high);
  }
  if (!by_integers && keeps_bits(y, weight, bias)) {
    const DoubleDouble product = DoubleDouble{weight.high, weight.low} * y;
    const double error = 3 * kUnit2 * std::fabs(product.high);
    const Bracket result = bracket(product + DoubleDouble{bias.high, bias.low}, error, dtype);
    if (result.is_decided()) return result.least;
  }
  return rounded(Dyadic(y) * Dyadic(weight) + Dyadic(bias), dtype);
}

void take_steps(const Backend& backend, const Affine& affine, const RowsOut& y, std::int64_t count,
                std::int64_t number) {
  const bool repeats = affine.layout().repeat > 1;
  const std::int64_t offset = repeats ? 0 : number;
  for (const AffineStep& given : affine.steps()) {
    AffineStep alone;
    if (repeats) alone = {given.weight.alone(number), given.bias.alone(number)};
    const AffineStep& step = repeats ? alone : given;
    if (backend.table != nullptr) {
      backend.table->take_step(step, y, count, offset);
      continue;
    }
    const RowsIn results{y.data, y.dtype, std::endian::native, 1, count};
    write_each(results, y, [&](std::int64_t i, Number element) {
      return take_step(step, offset + i, element.high, y.dtype, true);
    });
  }
}

}  // namespace lnorm
