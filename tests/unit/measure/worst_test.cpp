#include "lnorm/measure/worst.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/pace.hpp"

namespace {

using lnorm::WorstBy;
using lnorm::WorstElement;
using lnorm::WorstElements;

// Distances of few values, so that many are equal.
std::vector<WorstElement> elements(std::int64_t count) {
  std::mt19937_64 random(5);
  std::vector<WorstElement> result;
  for (std::int64_t i = 0; i < count; ++i) {
    WorstElement element;
    element.pair.position = i;
    if (random() % 100 > 0) {
      element.distances = {{random() % 40},
                           static_cast<double>(random() % 30) / 7,
                           static_cast<double>(random() % 50) / 3,
                           static_cast<double>(random() % 60) / 9};
    }
    result.push_back(element);
  }
  return result;
}

double size(const WorstElement& element, WorstBy by) {
  if (!element.distances) return 1e9;
  const auto& [ulps, absolute, relative, row_ulps] = *element.distances;
  // What differs by less than an ulp differs.
  if (by == WorstBy::ulp) return absolute == 0 ? 0 : ulps.value() + 0.5;
  return by == WorstBy::abs ? absolute : by == WorstBy::rel ? relative : row_ulps;
}

// By sorting all of them.
std::vector<std::int64_t> expected(std::vector<WorstElement> all, std::size_t most, WorstBy by,
                                   std::int64_t row_length) {
  std::stable_sort(all.begin(), all.end(), [&](const WorstElement& a, const WorstElement& b) {
    return size(a, by) > size(b, by);
  });
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> rows;
  for (const WorstElement& element : all) {
    const std::int64_t row = element.pair.position / row_length;
    const bool known = std::find(rows.begin(), rows.end(), row) != rows.end();
    if (size(element, by) == 0 || known || positions.size() == most) continue;
    positions.push_back(element.pair.position);
    rows.push_back(row);
  }
  return positions;
}

std::vector<std::int64_t> positions(const WorstElements& worst) {
  std::vector<std::int64_t> result;
  for (const WorstElement& element : worst.elements()) result.push_back(element.pair.position);
  return result;
}

}  // namespace

TEST_CASE("the worst elements are those that sorting finds, however they are divided",
          "[measure]") {
  const std::vector<WorstElement> all = elements(3000);
  int number = 0;
  for (const WorstBy by : {WorstBy::ulp, WorstBy::abs, WorstBy::rel, WorstBy::row_ulp}) {
    for (const std::size_t most : {0U, 1U, 5U, 40U, 1000U, 5000U}) {
      for (const std::int64_t row_length : {1, 7, 1000}) {
        const auto row_of = [=](std::int64_t position) { return position / row_length; };
        const WorstElements::RowOf rows =
            row_length == 1 ? WorstElements::RowOf{} : WorstElements::RowOf(row_of);
        const std::vector<std::int64_t> right = expected(all, most, by, row_length);
        for (const std::size_t block : {1U, 13U, 512U, 3000U}) {
          for (const bool with_floor : {false, true}) {
            CAPTURE(static_cast<int>(by), most, row_length, block, with_floor);
            if (!support::takes(number++)) continue;
            WorstElements worst(most, by, rows);
            for (std::size_t begin = 0; begin < all.size(); begin += block) {
              WorstElements part(most, by, rows);
              part.clear(with_floor ? worst.floor() : 0);
              for (std::size_t i = begin; i < std::min(begin + block, all.size()); ++i) {
                part.add(all[i]);
              }
              worst.merge(part);
            }
            CHECK(positions(worst) == right);
          }
        }
      }
    }
  }
}

TEST_CASE("what does not exceed the limits of the worst elements is not among them", "[measure]") {
  const std::vector<WorstElement> all = elements(2000);
  for (const WorstBy by : {WorstBy::ulp, WorstBy::abs, WorstBy::rel, WorstBy::row_ulp}) {
    WorstElements worst(6, by);
    for (const WorstElement& element : all) {
      const WorstElements::Limits limits = worst.limits();
      const std::vector<std::int64_t> before = positions(worst);
      worst.add(element);
      if (!element.distances) continue;
      const auto& [ulps, absolute, relative, row_ulps] = *element.distances;
      const bool within = ulps.rank <= limits.ulp_rank && absolute <= limits.absolute &&
                          relative <= limits.relative && row_ulps <= limits.row_ulps;
      if (within) CHECK(positions(worst) == before);
    }
  }
}
