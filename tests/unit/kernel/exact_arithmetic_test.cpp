#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "lnorm/core/double_double.hpp"
#include "lnorm/kernel/dyadic.hpp"
#include "lnorm/kernel/exact_sums.hpp"
#include "lnorm/kernel/rounding.hpp"
#include "support/catch.hpp"
#include "support/pace.hpp"

namespace mp = boost::multiprecision;
using lnorm::DoubleDouble;
using Wide = mp::number<mp::cpp_bin_float<400, mp::digit_base_2>, mp::et_off>;

namespace {

constexpr double kUnit2 = 0x1p-106;  // u^2

Wide wide(DoubleDouble a) { return Wide(a.high) + Wide(a.low); }

double relative_error(DoubleDouble actual, const Wide& expected) {
  if (expected == 0) return actual.high == 0 ? 0 : 1;
  return static_cast<double>(Wide(mp::abs((wide(actual) - expected) / expected)));
}

}  // namespace

TEST_CASE("double-double arithmetic keeps its bounds", "[kernel]") {
  std::mt19937_64 random(2);
  const auto number = [&] {
    const double high = std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random),
                                   static_cast<int>(random() % 40) - 20);
    return lnorm::fast_two_sum(
        high, high * 0x1p-54 * std::uniform_real_distribution<double>(-1, 1)(random));
  };
  for (int i = 0; i < support::share(20000); ++i) {
    const DoubleDouble a = number();
    const DoubleDouble b = number();
    REQUIRE(wide(lnorm::two_product(a.high, b.high)) == Wide(a.high) * Wide(b.high));
    REQUIRE(wide(lnorm::two_sum(a.high, b.high)) == Wide(a.high) + Wide(b.high));
    REQUIRE(mp::abs(wide(a + b) - (wide(a) + wide(b))) <=
            mp::abs(wide(a) + wide(b)) * 3.1 * kUnit2);
    REQUIRE(relative_error(a + b.high, wide(a) + Wide(b.high)) <= 2.1 * kUnit2);
    REQUIRE(relative_error(a * b, wide(a) * wide(b)) <= 5.1 * kUnit2);
    REQUIRE(relative_error(a * b.high, wide(a) * Wide(b.high)) <= 3.1 * kUnit2);
    REQUIRE(relative_error(a / b, wide(a) / wide(b)) <= 10 * kUnit2);
    const DoubleDouble magnitude = a.high < 0 ? -a : a;
    REQUIRE(relative_error(lnorm::sqrt(magnitude), mp::sqrt(wide(magnitude))) <= 5 * kUnit2);
  }
}

TEST_CASE("exact sums take large and small elements without rounding", "[kernel]") {
  std::mt19937_64 random(3);
  // In units of the smallest double, and of its square.
  const auto integer = [](double x) {
    int exponent = 0;
    const double significand = std::ldexp(std::frexp(x, &exponent), 53);
    const int shift = exponent - 53 + 1074;
    const mp::cpp_int digits(significand);
    return shift >= 0 ? mp::cpp_int(digits << shift) : mp::cpp_int(digits >> -shift);
  };
  const auto in_units = [](const lnorm::Dyadic& value, std::int64_t unit) {
    return mp::cpp_int(value.significand) << static_cast<unsigned>(value.exponent + unit);
  };
  for (int round = 0; round < 100; ++round) {
    std::vector<double> x(50);
    mp::cpp_int sum = 0;
    mp::cpp_int squares = 0;
    for (double& element : x) {
      element = std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random),
                           static_cast<int>(random() % 2098) - 1074);
      sum += integer(element);
      squares += integer(element) * integer(element);
    }
    const auto part = [&](std::size_t first, std::int64_t count) {
      return lnorm::exact_sums({reinterpret_cast<const std::byte*>(x.data() + first),
                                lnorm::DType::float64, std::endian::native, 1, count});
    };
    lnorm::ExactSums sums = part(0, 20);
    sums += part(20, 30);
    REQUIRE(sums.finite);
    REQUIRE(in_units(sums.sum, 1074) == sum);
    REQUIRE(in_units(sums.squares, 2148) == squares);
  }
}

