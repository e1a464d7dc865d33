#include "lnorm/pipeline/stats.hpp"

#include <initializer_list>

#include "lnorm/kernel/moments.hpp"
#include "lnorm/kernel/softmax.hpp"
#include "support/pace.hpp"
#include "support/thread_ranks.hpp"
#include "unit/pipeline/memory_tensor.hpp"

namespace {

using namespace support;
using lnorm::DType;
using lnorm::Histogram;
using lnorm::Moments;
using lnorm::Stats;
using lnorm::StatsRow;

const lnorm::StatsObserver::Wanted kAll{.softmax = true, .histograms = true};

struct Input {
  lnorm::TensorInfo info;
  std::vector<std::byte> bytes;
};

template <class T>
Input input_of(const lnorm::Shape& shape, DType dtype, const std::vector<T>& values) {
  return {{"x", dtype, shape}, as_bytes(values)};
}

Input random_floats(std::int64_t rows, std::int64_t length) {
  return input_of({rows, length}, DType::float32, normals<float>(rows * length, 1, 3, 2));
}

Stats stats_of(const Input& input, lnorm::StatsObserver::Wanted wanted, lnorm::Plan plan) {
  MemorySource source(input.info, input.bytes);
  lnorm::StatsObserver observer(plan, wanted);
  observe(source, plan, observer);
  return observer.stats(input.info);
}

std::vector<StatsRow> rows_of(const Stats& stats) {
  std::vector<StatsRow> rows;
  stats.each_row(0, stats.summary.rows, [&](const StatsRow& row) { rows.push_back(row); });
  return rows;
}

// In all that is kept with softmax.
bool same(const StatsRow& a, const StatsRow& b) {
  const auto columns = lnorm::kept_columns(lnorm::stats_columns(true));
  return a.input.non_finite == b.input.non_finite && a.output.non_finite == b.output.non_finite &&
         std::all_of(columns.begin(), columns.end(), [&](const lnorm::StatsColumn& column) {
           return same_number(column.of(a), column.of(b));
         });
}

void check_same(const Histogram& a, const Histogram& b) {
  CHECK(a.count() == b.count());
  CHECK(a.nans() == b.nans());
  if (a.count() != b.count() || a.count() == 0) return;
  CHECK(a.min() == b.min());
  CHECK(a.max() == b.max());
  CHECK(a.bars(4096).counts == b.bars(4096).counts);
}

void check_same(const Stats& a, const Stats& b) {
  CHECK(a.summary.rows == b.summary.rows);
  CHECK(a.summary.input.rows == b.summary.input.rows);
  CHECK(a.summary.input.elements == b.summary.input.elements);
  CHECK(a.summary.input.first_row == b.summary.input.first_row);
  REQUIRE(a.summary.columns.size() == b.summary.columns.size());
  for (std::size_t c = 0; c < a.summary.columns.size(); ++c) {
    const lnorm::ColumnSummary& left = a.summary.columns[c];
    const lnorm::ColumnSummary& right = b.summary.columns[c];
    CAPTURE(c);
    CHECK(left.count == right.count);
    CHECK(same_bits(left.min, right.min));
    CHECK(same_bits(left.median, right.median));
    CHECK(same_bits(left.max, right.max));
  }
  const std::vector<StatsRow> left = rows_of(a);
  const std::vector<StatsRow> right = rows_of(b);
  REQUIRE(left.size() == right.size());
  for (std::size_t r = 0; r < left.size(); ++r) {
    if (!same(left[r], right[r])) FAIL("row " << r << " differs");
  }
  REQUIRE(a.histograms.has_value() == b.histograms.has_value());
  if (!a.histograms) return;
  check_same(a.histograms->input, b.histograms->input);
  check_same(a.histograms->output, b.histograms->output);
  check_same(a.histograms->row_means, b.histograms->row_means);
  check_same(a.histograms->row_variances, b.histograms->row_variances);
}

}  // namespace

