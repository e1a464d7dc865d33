#include "lnorm/measure/comparison.hpp"

#include <array>
#include <memory>
#include <utility>

#include "support/catch.hpp"
#include "support/elements.hpp"

namespace {

using lnorm::Comparison;
using lnorm::Criteria;
using lnorm::DType;
using lnorm::Tolerance;
using namespace support;

Criteria within(double rtol, double atol) {
  Criteria criteria;
  criteria.tolerance = Tolerance{rtol, atol};
  return criteria;
}

Criteria within_ulps(double ulps) {
  Criteria criteria;
  criteria.max_ulp = ulps;
  return criteria;
}

Criteria equal_nan_is(bool equal_nan) {
  Criteria criteria = within(0, 0);
  criteria.equal_nan = equal_nan;
  return criteria;
}

Comparison comparison_of(std::vector<double> actual, std::vector<double> expected,
                         const Criteria& criteria = within(0, 0), std::size_t max_mismatches = 10,
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
  result.criteria = criteria;
  lnorm::compare_elements(*a, *b, std::array{lnorm::RowRun{std::ssize(actual)}}, max_mismatches,
                          result);
  return result;
}

bool passes(double actual, double expected, const Criteria& criteria = within(0, 0)) {
  return comparison_of({actual}, {expected}, criteria).equal();
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
    }
  };
  check(DType::float8_e4m3fn, DType::float8_e4m3fn, 0.125, 2e-3);
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
  const Criteria relative = within(0.25, 0);
  CHECK(passes(125, 100, relative));
  CHECK(passes(75, 100, relative));
  CHECK(!passes(125.5, 100, relative));
  CHECK(!passes(74.5, 100, relative));
  CHECK(!passes(100, 75, relative));  // of 75, not of 100
  CHECK(passes(-125, -100, relative));
  CHECK(!passes(0.001, 0, relative));
  const Criteria absolute = within(0, 0.5);
  CHECK(passes(0.5, 0, absolute));
  CHECK(passes(-0.5, 0, absolute));
  CHECK(!passes(0.5625, 0, absolute));
  const Criteria both = within(0.25, 0.5);
  CHECK(passes(125.5, 100, both));
  CHECK(!passes(125.625, 100, both));
  CHECK(passes(1e308, 1e308));
  CHECK(passes(0.0, -0.0));
  CHECK(!passes(std::nextafter(1.0, 2), 1));
}

TEST_CASE("a distance in ulp counts alone or beside the tolerances, all of which must hold",
          "[measure]") {
  const double two_on = 1 + 2 * 0x1p-52;
  CHECK(passes(two_on, 1, within_ulps(2)));
  CHECK(!passes(two_on, 1, within_ulps(1.9)));
  CHECK(passes(1, 1, within_ulps(0)));
  CHECK(passes(0.0, -0.0, within_ulps(0)));
  Criteria both = within(0, 1);
  both.max_ulp = 2;
  CHECK(passes(two_on, 1, both));
  both.max_ulp = 1;
  CHECK(!passes(two_on, 1, both));
  both = within(0, 0);
  both.max_ulp = 2;
  CHECK(!passes(two_on, 1, both));
  CHECK(passes(1, 1, both));
  // In the expected dtype.
  const Comparison mixed =
      comparison_of({1 + 0x1p-23}, {1}, within(0, 0), 10, DType::float64, DType::float32);
  CHECK(mixed.ulps->value == lnorm::Ulps{1, false});
  CHECK(mixed.ulp_dtype() == DType::float32);
}

TEST_CASE("NaN equals NaN unless told otherwise, infinity its like and nothing else", "[measure]") {
  CHECK(passes(kNan, kNan));
  CHECK(passes(kNan, -kNan));
  CHECK(!passes(kNan, kNan, equal_nan_is(false)));
  CHECK(passes(kInfinity, kInfinity));
  CHECK(passes(-kInfinity, -kInfinity, equal_nan_is(false)));
  Criteria loose = within(1e300, kInfinity);
  loose.max_ulp = 0x1p64;
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
  const Comparison nan = comparison_of({kNan}, {kNan}, equal_nan_is(false));
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
  CHECK(result.ulps->value.rank == 0x4008000000000000U);
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
  CHECK(same.ulps->value == lnorm::Ulps{});
  CHECK(same.equal());
}

