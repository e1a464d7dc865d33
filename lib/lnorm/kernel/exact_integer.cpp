#include "lnorm/kernel/exact_integer.hpp"

#include <bit>
#include <cmath>

namespace lnorm {

void ExactInteger::add(UInt128 magnitude, std::int64_t shift, bool negative) noexcept {
  const auto limb = static_cast<std::size_t>(shift / 64);
  const auto bits = static_cast<unsigned>(shift % 64);
  const UInt128 low = magnitude << bits;
  const std::uint64_t parts[3] = {
      static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(low >> 64),
      bits == 0 ? 0 : static_cast<std::uint64_t>((magnitude >> 64) >> (64 - bits))};
  bool carry = false;
  for (std::size_t i = limb; i < kLimbs && (carry || i < limb + 3); ++i) {
    const std::uint64_t part = i < limb + 3 ? parts[i - limb] : 0;
    std::uint64_t sum;
    const bool first = negative ? __builtin_sub_overflow(limbs_[i], part, &sum)
                                : __builtin_add_overflow(limbs_[i], part, &sum);
    const std::uint64_t carried = carry;
    const bool second = negative ? __builtin_sub_overflow(sum, carried, &limbs_[i])
                                 : __builtin_add_overflow(sum, carried, &limbs_[i]);
    carry = first || second;
  }
}

ExactInteger ExactInteger::operator-() const noexcept {
  ExactInteger result;
  bool carry = true;
  for (std::size_t i = 0; i < kLimbs; ++i) {
    const std::uint64_t carried = carry;
    carry = __builtin_add_overflow(~limbs_[i], carried, &result.limbs_[i]);
  }
  return result;
}

ExactInteger operator+(const ExactInteger& a, const ExactInteger& b) noexcept {
  ExactInteger result;
  UInt128 carry = 0;
  for (std::size_t i = 0; i < ExactInteger::kLimbs; ++i) {
    carry += static_cast<UInt128>(a.limbs_[i]) + b.limbs_[i];
    result.limbs_[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  return result;
}

ExactInteger operator*(const ExactInteger& a, std::uint64_t factor) noexcept {
  // Modulo 2^4608 two's complement multiplies like an unsigned number.
  ExactInteger result;
  UInt128 carry = 0;
  for (std::size_t i = 0; i < ExactInteger::kLimbs; ++i) {
    carry += static_cast<UInt128>(a.limbs_[i]) * factor;
    result.limbs_[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  return result;
}

ExactInteger square(const ExactInteger& a) noexcept {
  constexpr std::size_t kHalf = ExactInteger::kLimbs / 2;
  const ExactInteger magnitude = a.negative() ? -a : a;
  ExactInteger result;
  for (std::size_t i = 0; i < kHalf; ++i) {
    UInt128 carry = 0;
    for (std::size_t j = 0; j < kHalf; ++j) {
      carry +=
          static_cast<UInt128>(magnitude.limbs_[i]) * magnitude.limbs_[j] + result.limbs_[i + j];
      result.limbs_[i + j] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    result.limbs_[i + kHalf] = static_cast<std::uint64_t>(carry);
  }
  return result;
}

Scaled ExactInteger::scaled(std::int64_t exponent) const noexcept {
  const ExactInteger magnitude = negative() ? -*this : *this;
  std::size_t top = kLimbs;
  while (top > 0 && magnitude.limbs_[top - 1] == 0) --top;
  if (top == 0) return {};
  const auto limb = [&](std::size_t below_top) {
    return below_top < top ? magnitude.limbs_[top - 1 - below_top] : 0;
  };
  const auto leading = static_cast<unsigned>(std::countl_zero(limb(0)));
  const auto window = [&](std::size_t index) {  // 64 bits of the value shifted to its leading bit
    return leading == 0 ? limb(index) : limb(index) << leading | limb(index + 1) >> (64 - leading);
  };
  // 53 bits, then 53 more: each exact in a double.
  const std::uint64_t first = window(0);
  const std::uint64_t second = window(1);
  const double high = std::ldexp(static_cast<double>(first >> 11), -52);
  const double low =
      std::ldexp(static_cast<double>((first & 0x7ff) << 42 | second >> 22), -52 - 53);
  DoubleDouble m = fast_two_sum(high, low);
  exponent += static_cast<std::int64_t>(top * 64 - 1 - leading);
  if (m.high == 2) {
    m = {1, m.low / 2};
    ++exponent;
  }
  return {negative() ? -m : m, exponent};
}

}  // namespace lnorm
