#pragma once

#include <algorithm>
#include <cstdint>

namespace support {

#ifdef LNORM_SLOW
constexpr bool kIsSlow = true;
#else
constexpr bool kIsSlow = false;
#endif

// A test takes one of so many of its cases: one of `of`, or, where sanitizers make it slow, one of eleven if that is fewer.
constexpr int one_of(int of) { return kIsSlow ? std::max(of, 11) : of; }

constexpr int share(int cases, int of = 1) { return (cases + one_of(of) - 1) / one_of(of); }

// Whether a test takes the case of this number. Multiples of the golden ratio are spread evenly, and in step with nothing: so
// what is taken of nested loops has all that each loop runs through.
constexpr bool takes(int number, int of = 1) {
  constexpr std::uint64_t kAll = std::uint64_t{1} << 32;
  constexpr std::uint64_t kGolden = 0x9E3779B9;
  return static_cast<std::uint64_t>(number) * kGolden % kAll <
         kAll / static_cast<std::uint64_t>(one_of(of));
}

}  // namespace support
