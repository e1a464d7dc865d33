#include "lnorm/pipeline/report_data.hpp"

#include "lnorm/kernel/softmax.hpp"
#include "unit/pipeline/memory_tensor.hpp"

namespace {

using lnorm::DType;
using lnorm::TensorReportData;

constexpr std::int64_t kRowsOfData = 301;
constexpr std::int64_t kLengthOfData = 53;

std::vector<float> elements() {
  std::mt19937_64 random(1);
  std::vector<float> values(kRowsOfData * kLengthOfData);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto size = 1 + static_cast<double>(i / kLengthOfData % 17);
    values[i] = static_cast<float>(std::normal_distribution<double>(size, size)(random));
  }
  return values;
}

TensorReportData report_data_of(std::vector<float> values, int threads, std::int64_t block,
                                const lnorm::ReportDataSize& size = {}) {
  const lnorm::TensorInfo info{"x", DType::float32, {kRowsOfData, kLengthOfData}};
  MemorySource source = source_of(info, values);
  lnorm::Plan plan = lnorm::make_plan(info, {}, {}, {.whole = true, .ordered = true});
  plan.route.rows = block;
  lnorm::ReportDataObserver observer(plan, size, true);
  observe(source, plan, observer, nullptr, {threads, {}});
  return observer.report_data(info);
}

using Lists = std::vector<std::vector<std::int64_t>>;

Lists rows_that_stand_out(const TensorReportData& report_data) {
  Lists lists(lnorm::kOutlierRows.size());
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (const auto& row : report_data.outlier_rows.of(i)) lists[i].push_back(row.row);
  }
  return lists;
}

}  // namespace

TEST_CASE("a report_data does not depend on threads and blocks", "[pipeline]") {
  const TensorReportData one = report_data_of(elements(), 1, 4);
  for (const auto& [threads, block] : {std::pair{4, 4}, {3, 4}}) {
    const TensorReportData other = report_data_of(elements(), threads, block);
    for (std::int64_t r = 0; r < one.x.rows().parts; ++r) {
      for (std::int64_t c = 0; c < one.x.columns().parts; ++c) {
        REQUIRE(one.x.mean(r, c) == other.x.mean(r, c));
        REQUIRE(one.y.mean(r, c) == other.y.mean(r, c));
      }
    }
    REQUIRE(rows_that_stand_out(one) == rows_that_stand_out(other));
  }
  const TensorReportData large = report_data_of(elements(), 2, 100);
  REQUIRE(rows_that_stand_out(one) == rows_that_stand_out(large));
}

TEST_CASE("the rows of a report_data that stand out are those of --top", "[pipeline]") {
  TensorReportData report_data = report_data_of(elements(), 3, 5);
  Lists expected;
  for (const lnorm::TopBy by : lnorm::kOutlierRows) {
    report_data.stats.top = lnorm::Top{5, by};
    expected.emplace_back();
    if (by == lnorm::TopBy::non_finite) continue;  // there is none
    for (const lnorm::NumberedRow& row : lnorm::top_rows(report_data.stats)) {
      expected.back().push_back(row.number);
    }
  }
  CHECK(rows_that_stand_out(report_data) == expected);
}

TEST_CASE("the detail of a row has its elements, or the ends of neighbors", "[pipeline]") {
  const std::vector<float> values = elements();
  for (const std::int64_t points : {7, 53, 100}) {
    lnorm::ReportDataSize size;
    size.points = points;
    const TensorReportData report_data = report_data_of(values, 2, 10, size);
    for (const lnorm::OutlierRow& row : report_data.outlier_rows.of(1)) {
      const lnorm::RowSeries& x = row.detail->x;
      REQUIRE(std::ssize(x.points()) == std::min(points, kLengthOfData));
      for (std::int64_t p = 0; p < x.elements().parts; ++p) {
        const auto begin = values.begin() + row.row * kLengthOfData + x.elements().begin(p);
        const auto [low, high] = std::minmax_element(begin, begin + x.elements().size(p));
        REQUIRE(x.points()[static_cast<std::size_t>(p)].low == *low);
        REQUIRE(x.points()[static_cast<std::size_t>(p)].high == *high);
      }
      double sum = 0;
      for (const auto& point : row.detail->softmax.points()) sum += point.low;
      if (points >= kLengthOfData) CHECK(sum == Approx(1).epsilon(1e-5));
    }
  }
}
