#include "lnorm/kernel/rounding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/non_finite.hpp"

namespace lnorm {

namespace {

// What rounds to any narrower dtype as value.high + value.low does: the double on either side of the sum whose
// last bit is odd, or the sum itself.  [Boldo, Melquiond 2008, "Emulation of a FMA and correctly rounded sums"]
double to_odd(DoubleDouble value) noexcept {
  const bool is_odd = (std::bit_cast<std::uint64_t>(value.high) & 1) != 0;
  if (value.low == 0 || is_odd || !std::isfinite(value.high)) return value.high;
  return std::nextafter(value.high, value.low > 0 ? kInfinity : -kInfinity);
}

// Below the smallest normal double, where a product with a power of two rounds: in units of the smallest one.
double rounded_subnormal(DoubleDouble value, int exponent) noexcept {
  constexpr int kUnit = 1074;
  const double sign = std::signbit(value.high) ? -1 : 1;
  const double high = std::ldexp(sign * value.high, exponent + kUnit);
  const double low = sign * value.low;  // its sign is all that counts
  const double whole = std::floor(high);
  const double fraction = high - whole;
  const bool odd = std::fmod(whole, 2) != 0;
  const bool up = fraction > 0.5 || (fraction == 0.5 && (low > 0 || (low == 0 && odd)));
  return std::ldexp(sign * (whole + (up ? 1 : 0)), -kUnit);
}

}  // namespace

double rounded(double value, DType dtype) noexcept {
  switch (dtype) {
    case DType::float8_e4m3fn:
      // 464 is a tie, and goes to 448.
      if (std::fabs(value) > 464) return std::copysign(kInfinity, value);
      return to_double(rounded_to<Float8E4M3>(value));
    case DType::float8_e5m2:
      return to_double(rounded_to<Float8E5M2>(value));
    case DType::float8_e4m3fnuz:
      // 248 is a tie, and goes to 256.
      if (std::fabs(value) >= 248) return std::copysign(kInfinity, value);
      return to_double(rounded_to<Float8E4M3Fnuz>(value));
    case DType::float8_e8m0fnu:
      return to_double(rounded_to<Float8E8M0>(value));
    case DType::int8:
      if (std::fabs(value) > 128.5) return std::copysign(kInfinity, value);
      return std::nearbyint(value) + 0.0;
    case DType::float16:
      return to_double(rounded_to<Float16>(value));
    case DType::bfloat16:
      return to_double(rounded_to<BFloat16>(value));
    case DType::float32:
      return static_cast<double>(static_cast<float>(value));
    case DType::boolean:
    case DType::int16:
    case DType::int32:
    case DType::int64:
    case DType::uint8:
    case DType::uint16:
    case DType::uint32:
    case DType::uint64:
    case DType::float64:
    case DType::float64_pair:
      break;
  }
  return value;
}

double rounded(DoubleDouble value, DType dtype) noexcept {
  return dtype == DType::float64 ? value.high : rounded(to_odd(value), dtype);
}

double rounded(DoubleDouble value, std::int64_t exponent, DType dtype) noexcept {
  const int shift = static_cast<int>(std::clamp<std::int64_t>(exponent, -4000, 4000));
  const bool is_normal = value.high == 0 || std::ilogb(value.high) + shift >= -900;
  if (is_normal) {
    return rounded(DoubleDouble{std::ldexp(value.high, shift), std::ldexp(value.low, shift)},
                   dtype);
  }
  if (dtype != DType::float64) return std::copysign(0.0, value.high);
  // The unit is 2^-1074: a double that is far above it, and exact, or one below it.
  const int least = std::ilogb(value.high) + shift < -1100 ? -1100 - std::ilogb(value.high) : shift;
  return rounded_subnormal(value, least);
}

bool same_result(double a, double b) noexcept {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

FloatOrder::FloatOrder(DType dtype) noexcept {
  const FloatFormat format = float_format(dtype);
  fraction_bits_ = format.precision - 1;
  least_exponent_ = format.least_exponent;
  greatest_ = format.greatest;
  infinity_ = index(greatest_) + 1;
}

FloatOrder::Parts FloatOrder::parts(std::int64_t index) const noexcept {
  const std::int64_t hidden = std::int64_t{1} << fraction_bits_;
  const std::int64_t binade = index >> fraction_bits_;
  if (binade == 0) return {index, least_exponent_};
  return {hidden | (index & (hidden - 1)), least_exponent_ + binade - 1};
}

double FloatOrder::value(std::int64_t index) const noexcept {
  if (index >= infinity_) return kInfinity;
  const Parts p = parts(index);
  return std::ldexp(static_cast<double>(p.significand), static_cast<int>(p.exponent));
}

std::int64_t FloatOrder::index(double value) const noexcept {
  if (value > greatest_) return infinity_;
  if (!(value > 0)) return 0;
  const std::int64_t binade =
      std::max<std::int64_t>(0, std::ilogb(value) - fraction_bits_ - least_exponent_);
  const auto significand =
      static_cast<std::int64_t>(std::ldexp(value, -static_cast<int>(least_exponent_ + binade)));
  return (binade << fraction_bits_) +
         significand;  // a normal number's hidden bit counts one binade more
}

}  // namespace lnorm
