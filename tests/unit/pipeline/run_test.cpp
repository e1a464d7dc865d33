#include "lnorm/pipeline/run.hpp"

#include "unit/pipeline/memory_tensor.hpp"

TEST_CASE("the loop gives the same bytes for every block size and no more memory", "[pipeline]") {
  constexpr std::int64_t kRows = 23;
  constexpr std::int64_t kLength = 9;
  std::vector<float> values(kRows * kLength);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 101) / 7;
  const std::vector<std::byte> bytes = support::as_bytes(values);
  const lnorm::TensorInfo info{"x", lnorm::DType::float32, {kRows, kLength}};
  std::vector<std::byte> expected(bytes.size());
  lnorm::backends().front().layer_norm({bytes.data(), info.dtype, info.byte_order, kRows, kLength},
                                       {expected.data(), info.dtype}, {}, {}, {});
  const int threads = GENERATE(1, 2, 5, 0);
  const bool has_random_access = GENERATE(false, true);
  for (const std::int64_t block_rows : {1, 2, 7, 22, 23, 1000}) {
    CAPTURE(block_rows, threads, has_random_access);
    lnorm::Plan plan = lnorm::make_plan(info, {});
    plan.wants_mean_and_rstd = true;
    plan.route.rows = block_rows;
    MemorySource source(info, bytes, has_random_access);
    MemorySink sink;
    Collector collector;
    Progress progress;
    observe(source, plan, collector, &sink, {threads, progress.report()});
    progress.check_end(kRows * kLength);
    CHECK(sink.bytes == expected);
    CHECK(source.finished);
    CHECK(sink.finished);
    CHECK(collector.finished);
    CHECK(collector.mean.size() == kRows);
    CHECK(source.largest_read <= static_cast<std::size_t>(block_rows * kLength) * sizeof(float));
  }
}

TEST_CASE("rows without elements have no mean, and no rows have no statistics", "[pipeline]") {
  for (const lnorm::Shape& shape : {lnorm::Shape{3, 0}, lnorm::Shape{0, 3}}) {
    const lnorm::TensorInfo info{"x", lnorm::DType::float32, shape};
    MemorySource source(info, {});
    MemorySink sink;
    Collector collector;
    lnorm::Plan plan = lnorm::make_plan(info, {});
    plan.wants_mean_and_rstd = true;
    observe(source, plan, collector, &sink);
    CHECK(sink.bytes.empty());
    CHECK(source.finished);
    REQUIRE(collector.mean.size() == static_cast<std::size_t>(shape[0]));
    for (const double mean : collector.mean) CHECK(std::isnan(mean));
    for (const double rstd : collector.rstd) CHECK(std::isnan(rstd));
  }
}
