
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "lnorm/core/decimal.hpp"
#include "support/catch.hpp"
#include "support/pace.hpp"

namespace lnorm {
namespace {

std::string printed(double value, std::chars_format format, int precision) {
  std::array<char, 400> text;
  return {text.data(),
          std::to_chars(text.data(), text.data() + text.size(), value, format, precision).ptr};
}

// With the digits of std::to_chars, but for the point and zeros before the first.
void check_fixed(double value, int precision) {
  const auto found = rounded_multiple(value, precision);
  if (!found) return;
  std::string text = printed(value, std::chars_format::fixed, precision);
  std::erase(text, '.');
  CAPTURE(value, precision);
  if (std::stoull(text) != *found) FAIL_CHECK(*found);
}

void check_scientific(double value, int precision) {
  if (!(value > 0) || !std::isfinite(value)) return;
  const auto found = rounded_decimal(value, precision + 1);
  if (!found) return;
  std::array<char, 64> text;
  char* end = put_with_point(found->digits, precision + 1, precision, text.data());
  end = put_exponent(found->exponent + precision, end);
  const std::string result(text.data(), end);
  CAPTURE(value, precision);
  if (result != printed(value, std::chars_format::scientific, precision)) FAIL_CHECK(result);
}

void check_rounded(double value) {
  for (const int precision : {0, 1, 2, 4, 8, 14}) {
    check_fixed(value, precision);
    check_scientific(value, precision);
  }
}

TEST_CASE("digits are those of std::to_string, with zeros before them", "[rounded_decimal]") {
  std::mt19937_64 random(2026);
  for (int i = 0; i < support::share(100'000, 4); ++i) {
    const std::uint64_t number = random() >> random() % 64;
    const std::string expected = std::to_string(number);
    std::array<char, 32> text;
    const int count = std::max(digits_of(number), static_cast<int>(random() % 21));
    const std::string found(text.data(), put_digits(number, count, text.data()));
    CAPTURE(number, count);
    if (number > 0 && found != std::string(found.size() - expected.size(), '0') + expected) {
      FAIL_CHECK(found);
    }
    CHECK(std::ssize(found) == count);
  }
}

TEST_CASE("decimals are rounded as std::to_chars rounds them", "[rounded_decimal]") {
  std::mt19937_64 random(2026);
  std::normal_distribution<double> normal;
  for (int i = 0; i < support::share(30'000, 4); ++i) {
    const double value = std::abs(normal(random));
    check_rounded(value);
    check_rounded(static_cast<float>(value));
    check_rounded(
        std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 160) - 130));
  }
  check_rounded(0);
}

TEST_CASE("decimals in the middle of two are rounded to the even one", "[rounded_decimal]") {
  CHECK(rounded_multiple(0.5, 0) == 0);
  CHECK(rounded_multiple(1.5, 0) == 2);
  CHECK(rounded_multiple(2.5, 0) == 2);
  CHECK(rounded_multiple(0.125, 2) == 12);
  CHECK(rounded_multiple(0.00048828125, 10) == 4882812);
  CHECK(rounded_multiple(2.675, 2) == 267);  // it is a little less
  CHECK(rounded_multiple(25, -1) == 2);
  CHECK(rounded_multiple(35, -1) == 4);
  std::mt19937_64 random(7);
  for (int digits = 1; digits < 15; ++digits) {
    for (int i = 0; i < 60; ++i) {
      // About what ends in a 5 behind the last digit: that itself where it has few bits, and its neighbors.
      const double integer =
          static_cast<double>(random() % kPowersOfTen[static_cast<std::size_t>(digits)]);
      for (int power = -22; power <= 8; ++power) {
        const double middle = (integer + 0.5) * std::pow(10.0, power);
        for (const double value :
             {middle, std::nextafter(middle, 0), std::nextafter(middle, 1e300)}) {
          check_fixed(value, std::max(0, -power));
          check_scientific(value, digits - 1);
        }
      }
    }
  }
  for (int exponent = -60; exponent < 60; ++exponent) {
    for (int odd = 1; odd < 200; odd += 2) check_rounded(std::ldexp(odd, exponent));
  }
}

TEST_CASE("the fast way reaches what is common", "[rounded_decimal]") {
  for (const double value : {1e-17, 1e-5, 0.1, 1.0, 9.99999, 99999.5, 1e16, 1e26}) {
    CHECK(rounded_decimal(value, 5));
  }
  CHECK(!rounded_decimal(1e-300, 5));
  CHECK(!rounded_decimal(5e-324, 5));
  CHECK(!rounded_decimal(1, 16));
  CHECK(!rounded_multiple(1e12, 4));
  CHECK(!rounded_multiple(1, 23));
}

}  // namespace
}  // namespace lnorm
