#include "lnorm/measure/heat_map.hpp"

#include <algorithm>

#include "lnorm/measure/grid.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"

namespace {

using lnorm::HeatMap;
using lnorm::Partition;
using namespace support;

// Rows go into the map in blocks of so many, each of them in pieces of so many elements.
HeatMap map_of(const std::vector<std::vector<double>>& rows, std::int64_t grid_rows,
               std::int64_t grid_columns, std::int64_t block = 3, std::size_t piece = 7) {
  HeatMap map({std::ssize(rows), grid_rows}, {std::ssize(rows[0]), grid_columns});
  for (std::int64_t first = 0; first < std::ssize(rows); first += block) {
    const std::int64_t count = std::min(block, std::ssize(rows) - first);
    HeatMap::Part part = map.part(first, count);
    for (std::int64_t r = first; r < first + count; ++r) {
      const std::vector<double>& row = rows[static_cast<std::size_t>(r)];
      for (std::size_t i = 0; i < row.size(); i += piece) {
        part.add(r, static_cast<std::int64_t>(i),
                 std::span(row).subspan(i, std::min(piece, row.size() - i)));
      }
    }
    map.add(part);
  }
  return map;
}

}  // namespace

TEST_CASE("parts cover all things, in order, in sizes that differ by one at most", "[measure]") {
  for (std::int64_t all = 1; all <= 70; ++all) {
    for (std::int64_t most = 1; most <= 75; ++most) {
      const Partition partition(all, most);
      REQUIRE(partition.parts == std::min(all, most));
      REQUIRE(partition.begins().front() == 0);
      REQUIRE(partition.begins().back() == all);
      for (std::int64_t part = 0; part < partition.parts; ++part) {
        REQUIRE(partition.size(part) >= all / partition.parts);
        REQUIRE(partition.size(part) <= partition.greatest_size());
        for (std::int64_t i = partition.begin(part); i < partition.begin(part + 1); ++i) {
          REQUIRE(partition.of(i) == part);
        }
      }
    }
  }
  const Partition huge(std::int64_t{1} << 62, 600);
  CHECK(huge.begin(600) == huge.all);
  CHECK(huge.of(huge.all - 1) == 599);
  CHECK(huge.of(huge.begin(300)) == 300);
  CHECK(huge.of(huge.begin(300) - 1) == 299);
}

TEST_CASE("a cell of a heat map has the mean and the greatest |x| of its finite elements",
          "[measure]") {
  std::vector<std::vector<double>> rows;
  for (unsigned r = 0; r < 23; ++r) rows.push_back(normals(41, r, 5, 3));
  rows[4][7] = kNan;
  rows[4][8] = -kInfinity;
  rows[7].assign(41, kInfinity);
  rows[9][3] = -100;
  for (const std::int64_t grid : {1, 2, 5, 23, 50}) {
    const HeatMap map = map_of(rows, grid, 2 * grid);
    REQUIRE(map.is_coarse() == (grid < 23));
    for (std::int64_t r = 0; r < map.rows().parts; ++r) {
      for (std::int64_t c = 0; c < map.columns().parts; ++c) {
        long double sum = 0;
        double greatest = 0;
        std::int64_t finite = 0;
        std::int64_t non_finite = 0;
        for (std::int64_t i = map.rows().begin(r); i < map.rows().begin(r + 1); ++i) {
          for (std::int64_t j = map.columns().begin(c); j < map.columns().begin(c + 1); ++j) {
            const double element = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
            ++(std::isfinite(element) ? finite : non_finite);
            if (!std::isfinite(element)) continue;
            sum += element;
            greatest = std::max(greatest, std::fabs(element));
          }
        }
        REQUIRE(map.non_finite(r, c) == non_finite);
        REQUIRE(map.mean(r, c).has_value() == (finite > 0));
        REQUIRE(map.greatest(r, c).has_value() == (finite > 0));
        if (finite == 0) continue;
        REQUIRE(*map.greatest(r, c) == greatest);
        const auto expected = static_cast<double>(sum / static_cast<long double>(finite));
        REQUIRE(std::fabs(*map.mean(r, c) - expected) <= 1e-13 * std::fabs(expected));
      }
    }
  }
}

TEST_CASE("the greatest |x| of a heat map does not depend on blocks and pieces", "[measure]") {
  std::vector<std::vector<double>> rows;
  for (unsigned r = 0; r < 40; ++r) rows.push_back(normals(60, r));
  rows[11][17] = kNan;
  const HeatMap one = map_of(rows, 4, 6, 40, 60);
  for (const std::int64_t block : {1, 3, 7}) {
    const HeatMap other = map_of(rows, 4, 6, block, 13);
    for (std::int64_t r = 0; r < 4; ++r) {
      for (std::int64_t c = 0; c < 6; ++c) {
        CHECK(other.greatest(r, c) == one.greatest(r, c));
        CHECK(other.non_finite(r, c) == one.non_finite(r, c));
      }
    }
  }
}

TEST_CASE("the mean of a heat map's cell does not overflow", "[measure]") {
  const std::vector<std::vector<double>> rows(12, std::vector<double>(30, kMaxDouble));
  const HeatMap map = map_of(rows, 2, 3);
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t c = 0; c < 3; ++c) {
      CHECK(map.non_finite(r, c) == 0);
      CHECK(*map.mean(r, c) / kMaxDouble == Approx(1).epsilon(1e-12));
      CHECK(map.greatest(r, c) == kMaxDouble);
    }
  }
}
