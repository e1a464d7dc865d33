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

inline bool may_be_plain(DType dtype) noexcept {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

// 2^exponent, of a normal number.
inline double power_of_two(int exponent) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
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

}  // namespace lnorm
