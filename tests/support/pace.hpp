#pragma once

namespace support {

// How many of a test's cases it takes: all of them, or one of eleven where sanitizers make it slow. Eleven is prime, so that what
// is taken of nested loops has all that each loop runs through.
#ifdef LNORM_SLOW
constexpr int kOneOf = 11;
#else
constexpr int kOneOf = 1;
#endif

constexpr int share(int cases) { return (cases + kOneOf - 1) / kOneOf; }

// Whether a test takes the case of this number.
constexpr bool takes(int number) { return number % kOneOf == 0; }

}  // namespace support
