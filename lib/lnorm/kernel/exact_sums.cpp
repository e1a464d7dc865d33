#include "lnorm/kernel/exact_sums.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lnorm/core/chunk.hpp"

namespace lnorm {

namespace {

// +-magnitude * 2^(shift - kExactUnit)
struct Element {
  std::uint64_t magnitude;
  std::int64_t shift;
  bool negative;
};

Element element_of(Number x) noexcept {
  if (x.low != 0) {  // a 64-bit integer
    const Int128 value = integer_of(x);
    return {static_cast<std::uint64_t>(value < 0 ? -value : value), kExactUnit, value < 0};
  }
  const auto bits = std::bit_cast<std::uint64_t>(x.high);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const auto exponent = static_cast<std::int64_t>(bits >> 52 & 0x7ff);
  const bool negative = (bits >> 63) != 0;
  if (exponent == 0) return {fraction, 0, negative};
  return {fraction | std::uint64_t{1} << 52, exponent - 1, negative};
}

}  // namespace

ExactSums& ExactSums::operator+=(const ExactSums& other) noexcept {
  finite = finite && other.finite;
  sum += other.sum;
  squares += other.squares;
  return *this;
}

ExactSums exact_sums(const RowsIn& x) noexcept {
  ExactSums sums;
  for_each_element(x, [&](std::int64_t, Number element) {
    sums.finite = sums.finite && std::isfinite(element.high);
    if (!sums.finite) return;
    const Element e = element_of(element);
    sums.sum.add(e.magnitude, e.shift, e.negative);
    sums.squares.add(static_cast<UInt128>(e.magnitude) * e.magnitude, 2 * e.shift, false);
  });
  return sums;
}

}  // namespace lnorm
