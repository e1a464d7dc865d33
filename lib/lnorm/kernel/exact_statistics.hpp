#pragma once

#include <algorithm>
#include <cstdint>

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/exact_integer.hpp"
#include "lnorm/kernel/rows.hpp"

// Sums over a row as integers, without rounding, for what double-doubles cannot hold and as a route
// of its own:
//
//   mean = sum(x) / n        var = (n sum(x^2) - sum(x)^2) / (n (n - ddof))
//
// whose difference is exact, too, so that nothing can cancel.
namespace lnorm {

// Elements are counted in units of 2^-kExactUnit, the smallest double.
inline constexpr std::int64_t kExactUnit = 1074;

// +-magnitude * 2^(shift - kExactUnit)
struct ExactElement {
  std::uint64_t magnitude;
  std::int64_t shift;
  bool negative;
};

// high + low as Chunk holds them; finite.
ExactElement exact_element(double high, double low) noexcept;

// Calls see(i, high, low) for every element of the one row of x.
template <class See>
void for_each_element(const RowsIn& x, See see) {
  Chunk chunk;
  std::fill(std::begin(chunk.low), std::end(chunk.low), 0.0);
  const auto size = static_cast<std::int64_t>(item_size(x.dtype));
  for (std::int64_t start = 0; start < x.row_length; start += kChunk) {
    const std::int64_t n = std::min(kChunk, x.row_length - start);
    load(x.data + start * size, x.dtype, x.byte_order, n, chunk);
    for (std::int64_t i = 0; i < n; ++i) see(start + i, chunk.high[i], chunk.low[i]);
  }
}

struct ExactSums {
  bool finite = true;    // if not, the sums say nothing
  ExactInteger sum;      // of x, in units of 2^-kExactUnit
  ExactInteger squares;  // of x^2, in units of 2^-2kExactUnit
};
ExactSums exact_sums(const RowsIn& x) noexcept;
ExactSums operator+(const ExactSums& a, const ExactSums& b) noexcept;

// Of a finite row of n elements.
Scaled exact_mean(const ExactSums& sums, std::int64_t n) noexcept;
Scaled exact_variance(const ExactSums& sums, std::int64_t n, std::int64_t ddof) noexcept;

}  // namespace lnorm
