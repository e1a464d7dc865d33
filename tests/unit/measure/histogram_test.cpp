#include "lnorm/measure/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

using lnorm::Histogram;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMost = std::numeric_limits<double>::max();

Histogram histogram_of(const std::vector<double>& values) {
  Histogram histogram;
  for (const double value : values) histogram.add(value);
  return histogram;
}

using Counts = std::vector<std::int64_t>;

std::int64_t count_if(const std::vector<double>& values, auto predicate) {
  return std::count_if(values.begin(), values.end(), predicate);
}

// The exponent of the greatest power of two that divides all values.
int divisor_of(const std::vector<double>& values) {
  int exponent = 1023;
  for (const double value : values) {
    while (std::remainder(value, std::ldexp(1.0, exponent)) != 0) --exponent;
  }
  return exponent;
}

// Of multiples of unit: some number of them makes a bar, at most a quarter more than needed.
void check_bars_of_multiples(const std::vector<double>& values, const Counts& bars, double unit,
                             std::size_t multiples, std::size_t most) {
  const double min = *std::min_element(values.begin(), values.end());
  const std::size_t least = (multiples + most - 1) / most;
  bool found = false;
  for (std::size_t per_bar = least; per_bar <= least + least / 4; ++per_bar) {
    Counts counts((multiples + per_bar - 1) / per_bar);
    for (const double value : values) {
      ++counts[static_cast<std::size_t>((value - min) / unit) / per_bar];
    }
    found = found || counts == bars;
  }
  CHECK(found);
}

// Every border: what lies clearly on one side of it is counted there.
void check_bars_of_range(const std::vector<double>& values, const Counts& bars) {
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  const long double range = static_cast<long double>(*max) - *min;
  std::int64_t before = 0;
  for (std::size_t i = 1; i < bars.size(); ++i) {
    before += bars[i - 1];
    const long double border =
        *min + range * static_cast<long double>(i) / static_cast<long double>(bars.size());
    const long double near = range / 32768;
    INFO("border " << i);
    CHECK(before >= count_if(values, [&](double value) { return value < border - near; }));
    CHECK(before <= count_if(values, [&](double value) { return value < border + near; }));
  }
}

void check_bars(const std::vector<double>& values, std::size_t most) {
  const Histogram histogram = histogram_of(values);
  const Counts bars = histogram.bars(most);
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  INFO("at most " << most << " bars: " << bars.size() << " of " << *min << " to " << *max);
  CHECK(histogram.count() == std::ssize(values));
  CHECK(histogram.left_out() == 0);
  CHECK(histogram.min() == *min);
  CHECK(histogram.max() == *max);
  CHECK(bars.size() <= most);
  CHECK(std::accumulate(bars.begin(), bars.end(), std::int64_t{0}) == std::ssize(values));
  if (*min == *max) {
    CHECK(bars.size() == 1);
    return;
  }
  const int divisor = divisor_of(values);
  const long double multiples =
      (static_cast<long double>(*max) - *min) / std::ldexp(1.0L, divisor) + 1;
  constexpr int kLeastDivisor = -1022;  // documented: bins are not narrower
  if (multiples <= 65536 && divisor >= kLeastDivisor) {
    check_bars_of_multiples(values, bars, std::ldexp(1.0, divisor),
                            static_cast<std::size_t>(multiples), most);
  } else if (divisor >= kLeastDivisor || *max / 2 - *min / 2 > 1e-290) {
    CHECK(bars.size() == most);
    check_bars_of_range(values, bars);
  }
}

struct Sample {
  std::string name;
  std::vector<double> values;
};

std::vector<Sample> samples() {
  std::mt19937_64 random(1);
  const auto many = [&](auto draw) {
    std::vector<double> values(3000);
    std::generate(values.begin(), values.end(), [&, i = 0]() mutable { return draw(i++); });
    return values;
  };
  const auto uniform = [&] { return std::uniform_real_distribution<double>(-1, 1)(random); };
  const auto normal = [&] { return std::normal_distribution<double>()(random); };
  return {
      {"normal", many([&](int) { return normal(); })},
      {"normal about 1e8", many([&](int) { return 1e8 + normal(); })},
      {"last places", many([&](int i) { return 1 + i % 5 * 0x1p-52; })},
      {"rising", many([&](int i) { return 0.1 * i; })},
      {"falling", many([&](int i) { return -0.1 * i; })},
      {"outwards", many([&](int i) { return std::ldexp(i % 2 == 0 ? 1 : -1, i / 3); })},
      {"negative only", many([&](int) { return -1 - std::fabs(normal()); })},
      {"integers", many([&](int i) { return i % 17; })},
      {"powers", many([&](int) { return std::pow(10, 300 * uniform()); })},
      {"powers of both signs",
       many([&](int i) { return std::pow(10, 300 * uniform()) * (i % 2 == 0 ? 1 : -1); })},
      {"subnormals", many([&](int) { return 5e-324 * std::round(1e6 * uniform()); })},
      {"near the largest", many([&](int) { return kMost * uniform(); })},
      {"outliers late", many([&](int i) { return i == 2900   ? 1e30
                                                 : i == 2950 ? -1e20
                                                             : 3.5; })},
      {"zero", {0}},
      {"zeros", {0, -0.0, 0, 0}},
      {"zero and then large", {0, 1e308}},
      {"zero and then small", {0, 5e-324, -5e-324}},
      {"one value", {0.1, 0.1, 0.1}},
      {"one negative value", {-1e-3}},
      {"one subnormal", {5e-324}},
      {"the largest", {kMost}},
      {"the lowest", {-kMost}},
      {"both ends", {1e308, -1e308}},
      {"the very ends", {-kMost, 0, kMost}},
      {"small, then large", {1e-300, 1e308}},
      {"small negative, then large", {-1e-300, 1e308}},
      {"smallest negative, then large", {-5e-324, 1, 1e-310, 1e300}},
      {"large, then small negative", {1e308, -1e-300}},
      {"halves", many([&](int) { return std::round(20 * normal()) / 2; })},
      {"coarse and large", {1e16, 1e16 + 2, 1e16 + 4}},
      {"a border", {1, 2, 3, 4, 1024, 4096, -4096}},
      {"just below a border", {std::nextafter(1.0, 0), 1, std::nextafter(1.0, 2), 4096}},
      {"exactly as wide as all bins", {0, 65535}},
      {"one wider", {0, 65536, 1}},
      {"around zero", {-1, std::nextafter(0.0, -1), 0, std::nextafter(0.0, 1), 1}},
  };
}

}  // namespace

