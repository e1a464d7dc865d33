#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "lnorm/core/small_float.hpp"
#include "support/catch.hpp"

using lnorm::BFloat16;
using lnorm::Float16;
using lnorm::to_double;

namespace {

constexpr auto to_float16 = lnorm::rounded_to<Float16>;
constexpr auto to_bfloat16 = lnorm::rounded_to<BFloat16>;

// The value of a finite binary16 from its fields, as IEEE 754 defines it.
double defined_float16(unsigned bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = (bits & 1023) / 1024.0;
  return exponent == 0 ? sign * std::ldexp(fraction, -14)
                       : sign * std::ldexp(1 + fraction, exponent - 15);
}

}  // namespace

TEST_CASE("every float16 has its value and comes back from it", "[core]") {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const double value = to_double(half);
    if ((bits & 0x7c00) == 0x7c00) {
      CHECK(((bits & 0x3ff) == 0 ? std::isinf(value) : std::isnan(value)));
      if (std::isinf(value)) CHECK(to_float16(value).bits == bits);
      continue;
    }
    if (value != defined_float16(bits) || to_float16(value).bits != bits) FAIL("bits " << bits);
    CHECK(std::signbit(value) == (bits >= 0x8000));
  }
}

TEST_CASE("float16 rounds to nearest, ties to even, in one step", "[core]") {
  // Between every two neighbours: the midpoint goes to the even one, its neighbours to their side.
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const double low = defined_float16(bits);
    const double high = defined_float16(bits + 1);
    const double middle = (low + high) / 2;
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    const bool right = to_float16(middle).bits == even &&
                       to_float16(std::nextafter(middle, low)).bits == bits &&
                       to_float16(std::nextafter(middle, high)).bits == bits + 1 &&
                       to_float16(-middle).bits == (even | 0x8000);
    if (!right) FAIL("between " << low << " and " << high);
  }
  CHECK(to_float16(65519.999).bits == 0x7bff);
  CHECK(to_float16(65520).bits == 0x7c00);
  CHECK(to_float16(-1e300).bits == 0xfc00);
  CHECK(to_float16(std::numeric_limits<double>::denorm_min()).bits == 0);
  CHECK(to_float16(-std::numeric_limits<double>::quiet_NaN()).bits == 0x7e00);
}

TEST_CASE("every bfloat16 is the upper half of a float, and comes back from it", "[core]") {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 value{static_cast<std::uint16_t>(bits)};
    const std::uint32_t whole = bits << 16;
    float expected;
    std::memcpy(&expected, &whole, sizeof expected);
    const double found = to_double(value);
    if (std::isnan(expected)) {
      CHECK(std::isnan(found));
      CHECK(to_bfloat16(found).bits == 0x7fc0);
      continue;
    }
    if (found != static_cast<double>(expected) || to_bfloat16(found).bits != bits) {
      FAIL("bits " << bits);
    }
  }
}

TEST_CASE("bfloat16 rounds to nearest, ties to even, in one step", "[core]") {
  for (unsigned bits = 0; bits < 0x7f7f; ++bits) {
    const double low = to_double(BFloat16{static_cast<std::uint16_t>(bits)});
    const double high = to_double(BFloat16{static_cast<std::uint16_t>(bits + 1)});
    const double middle = (low + high) / 2;
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    const bool right = to_bfloat16(middle).bits == even &&
                       to_bfloat16(std::nextafter(middle, low)).bits == bits &&
                       to_bfloat16(std::nextafter(middle, high)).bits == bits + 1 &&
                       to_bfloat16(-middle).bits == (even | 0x8000);
    if (!right) FAIL("between " << low << " and " << high);
  }
  CHECK(to_bfloat16(0x1.ffp127).bits == 0x7f80);
  CHECK(to_bfloat16(std::nextafter(0x1.ffp127, 0)).bits == 0x7f7f);
  CHECK(to_bfloat16(-1e300).bits == 0xff80);
  CHECK(to_bfloat16(std::numeric_limits<double>::denorm_min()).bits == 0);
}
