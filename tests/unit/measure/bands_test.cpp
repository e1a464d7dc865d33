#include "lnorm/measure/bands.hpp"

#include <algorithm>

#include "lnorm/measure/outlier_rows.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"

namespace {

using lnorm::Bands;
using lnorm::OutlierRow;
using lnorm::OutlierRows;
using lnorm::StatsRow;
using support::kNan;

StatsRow row_of(double mean, double variance, std::int64_t non_finite = 0) {
  StatsRow row;
  row.input.mean = non_finite > 0 ? kNan : mean;
  row.input.variance = non_finite > 0 ? kNan : variance;
  row.input.non_finite = non_finite;
  return row;
}

std::vector<Bands> bands_of(const std::vector<StatsRow>& rows, std::int64_t most) {
  const std::vector<double (*)(const StatsRow& row)> values{
      [](const StatsRow& row) { return row.input.mean; },
      [](const StatsRow& row) { return row.input.variance; }};
  return lnorm::bands_of(values, {std::ssize(rows), most},
                         [&](const auto& see) { std::for_each(rows.begin(), rows.end(), see); });
}

}  // namespace

TEST_CASE("bands have the least, the median and the greatest of their rows", "[measure]") {
  std::mt19937_64 random(1);
  std::vector<StatsRow> rows;
  for (int i = 0; i < 57; ++i) {
    const double mean = std::normal_distribution<double>(0, 1)(random);
    rows.push_back(row_of(mean, 1 + mean * mean, i % 10 == 3 ? 1 : 0));
  }
  for (const std::int64_t most : {1, 4, 30, 57, 100}) {
    const std::vector<Bands> found = bands_of(rows, most);
    REQUIRE(found.size() == 2);
    for (const Bands& bands : found) REQUIRE(std::ssize(bands.bands) == bands.items.parts);
    for (std::int64_t band = 0; band < found[0].items.parts; ++band) {
      std::vector<double> means;
      for (std::int64_t i = found[0].items.begin(band); i < found[0].items.begin(band + 1); ++i) {
        const StatsRow& row = rows[static_cast<std::size_t>(i)];
        if (row.input.non_finite == 0) means.push_back(row.input.mean);
      }
      std::sort(means.begin(), means.end());
      const lnorm::ColumnSummary& summary = found[0].bands[static_cast<std::size_t>(band)];
      REQUIRE(summary.count == std::ssize(means));
      if (means.empty()) {
        REQUIRE(std::isnan(summary.median));
        continue;
      }
      const std::size_t n = means.size();
      REQUIRE(summary.min == means.front());
      REQUIRE(summary.max == means.back());
      REQUIRE(summary.median ==
              (n % 2 == 1 ? means[n / 2] : means[n / 2 - 1] / 2 + means[n / 2] / 2));
    }
  }
}

TEST_CASE("the median of a band of very many rows is that of some of them", "[measure]") {
  std::vector<StatsRow> rows;
  const std::int64_t count = 4 * lnorm::kMaxOfMedian;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(row_of(static_cast<double>(i), 1));
  const Bands bands = bands_of(rows, 1)[0];
  CHECK(bands.bands[0].min == 0);
  CHECK(bands.bands[0].max == static_cast<double>(count - 1));
  CHECK(bands.bands[0].median == Approx(static_cast<double>(count) / 2).epsilon(1e-4));
}

TEST_CASE("rows stand out by their means and variances, of equals the first", "[measure]") {
  OutlierRows rows(2);
  const std::vector<StatsRow> all{row_of(1, 5),  row_of(-9, 5), row_of(0, 5, 2), row_of(9, 0),
                                  row_of(3, 40), row_of(9, 1),  row_of(0, 0, 7), row_of(2, 30)};
  for (std::size_t i = 0; i < all.size(); ++i) {
    rows.add({static_cast<std::int64_t>(i), all[i], nullptr});
  }
  using Numbers = std::vector<std::int64_t>;
  std::vector<Numbers> found(lnorm::kOutlierRows.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const OutlierRow& row : rows.of(i)) found[i].push_back(row.row);
  }
  CHECK(found == std::vector<Numbers>{{1, 3}, {4, 7}, {3, 5}, {0, 1}, {6, 2}});
  CHECK(rows.least() == OutlierRows::Scores{9, 30, -1, 0, 2});
}
