#include "lnorm/measure/stats.hpp"

#include "support/catch.hpp"
#include "support/elements.hpp"

namespace {

using lnorm::ColumnSummary;
using lnorm::Moments;
using lnorm::StatsRow;
using lnorm::StatsSummary;
using namespace support;

bool same(const lnorm::NonFinite& a, const lnorm::NonFinite& b) {
  return a.rows == b.rows && a.elements == b.elements && a.first_row == b.first_row;
}

StatsSummary summary_of(const std::vector<StatsRow>& rows, bool softmax = false) {
  const auto columns = lnorm::stats_columns(softmax);
  const auto add = [&](StatsSummary& summary, std::span<const StatsRow> some) {
    lnorm::StatsBlock block;
    for (const StatsRow& row : some) {
      block.input.push_back(row.input);
      block.output.push_back(row.output);
      if (softmax) block.softmax.push_back(row.softmax);
    }
    summary.add(columns, block);
  };
  StatsSummary whole(columns);
  add(whole, rows);
  // The same in two parts.
  for (std::size_t first = 0; first <= rows.size(); ++first) {
    StatsSummary summary(columns);
    StatsSummary rest(columns);
    add(summary, std::span(rows).first(first));
    add(rest, std::span(rows).subspan(first));
    summary.append(rest);
    CHECK(summary.rows == whole.rows);
    CHECK(same(summary.input, whole.input));
    CHECK(same(summary.output, whole.output));
    for (std::size_t c = 0; c < columns.size(); ++c) {
      CHECK(summary.columns[c].count == whole.columns[c].count);
      if (whole.columns[c].count == 0) continue;
      CHECK(summary.columns[c].min == whole.columns[c].min);
      CHECK(summary.columns[c].max == whole.columns[c].max);
    }
  }
  return whole;
}

// Every number of a row is another one, so that none can stand in for the next.
StatsRow row_from(double start) {
  const auto moments = [](double from) {
    return Moments{.non_finite = 0,
                   .sum = from,
                   .mean = from + 1,
                   .variance = from + 2,
                   .min = from + 3,
                   .max = from + 4};
  };
  return {moments(start), moments(start + 10), moments(start + 20)};
}

bool is_empty(const ColumnSummary& column) {
  return column.count == 0 && std::isnan(column.min) && std::isnan(column.median) &&
         std::isnan(column.max);
}

}  // namespace

TEST_CASE("the columns of a report read the numbers of their names", "[measure]") {
  const StatsRow row = row_from(100);
  std::vector<std::pair<std::string, double>> found;
  for (const lnorm::StatsColumn& column : lnorm::stats_columns(true)) {
    found.emplace_back(column.key, column.of(row));
  }
  const std::vector<std::pair<std::string, double>> expected{
      {"input.mean", 101},   {"input.variance", 102},  {"input.min", 103},  {"input.max", 104},
      {"output.mean", 111},  {"output.variance", 112}, {"output.sum", 110}, {"softmax.sum", 120},
      {"softmax.mean", 121}, {"softmax.variance", 122}};
  CHECK(found == expected);
  const auto without = lnorm::stats_columns(false);
  CHECK(without.size() == 6);
  for (const lnorm::StatsColumn& column : without) CHECK(column.tensor() != "softmax");
}

TEST_CASE("a summary has the smallest and the largest of every column", "[measure]") {
  const StatsSummary summary =
      summary_of({row_from(300), row_from(100), row_from(-200), row_from(1000)}, true);
  CHECK(summary.rows == 4);
  CHECK(same(summary.input, {0, 0, -1}));
  CHECK(same(summary.output, {0, 0, -1}));
  const auto columns = lnorm::stats_columns(true);
  REQUIRE(summary.columns.size() == columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const double offset = columns[c].of(row_from(0));
    CAPTURE(columns[c].tensor(), columns[c].name());
    CHECK(summary.columns[c].count == 4);
    CHECK(summary.columns[c].min == -200 + offset);
    CHECK(summary.columns[c].max == 1000 + offset);
  }
}

TEST_CASE("rows with a NaN or an infinity are counted and left out of a summary", "[measure]") {
  std::vector<StatsRow> rows{row_from(5), row_from(1e9), row_from(7), row_from(-1e9), row_from(6)};
  rows[1].input.non_finite = 3;  // whatever the numbers are
  rows[3].input = {.non_finite = 4, .sum = kNan, .mean = kNan, .variance = kNan};
  rows[3].output.non_finite = 8;  // counted with the input
  rows[4].output.non_finite = 9;  // not the input's: the row counts
  const StatsSummary summary = summary_of(rows);
  CHECK(summary.rows == 5);
  CHECK(same(summary.input, {2, 7, 1}));
  CHECK(same(summary.output, {1, 9, 4}));
  for (std::size_t c = 0; c < summary.columns.size(); ++c) {
    const double offset = lnorm::stats_columns(false)[c].of(row_from(0));
    CHECK(summary.columns[c].count == 3);
    CHECK(summary.columns[c].min == 5 + offset);
    CHECK(summary.columns[c].max == 7 + offset);
  }
}

TEST_CASE("the first row may be the one that is not finite", "[measure]") {
  std::vector<StatsRow> rows{row_from(1), row_from(2)};
  rows[0].input.non_finite = 1;
  CHECK(summary_of(rows).input.first_row == 0);
  rows[1].input.non_finite = 2;
  const StatsSummary all = summary_of(rows);
  CHECK(same(all.input, {2, 3, 0}));
  for (const ColumnSummary& column : all.columns) CHECK(is_empty(column));
}

TEST_CASE("a number that is NaN is left out of its column alone", "[measure]") {
  std::vector<StatsRow> rows{row_from(1), row_from(2), row_from(3)};
  rows[1].output.variance = kNan;  // a result beyond the range of its dtype
  rows[2].input.variance = kInfinity;
  const StatsSummary summary = summary_of(rows);
  const auto columns = lnorm::stats_columns(false);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const bool is_output_variance = columns[c].key == "output.variance";
    CAPTURE(columns[c].tensor(), columns[c].name());
    CHECK(summary.columns[c].count == (is_output_variance ? 2 : 3));
  }
  CHECK(summary.columns[1].max == kInfinity);
}

TEST_CASE("no rows have an empty summary", "[measure]") {
  const StatsSummary summary = summary_of({}, true);
  CHECK(summary.rows == 0);
  CHECK(summary.input.first_row == -1);
  REQUIRE(summary.columns.size() == 10);
  for (const ColumnSummary& column : summary.columns) CHECK(is_empty(column));
}
