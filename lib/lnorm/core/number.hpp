#pragma once

namespace lnorm {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

// One element of any dtype, as Chunk holds it: high + low, where low is zero but for 64-bit integers
// beyond 2^53, and for pairs.
struct Number {
  double high = 0;
  double low = 0;
};

// The value of a number that is an integer, below 2^127.
inline Int128 integer_of(Number value) noexcept {
  return static_cast<Int128>(value.high) + static_cast<Int128>(value.low);
}

}  // namespace lnorm
