#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <random>

#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/exact_integer.hpp"
#include "support/catch.hpp"

namespace mp = boost::multiprecision;
using lnorm::DoubleDouble;
using lnorm::ExactInteger;
using Wide = mp::number<mp::cpp_bin_float<400, mp::digit_base_2>, mp::et_off>;

namespace {

Wide wide(DoubleDouble a) { return Wide(a.high) + Wide(a.low); }

double relative_error(DoubleDouble actual, const Wide& expected) {
  if (expected == 0) return actual.high == 0 ? 0 : 1;
  return static_cast<double>(Wide(mp::abs((wide(actual) - expected) / expected)));
}

}  // namespace

TEST_CASE("double-double arithmetic is good to 2^-100", "[kernel]") {
  std::mt19937_64 random(2);
  const auto number = [&] {
    const double high = std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random),
                                   static_cast<int>(random() % 40) - 20);
    return lnorm::fast_two_sum(
        high, high * 0x1p-54 * std::uniform_real_distribution<double>(-1, 1)(random));
  };
  for (int i = 0; i < 20000; ++i) {
    const DoubleDouble a = number();
    const DoubleDouble b = number();
    REQUIRE(wide(lnorm::two_product(a.high, b.high)) == Wide(a.high) * Wide(b.high));
    REQUIRE(wide(lnorm::two_sum(a.high, b.high)) == Wide(a.high) + Wide(b.high));
    // A sum that cancels is judged by its terms.
    REQUIRE(mp::abs(wide(a + b) - (wide(a) + wide(b))) <=
            0x1p-100 * (mp::abs(wide(a)) + mp::abs(wide(b))));
    REQUIRE(relative_error(a * b, wide(a) * wide(b)) < 0x1p-100);
    REQUIRE(relative_error(a / b, wide(a) / wide(b)) < 0x1p-100);
    const DoubleDouble magnitude = a.high < 0 ? -a : a;
    REQUIRE(relative_error(lnorm::sqrt(magnitude), mp::sqrt(wide(magnitude))) < 0x1p-100);
  }
}

TEST_CASE("exact integers agree with Boost's", "[kernel]") {
  std::mt19937_64 random(3);
  // The value of an ExactInteger is seen through scaled(), 106 bits of it.
  const auto agrees = [](const ExactInteger& actual, const mp::cpp_int& expected) {
    const lnorm::Scaled scaled = actual.scaled(0);
    const Wide value = mp::ldexp(wide(scaled.m), static_cast<int>(scaled.exponent));
    if (expected == 0) return value == 0;
    const double high = std::fabs(scaled.m.high);
    return high >= 1 && high < 2 &&
           mp::abs(value - Wide(expected)) <= mp::abs(Wide(expected)) * 0x1p-104;
  };
  for (int round = 0; round < 300; ++round) {
    ExactInteger sum;
    mp::cpp_int expected = 0;
    for (int i = 0; i < 20; ++i) {
      const lnorm::UInt128 magnitude =
          (static_cast<lnorm::UInt128>(random() >> random() % 64) << 64 | random()) >>
          random() % 128;
      const auto shift = static_cast<std::int64_t>(random() % 2000);
      const bool negative = random() % 2 == 0;
      sum.add(magnitude, shift, negative);
      const mp::cpp_int term = ((mp::cpp_int(static_cast<std::uint64_t>(magnitude >> 64)) << 64) +
                                static_cast<std::uint64_t>(magnitude))
                               << static_cast<unsigned>(shift);
      expected += negative ? -term : term;
      // Now and then take everything back but a small rest: nothing may be lost in between.
      if (random() % 8 == 0) {
        sum.add(magnitude, shift, !negative);
        expected -= negative ? -term : term;
      }
    }
    const std::uint64_t factor = random();
    REQUIRE(agrees(sum, expected));
    REQUIRE(agrees(-sum, -expected));
    REQUIRE(agrees(sum + sum, 2 * expected));
    REQUIRE(agrees(sum * factor, expected * factor));
    REQUIRE(agrees(square(sum), expected * expected));
    REQUIRE(agrees(sum + -sum, 0));
  }
}
