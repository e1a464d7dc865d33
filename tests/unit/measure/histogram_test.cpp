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

bool operator==(const Histogram::Bins& a, const Histogram::Bins& b) {
  return a.begin == b.begin && a.width == b.width && a.counts == b.counts;
}

// The bins of finite values against a count of each value by the bins' borders.
void check_bins(const std::vector<double>& values, std::size_t most) {
  const Histogram histogram = histogram_of(values);
  const Histogram::Bins bins = histogram.bins(most);
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  INFO("at most " << most << " bins: " << bins.counts.size() << " from " << bins.begin << " by "
                  << bins.width << "; values " << *min << " to " << *max);
  CHECK(histogram.count() == std::ssize(values));
  CHECK(histogram.min() == *min);
  CHECK(histogram.max() == *max);
  REQUIRE(!bins.counts.empty());
  CHECK(bins.counts.size() <= most);
  if (!std::isfinite(bins.begin) || !std::isfinite(bins.width)) {
    FAIL_CHECK("not finite");
    return;
  }
  // Borders are whole multiples of a power of two and small ones at that: doubles hold them, but
  // for the first, for which the lowest double may stand in, and the last.
  const double quarter = bins.begin == -kMost ? -0x1p1022 : bins.begin / 4;
  std::vector<double> borders;
  for (std::size_t i = 0; i <= bins.counts.size(); ++i) {
    borders.push_back(4 * (quarter + static_cast<double>(i) * (bins.width / 4)));
  }
  CHECK(borders.front() <= *min);
  CHECK(borders.back() > *max);
  std::vector<std::int64_t> counts(bins.counts.size());
  for (const double value : values) {
    const auto after = std::upper_bound(borders.begin(), borders.end(), value);
    if (after == borders.begin() || after == borders.end()) {
      FAIL_CHECK(value << " is in no bin");
      return;
    }
    ++counts[static_cast<std::size_t>(after - borders.begin() - 1)];
  }
  const auto [found, wanted] =
      std::mismatch(bins.counts.begin(), bins.counts.end(), counts.begin());
  if (found != bins.counts.end()) {
    FAIL_CHECK("bin " << found - bins.counts.begin() << " counts " << *found << ", there are "
                      << *wanted);
  }
}

struct Sample {
  std::string name;
  std::vector<double> values;
};

std::vector<Sample> samples() {
  std::mt19937_64 random(1);
  const auto many = [&](auto draw) {
    std::vector<double> values;
    for (int i = 0; i < 3000; ++i) values.push_back(draw(i));
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
      {"a border", {1, 2, 3, 4, 1024, 4096, -4096}},
      {"just below a border", {std::nextafter(1.0, 0), 1, std::nextafter(1.0, 2), 4096}},
      {"exactly as wide as all bins", {0, 4095}},
      {"one wider", {0, 4096, 1}},
      {"around zero", {-1, std::nextafter(0.0, -1), 0, std::nextafter(0.0, 1), 1}},
  };
}

}  // namespace

TEST_CASE("a histogram counts every value in the bin of its borders", "[measure]") {
  for (const auto& [name, values] : samples()) {
    for (const std::size_t most :
         std::initializer_list<std::size_t>{4, 5, 7, 40, 100, 4096, 10000}) {
      CAPTURE(name);
      check_bins(values, most);
    }
    // So few bins may be wider than doubles go.
    for (const std::size_t most : std::initializer_list<std::size_t>{1, 2, 3}) {
      const auto bins = histogram_of(values).bins(most);
      CAPTURE(name, most);
      CHECK(bins.counts.size() <= most);
      CHECK(std::accumulate(bins.counts.begin(), bins.counts.end(), std::int64_t{0}) ==
            std::ssize(values));
    }
  }
}

TEST_CASE("a histogram does not depend on the order of the values", "[measure]") {
  std::mt19937_64 random(2);
  for (const auto& [name, values] : samples()) {
    CAPTURE(name);
    const Histogram::Bins expected = histogram_of(values).bins(4096);
    std::vector<double> permuted = values;
    std::sort(permuted.begin(), permuted.end());
    CHECK((histogram_of(permuted).bins(4096) == expected));
    std::reverse(permuted.begin(), permuted.end());
    CHECK((histogram_of(permuted).bins(4096) == expected));
    std::sort(permuted.begin(), permuted.end(),
              [](double a, double b) { return std::fabs(a) < std::fabs(b); });
    CHECK((histogram_of(permuted).bins(4096) == expected));
    for (int i = 0; i < 5; ++i) {
      std::shuffle(permuted.begin(), permuted.end(), random);
      CHECK((histogram_of(permuted).bins(4096) == expected));
    }
  }
}

