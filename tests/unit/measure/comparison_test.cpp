#include "lnorm/measure/comparison.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "support/catch.hpp"

namespace {

using lnorm::Comparison;
using lnorm::DType;
using lnorm::Tolerance;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Comparison comparison_of(std::vector<double> actual, std::vector<double> expected,
                         const Tolerance& tolerance = {}, std::size_t max_mismatches = 10,
                         DType actual_dtype = DType::float64,
                         DType expected_dtype = DType::float64) {
  const auto a = std::make_unique<lnorm::Chunk>();
  const auto b = std::make_unique<lnorm::Chunk>();
  std::copy(actual.begin(), actual.end(), a->high);
  std::copy(expected.begin(), expected.end(), b->high);
  Comparison result;
  result.same_shape = true;
  result.actual.dtype = actual_dtype;
  result.expected.dtype = expected_dtype;
  result.tolerance = tolerance;
  lnorm::compare_elements(*a, *b, std::ssize(actual), max_mismatches, result);
  return result;
}

bool passes(double actual, double expected, const Tolerance& tolerance = {}) {
  return comparison_of({actual}, {expected}, tolerance).equal();
}

}  // namespace

TEST_CASE("default tolerances are those of torch.testing.assert_close, of float8 an ulp",
          "[measure]") {
  const auto check = [](DType a, DType b, double rtol, double atol) {
    for (const auto& [actual, expected] : {std::pair{a, b}, {b, a}}) {
      CAPTURE(lnorm::name(actual), lnorm::name(expected));
      const Tolerance tolerance = lnorm::default_tolerance(actual, expected);
      CHECK(tolerance.rtol == rtol);
      CHECK(tolerance.atol == atol);
      CHECK(!tolerance.max_ulp);
      CHECK(tolerance.equal_nan);
    }
  };
  check(DType::float8_e4m3fn, DType::float8_e4m3fn, 0.125, 1e-5);
  check(DType::float8_e5m2, DType::float32, 0.25, 1e-5);
  check(DType::float16, DType::float16, 1e-3, 1e-5);
  check(DType::bfloat16, DType::bfloat16, 1.6e-2, 1e-5);
  check(DType::bfloat16, DType::float64, 1.6e-2, 1e-5);
  check(DType::float32, DType::float32, 1.3e-6, 1e-5);
  check(DType::float64, DType::float64, 1e-7, 1e-7);
  check(DType::float16, DType::float32, 1e-3, 1e-5);
  check(DType::float32, DType::float64, 1.3e-6, 1e-5);
  check(DType::int64, DType::float64, 1e-7, 1e-7);
  for (const DType dtype : {DType::boolean, DType::int8, DType::int64, DType::uint64}) {
    check(dtype, dtype, 0, 0);
  }
}

TEST_CASE("tolerances are added, the relative one to the expected element", "[measure]") {
  // All of these are exact in binary.
  const Tolerance relative{.rtol = 0.25, .max_ulp = {}};
  CHECK(passes(125, 100, relative));
  CHECK(passes(75, 100, relative));
  CHECK(!passes(125.5, 100, relative));
  CHECK(!passes(74.5, 100, relative));
  CHECK(!passes(100, 75, relative));  // of 75, not of 100
  CHECK(passes(-125, -100, relative));
  CHECK(!passes(0.001, 0, relative));
  const Tolerance absolute{.atol = 0.5, .max_ulp = {}};
  CHECK(passes(0.5, 0, absolute));
  CHECK(passes(-0.5, 0, absolute));
  CHECK(!passes(0.5625, 0, absolute));
  const Tolerance both{.rtol = 0.25, .atol = 0.5, .max_ulp = {}};
  CHECK(passes(125.5, 100, both));
  CHECK(!passes(125.625, 100, both));
  CHECK(passes(1e308, 1e308));
  CHECK(passes(0.0, -0.0));
  CHECK(!passes(std::nextafter(1.0, 2), 1));
}

TEST_CASE("a distance in ulp counts alone or beside the tolerances, all of which must hold",
          "[measure]") {
  const double two_on = 1 + 2 * 0x1p-52;
  CHECK(passes(two_on, 1, {.max_ulp = 2, .ulp_alone = true}));
  CHECK(!passes(two_on, 1, {.max_ulp = 1, .ulp_alone = true}));
  CHECK(passes(1, 1, {.max_ulp = 0, .ulp_alone = true}));
  CHECK(passes(two_on, 1, {.atol = 1, .max_ulp = 2}));
  CHECK(!passes(two_on, 1, {.atol = 1, .max_ulp = 1}));
  CHECK(!passes(two_on, 1, {.max_ulp = 2}));
  CHECK(passes(1, 1, {.max_ulp = 0}));
  // In the expected dtype.
  for (const bool narrow_expected : {true, false}) {
    const Comparison mixed =
        comparison_of({1 + 0x1p-23}, {1}, {}, 10, narrow_expected ? DType::float64 : DType::float32,
                      narrow_expected ? DType::float32 : DType::float64);
    CHECK(mixed.ulps->value == (narrow_expected ? 1 : 1 << 29));
  }
}

