#include "lnorm/measure/histogram.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <numeric>

#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/pace.hpp"

namespace {

using lnorm::Histogram;
using namespace support;

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
    const long double near = range * 0x1p-48L;
    INFO("border " << i);
    CHECK(before >= count_if(values, [&](double value) { return value < border - near; }));
    CHECK(before <= count_if(values, [&](double value) { return value < border + near; }));
  }
}

bool same(const Histogram::Bars& a, const Histogram::Bars& b) {
  return a.low == b.low && a.high == b.high && a.counts == b.counts && a.below == b.below &&
         a.above == b.above;
}

void check_bars(const std::vector<double>& values, std::size_t most) {
  const Histogram histogram = histogram_of(values);
  const Histogram::Bars bars = histogram.bars(most);
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  INFO("at most " << most << " bars: " << bars.counts.size() << " of " << bars.low << " to "
                  << bars.high);
  CHECK(histogram.count() == std::ssize(values));
  CHECK(histogram.min() == *min);
  CHECK(histogram.max() == *max);
  CHECK(bars.counts.size() <= most);
  CHECK(bars.below == count_if(values, [&](double value) { return value < bars.low; }));
  CHECK(bars.above == count_if(values, [&](double value) { return value > bars.high; }));
  CHECK(std::accumulate(bars.counts.begin(), bars.counts.end(), bars.below + bars.above) ==
        std::ssize(values));
  if (*min == *max) {
    CHECK(bars.counts.size() == 1);
    return;
  }
  std::vector<double> shown;
  std::copy_if(values.begin(), values.end(), std::back_inserter(shown),
               [&](double value) { return value >= bars.low && value <= bars.high; });
  const auto [low, high] = std::minmax_element(shown.begin(), shown.end());
  const int divisor = divisor_of(shown);
  const long double multiples =
      (static_cast<long double>(*high) - *low) / std::ldexp(1.0L, divisor) + 1;
  constexpr int kMinDivisor = -1020;
  if (multiples <= 65536 && divisor >= kMinDivisor) {
    check_bars_of_multiples(shown, bars.counts, std::ldexp(1.0, divisor),
                            static_cast<std::size_t>(multiples), most);
  } else if (divisor >= kMinDivisor || *high / 2 - *low / 2 > 1e-290) {
    CHECK(bars.low == *low);
    CHECK(bars.high == *high);
    CHECK(bars.counts.size() == most);
    check_bars_of_range(shown, bars.counts);
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
      {"near the largest", many([&](int) { return kMaxDouble * uniform(); })},
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
      {"the largest", {kMaxDouble}},
      {"the lowest", {-kMaxDouble}},
      {"both ends", {1e308, -1e308}},
      {"the very ends", {-kMaxDouble, 0, kMaxDouble}},
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
    const Histogram::Bars expected = histogram_of(values).bars(4096);
    std::vector<double> permuted = values;
    std::sort(permuted.begin(), permuted.end());
    CHECK(same(histogram_of(permuted).bars(4096), expected));
    std::reverse(permuted.begin(), permuted.end());
    CHECK(same(histogram_of(permuted).bars(4096), expected));
    std::sort(permuted.begin(), permuted.end(),
              [](double a, double b) { return std::fabs(a) < std::fabs(b); });
    CHECK(same(histogram_of(permuted).bars(4096), expected));
    for (int i = 0; i < 5; ++i) {
      std::shuffle(permuted.begin(), permuted.end(), random);
      CHECK(same(histogram_of(permuted).bars(4096), expected));
    }
  }
}

TEST_CASE("the bars of evenly spread numbers are even", "[measure]") {
  for (const double last : {1.0, 1.01, 1.37, 1.99, 1e-5, -3.0}) {
    Histogram histogram;
    for (int i = 0; i < 100'000; ++i) histogram.add(last * i / 99'999);
    const Counts bars = histogram.bars(80).counts;
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
      const Counts bars = histogram.bars(most).counts;
      CAPTURE(last, most);
      CHECK(bars.size() <= most);
      for (std::size_t i = 0; i + 1 < bars.size(); ++i) CHECK(bars[i] == bars[0]);
      CHECK(bars.back() <= bars[0]);
    }
  }
  const Histogram ends = histogram_of({0, 4095});
  CHECK(ends.bars(64).counts.size() == 64);
  CHECK((ends.bars(3).counts == Counts{1, 0, 1}));
}

