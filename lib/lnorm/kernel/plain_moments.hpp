#pragma once

#include <bit>
#include <cstdint>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/dtype.hpp"

// Plain sums: of x and x^2 over a row of float16, bfloat16 or float32, without rounding in a chunk, where no element
// that is not 0 is much smaller than the largest one.
//
// With |x| < 2^E, an element of at least 2^(E - 20) is a multiple of 2^(E - 43), and its square one of
// 2^(2E - 86): the 24 bits of an element, and the 48 of its square, are exact in a double. The sum of a
// chunk of 2^10 elements then has 53 bits, no more. Squares are added up from a number on whose last place is
// 2^(2E - 43). What an addition rounds off is known exactly, and added up in a sum of its own. Both sums have 53
// bits. So no addition loses a bit, in whatever order.
// [the parting: Rump, Ogita, Oishi 2008, "Accurate floating-point summation part I"]
namespace lnorm {

// 2^exponent, of a normal number.
inline double power_of_two(int exponent) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

inline bool may_be_plain(DType dtype) noexcept {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

// The exponent E, where 2^(E - 1) <= greatest < 2^E; of zeros any will do.
inline int plain_exponent(double greatest) noexcept {
  return greatest == 0 ? 0 : static_cast<int>(std::bit_cast<std::uint64_t>(greatest) >> 52) - 1022;
}

// Whether a row has plain sums. least: of the |x| that are not 0, infinite if all are; greatest: of all.
inline bool is_plain(double least, double greatest) noexcept {
  return greatest >= 0 && least >= power_of_two(plain_exponent(greatest) - 20);
}

// Squares are added up from this number on, in each lane: the sum of a chunk stays in the binade.
inline double plain_start(int exponent) noexcept {
  return 1.5 * power_of_two(2 * exponent - 43 + 52);
}

// The sums of a row are within this many u^2 of exact: those of chunks are exact, and each addition of one to the
// total is off by 3 u^2.
inline double plain_growth(std::int64_t n) noexcept {
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  return chunks == 1 ? 0 : 3 * static_cast<double>(chunks);
}

// Rows of float64 have parted sums, nearly as good: |x| < 2^E, and n < 2^b elements. x goes to a sum that begins with 1.5 * 2^(E + b).
// So it does not leave two binades, and what an addition rounds off, at most 2^(E + b - 52), is exact. That goes to
// a second sum in the same way, and what is rounded off there, at most 2^(E + 2b - 104), to a third one. The first two sums are
// multiples of their last places, less than 2^53 of them: exact, in whatever order. Squares go to a sum that begins
// with 1.5 * 2^(2E + b), and what is rounded off, at most 2^(2E + b - 52), to a second one.
struct PartedSums {
  static constexpr std::int64_t kMaxLength = 65536;
  static constexpr int kMaxExponent = 400;  // of 1/|x|, too

  double start;
  double rest_start;
  double squares_start;
  double sum_error;  // absolute bounds of what the last sums of both are off by
  double squares_error;

  // exponent: E. growth: how many additions an element goes through.
  PartedSums(int exponent, std::int64_t n, std::int64_t growth) noexcept
      : start(1.5 * power_of_two(exponent + bits(n))),
        rest_start(1.5 * power_of_two(exponent + 2 * bits(n) - 52)),
        squares_start(1.5 * power_of_two(2 * exponent + bits(n))),
        sum_error(static_cast<double>(n * growth) * power_of_two(exponent + 2 * bits(n) - 157)),
        squares_error(static_cast<double>(n * (growth + 2)) *
                      power_of_two(2 * exponent + bits(n) - 105)) {}

 private:
  static int bits(std::int64_t n) noexcept {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n)));
  }
};

}  // namespace lnorm
