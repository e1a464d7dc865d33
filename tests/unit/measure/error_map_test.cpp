#include "lnorm/measure/error_map.hpp"

#include <algorithm>
#include <memory>

#include "support/catch.hpp"
#include "support/elements.hpp"

namespace {

using lnorm::Chunk;
using lnorm::ErrorMap;
using namespace support;

// In blocks that begin anywhere.
ErrorMap map_of(const std::vector<double>& actual, const std::vector<double>& expected,
                std::int64_t rows, const ErrorMap::Size& size, std::int64_t block) {
  const std::int64_t all = std::ssize(actual);
  ErrorMap map(rows, all / rows, size);
  const auto a = std::make_unique<Chunk>();
  const auto e = std::make_unique<Chunk>();
  for (std::int64_t first = 0; first < all; first += block) {
    const std::int64_t count = std::min(block, all - first);
    std::copy_n(actual.begin() + first, count, a->high);
    std::copy_n(expected.begin() + first, count, e->high);
    ErrorMap::Part part;
    part.clear(map, first, count);
    part.add(first, *a, *e, count);
    map.add(part);
  }
  return map;
}

}  // namespace

TEST_CASE("an error map has the greatest error of every cell", "[measure]") {
  constexpr std::int64_t kRows = 31;
  constexpr std::int64_t kLength = 47;
  std::mt19937_64 random(1);
  std::vector<double> expected = normals(kRows * kLength, 1);
  std::vector<double> actual = expected;
  for (double& value : actual) {
    if (random() % 3 == 0) value += std::normal_distribution<double>(0, 1e-3)(random);
  }
  actual[100] = kNan;
  actual[200] = expected[200] = kNan;
  actual[300] = expected[300] = kInfinity;
  actual[400] = kInfinity;
  for (const std::int64_t block : {1, 7, 100, 1024}) {
    const ErrorMap map = map_of(actual, expected, kRows, {8, 10, 6}, block);
    std::vector<ErrorMap::Cell> cells(80);
    std::vector<ErrorMap::Cell> bands(6);
    for (std::int64_t i = 0; i < kRows * kLength; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool wrong = i == 100 || i == 400;
      const double error = wrong || i == 200 || i == 300 ? 0 : std::fabs(actual[at] - expected[at]);
      const std::int64_t cell = map.rows().of(i / kLength) * 10 + map.columns().of(i % kLength);
      for (ErrorMap::Cell* const errors :
           {&cells[static_cast<std::size_t>(cell)],
            &bands[static_cast<std::size_t>(map.band_rows().of(i / kLength))]}) {
        errors->greatest = std::max(errors->greatest, error);
        errors->sum += error;
        errors->non_finite += wrong ? 1 : 0;
        errors->finite += wrong || i == 200 || i == 300 ? 0 : 1;
      }
    }
    for (std::int64_t cell = 0; cell < 80; ++cell) {
      const ErrorMap::Cell& found = map.cell(cell / 10, cell % 10);
      const ErrorMap::Cell& right = cells[static_cast<std::size_t>(cell)];
      REQUIRE(found.greatest == right.greatest);
      REQUIRE(found.non_finite == right.non_finite);
    }
    for (std::int64_t band = 0; band < 6; ++band) {
      const ErrorMap::Cell& right = bands[static_cast<std::size_t>(band)];
      REQUIRE(map.band(band).greatest == right.greatest);
      REQUIRE(map.band(band).finite == right.finite);
      REQUIRE(*map.mean_of_band(band) ==
              Approx(right.sum / static_cast<double>(right.finite)).epsilon(1e-12));
    }
  }
}

TEST_CASE("a band without a finite error has no mean", "[measure]") {
  const ErrorMap map =
      map_of({kNan, kNan, 1, 1, kNan, 2, kNan, kNan}, {1, 1, 1, 1, kNan, 1, kNan, kNan}, 4, {}, 3);
  CHECK_FALSE(map.mean_of_band(0));
  CHECK(map.mean_of_band(1) == 0.0);
  CHECK(map.mean_of_band(2) == 1.0);
  CHECK_FALSE(map.mean_of_band(3));
}
