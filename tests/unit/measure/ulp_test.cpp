#include "lnorm/measure/ulp.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "lnorm/core/number.hpp"
#include "support/catch.hpp"

namespace {

using lnorm::DType;

constexpr double kMax = std::numeric_limits<double>::max();
constexpr float kMaxFloat = std::numeric_limits<float>::max();

std::uint64_t distance(double actual, double expected, DType dtype) {
  return lnorm::ulp_distance({actual}, {expected}, dtype);
}

std::uint64_t both_ways(double a, double b, DType dtype) {
  const std::uint64_t result = distance(a, b, dtype);
  CHECK(distance(b, a, dtype) == result);
  CHECK(distance(-a, -b, dtype) == result);
  return result;
}

// Of integers of 64 bits, split as Chunk holds them.
std::uint64_t integers(lnorm::Int128 actual, lnorm::Int128 expected, DType dtype) {
  const auto high = [](lnorm::Int128 value) { return static_cast<double>(value); };
  const auto low = [&](lnorm::Int128 value) {
    return static_cast<double>(value - static_cast<lnorm::Int128>(high(value)));
  };
  return lnorm::ulp_distance({high(actual), low(actual)}, {high(expected), low(expected)}, dtype);
}

// Walks up from a number and counts.
template <class T>
void check_walk(T start, int steps, DType dtype) {
  T value = start;
  for (int i = 0; i <= steps; ++i) {
    if (both_ways(value, start, dtype) != static_cast<std::uint64_t>(i)) {
      FAIL(i << " steps up from " << start);
    }
    value = std::nextafter(value, std::numeric_limits<T>::infinity());
  }
}

}  // namespace

TEST_CASE("the distance of floats counts the steps of nextafter", "[measure]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    const double value = std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random),
                                    static_cast<int>(random() % 240) - 120);
    check_walk(value, 20, DType::float64);
    check_walk(static_cast<float>(value), 20, DType::float32);
  }
  for (const double value : {0.0, -5e-324 * 10, 1.0, -1.0, 2.0 - 0x1p-50, 0x1p-1022 - 0x1p-1071}) {
    check_walk(value, 25, DType::float64);
  }
  constexpr float kMin = std::numeric_limits<float>::denorm_min();
  for (const float value : {0.0F, -kMin * 10, 1.0F, -1.0F, 0x1p-126F - 5 * kMin}) {
    check_walk(value, 25, DType::float32);
  }
}

TEST_CASE("the distance of float16 counts their bits", "[measure]") {
  for (unsigned bits = 0; bits < 0x7c00; bits += 7) {
    for (const unsigned steps : {0U, 1U, 13U, 0x7bffU - bits}) {
      if (bits + steps >= 0x7c00) continue;
      const double a = lnorm::to_double(lnorm::Float16{static_cast<std::uint16_t>(bits)});
      const double b = lnorm::to_double(lnorm::Float16{static_cast<std::uint16_t>(bits + steps)});
      if (both_ways(a, b, DType::float16) != steps) FAIL(a << " to " << b);
      if (both_ways(-a, b, DType::float16) != 2 * bits + steps) FAIL(-a << " to " << b);
    }
  }
}

TEST_CASE("the distance of float8 counts their bits, and ends before what is not finite",
          "[measure]") {
  for (const auto& [dtype, infinity] :
       {std::pair{DType::float8_e4m3fn, 0x7fU}, {DType::float8_e5m2, 0x7cU}}) {
    for (unsigned a = 0; a < infinity; ++a) {
      for (unsigned b = a; b < infinity; ++b) {
        const auto value = [is_e4m3 = infinity == 0x7f](unsigned bits) {
          const auto code = static_cast<std::uint8_t>(bits);
          return is_e4m3 ? lnorm::to_double(lnorm::Float8E4M3{code})
                         : lnorm::to_double(lnorm::Float8E5M2{code});
        };
        if (both_ways(value(a), value(b), dtype) != b - a) FAIL(value(a) << " to " << value(b));
        if (both_ways(-value(a), value(b), dtype) != a + b) FAIL(-value(a) << " to " << value(b));
      }
    }
  }
  CHECK(distance(464, 448, DType::float8_e4m3fn) == 0);
  CHECK(distance(464.1, 448, DType::float8_e4m3fn) == lnorm::kNoUlpDistance);
  CHECK(distance(-61439, -57344, DType::float8_e5m2) == 0);
  CHECK(distance(-61440, -57344, DType::float8_e5m2) == lnorm::kNoUlpDistance);
}

TEST_CASE("both zeros are one, and the way through zero is counted once", "[measure]") {
  for (const DType dtype : {DType::float16, DType::float32, DType::float64, DType::int32}) {
    CHECK(distance(0.0, -0.0, dtype) == 0);
    CHECK(distance(-0.0, 0.0, dtype) == 0);
  }
  CHECK(both_ways(-5e-324, 5e-324, DType::float64) == 2);
  CHECK(both_ways(-0x1p-24, 0x1p-24, DType::float16) == 2);
  // From one end of the dtype to the other.
  CHECK(both_ways(-kMax, kMax, DType::float64) == 2 * 0x7fefffffffffffffU);
  CHECK(both_ways(-kMaxFloat, kMaxFloat, DType::float32) == 2 * 0x7f7fffffU);
  CHECK(both_ways(-65504, 65504, DType::float16) == 2 * 0x7bffU);
}