TEST_CASE("the first mismatches are kept, over several chunks, and all are counted", "[measure]") {
  const auto chunk = std::make_unique<lnorm::Chunk>();
  const auto zeros = std::make_unique<lnorm::Chunk>();
  Comparison result;
  result.same_shape = true;
  result.criteria = within(0, 0);
  for (const double first : {0.0, 10.0, 0.0, 20.0}) {
    for (int i = 0; i < 4; ++i) chunk->high[i] = first == 0 ? 0 : first + i;
    lnorm::compare_elements(*chunk, *zeros, std::array{lnorm::RowRun{4}}, 6, result);
  }
  CHECK(result.elements == 16);
  CHECK(result.mismatched == 8);
  CHECK(!result.equal());
  std::vector<std::int64_t> positions;
  for (const lnorm::ElementPair& pair : result.first_mismatches) positions.push_back(pair.position);
  CHECK(positions == std::vector<std::int64_t>{4, 5, 6, 7, 12, 13});
  CHECK(result.first_mismatches[5].actual.high == 21);
  CHECK(comparison_of({1}, {2}, within(0, 0), 0).first_mismatches.empty());
}

TEST_CASE("64-bit integers that doubles cannot tell apart differ", "[measure]") {
  const auto compared = [](const lnorm::Number& actual, const lnorm::Number& expected, DType dtype,
                           double atol) {
    const auto a = std::make_unique<lnorm::Chunk>();
    const auto b = std::make_unique<lnorm::Chunk>();
    a->high[0] = actual.high;
    a->low[0] = actual.low;
    b->high[0] = expected.high;
    b->low[0] = expected.low;
    Comparison result;
    result.same_shape = true;
    result.actual.dtype = result.expected.dtype = dtype;
    result.criteria = within(0, atol);
    lnorm::compare_elements(*a, *b, std::array{lnorm::RowRun{1}}, 1, result);
    CHECK(result.absolute->value == 2);
    CHECK(result.ulps->value == lnorm::Ulps{2, false});
    return result;
  };
  for (const double atol : {0.0, 1.0, 2.0}) {
    CHECK(compared({0x1p63, -1}, {0x1p63, -3}, DType::int64, atol).equal() == (atol == 2));
  }
  // Where the high parts differ and the low ones almost make up for it.
  const Comparison close = compared({0x1p63, 1023}, {0x1p63 + 2048, -1023}, DType::uint64, 0);
  CHECK(close.first_mismatches[0].actual.low == 1023);
}

TEST_CASE("tensors of different shapes are never equal", "[measure]") {
  Comparison result;
  CHECK(!result.equal());
}

TEST_CASE("where the expected dtype is wider, distances are in ulp of the actual one",
          "[measure]") {
  const auto in_half = [](double actual, double expected, const Criteria& criteria) {
    return comparison_of({actual}, {expected}, criteria, 10, DType::float16, DType::float64);
  };
  const Comparison half = in_half(1, 1 + 0x1p-11, within_ulps(0.5));
  CHECK(half.equal());
  CHECK(half.ulps->value == lnorm::Ulps::greatest(0.5, true));
  CHECK(half.ulp_dtype() == DType::float16);
  CHECK(!in_half(1, 1 + 0x1p-11, within_ulps(0.499)).equal());
  CHECK(in_half(1, 1 - 0x1p-11, within_ulps(9)).ulps->value.value() == 1);  // of the binade below
  CHECK(in_half(0x1p-24, 0x1p-26, within_ulps(9)).ulps->value.value() == 0.75);
  CHECK(in_half(0, 5e-324, within_ulps(0)).ulps->value.value() == 0x1p-1050);
  CHECK(!in_half(0, 5e-324, within_ulps(0)).equal());
  // The infinity to which the expected number rounds agrees; it is no distance.
  const Comparison rounded = in_half(kInfinity, 65520, within_ulps(0));
  CHECK(rounded.equal());
  CHECK(rounded.rounded_to_infinity == 1);
  CHECK(rounded.non_finite_one_side == 1);
  CHECK(!rounded.ulps);
  CHECK(!in_half(kInfinity, 65519.99, within_ulps(0)).equal());
  CHECK(!in_half(-kInfinity, 65520, within_ulps(0)).equal());
  CHECK(!in_half(65504, kInfinity, within_ulps(9)).equal());
}

