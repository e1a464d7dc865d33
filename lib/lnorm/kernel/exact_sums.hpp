#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lnorm/core/int128.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// A sum without rounding: digits of 32 bits in words of 64, so that carries can wait. The order of additions
// does not matter.  [Kulisch; Neal 2015, arXiv:1505.05571]
template <std::size_t digits>
class ExactSum {
 public:
  // Adds +-magnitude * 2^shift, shift >= 0.
  void add(UInt128 magnitude, std::int64_t shift, bool negative) noexcept {
    const auto first = static_cast<std::size_t>(shift / 32);
    const auto bits = static_cast<unsigned>(shift % 32);
    const UInt128 low = magnitude << bits;
    const auto high = bits == 0 ? 0 : static_cast<std::uint32_t>((magnitude >> 96) >> (32 - bits));
    const std::int64_t sign = negative ? -1 : 1;
    for (std::size_t i = 0; i < 4; ++i) {
      digits_[first + i] +=
          sign * static_cast<std::int64_t>(static_cast<std::uint32_t>(low >> (32 * i)));
    }
    digits_[first + 4] += sign * static_cast<std::int64_t>(high);
    if (++waiting_ == kMostWaiting) carry();
  }

  ExactSum& operator+=(const ExactSum& other) noexcept {
    ExactSum addend = other;
    addend.carry();
    carry();
    for (std::size_t i = 0; i < digits; ++i) digits_[i] += addend.digits_[i];
    waiting_ = 2;
    return *this;
  }

  // Leaves digits of 0 to 2^32 - 1, but for the last one, which has the sign.
  void carry() noexcept {
    for (std::size_t i = 0; i + 1 < digits; ++i) {
      const std::int64_t over = digits_[i] >> 32;
      digits_[i] -= over * (std::int64_t{1} << 32);
      digits_[i + 1] += over;
    }
    waiting_ = 1;
  }

  const std::array<std::int64_t, digits>& words() const noexcept { return digits_; }

 private:
  static constexpr std::int64_t kMostWaiting = std::int64_t{1} << 30;

  std::array<std::int64_t, digits> digits_{};  // least significant first
  std::int64_t waiting_ = 0;                   // additions since the last carry
};

// Elements are counted in units of 2^-kExactUnit, the smallest double.
inline constexpr std::int64_t kExactUnit = 1074;

// The sums over a row, or a part of it, without rounding: from 2^-1074 (squares: 2^-2148) up to 2^63 times the
// largest double (its square).
struct ExactSums {
  bool finite = true;     // if not, the sums say nothing
  ExactSum<72> sum;       // of x, in units of 2^-kExactUnit
  ExactSum<140> squares;  // of x^2, in units of 2^-2kExactUnit

  ExactSums& operator+=(const ExactSums& other) noexcept;
};

// Of the one row of x.
ExactSums exact_sums(const RowsIn& x) noexcept;

}  // namespace lnorm