TEST_CASE("a number between those of the dtype is rounded first, ties to even", "[measure]") {
  CHECK(distance(1 + 0x1p-24, 1, DType::float32) == 0);
  CHECK(distance(1 + 0x1p-24 + 0x1p-50, 1, DType::float32) == 1);
  CHECK(distance(1 + 3 * 0x1p-24, 1, DType::float32) == 2);
  CHECK(distance(1 + 0x1p-11, 1, DType::float16) == 0);
  CHECK(distance(1 + 0x1p-11 + 0x1p-40, 1, DType::float16) == 1);  // not by way of float32
  CHECK(distance(1 + 3 * 0x1p-11, 1, DType::float16) == 2);
  CHECK(distance(1e-60, 0, DType::float32) == 0);
  // 64-bit integers are rounded as a whole: high alone is a tie, low breaks it.
  CHECK((lnorm::ulp_distance({0x1p60 + 0x1p36, 1}, {0x1p60}, DType::float32) == 1));
  CHECK((lnorm::ulp_distance({0x1p60 + 0x1p36, -1}, {0x1p60}, DType::float32) == 0));
  CHECK((lnorm::ulp_distance({0x1p60 + 0x1p36, 0}, {0x1p60}, DType::float32) == 0));
}

TEST_CASE("only equal numbers have no distance in integers: it is rounded up", "[measure]") {
  CHECK(distance(2.5, 2, DType::int32) == 1);
  CHECK(distance(2.5, 3, DType::int32) == 1);
  CHECK(distance(2.5, 5, DType::int32) == 3);
  CHECK(distance(2.5, -1, DType::int32) == 4);
  CHECK(distance(-2.5, -3, DType::int8) == 1);
  CHECK(distance(-2.5, -2, DType::int8) == 1);
  CHECK(distance(1e-300, 0, DType::uint8) == 1);
  CHECK(distance(0.4, 0, DType::boolean) == 1);
  CHECK(distance(1, 1, DType::boolean) == 0);
  CHECK(distance(300, 127, DType::int8) == 173);  // beyond the dtype's end, too
  CHECK(distance(1e300, 127, DType::int8) == lnorm::kNoUlpDistance);
  CHECK(distance(-0x1p65, 0, DType::int64) == lnorm::kNoUlpDistance);
}

TEST_CASE("beyond the largest finite value of a float dtype there is no distance", "[measure]") {
  using lnorm::kNoUlpDistance;
  CHECK(distance(1 + 0x1p-7, 1, DType::bfloat16) == 1);
  CHECK(distance(1 + 0x1p-8, 1, DType::bfloat16) == 0);
  CHECK(distance(-0x1p-133, 0x1p-133, DType::bfloat16) == 2);
  CHECK(distance(0x1.ffp127, 0x1.fep127, DType::bfloat16) == kNoUlpDistance);
  CHECK(distance(1e6, 65504, DType::float16) == kNoUlpDistance);
  CHECK(distance(65519, 65504, DType::float16) == 0);
  CHECK(distance(65520, 65504, DType::float16) == kNoUlpDistance);
  CHECK(distance(-1e300, -65504, DType::float16) == kNoUlpDistance);
  CHECK(distance(1e39, kMaxFloat, DType::float32) == kNoUlpDistance);
  CHECK(distance(kMax, kMaxFloat, DType::float32) == kNoUlpDistance);
  CHECK(distance(kMaxFloat, kMaxFloat, DType::float32) == 0);
  constexpr double kMiddle = 0x1.ffffffp+127;  // between the largest float and what would be next
  CHECK(distance(std::nextafter(kMiddle, 0), kMaxFloat, DType::float32) == 0);
  CHECK(distance(kMiddle, kMaxFloat, DType::float32) == kNoUlpDistance);
  CHECK(distance(-kMiddle, kMaxFloat, DType::float32) == kNoUlpDistance);
}

TEST_CASE("the distance of integers is their difference, however large", "[measure]") {
  using lnorm::Int128;
  const Int128 least = std::numeric_limits<std::int64_t>::min();
  const Int128 most = std::numeric_limits<std::int64_t>::max();
  const Int128 most_unsigned = std::numeric_limits<std::uint64_t>::max();
  CHECK(integers(least, most, DType::int64) == std::numeric_limits<std::uint64_t>::max());
  CHECK(integers(most, most - 1, DType::int64) == 1);
  CHECK(integers(least + 1, least, DType::int64) == 1);
  CHECK(integers((Int128{1} << 53) + 1, Int128{1} << 53, DType::int64) == 1);
  CHECK(integers(most_unsigned, 0, DType::uint64) == std::numeric_limits<std::uint64_t>::max());
  CHECK(integers(most_unsigned, most_unsigned - 1025, DType::uint64) == 1025);
  CHECK(integers(-3, 4, DType::int8) == 7);
  // Counted on beyond the dtype's ends ...
  CHECK(distance(1000, 100, DType::int8) == 900);
  CHECK(distance(-5, 2, DType::uint8) == 7);
  CHECK(distance(3, 1, DType::boolean) == 2);
  // ... and no further than the result can.
  for (const double far : {0x1p64, 0x1p70, 1e30, 1e300, kMax}) {
    CHECK(distance(far, 0, DType::int64) == std::numeric_limits<std::uint64_t>::max());
    CHECK(distance(-far, 0, DType::uint8) == std::numeric_limits<std::uint64_t>::max());
  }
  CHECK(distance(0x1p63, 0, DType::int64) == std::uint64_t{1} << 63);
}