TEST_CASE("numbers stand on their side of zero and of other simple borders", "[measure]") {
  CHECK((histogram_of({-65504, 65504, 6e-8}).bars(4).counts == Counts{1, 0, 1, 1}));
  CHECK((histogram_of({-1.7e308, 1.7e308, 0, 1e308}).bars(4).counts == Counts{1, 0, 1, 2}));
  CHECK((histogram_of({1, 1 + 0x1p-23, 1 + 0x1p-20}).bars(4).counts == Counts{2, 0, 1}));
  CHECK((histogram_of({1e16, 1e16 + 2, 1e16 + 4}).bars(40).counts == Counts{1, 1, 1}));
}

TEST_CASE("one number that is no integer makes bars narrower than 1", "[measure]") {
  CHECK((histogram_of({1, 2, 2, 3}).bars(40).counts == Counts{1, 2, 1}));
  CHECK((histogram_of({1, 2, 2.5, 2}).bars(40).counts == Counts{1, 0, 2, 1}));
  CHECK((histogram_of({2.5, 1, 2, 2}).bars(40).counts == Counts{1, 0, 2, 1}));
  CHECK(histogram_of({1, 2, 0.1 + 2, 2}).bars(40).counts.size() == 40);
}

TEST_CASE("a histogram leaves out what is not finite and counts it", "[measure]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Histogram plain = histogram_of({3, -1, 2});
  const Histogram mixed =
      histogram_of({nan, 3, kInfinity, -1, -nan, -kInfinity, 2, nan, kInfinity});
  CHECK(mixed.count() == 3);
  CHECK(mixed.nans() == 3);
  CHECK(mixed.minus_infinities() == 1);
  CHECK(mixed.infinities() == 2);
  CHECK(mixed.min() == -1);
  CHECK(mixed.max() == 3);
  CHECK(same(mixed.bars(50), plain.bars(50)));
  CHECK(histogram_of({nan, kInfinity}).count() == 0);
  CHECK(Histogram().count() == 0);
}

TEST_CASE("what lies far out is counted beside the bars and does not flatten them", "[measure]") {
  const std::vector<double> values = normals(1000, 3);
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  const double low = *min;
  const double high = *max;
  const Histogram::Bars plain = histogram_of(values).bars(40);
  CHECK(plain.below + plain.above == 0);
  for (const double far : {1e30, 1e3, 40.0}) {
    for (const std::size_t below : {0U, 1U, 3U}) {
      for (const std::size_t above : {0U, 2U, 200U}) {
        CAPTURE(far, below, above);
        std::vector<double> with(values);
        with.insert(with.begin() + 500, above, far);
        with.insert(with.end(), below, -far);
        const Histogram histogram = histogram_of(with);
        const Histogram::Bars bars = histogram.bars(40);
        CHECK(bars.below == static_cast<std::int64_t>(below));
        CHECK(bars.above == static_cast<std::int64_t>(above));
        CHECK(bars.low == low);
        CHECK(bars.high == high);
        CHECK(bars.counts == plain.counts);
        CHECK(histogram.max() == (above > 0 ? far : high));
      }
    }
  }
}