TEST_CASE("of dtypes of which neither is wider distances are steps", "[measure]") {
  for (const auto& [actual, expected] : {std::pair{DType::float16, DType::bfloat16},
                                         {DType::bfloat16, DType::float16},
                                         {DType::float16, DType::int64},
                                         {DType::int8, DType::float64},
                                         {DType::float64, DType::float16},
                                         {DType::float32, DType::float32}}) {
    CAPTURE(lnorm::name(actual), lnorm::name(expected));
    CHECK(!lnorm::is_wider(expected, actual));
    CHECK(!comparison_of({1}, {2}, within(0, 0), 10, actual, expected).ulps->value.is_real);
  }
  for (const DType narrow : {DType::float16, DType::bfloat16}) {
    CHECK(lnorm::is_wider(DType::float32, narrow));
    CHECK(lnorm::is_wider(DType::float64, narrow));
  }
  CHECK(lnorm::is_wider(DType::float64, DType::float32));
}

TEST_CASE("distances of many pairs at once are those of each", "[measure]") {
  const DType expected = GENERATE(DType::float16, DType::bfloat16, DType::float8_e4m3fn,
                                  DType::float8_e5m2, DType::float8_e4m3fnuz, DType::float32);
  const DType wider = GENERATE(DType::boolean, DType::float32, DType::float64);
  const DType actual = wider == DType::boolean ? expected : wider;
  CAPTURE(lnorm::name(actual), lnorm::name(expected));
  const lnorm::FloatFormat format = lnorm::float_format(expected);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponents(format.least_exponent - 2,
                                                   std::log2(format.greatest));
  // The first pair has the greatest differences, so that no other raises one.
  std::vector<double> as{format.greatest};
  std::vector<double> es{-std::ldexp(1.0, format.least_exponent)};
  for (int i = 1; i < lnorm::kChunk; ++i) {
    // Halves, quarters and eighths of a step from the other, which is an element of its dtype.
    const double sign = random() % 2 == 0 ? 1 : -1;
    const double near = sign * std::exp2(exponents(random));
    const double ulp = lnorm::ulp_at(near, expected);
    es.push_back(std::clamp(ulp * std::round(near / ulp), -format.greatest, format.greatest));
    const double eighths = actual == expected ? 2 : 1;
    const double away = eighths * static_cast<double>(random() % 17) - 8 * eighths;
    as.push_back(std::clamp(es.back() + away * ulp / 8, -format.greatest, format.greatest));
    if (actual == expected) as.back() = ulp * std::round(as.back() / ulp);
  }
  lnorm::UlpCounts counts;
  for (std::size_t i = 0; i < as.size(); ++i) {
    counts.add(lnorm::UlpCounts::class_of_steps(lnorm::ulp_distance({as[i]}, {es[i]}, expected)));
  }
  const Comparison result = comparison_of(as, es, {}, 10, actual, expected);
  CHECK(result.ulp_counts == counts);
  CHECK(result.absolute->at.position == 0);
}

TEST_CASE("real distances of many pairs at once are those of each", "[measure]") {
  const DType narrow = GENERATE(DType::float16, DType::bfloat16, DType::float32);
  const lnorm::FloatFormat format = lnorm::float_format(narrow);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponents(format.least_exponent - 2, 10);
  std::vector<double> as{std::ldexp(1.0, 14)};
  std::vector<double> es{-std::ldexp(1.0, format.least_exponent)};
  lnorm::UlpCounts counts;
  std::int64_t misrounded_ties = 0;
  counts.add(lnorm::UlpCounts::class_of_real((as[0] - es[0]) / lnorm::ulp_at(es[0], narrow)));
  for (int i = 1; i < lnorm::kChunk; ++i) {
    // Ties among them, which an even number rounds to and an odd one does not.
    const double near = std::exp2(exponents(random));
    const double ulp = lnorm::ulp_at(near, narrow);
    as.push_back(ulp * std::ceil(near / ulp));
    const double quarters = static_cast<double>(random() % 4);
    es.push_back(as.back() + quarters * ulp / 4);
    const double of_ulp = lnorm::ulp_at(es.back(), narrow);
    counts.add(lnorm::UlpCounts::class_of_real((es.back() - as.back()) / of_ulp));
    const bool is_odd = std::fmod(as.back() / of_ulp, 2) == 1;
    misrounded_ties += es.back() - as.back() == of_ulp / 2 && is_odd ? 1 : 0;
  }
  const Comparison result = comparison_of(as, es, {}, 10, narrow, DType::float64);
  CHECK(result.ulp_counts == counts);
  CHECK(result.misrounded_ties == misrounded_ties);
  CHECK(misrounded_ties > 50);
  CHECK(result.absolute->at.position == 0);
}