TEST_CASE("the bins of a wide range are hardly wider than its share", "[measure]") {
  for (const auto& [name, values] : samples()) {
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    const double range = *max / 2 - *min / 2;  // half of it, which cannot overflow
    // Values few places apart need no finer bins than those places.
    if (range < 0x1p-35 * std::max(std::fabs(*min), std::fabs(*max)) || range < 1e-280) continue;
    for (const std::size_t most : std::initializer_list<std::size_t>{10, 40, 100}) {
      const auto bins = histogram_of(values).bins(most);
      INFO(name << ": " << bins.counts.size() << " bins of " << bins.width
                << " for half a range of " << range << ", " << most << " asked for");
      // A quarter more where that lets the last bin end with the values; of integers at least 1.
      const double share = range / static_cast<double>(most) * 1.06 * 1.25;
      const bool integers = std::all_of(values.begin(), values.end(),
                                        [](double value) { return value == std::floor(value); });
      CHECK((bins.width / 2 <= share + (integers ? 0.5 : 0)));
    }
  }
}

TEST_CASE("a histogram has as many bins as it is asked for, if the values fill them", "[measure]") {
  // 4096 fine bins of width 1.
  const Histogram histogram = histogram_of({0, 4095});
  for (const std::size_t most : std::initializer_list<std::size_t>{4096, 2048, 1024, 64, 2, 1}) {
    const auto bins = histogram.bins(most);
    CAPTURE(most);
    CHECK(bins.begin == 0);
    CHECK(bins.width == 4096 / static_cast<double>(most));
    CHECK(bins.counts.size() == most);
  }
  const auto thirds = histogram.bins(3);
  CHECK(thirds.width == 1366);
  CHECK((thirds.counts == std::vector<std::int64_t>{1, 0, 1}));
}

TEST_CASE("one value has one bin, and a narrow one", "[measure]") {
  for (const double value : {1.5, 0.1, -0.1, 1e300, -3e-250}) {
    const auto bins = histogram_of({value, value}).bins(40);
    CAPTURE(value);
    CHECK(bins.counts == std::vector<std::int64_t>{2});
    CHECK(bins.width <= std::fabs(value) * 0x1p-40);
  }
}

TEST_CASE("every bin of integers has as many of them as another", "[measure]") {
  for (const int last : {5, 100, 255, 1000, 5000}) {
    Histogram histogram;
    for (int i = 0; i <= last; ++i) histogram.add(i);
    for (const std::size_t most : std::initializer_list<std::size_t>{10, 79, 80, 300}) {
      const auto bins = histogram.bins(most);
      CAPTURE(last, most);
      CHECK(bins.width == std::floor(bins.width));
      for (std::size_t i = 0; i + 1 < bins.counts.size(); ++i) {
        CHECK(static_cast<double>(bins.counts[i]) == bins.width);
      }
    }
  }
}

TEST_CASE("one number that is no integer gives bins narrower than 1", "[measure]") {
  CHECK(histogram_of({1, 2, 2, 3}).bins(40).counts == std::vector<std::int64_t>{1, 2, 1});
  CHECK(histogram_of({1, 2, 2.5, 2}).bins(40).width < 0.1);
  CHECK(histogram_of({2.5, 1, 2, 2}).bins(40).width < 0.1);
}

TEST_CASE("a histogram leaves out what is not finite", "[measure]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Histogram plain = histogram_of({3, -1, 2});
  const Histogram mixed = histogram_of({nan, 3, kInfinity, -1, -nan, -kInfinity, 2, nan});
  CHECK(mixed.count() == 3);
  CHECK(mixed.min() == -1);
  CHECK(mixed.max() == 3);
  CHECK((mixed.bins(50) == plain.bins(50)));
  CHECK(histogram_of({nan, kInfinity}).count() == 0);
  CHECK(Histogram().count() == 0);
}
