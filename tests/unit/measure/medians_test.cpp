#include "lnorm/measure/medians.hpp"

#include <algorithm>

#include "support/catch.hpp"
#include "support/elements.hpp"

namespace {

using namespace support;
using Columns = std::vector<std::vector<double>>;

// The first value of every column, then the second of those that have one, ...
std::vector<double> medians_of(const Columns& columns) {
  std::vector<std::int64_t> counts;
  std::size_t longest = 0;
  for (const auto& column : columns) {
    counts.push_back(std::ssize(column));
    longest = std::max(longest, column.size());
  }
  const auto each_value = [&](std::int64_t step, const lnorm::SeeValues& see) {
    if (step > 1) {
      for (std::size_t c = 0; c < columns.size(); ++c) {
        std::vector<double> some;
        for (std::size_t i = 0; i < columns[c].size(); i += static_cast<std::size_t>(step))
          some.push_back(columns[c][i]);
        see(c, some);
      }
      return;
    }
    constexpr std::size_t kAtOnce = 100;
    for (std::size_t i = 0; i < longest; i += kAtOnce) {
      for (std::size_t c = 0; c < columns.size(); ++c) {
        if (i >= columns[c].size()) continue;
        see(c, std::span(columns[c]).subspan(i, std::min(kAtOnce, columns[c].size() - i)));
      }
    }
  };
  // By a sample, by a sample that points to too many values, and by digits.
  const auto result = lnorm::medians(counts, each_value);
  for (const std::int64_t most : {8192 * std::ssize(columns), std::ptrdiff_t{0}}) {
    const auto other = lnorm::medians(counts, each_value, most);
    REQUIRE(other.size() == result.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      CHECK((other[i] == result[i] || (std::isnan(other[i]) && std::isnan(result[i]))));
    }
  }
  return result;
}

double median_of(std::vector<double> values) { return medians_of({std::move(values)}).front(); }

// By sorting. long double holds the sum of two doubles of like size.
double sorted_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double low = values[(values.size() - 1) / 2];
  const double high = values[values.size() / 2];
  return static_cast<double>((static_cast<long double>(low) + high) / 2);
}

}  // namespace

TEST_CASE("medians are those of the sorted values", "[measure]") {
  std::mt19937_64 random(1);
  const auto uniform = [&] { return std::uniform_real_distribution<double>(-1, 1)(random); };
  for (std::size_t count = 1; count <= 40; ++count) {
    Columns columns(6);
    for (std::size_t i = 0; i < count; ++i) {
      columns[0].push_back(uniform());
      columns[1].push_back(static_cast<double>(random() % 4) - 1);  // many of each
      columns[2].push_back(1 + static_cast<double>(random() % 9) * 0x1p-52);
      columns[3].push_back(std::ldexp(uniform(), static_cast<int>(random() % 2000) - 1000));
      columns[4].push_back(5e-324 * static_cast<double>(random() % 9));
      columns[5].push_back(random() % 3 == 0 ? kInfinity : uniform());
    }
    const std::vector<double> actual = medians_of(columns);
    REQUIRE(actual.size() == columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      CAPTURE(count, c);
      CHECK(actual[c] == sorted_median(columns[c]));
    }
  }
}

TEST_CASE("columns of different lengths do not get mixed up", "[measure]") {
  const std::vector<double> actual = medians_of({{3, 1, 2}, {}, {-5}, {10, 20}, {}});
  REQUIRE(actual.size() == 5);
  CHECK(actual[0] == 2);
  CHECK(std::isnan(actual[1]));
  CHECK(actual[2] == -5);
  CHECK(actual[3] == 15);
  CHECK(std::isnan(actual[4]));
  CHECK(medians_of({}).empty());
}

TEST_CASE("medians at the ends of the range", "[measure]") {
  CHECK(median_of({kMaxDouble, kMaxDouble}) == kMaxDouble);
  CHECK(median_of({-kMaxDouble, -kMaxDouble / 2}) == -kMaxDouble * 0.75);
  CHECK(median_of({kMaxDouble, -kMaxDouble}) == 0);
  CHECK(median_of({kMaxDouble, kInfinity}) == kInfinity);
  CHECK(median_of({-kInfinity, -kInfinity, 3}) == -kInfinity);
  CHECK(median_of({-kInfinity, 3, kInfinity}) == 3);
  CHECK(median_of({kInfinity, kInfinity}) == kInfinity);
  CHECK(median_of({5e-324}) == 5e-324);
  CHECK(median_of({-5e-324, 5e-324}) == 0);
  CHECK(median_of({-0.0, 0.0, -0.0, 0.0}) == 0);
  CHECK(median_of({-0.0, -1, 1}) == 0);
  CHECK(median_of({-2, -3, -1}) == -2);
}

TEST_CASE("the median of many values is that of their order", "[measure]") {
  std::mt19937_64 random(2);
  std::vector<double> values = normals(50'001, 2);
  CHECK(median_of(values) == sorted_median(values));
  values.push_back(7);
  CHECK(median_of(values) == sorted_median(values));
  std::sort(values.begin(), values.end());
  CHECK(median_of(values) == sorted_median(values));
  // Most values are the same.
  std::fill(values.begin() + 100, values.end() - 2000, 0.25);
  std::shuffle(values.begin(), values.end(), random);
  CHECK(median_of(values) == 0.25);
}

TEST_CASE("a sample that misleads does not make a median wrong", "[measure]") {
  // Every twelfth value is of another kind than those between.
  std::mt19937_64 random(3);
  std::vector<double> values;
  for (int i = 0; i < 12 * 4096; ++i) {
    const double value = std::uniform_real_distribution<double>()(random);
    values.push_back(i % 12 == 0 ? 1000 + value : value);
  }
  CHECK(median_of(values) == sorted_median(values));
  CHECK(medians_of({values, {1, 2, 3}, {}})[0] == sorted_median(values));
}