TEST_CASE("the sign of a sum of two roots is exact", "[kernel]") {
  using lnorm::Dyadic;
  std::mt19937_64 random(5);
  const auto integer = [&](std::uint64_t values) {
    return static_cast<std::int64_t>(random() % values);
  };
  for (int i = 0; i < support::share(20000); ++i) {
    const std::int64_t p = integer(13) - 6;
    const std::int64_t q = integer(13) - 6;
    const std::int64_t a = integer(10);
    const std::int64_t b = integer(10);
    const std::int64_t squares = p * std::abs(p) * a + q * std::abs(q) * b;
    const int expected = (squares > 0) - (squares < 0);
    CAPTURE(p, a, q, b);
    REQUIRE(lnorm::sign_of(Dyadic(p), Dyadic(a), Dyadic(q), Dyadic(b)) == expected);
    // Of many digits, and with the least one more: the leading bits do not tell.
    const Dyadic large(lnorm::Integer(lnorm::Integer(1) << 300) + 1, -7);
    const Dyadic least(lnorm::Integer(1), -7);
    REQUIRE(lnorm::sign_of(Dyadic(p) * large, Dyadic(a), Dyadic(q), Dyadic(b) * square(large)) ==
            expected);
    if (p > 0 && q < 0 && a > 0 && squares == 0) {
      REQUIRE(lnorm::sign_of(Dyadic(p) * (large + least), Dyadic(a), Dyadic(q),
                             Dyadic(b) * square(large)) == 1);
    }
  }
}

TEST_CASE("the numbers of a dtype stand in order, and know their index", "[kernel]") {
  for (const lnorm::DType dtype : {lnorm::DType::float8_e4m3fn, lnorm::DType::float8_e5m2,
                                   lnorm::DType::float16, lnorm::DType::bfloat16}) {
    const lnorm::FloatOrder order(dtype);
    for (std::int64_t i = 0; i < order.infinity(); ++i) {
      const double value = order.value(i);
      REQUIRE(lnorm::rounded(value, dtype) == value);
      REQUIRE(order.index(value) == i);
      REQUIRE(order.value(i + 1) > value);
    }
  }
  for (const lnorm::DType dtype : {lnorm::DType::float32, lnorm::DType::float64}) {
    const lnorm::FloatOrder order(dtype);
    std::mt19937_64 random(6);
    for (int i = 0; i < support::share(20000); ++i) {
      const auto index =
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(order.infinity()));
      REQUIRE(order.index(order.value(index)) == index);
    }
    CHECK(order.index(std::numeric_limits<double>::infinity()) == order.infinity());
  }
}

TEST_CASE("double-doubles are rounded once, subnormal ones too", "[kernel]") {
  using lnorm::DType;
  CHECK(lnorm::rounded(DoubleDouble{1 + 0x1p-24, 0}, DType::float32) == 1);
  CHECK(lnorm::rounded(DoubleDouble{1 + 0x1p-24, 0x1p-90}, DType::float32) == 1 + 0x1p-23);
  CHECK(lnorm::rounded(DoubleDouble{1 + 0x3p-24, -0x1p-90}, DType::float32) == 1 + 0x1p-23);
  CHECK(lnorm::rounded(DoubleDouble{1.5, 0x1p-60}, -1075, DType::float64) == 0x1p-1074);
  CHECK(lnorm::rounded(DoubleDouble{1.0, 0x1p-60}, -1075, DType::float64) == 0x1p-1074);
  CHECK(lnorm::rounded(DoubleDouble{1.0, -0x1p-60}, -1075, DType::float64) == 0);
  CHECK(lnorm::rounded(DoubleDouble{1.0, 0}, -1075, DType::float64) == 0);
  CHECK(lnorm::rounded(DoubleDouble{1.5, 0}, -1074, DType::float64) == 0x1p-1073);
  CHECK(std::signbit(lnorm::rounded(DoubleDouble{-1.0, 0}, -3000, DType::float64)));
  CHECK(lnorm::rounded(DoubleDouble{1.0, 0}, 2000, DType::float64) ==
        std::numeric_limits<double>::infinity());
}
