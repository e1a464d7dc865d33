#include "lnorm/measure/unrounded_sum.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "lnorm/core/serialize.hpp"
#include "support/catch.hpp"

namespace {

using lnorm::UnroundedSum;
using Integer = boost::multiprecision::cpp_int;

constexpr int kMin = -4000;  // below all exponents of these tests

struct Term {
  double value;
  int exponent;
};

Integer times_power(const Term& term) {
  int exponent = 0;
  const double factor = std::frexp(term.value, &exponent);
  const Integer digits(static_cast<std::int64_t>(std::ldexp(factor, 53)));
  const int shift = exponent - 53 + term.exponent - kMin;
  return digits * (Integer(1) << shift);
}

UnroundedSum sum_of(const std::vector<Term>& terms) {
  UnroundedSum sum;
  for (const Term& term : terms) sum.add(term.value, term.exponent);
  return sum;
}

// Rounded to the nearest number of 53 bits, of two the even one.
void check(const UnroundedSum& sum, const Integer& expected) {
  const auto [factor, exponent] = sum.rounded();
  if (expected == 0) {
    CHECK(factor == 0);
    return;
  }
  CHECK(std::fabs(factor) >= 0.5);
  CHECK(std::fabs(factor) < 1);
  const Integer found = times_power({factor, exponent});
  const Integer size = abs(found);
  const auto lowest = static_cast<int>(msb(size)) - 52;
  const Integer off = abs(Integer(found - expected)) * 2;
  // Next to a power of two the half below it is the half of a smaller step.
  const bool is_power = size == Integer(1) << static_cast<unsigned>(msb(size));
  const Integer step = Integer(1) << (is_power && abs(expected) < size ? lowest - 1 : lowest);
  CHECK(off <= step);
  if (off == step) CHECK(((size >> lowest) & 1) == 0);
}

}  // namespace

TEST_CASE("an unrounded sum is right in any order", "[measure]") {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const int spread = round % 3 == 0 ? 4 : round % 3 == 1 ? 200 : 2000;
    std::vector<Term> terms;
    Integer expected = 0;
    for (int i = 0; i < 1 + round % 40; ++i) {
      const int exponent = static_cast<int>(random() % static_cast<unsigned>(spread)) - spread / 2;
      terms.push_back({normal(random), exponent});
      // What cancels leaves the small ones.
      if (round % 4 == 0 && i % 2 == 1) terms.push_back({-terms.back().value, exponent});
    }
    for (const Term& term : terms) expected += times_power(term);
    check(sum_of(terms), expected);
    std::shuffle(terms.begin(), terms.end(), random);
    UnroundedSum parts;
    for (std::size_t i = 0; i < terms.size(); i += 3) {
      UnroundedSum part;
      for (std::size_t j = i; j < std::min(i + 3, terms.size()); ++j) {
        part.add(terms[j].value, terms[j].exponent);
      }
      UnroundedSum carried;
      lnorm::deserialize(lnorm::serialize(part), carried);
      parts.append(carried);
    }
    check(parts, expected);
    CHECK(parts.rounded().factor == sum_of(terms).rounded().factor);
  }
}

TEST_CASE("an unrounded sum carries over words, and rounds ties to even", "[measure]") {
  const auto check_terms = [](const std::vector<Term>& terms) {
    Integer expected = 0;
    for (const Term& term : terms) expected += times_power(term);
    check(sum_of(terms), expected);
  };
  constexpr double kLargest = std::numeric_limits<double>::max();
  constexpr double kTiny = std::numeric_limits<double>::denorm_min();
  check_terms({});
  check_terms({{0, 5}, {-0.0, 900}});
  check_terms({{1, 64}, {-1, 0}});  // borrows
  check_terms({{-1, 64}, {1, 0}, {-1, 64}});
  check_terms({{1, 63}, {1, 63}, {1, 63}, {1, 63}});
  check_terms({{-1, 63}, {-1, 63}, {-1, -1}});
  check_terms({{1, 0}, {1, -53}});  // a tie
  check_terms({{1, 0}, {1, -53}, {1, -2000}});
  check_terms({{1, 0}, {1, -52}, {1, -53}});
  check_terms({{1, 0}, {-1, -54}});
  check_terms({{kLargest, 1024}, {kTiny, -2148}, {-kLargest, 1024}});
  std::vector<Term> many(5000, {kLargest, 0});
  check_terms(many);
  for (Term& term : many) term.value = -1;
  check_terms(many);
}