TEST_CASE("statistics do not depend on the size of blocks", "[pipeline]") {
  Input input = random_floats(23, 61);
  const float bad = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t element :
       std::initializer_list<std::size_t>{5 * 61 + 3, 5 * 61 + 4, 20 * 61}) {
    std::memcpy(input.bytes.data() + element * sizeof bad, &bad, sizeof bad);
  }
  lnorm::Plan plan = lnorm::make_plan(input.info, {.formula = {.ddof = 1}}, DType::float16);
  plan.route.rows = 23;
  const Stats whole = stats_of(input, kAll, plan);
  CHECK(whole.summary.rows == 23);
  CHECK(whole.summary.input.rows == 2);
  CHECK(whole.summary.input.elements == 3);
  CHECK(whole.summary.input.first_row == 5);
  for (const std::int64_t block_rows : {1, 2, 7, 22, 1000}) {
    CAPTURE(block_rows);
    plan.route.rows = block_rows;
    check_same(stats_of(input, kAll, plan), whole);
  }
}

TEST_CASE("every row has the moments of its input, its output and its softmax", "[pipeline]") {
  constexpr std::int64_t kRows = 5;
  constexpr std::int64_t kLength = 8;
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < kRows * kLength; ++i) values.push_back(i * i % 11);
  Input input = input_of({kRows, kLength}, DType::int64, values);
  for (const std::int64_t ddof : {0, 1, 3}) {
    lnorm::Plan plan = lnorm::make_plan(input.info, {.formula = {.ddof = ddof}}, DType::float32);
    plan.route.rows = 2;
    const lnorm::RowsIn x{input.bytes.data(), DType::int64, std::endian::native, kRows, kLength};
    std::vector<std::byte> y(values.size() * sizeof(float));
    std::vector<Moments> expected(kRows);
    const auto check = [&](const std::vector<StatsRow>& rows, Moments StatsRow::*which) {
      REQUIRE(rows.size() == kRows);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        StatsRow row = rows[r];
        row.*which = expected[r];
        CHECK(same(rows[r], row));
      }
    };
    const std::vector<StatsRow> rows = rows_of(stats_of(input, kAll, plan));
    lnorm::measure_moments(x, ddof, expected.data());
    check(rows, &StatsRow::input);
    const lnorm::RowsIn as_input{y.data(), DType::float32, std::endian::native, kRows, kLength};
    normalize(x, {y.data(), DType::float32}, {});
    lnorm::measure_moments(as_input, ddof, expected.data());
    check(rows, &StatsRow::output);
    lnorm::softmax(x, {y.data(), DType::float32});
    lnorm::measure_moments(as_input, ddof, expected.data());
    check(rows, &StatsRow::softmax);

    Input other{input.info, swapped(input.bytes, 8)};
    other.info.byte_order = kOtherByteOrder;
    const std::vector<StatsRow> of_swapped = rows_of(stats_of(other, kAll, plan));
    REQUIRE(of_swapped.size() == rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) CHECK(same(of_swapped[r], rows[r]));
  }
}

TEST_CASE("histograms hold every element and every row", "[pipeline]") {
  // More elements than a chunk, in rows that do not divide it.
  const Input input = random_floats(37, 61);
  const lnorm::Plan plan = lnorm::make_plan(input.info, {});
  const Stats stats = stats_of(input, kAll, plan);
  REQUIRE(stats.histograms);
  Histogram elements;
  for (const float value : elements_of<float>(input.bytes)) elements.add(value);
  check_same(stats.histograms->input, elements);
  std::vector<float> y(37 * 61);
  normalize({input.bytes.data(), DType::float32, std::endian::native, 37, 61},
            {std::as_writable_bytes(std::span(y)).data(), DType::float32}, {});
  Histogram results;
  for (const float value : y) results.add(value);
  check_same(stats.histograms->output, results);
  Histogram means;
  Histogram variances;
  for (const StatsRow& row : rows_of(stats)) {
    means.add(row.input.mean);
    variances.add(row.input.variance);
  }
  check_same(stats.histograms->row_means, means);
  check_same(stats.histograms->row_variances, variances);
}

TEST_CASE("what is not wanted is not measured", "[pipeline]") {
  const Input input = random_floats(4, 5);
  const lnorm::Plan plan = lnorm::make_plan(input.info, {});
  const Stats stats = stats_of(input, {}, plan);
  CHECK(!stats.histograms);
  CHECK(stats.columns.size() == lnorm::stats_columns(false).size());
  CHECK(stats.summary.columns.size() == stats.columns.size());
  CHECK(stats_of(input, {.softmax = true}, plan).columns.size() ==
        lnorm::stats_columns(true).size());
}