TEST_CASE("the range of a histogram goes by quartiles, or by what lies closer to the ends",
          "[measure]") {
  const auto outside = [](std::vector<double> values, std::size_t repeated = 0, double what = 0) {
    values.insert(values.end(), repeated, what);
    const Histogram::Bars bars = histogram_of(values).bars(10);
    return bars.below + bars.above;
  };
  CHECK(outside({1, 2, 1e30}) == 0);  // of three, none is far out
  CHECK(outside({1, 2, 3, 1e30}) == 1);
  CHECK(outside({-1e30, 1, 2, 3, 4, 1e30}) == 2);
  CHECK(outside({1, 2, 3, 4, 1e300, -1e300}) == 2);
  // The quartiles are 2 and 3: up to 8 is near. Then half of all is the most that may be left out.
  CHECK(outside({1, 2, 3, 8}) == 0);
  CHECK(outside({1, 2, 3, 4}) == 0);
  CHECK(outside({1, 2, 3, 9}) == 1);
  CHECK(outside({1, 2, 3, 8, 9, 15, -7, 2.5}) == 0);
  // Where most are one number, the others tell.
  CHECK(outside({1e30}, 23, 0) == 0);
  CHECK(outside({1, 2, 3, 4, 5, 6, 7, 8, 9, 1e30}, 60, 0) == 1);
  CHECK(outside({}, 10, 5) == 0);
}

