#include "lnorm/pipeline/run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/catch.hpp"

namespace {

class MemorySource final : public lnorm::TensorSource {
 public:
  MemorySource(lnorm::TensorInfo info, std::vector<std::byte> bytes)
      : TensorSource(std::move(info)), bytes_(std::move(bytes)) {}
  void read(std::vector<std::byte>& to, std::size_t bytes) override {
    REQUIRE(position_ + bytes <= bytes_.size());
    const auto from = bytes_.begin() + static_cast<std::ptrdiff_t>(position_);
    to.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
    position_ += bytes;
    largest_read = std::max(largest_read, bytes);
  }
  void finish() override { finished = true; }

  std::size_t largest_read = 0;
  bool finished = false;

 private:
  std::vector<std::byte> bytes_;
  std::size_t position_ = 0;
};

class MemorySink final : public lnorm::TensorSink {
 public:
  void write(std::span<const std::byte> elements) override {
    bytes.insert(bytes.end(), elements.begin(), elements.end());
  }
  void finish() override { finished = true; }

  std::vector<std::byte> bytes;
  bool finished = false;
};

class Collector final : public lnorm::RowObserver {
 public:
  void see(const lnorm::RowBlock& block) override {
    CHECK(block.first_row == static_cast<std::int64_t>(mean.size()));
    mean.insert(mean.end(), block.mean.begin(), block.mean.end());
    rstd.insert(rstd.end(), block.rstd.begin(), block.rstd.end());
  }
  void finish() override { finished = true; }

  std::vector<double> mean;
  std::vector<double> rstd;
  bool finished = false;
};

}  // namespace

TEST_CASE("the loop gives the same bytes for every block size and no more memory", "[pipeline]") {
  constexpr std::int64_t kRows = 23;
  constexpr std::int64_t kLength = 9;
  std::vector<float> values(kRows * kLength);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 101) / 7;
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  const lnorm::TensorInfo info{"x", lnorm::DType::float32, {kRows, kLength}};
  std::vector<std::byte> expected(bytes.size());
  lnorm::layer_norm_portable({bytes.data(), info.dtype, info.byte_order, kRows, kLength},
                             {expected.data(), info.dtype}, {}, {}, {});
  for (const std::int64_t block_rows : {1, 2, 7, 22, 23, 1000}) {
    CAPTURE(block_rows);
    lnorm::Plan plan = lnorm::make_plan(info, {});
    plan.block_rows = block_rows;
    MemorySource source(info, bytes);
    MemorySink sink;
    Collector collector;
    lnorm::RowObserver* const observers[] = {&collector};
    lnorm::run(source, plan, lnorm::kernels().front(), {}, observers, sink);
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
    lnorm::RowObserver* const observers[] = {&collector};
    lnorm::run(source, lnorm::make_plan(info, {}), lnorm::kernels().front(), {}, observers, sink);
    CHECK(sink.bytes.empty());
    CHECK(source.finished);
    REQUIRE(collector.mean.size() == static_cast<std::size_t>(shape[0]));
    for (const double mean : collector.mean) CHECK(std::isnan(mean));
    for (const double rstd : collector.rstd) CHECK(std::isnan(rstd));
  }
}