TEST_CASE("statistics keep more rows than fit in memory", "[pipeline]") {
  // The rows of the report take 48 bytes each; 48 MiB of them are held.
  constexpr std::int64_t kRows = 1'100'003;
  std::vector<std::int32_t> values;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const auto mean = static_cast<std::int32_t>(r * 7919 % kRows);  // each once
    values.insert(values.end(), {mean - 1, mean + 1});
  }
  const Input input = input_of({kRows, 2}, DType::int32, values);
  const Stats stats = stats_of(input, {}, lnorm::make_plan(input.info, {}));
  CHECK(stats.summary.rows == kRows);
  const lnorm::ColumnSummary& means = stats.summary.columns[0];
  CHECK(means.count == kRows);
  CHECK(means.min == 0);
  CHECK(means.median == (kRows - 1) / 2.0);
  CHECK(means.max == kRows - 1);
  CHECK(stats.summary.columns[1].min == 1);  // variances
  CHECK(stats.summary.columns[1].max == 1);
  std::int64_t row_number = 0;
  stats.each_row(0, kRows, [&](const StatsRow& row) {
    if (row.input.mean != static_cast<double>(row_number * 7919 % kRows)) FAIL(row_number);
    ++row_number;
  });
  CHECK(row_number == kRows);
}

TEST_CASE("statistics of no rows, and of rows without elements", "[pipeline]") {
  for (const lnorm::Shape& shape : {lnorm::Shape{0, 3}, lnorm::Shape{3, 0}}) {
    const Input input{{"x", DType::float32, shape}, {}};
    lnorm::Plan plan = lnorm::make_plan(input.info, {});
    plan.wants_mean_and_rstd = true;
    const Stats stats = stats_of(input, kAll, plan);
    CHECK(stats.summary.rows == shape[0]);
    CHECK(stats.summary.input.rows == 0);
    CHECK(stats.summary.columns[0].count == 0);
    CHECK(std::isnan(stats.summary.columns[0].median));
    CHECK(stats.histograms->input.count() == 0);
  }
}

namespace {

// As rank 0 has them, with all rows.
Stats stats_of_ranks(int count, const Input& input, const lnorm::Plan& plan) {
  Stats result;
  on_ranks(count, [&](lnorm::Ranks& ranks) {
    MemorySource source(input.info, input.bytes, true);
    lnorm::StatsObserver observer(plan, kAll);
    observe(source, plan, observer, nullptr, {1, {}, &ranks});
    const Stats stats = observer.stats(input.info);
    observer.report([&] {
      result = stats;
      result.each_row = [rows = rows_of(stats)](std::int64_t first, std::int64_t rows_wanted,
                                                const auto& see) {
        std::for_each_n(rows.begin() + first, rows_wanted, see);
      };
    });
  });
  return result;
}

}  // namespace

TEST_CASE("statistics of several ranks are those of one", "[pipeline]") {
  constexpr std::int64_t kRows = 200 + support::share(800);
  Input spoiled = random_floats(kRows, 70);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(spoiled.bytes.data() + 4 * 70 * (kRows - 199), &nan, sizeof nan);
  const Input inputs[] = {random_floats(kRows, 70),
                          random_floats(2, 70),
                          random_floats(1, 5),
                          random_floats(support::share(100'001), 1),
                          {{"x", DType::float32, {0, 5}}, {}},
                          std::move(spoiled)};
  for (const Input& input : inputs) {
    lnorm::Plan plan = lnorm::make_plan(input.info, {});
    plan.route.rows = std::min<std::int64_t>(plan.route.rows, 100);  // many blocks
    plan.route.block_rows = std::min(plan.route.rows, plan.route.block_rows);
    const Stats expected = stats_of(input, kAll, plan);
    for (const int count : {2, 3, 5}) {
      CAPTURE(count, input.info.shape);
      const Stats actual = stats_of_ranks(count, input, plan);
      check_same(actual, expected);
    }
  }
}

TEST_CASE("statistics outlive the observer that made them", "[pipeline]") {
  const Input input = random_floats(6, 5);
  const Stats stats = stats_of(input, kAll, lnorm::make_plan(input.info, {}));
  const std::vector<StatsRow> first = rows_of(stats);
  const std::vector<StatsRow> second = rows_of(stats);
  CHECK(first.size() == 6);
  CHECK(std::equal(first.begin(), first.end(), second.begin(), second.end(),
                   [](const StatsRow& a, const StatsRow& b) { return same(a, b); }));
  CHECK(stats.axes == std::vector<std::size_t>{1});
  CHECK(stats.out == DType::float32);
}