TEST_CASE("of more different numbers than it holds a histogram is nearly right, in any order",
          "[measure]") {
  std::mt19937_64 random(4);
  std::vector<double> values = normals(300'000, 4);
  values[7] = 1e300;
  const auto different = [](std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return std::unique(all.begin(), all.end()) - all.begin();
  };
  REQUIRE(different(values) > std::ssize(Counts(lnorm::ValueCounts::kMax)));
  const Histogram::Bars bars = histogram_of(values).bars(60);
  CHECK(bars.above == 1);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < bars.counts.size(); ++i) {
    before += bars.counts[i];
    const double border = bars.low + (bars.high - bars.low) * static_cast<double>(i + 1) / 60;
    const auto exact = count_if(values, [&](double value) { return value < border; });
    CHECK(std::abs(before - exact) <= 60);
  }
  CHECK(before == 299'999);
  for (int i = 0; i < 3; ++i) {
    std::shuffle(values.begin(), values.end(), random);
    CHECK(same(histogram_of(values).bars(60), bars));
  }
  std::sort(values.begin(), values.end());
  CHECK(same(histogram_of(values).bars(60), bars));
}

TEST_CASE("histograms that are merged are one of all numbers", "[measure]") {
  auto part = [seed = 7U](int count, double scale) mutable {
    return normals(count, seed++, 0, scale);
  };
  // Few numbers and many, finely counted and coarsely, more together than either has, and none.
  const std::vector<std::vector<double>> parts{{},
                                               {1, 2, kInfinity},
                                               part(support::share(50'000), 1),
                                               part(support::share(50'000), 1e-3),
                                               part(support::share(200'000), 2),
                                               {-kInfinity}};
  for (const auto& first : parts) {
    for (const auto& second : parts) {
      CAPTURE(first.size(), second.size());
      std::vector<double> all(first);
      all.insert(all.end(), second.begin(), second.end());
      const Histogram expected = histogram_of(all);
      Histogram merged = histogram_of(first);
      merged.merge(histogram_of(second));
      CHECK(merged.count() == expected.count());
      CHECK(merged.infinities() == expected.infinities());
      CHECK(merged.minus_infinities() == expected.minus_infinities());
      if (expected.count() == 0) continue;
      CHECK(merged.min() == expected.min());
      CHECK(merged.max() == expected.max());
      CHECK(same(merged.bars(70), expected.bars(70)));
    }
  }
}

TEST_CASE("numbers are counted between any borders", "[measure]") {
  const std::vector<double> values = normals(20'000, 5, 1, 2);
  const Histogram histogram = histogram_of(values);
  const std::vector<double> borders{-3, -1, 0, 0.5, 0.5001, 2, histogram.max()};
  const Counts counts = histogram.counts(borders);
  REQUIRE(counts.size() + 1 == borders.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool is_last = i + 1 == counts.size();
    CHECK(counts[i] == count_if(values, [&](double value) {
            return value >= borders[i] &&
                   (is_last ? value <= borders[i + 1] : value < borders[i + 1]);
          }));
  }
  CHECK(histogram_of({1, 1, 2}).counts(std::vector<double>{0, 1, 2}) == Counts{0, 3});
  // Of many values the bins at the ends go beyond the numbers.
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    const Histogram many = histogram_of(normals(200'000, seed, 0, 1));
    const Counts all = many.counts(std::vector<double>{many.min(), 0, many.max()});
    CHECK(all[0] + all[1] == many.count());
  }
}

namespace {

// As bins are defined: by sorting, in so many leading bits as allow kBins of them.
struct Expected {
  std::vector<std::uint64_t> keys;  // in order
  int shift = 0;

  explicit Expected(const std::vector<double>& values) {
    for (const double value : values) keys.push_back(std::bit_cast<std::uint64_t>(value + 0.0));
    std::sort(keys.begin(), keys.end());
    if (different() <= std::ssize(Counts(lnorm::ValueCounts::kMax))) return;
    while (different() > std::ssize(Counts(lnorm::ValueCounts::kBins))) ++shift;
  }

  std::int64_t different() const {
    std::int64_t count = 1;
    for (std::size_t i = 1; i < keys.size(); ++i) {
      count += keys[i] >> shift != keys[i - 1] >> shift ? 1 : 0;
    }
    return count;
  }

  std::int64_t count_of(double value) const {
    const auto is_below = [&](std::uint64_t a, std::uint64_t b) { return a >> shift < b >> shift; };
    const auto [first, end] =
        std::equal_range(keys.begin(), keys.end(), std::bit_cast<std::uint64_t>(value), is_below);
    return end - first;
  }

  void check(const lnorm::ValueCounts& found) const {
    const auto bins = found.bins();
    CHECK(std::ssize(bins) == different());
    CHECK(std::all_of(bins.begin(), bins.end(), [&](const auto& bin) {
      return bin.count == count_of(bin.low) && bin.count == count_of(bin.high);
    }));
  }
};

}  // namespace

TEST_CASE("many numbers are counted in bins of their leading bits, floats as the same doubles",
          "[measure]") {
  std::mt19937_64 random(11);
  const auto normal = [&] { return std::normal_distribution<float>()(random); };
  const auto uniform = [&] { return std::uniform_real_distribution<float>(-1, 1)(random); };
  const std::vector<std::function<float(int)>> kinds{
      [&](int) { return normal(); },
      [&](int) { return 1.5F + 0x1p-9F * uniform(); },                  // all in one binade
      [&](int i) { return i < 70'000 ? normal() : 1e20F * normal(); },  // and then far out
      [&](int i) { return i < 70'000 ? normal() : 1e-20F * normal(); },
      [&](int i) { return i % 50 == 0 ? 1e38F * uniform() : 1e-39F * uniform(); },  // subnormal
      [&](int i) { return i % 3 == 0   ? -0.0F
                          : i % 3 == 1 ? 0.0F
                                       : normal(); },
      [&](int) { return std::ldexp(uniform(), static_cast<int>(random() % 250) - 125); },
      [&](int i) { return static_cast<float>(i % 1000); },
  };
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    CAPTURE(kind);
    std::vector<float> floats;
    for (int i = 0; i < 150'000; ++i) floats.push_back(kinds[kind](i));
    const std::vector<double> doubles(floats.begin(), floats.end());
    const auto bytes = std::as_bytes(std::span(floats));
    const Expected expected(doubles);
    lnorm::ValueCounts of_floats;
    of_floats.add_floats(bytes);
    expected.check(of_floats);
    lnorm::ValueCounts of_doubles;
    of_doubles.add(doubles);
    expected.check(of_doubles);
    // In two that are merged, either way round, and at odd addresses.
    std::vector<std::byte> moved(bytes.size() + 1);
    std::copy(bytes.begin(), bytes.end(), moved.begin() + 1);
    for (const bool swapped : {false, true}) {
      lnorm::ValueCounts parts[2];
      parts[swapped ? 1 : 0].add_floats(std::span(moved).subspan(1, 4 * 80'000));
      parts[swapped ? 0 : 1].add(std::span(doubles).subspan(80'000));
      parts[0].merge(parts[1]);
      expected.check(parts[0]);
    }
  }
}
