#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/kernel/rows.hpp"

// Plain sums: of x and x^2 over a row of float16, bfloat16 or float32, without rounding in a chunk, where no element
// that is not 0 is much smaller than the largest one.
//
// With |x| < 2^E, an element of at least 2^(E - 20) is a multiple of 2^(E - 43), and its square one of
// 2^(2E - 86): the 24 bits of an element, and the 48 of its square, are exact in a double. The sum of a
// chunk of 2^10 elements then has 53 bits, no more. The square is parted at the place 2^(2E - 43), by
// adding and subtracting a number whose last place that is; the sums of the upper parts and of the
// lower parts have 53 bits each. So no addition rounds, in whatever order.
// [the parting: Rump, Ogita, Oishi 2008, "Accurate floating-point summation part I"]
namespace lnorm {

struct Range {
  std::int64_t non_finite = 0;
  double min = std::numeric_limits<double>::infinity();  // of what is not NaN
  double max = -std::numeric_limits<double>::infinity();
  // |x| that is not 0: where all is finite, and sums may be plain.
  double least = std::numeric_limits<double>::infinity();
  double greatest = 0;  // |x|

  Range& operator+=(const Range& other) noexcept {
    non_finite += other.non_finite;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    least = std::min(least, other.least);
    greatest = std::max(greatest, other.greatest);
    return *this;
  }
};

// Of a row of any dtype.
Range range_one_by_one(const RowsIn& row);

// 2^exponent, of a normal number.
inline double power_of_two(int exponent) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// The exponent E, where the sums of such a row are plain.
inline int plain_exponent(const Range& range) noexcept {
  return static_cast<int>(std::bit_cast<std::uint64_t>(range.greatest) >> 52) - 1022;
}
inline bool may_be_plain(DType dtype) noexcept {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}
inline bool is_plain(DType dtype, const Range& range) noexcept {
  return may_be_plain(dtype) && range.non_finite == 0 && range.greatest > 0 &&
         range.least >= power_of_two(plain_exponent(range) - 20);
}

// The sums of a row are within this many u^2 of exact: those of chunks are exact, and each addition of one to the
// total is off by 3 u^2.
inline double plain_growth(std::int64_t n) noexcept {
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  return 3 * static_cast<double>(chunks);
}

// Parts a square.
inline double plain_splitter(int exponent) noexcept {
  return 1.5 * power_of_two(2 * exponent - 43 + 52);
}

}  // namespace lnorm