TEST_CASE("every criterion fails by itself, and is named with what was found", "[measure]") {
  using lnorm::Criterion;
  // Errors 0, 2, 0, 0 of 3, 4, 0, 0: RMSE 1, mean absolute 1/2, SQNR 10 log10(25/4), cosine 33 / sqrt(45 * 25).
  const auto failures = [](const Criteria& criteria) {
    return comparison_of({3, 6, 0, 0}, {3, 4, 0, 0}, criteria).failures();
  };
  const auto check = [&](Criterion criterion, double found, std::optional<double> Criteria::*bound,
                         double holds, double fails) {
    CAPTURE(lnorm::name(criterion));
    Criteria criteria;
    criteria.*bound = holds;
    CHECK(failures(criteria).empty());
    criteria.*bound = fails;
    const std::vector<lnorm::Failure> failed = failures(criteria);
    REQUIRE(failed.size() == 1);
    CHECK(failed[0].criterion == criterion);
    CHECK(std::fabs(failed[0].found - found) <= 1e-13 * std::fabs(found));
  };
  check(Criterion::max_ulp, 0x1p51, &Criteria::max_ulp, 0x1p51, 0x1p51 - 1);
  check(Criterion::max_abs, 2, &Criteria::max_abs, 2, 1.999);
  check(Criterion::max_mean_abs, 0.5, &Criteria::max_mean_abs, 0.5, 0.499);
  check(Criterion::max_rmse, 1, &Criteria::max_rmse, 1, 0.999);
  const double cosine = 33 / std::sqrt(45.0 * 25);
  check(Criterion::min_cosine, cosine, &Criteria::min_cosine, cosine - 1e-9, cosine + 1e-9);
  const double sqnr = 10 * std::log10(25.0 / 4);
  check(Criterion::min_sqnr, sqnr, &Criteria::min_sqnr, sqnr - 1e-9, sqnr + 1e-9);
  Criteria criteria = within(0, 0);
  REQUIRE(failures(criteria).size() == 1);
  CHECK(failures(criteria)[0].criterion == Criterion::tolerance);
  CHECK(failures(criteria)[0].found == 1);
  criteria.max_mismatched = lnorm::MismatchLimit{25, true};
  CHECK(failures(criteria).empty());
  criteria.max_mismatched = lnorm::MismatchLimit{0, false};
  REQUIRE(failures(criteria).size() == 1);
  CHECK(failures(criteria)[0].criterion == Criterion::max_mismatched);
  criteria.max_rmse = 0.5;
  CHECK(failures(criteria).size() == 2);
}

TEST_CASE("what is not finite fails whatever the criteria are", "[measure]") {
  Criteria all_may;
  all_may.max_mismatched = lnorm::MismatchLimit{100, true};
  Criteria sqnr;
  sqnr.min_sqnr = -1000;
  for (const Criteria& criteria : {all_may, sqnr, within_ulps(0x1p64), within(1e300, kInfinity)}) {
    for (const auto& [actual, expected] :
         {std::pair{kNan, 1.0}, {1.0, kInfinity}, {kInfinity, -kInfinity}, {kNan, kInfinity}}) {
      const Comparison found = comparison_of({actual, 1}, {expected, 1}, criteria);
      REQUIRE(found.failures().size() == 1);
      CHECK(found.failures()[0].criterion == lnorm::Criterion::finite);
      CHECK(found.failures()[0].found == 1);
    }
    CHECK(comparison_of({kNan, kInfinity}, {kNan, kInfinity}, criteria).equal());
  }
}

TEST_CASE("a percentage is that of its decimals", "[measure]") {
  CHECK((lnorm::MismatchLimit{0.57, true}.allows(57, 10'000)));
  CHECK((!lnorm::MismatchLimit{0.57, true}.allows(58, 10'000)));
  CHECK((lnorm::MismatchLimit{1, true}.allows(0, 0)));
  CHECK((!lnorm::MismatchLimit{50, true}.allows(2, 3)));
}