TEST_CASE("a histogram counts every value in the bar of its borders", "[measure]") {
  for (const auto& [name, values] : samples()) {
    for (const std::size_t most :
         std::initializer_list<std::size_t>{1, 2, 3, 4, 5, 7, 40, 100, 1000}) {
      CAPTURE(name);
      check_bars(values, most);
    }
  }
}

TEST_CASE("a histogram does not depend on the order of the values", "[measure]") {
  std::mt19937_64 random(2);
  for (const auto& [name, values] : samples()) {
    CAPTURE(name);
    const Counts expected = histogram_of(values).bars(4096);
    std::vector<double> permuted = values;
    std::sort(permuted.begin(), permuted.end());
    CHECK(histogram_of(permuted).bars(4096) == expected);
    std::reverse(permuted.begin(), permuted.end());
    CHECK(histogram_of(permuted).bars(4096) == expected);
    std::sort(permuted.begin(), permuted.end(),
              [](double a, double b) { return std::fabs(a) < std::fabs(b); });
    CHECK(histogram_of(permuted).bars(4096) == expected);
    for (int i = 0; i < 5; ++i) {
      std::shuffle(permuted.begin(), permuted.end(), random);
      CHECK(histogram_of(permuted).bars(4096) == expected);
    }
  }
}

TEST_CASE("the bars of evenly spread numbers are even", "[measure]") {
  for (const double last : {1.0, 1.01, 1.37, 1.99, 1e-5, -3.0}) {
    Histogram histogram;
    for (int i = 0; i < 100'000; ++i) histogram.add(last * i / 99'999);
    const Counts bars = histogram.bars(80);
    CAPTURE(last);
    CHECK(bars.size() == 80);
    for (const std::int64_t count : bars) CHECK(std::abs(count - 1250) <= 6);
  }
}

TEST_CASE("every bar of integers has as many of them as another", "[measure]") {
  for (const int last : {5, 100, 255, 1000, 5000, 60'000}) {
    Histogram histogram;
    for (int i = 0; i <= last; ++i) histogram.add(i);
    for (const std::size_t most : std::initializer_list<std::size_t>{10, 79, 80, 300}) {
      const Counts bars = histogram.bars(most);
      CAPTURE(last, most);
      CHECK(bars.size() <= most);
      for (std::size_t i = 0; i + 1 < bars.size(); ++i) CHECK(bars[i] == bars[0]);
      CHECK(bars.back() <= bars[0]);
    }
  }
  const Histogram ends = histogram_of({0, 4095});
  CHECK(ends.bars(64).size() == 64);
  CHECK((ends.bars(3) == Counts{1, 0, 1}));
}

TEST_CASE("numbers stand on their side of zero and of other simple borders", "[measure]") {
  CHECK((histogram_of({-65504, 65504, 6e-8, 1, 2, 3}).bars(4) == Counts{1, 0, 4, 1}));
  CHECK((histogram_of({-1.7e308, 1.7e308, 0, 1e308}).bars(4) == Counts{1, 0, 1, 2}));
  CHECK((histogram_of({1, 1 + 0x1p-23, 1 + 0x1p-22, 1 + 0x1p-22, 1 + 0x1p-20}).bars(4) ==
         Counts{4, 0, 1}));
  CHECK((histogram_of({1e16, 1e16 + 2, 1e16 + 4}).bars(40) == Counts{1, 1, 1}));
}

TEST_CASE("one number that is no integer makes bars narrower than 1", "[measure]") {
  CHECK((histogram_of({1, 2, 2, 3}).bars(40) == Counts{1, 2, 1}));
  CHECK((histogram_of({1, 2, 2.5, 2}).bars(40) == Counts{1, 0, 2, 1}));
  CHECK((histogram_of({2.5, 1, 2, 2}).bars(40) == Counts{1, 0, 2, 1}));
  CHECK(histogram_of({1, 2, 0.1 + 2, 2}).bars(40).size() == 40);
}

TEST_CASE("a histogram leaves out what is not finite and counts it", "[measure]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Histogram plain = histogram_of({3, -1, 2});
  const Histogram mixed = histogram_of({nan, 3, kInfinity, -1, -nan, -kInfinity, 2, nan});
  CHECK(mixed.count() == 3);
  CHECK(mixed.left_out() == 5);
  CHECK(mixed.min() == -1);
  CHECK(mixed.max() == 3);
  CHECK(mixed.bars(50) == plain.bars(50));
  CHECK(histogram_of({nan, kInfinity}).count() == 0);
  CHECK(Histogram().count() == 0);
}
