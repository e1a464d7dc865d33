#pragma once

#include <array>
#include <cstdint>

#include "lnorm/core/int128.hpp"
#include "lnorm/kernel/scaled.hpp"

namespace lnorm {

// A signed integer of 4608 bits, two's complement: wide enough for n * sum(x^2) of 2^62 doubles in
// units of 2^-2148, the last place of the smallest square. No operation overflows in that use.
class ExactInteger {
 public:
  // Adds +-magnitude * 2^shift.
  void add(UInt128 magnitude, std::int64_t shift, bool negative) noexcept;

  ExactInteger operator-() const noexcept;
  friend ExactInteger operator+(const ExactInteger& a, const ExactInteger& b) noexcept;
  friend ExactInteger operator*(const ExactInteger& a, std::uint64_t factor) noexcept;
  // For |a| < 2^2300.
  friend ExactInteger square(const ExactInteger& a) noexcept;

  // The value times 2^exponent, truncated to the 106 bits that a double-double surely holds.
  Scaled scaled(std::int64_t exponent) const noexcept;

 private:
  static constexpr std::size_t kLimbs = 72;

  bool negative() const noexcept { return limbs_.back() >> 63 != 0; }

  std::array<std::uint64_t, kLimbs> limbs_{};  // least significant first
};

}  // namespace lnorm