TEST_CASE("NaN equals NaN unless told otherwise, infinity its like and nothing else", "[measure]") {
  CHECK(passes(kNan, kNan));
  CHECK(passes(kNan, -kNan));
  CHECK(!passes(kNan, kNan, {.max_ulp = {}, .equal_nan = false}));
  CHECK(passes(kInfinity, kInfinity));
  CHECK(passes(-kInfinity, -kInfinity, {.max_ulp = {}, .equal_nan = false}));
  const Tolerance loose{.rtol = 1e300, .atol = kInfinity, .max_ulp = ~std::uint64_t{0}};
  CHECK(!passes(kInfinity, -kInfinity, loose));
  CHECK(!passes(kNan, kInfinity, loose));
  CHECK(!passes(kNan, 1, loose));
  CHECK(!passes(1, kNan, loose));
  CHECK(!passes(std::numeric_limits<double>::max(), kInfinity, loose));
}

TEST_CASE("what is not finite is counted by kind and left out of the maxima", "[measure]") {
  const Comparison mixed =
      comparison_of({kNan, 1, kInfinity, kNan, kInfinity, 2, kNan, -kInfinity, 7},
                    {1, kNan, 5, kNan, kInfinity, -kInfinity, kInfinity, kInfinity, 6.5});
  CHECK(mixed.elements == 9);
  CHECK(mixed.non_finite_one_side == 4);
  CHECK(mixed.non_finite_differing == 2);
  CHECK(mixed.mismatched == 7);
  REQUIRE(mixed.absolute);
  CHECK(mixed.absolute->value == 0.5);
  CHECK(mixed.absolute->at.position == 8);
  const Comparison nan = comparison_of({kNan}, {kNan}, {.max_ulp = {}, .equal_nan = false});
  CHECK(nan.non_finite_differing == 1);
  CHECK(nan.mismatched == 1);
  CHECK(!nan.absolute);
  CHECK(!nan.relative);
  CHECK(!nan.ulps);
}

TEST_CASE("the maxima stand where they come first, each in its own place", "[measure]") {
  //                                       absolute, relative, and again absolute; expected 0
  const Comparison result =
      comparison_of({100, 105, 1, 1.5, 205, -3, 2}, {100, 100, 1, 1, 200, 0, 2});
  REQUIRE(result.absolute);
  REQUIRE(result.relative);
  REQUIRE(result.ulps);
  CHECK(result.absolute->value == 5);
  CHECK(result.absolute->at.position == 1);
  CHECK(result.absolute->at.actual.high == 105);
  CHECK(result.absolute->at.expected.high == 100);
  CHECK(result.relative->value == 0.5);
  CHECK(result.relative->at.position == 3);
  CHECK(result.ulps->at.position == 5);
  CHECK(result.ulps->value == 0x4008000000000000U);
  CHECK(result.mismatched == 4);
}

TEST_CASE("the relative maximum leaves out expected zeros, and equal tensors have maxima of 0",
          "[measure]") {
  const Comparison zeros = comparison_of({1, 0}, {0, 0});
  CHECK(zeros.absolute->value == 1);
  CHECK(!zeros.relative);
  const Comparison same = comparison_of({3, 4}, {3, 4});
  CHECK(same.absolute->value == 0);
  CHECK(same.absolute->at.position == 0);
  CHECK(same.relative->value == 0);
  CHECK(same.ulps->value == 0);
  CHECK(same.equal());
}

TEST_CASE("the first mismatches are kept, over several chunks, and all are counted", "[measure]") {
  const auto chunk = std::make_unique<lnorm::Chunk>();
  const auto zeros = std::make_unique<lnorm::Chunk>();
  Comparison result;
  result.same_shape = true;
  for (const double first : {0.0, 10.0, 0.0, 20.0}) {
    for (int i = 0; i < 4; ++i) chunk->high[i] = first == 0 ? 0 : first + i;
    lnorm::compare_elements(*chunk, *zeros, 4, 6, result);
  }
  CHECK(result.elements == 16);
  CHECK(result.mismatched == 8);
  CHECK(!result.equal());
  std::vector<std::int64_t> positions;
  for (const lnorm::ElementPair& pair : result.first_mismatches) positions.push_back(pair.position);
  CHECK(positions == std::vector<std::int64_t>{4, 5, 6, 7, 12, 13});
  CHECK(result.first_mismatches[5].actual.high == 21);
  CHECK(comparison_of({1}, {2}, {}, 0).first_mismatches.empty());
}

TEST_CASE("64-bit integers that doubles cannot tell apart differ", "[measure]") {
  const auto a = std::make_unique<lnorm::Chunk>();
  const auto b = std::make_unique<lnorm::Chunk>();
  a->high[0] = b->high[0] = 0x1p63;
  a->low[0] = -1;
  b->low[0] = -3;
  for (const double atol : {0.0, 1.0, 2.0}) {
    Comparison result;
    result.same_shape = true;
    result.actual.dtype = result.expected.dtype = DType::int64;
    result.tolerance.atol = atol;
    lnorm::compare_elements(*a, *b, 1, 1, result);
    CHECK(result.equal() == (atol == 2));
    CHECK(result.absolute->value == 2);
    CHECK(result.ulps->value == 2);
  }
  // Where the high parts differ and the low ones almost make up for it.
  a->high[0] = 0x1p63;
  a->low[0] = 1023;
  b->high[0] = 0x1p63 + 2048;
  b->low[0] = -1023;
  Comparison result;
  result.same_shape = true;
  result.actual.dtype = result.expected.dtype = DType::uint64;
  lnorm::compare_elements(*a, *b, 1, 1, result);
  CHECK(result.absolute->value == 2);
  CHECK(result.ulps->value == 2);
  CHECK(result.first_mismatches[0].actual.low == 1023);
}

TEST_CASE("tensors of different shapes are never equal", "[measure]") {
  Comparison result;
  CHECK(!result.equal());
}
