#pragma once

namespace support {

// How many of a test's cases it takes: all of them, or some where sanitizers make it slow.
constexpr int share(int cases) {
#ifdef LNORM_SLOW
  return (cases + 7) / 8;
#else
  return cases;
#endif
}

// Whether a test takes the case of this number: every one, or one of eight.
constexpr bool takes(int number) { return share(8) == 8 || number % 8 == 0; }

}  // namespace support
