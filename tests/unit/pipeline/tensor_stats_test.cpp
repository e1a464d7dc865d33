
#include "lnorm/core/chunk.hpp"
#include "lnorm/pipeline/stats.hpp"
#include "support/pace.hpp"
#include "support/thread_ranks.hpp"
#include "unit/pipeline/memory_tensor.hpp"

namespace {

using lnorm::ColumnSummary;
using lnorm::DType;
using lnorm::Shape;
using lnorm::TensorInfo;
using lnorm::TensorStats;
using namespace support;

constexpr lnorm::RowNeeds kNeeds{.whole = true, .ordered = true};

TensorStats measure(const TensorInfo& info, const std::vector<std::byte>& bytes,
                    const lnorm::NormalizedAxes& axes = lnorm::FirstAxis{-1}, int threads = 1,
                    bool has_random_access = true, std::int64_t block_rows = 0) {
  lnorm::Plan plan = lnorm::make_plan(info, {.axes = axes, .formula = {}}, {}, kNeeds);
  if (block_rows > 0) plan.route.rows = block_rows;
  MemorySource source(info, bytes, has_random_access);
  TensorStats stats = lnorm::measure_tensor(source, plan, {threads, {}});
  CHECK(source.finished);
  return stats;
}

// Floats that are normally distributed, any integers, and bools.
std::vector<std::byte> random_elements(DType dtype, std::int64_t count) {
  std::mt19937_64 random(7);
  const std::size_t size = lnorm::item_size(dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    if (lnorm::is_floating(dtype)) {
      const double value = std::normal_distribution<double>(1, 2)(random);
      lnorm::store(&value, 1, dtype, bytes.data() + at);
    } else if (dtype == DType::boolean) {
      bytes[at] = static_cast<std::byte>(random() % 2);
    } else {
      const std::uint64_t bits = random();
      std::memcpy(bytes.data() + at, &bits, size);
    }
  }
  return bytes;
}

bool same(const ColumnSummary& a, const ColumnSummary& b) {
  return a.count == b.count && same_bits(a.min, b.min) && same_bits(a.median, b.median) &&
         same_bits(a.max, b.max);
}

// What lnorm stats says of the same rows, which normalizes them.
lnorm::StatsSummary summary_of(const TensorInfo& info, const std::vector<std::byte>& bytes,
                               const lnorm::NormalizedAxes& axes) {
  const lnorm::Plan plan = lnorm::make_plan(info, {.axes = axes, .formula = {}}, {}, kNeeds);
  MemorySource source(info, bytes, true);
  lnorm::StatsObserver observer(plan, {});
  observe(source, plan, observer);
  return observer.stats(info).summary;
}

// By going over the elements in C order.
std::int64_t position_of_largest(const TensorInfo& info, const std::vector<std::byte>& bytes) {
  const auto strides = lnorm::strides(info.shape, info.order);
  std::int64_t result = -1;
  lnorm::Int128 greatest_integer = -1;
  double greatest = -1;
  for (std::int64_t i = 0; i < lnorm::element_count(info.shape); ++i) {
    const Shape index = lnorm::index_of(i, info.shape);
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) place += index[axis] * strides[axis];
    lnorm::Chunk chunk;
    chunk.low[0] = 0;
    const auto size = static_cast<std::int64_t>(lnorm::item_size(info.dtype));
    lnorm::load(bytes.data() + place * size, info.dtype, info.byte_order, 1, chunk);
    if (lnorm::is_floating(info.dtype)) {
      if (!std::isfinite(chunk.high[0]) || std::fabs(chunk.high[0]) <= greatest) continue;
      greatest = std::fabs(chunk.high[0]);
    } else {
      const lnorm::Int128 value = lnorm::integer_of({chunk.high[0], chunk.low[0]});
      const lnorm::Int128 absolute = value < 0 ? -value : value;
      if (absolute <= greatest_integer) continue;
      greatest_integer = absolute;
    }
    result = i;
  }
  return result;
}

void check(const TensorInfo& info, const std::vector<std::byte>& bytes,
           const lnorm::NormalizedAxes& axes) {
  const lnorm::StatsSummary expected = summary_of(info, bytes, axes);
  const std::int64_t position = position_of_largest(info, bytes);
  for (const int threads : {1, 2}) {
    for (const std::int64_t block_rows : {0, 1, 3}) {
      for (const bool has_random_access : {true, false}) {
        if (!has_random_access && block_rows > 0) continue;  // the plan's blocks follow each other
        CAPTURE(threads, block_rows, has_random_access);
        const TensorStats stats =
            measure(info, bytes, axes, threads, has_random_access, block_rows);
        CHECK(stats.rows == expected.rows);
        CHECK(stats.non_finite.rows == expected.input.rows);
        CHECK(stats.non_finite.elements == expected.input.elements);
        CHECK(stats.non_finite.first_row == expected.input.first_row);
        CHECK(same(stats.means, expected.columns[0]));
        CHECK(same(stats.variances, expected.columns[1]));
        CHECK((stats.largest ? stats.largest->position : -1) == position);
      }
    }
  }
}

}  // namespace

TEST_CASE("a tensor has the statistics of its rows, whatever its dtype, axes and order",
          "[pipeline]") {
  const Shape shape{5, 3, 4};
  const std::vector<lnorm::NormalizedAxes> all_axes{lnorm::FirstAxis{-1}, lnorm::FirstAxis{0},
                                                    lnorm::AxisList{{0}}, lnorm::AxisList{{0, 2}}};
  int number = 0;
  for (const DType dtype : {DType::boolean, DType::int8, DType::int16, DType::int32, DType::int64,
                            DType::uint8, DType::uint16, DType::uint32, DType::uint64,
                            DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    const std::vector<std::byte> x = random_elements(dtype, 60);
    for (const lnorm::NormalizedAxes& axes : all_axes) {
      if (!support::takes(number++)) continue;
      for (const lnorm::MemoryOrder order : {lnorm::MemoryOrder::c, lnorm::MemoryOrder::fortran}) {
        CAPTURE(lnorm::name(dtype), axes.index(), order == lnorm::MemoryOrder::c);
        check({"x", dtype, shape, std::endian::native, order}, x, axes);
        check({"x", dtype, shape, kOtherByteOrder, order}, swapped(x, lnorm::item_size(dtype)),
              axes);
      }
    }
  }
}

TEST_CASE("what is not finite is counted and is not the largest", "[pipeline]") {
  const Shape shape{4, 3};
  for (const lnorm::NormalizedAxes& axes :
       {lnorm::NormalizedAxes(lnorm::FirstAxis{-1}), lnorm::NormalizedAxes(lnorm::AxisList{{0}})}) {
    for (const std::vector<float>& values : std::vector<std::vector<float>>{
             {1, 2, 3, 4, static_cast<float>(kNan), 5, 6, 7, 8, 9, 10, 11},
             {1, static_cast<float>(-kInfinity), -90, 4, 5, 6, 7, 8, 9, 10, 11, 12},
             {1, 2, 3, 4, static_cast<float>(kInfinity), 50, 6, 7, 8, 9, -50, 11},
             std::vector<float>(12, static_cast<float>(kNan)),
             std::vector<float>(12, static_cast<float>(kInfinity))}) {
      CAPTURE(values);
      check({"x", DType::float32, shape}, as_bytes(values), axes);
    }
  }
  const TensorStats none = measure({"x", DType::float32, shape},
                                   as_bytes(std::vector<float>(12, static_cast<float>(kNan))));
  CHECK(!none.largest);
  CHECK(none.means.count == 0);
  CHECK(std::isnan(none.variances.max));
}

TEST_CASE("of several largest elements the first in C order counts", "[pipeline]") {
  for (const lnorm::NormalizedAxes& axes :
       {lnorm::NormalizedAxes(lnorm::FirstAxis{-1}), lnorm::NormalizedAxes(lnorm::AxisList{{0}})}) {
    check({"x", DType::float32, {4, 3}}, as_bytes(std::vector<float>(12, -2)), axes);
    check({"x", DType::int64, {4, 3}}, as_bytes(std::vector<std::int64_t>(12, 1)), axes);
    check({"x", DType::float32, {4, 3}},
          as_bytes(std::vector<float>{0, 1, 2, 0, 9, 2, -9, 1, 2, 9, 9, 9}), axes);
  }
}

TEST_CASE("64-bit integers are compared exactly", "[pipeline]") {
  constexpr std::int64_t kBig = std::int64_t{1} << 62;
  const std::vector<std::int64_t> values{kBig, -kBig - 1, kBig + 2, -kBig - 3, 0, kBig + 1};
  check({"x", DType::int64, {3, 2}}, as_bytes(values), lnorm::FirstAxis{-1});
  const TensorStats stats = measure({"x", DType::int64, {3, 2}}, as_bytes(values));
  REQUIRE(stats.largest);
  CHECK(stats.largest->position == 3);
  CHECK(lnorm::integer_of(stats.largest->value) == -kBig - 3);
  const std::vector<std::int64_t> least{1, std::numeric_limits<std::int64_t>::min()};
  CHECK(measure({"x", DType::int64, {2}}, as_bytes(least)).largest->position == 1);
}

TEST_CASE("tensors of no elements or no dimensions have statistics", "[pipeline]") {
  for (const Shape& shape : {Shape{0}, Shape{3, 0}, Shape{0, 3}}) {
    CAPTURE(shape);
    const TensorStats stats = measure({"x", DType::float32, shape}, {});
    CHECK(stats.non_finite.rows == 0);
    CHECK(!stats.largest);
    CHECK(stats.means.count == 0);
    CHECK(std::isnan(stats.means.median));
  }
  const TensorStats stats = measure({"x", DType::float32, {}}, as_bytes(std::vector<float>{-5}));
  CHECK(stats.rows == 1);
  CHECK(stats.row_length == 1);
  CHECK(stats.means.median == -5);
  CHECK(stats.variances.max == 0);
  REQUIRE(stats.largest);
  CHECK(stats.largest->value.high == -5);
  CHECK(stats.largest->position == 0);
}

TEST_CASE("many blocks on several threads give what one gives", "[pipeline]") {
  constexpr std::int64_t kRows = 6000;
  const std::vector<std::byte> x = random_elements(DType::float32, kRows * 48);
  const TensorInfo info{"x", DType::float32, {kRows, 48}};
  const TensorStats one = measure(info, x);
  CHECK(one.means.count == kRows);
  for (const int threads : {2, 5}) {
    const TensorStats several = measure(info, x, lnorm::FirstAxis{-1}, threads, true, 7);
    CHECK(same(several.means, one.means));
    CHECK(same(several.variances, one.variances));
    CHECK(several.largest->position == one.largest->position);
  }
}

TEST_CASE("several ranks measure what one measures", "[pipeline]") {
  const auto check = [](const TensorInfo& info, const std::vector<std::byte>& bytes,
                        const lnorm::NormalizedAxes& axes, bool has_random_access = true) {
    lnorm::Plan plan = lnorm::make_plan(info, {.axes = axes, .formula = {}}, {}, kNeeds);
    plan.route.rows = 7;
    const auto measure_on = [&](lnorm::Ranks& ranks) {
      MemorySource source(info, bytes, has_random_access);
      return lnorm::measure_tensor(source, plan, {2, {}, &ranks});
    };
    TensorStats alone = measure_on(lnorm::sole_rank());
    for (const int count : {2, 3, 5}) {
      CAPTURE(count, info.shape);
      TensorStats together;
      CHECK(on_ranks(count, [&](lnorm::Ranks& ranks) {
        const TensorStats stats = measure_on(ranks);
        if (ranks.is_first()) together = stats;
      }));
      CHECK(lnorm::serialize(together) == lnorm::serialize(alone));
    }
  };
  const auto random = [](const Shape& shape, DType dtype) {
    return random_elements(dtype, lnorm::element_count(shape));
  };
  for (const Shape& shape :
       {Shape{1000, 5}, Shape{3, 400}, Shape{1, 9}, Shape{0, 4}, Shape{4, 0}}) {
    check({"x", DType::float32, shape}, random(shape, DType::float32), lnorm::FirstAxis{-1});
    check({"x", DType::boolean, shape}, random(shape, DType::boolean), lnorm::FirstAxis{-1});
    check({"x", DType::int64, shape}, random(shape, DType::int64), lnorm::AxisList{{0}});
    check({"x", DType::float64, shape}, random(shape, DType::float64), lnorm::FirstAxis{-1}, false);
  }
  std::vector<double> values(6000, 1);
  for (const std::size_t i : std::vector<std::size_t>{17, 3001, 3002, 5999}) values[i] = kNan;
  values[4000] = -kInfinity;
  values[2000] = values[5000] = -8;
  check({"x", DType::float64, {600, 10}}, as_bytes(values), lnorm::FirstAxis{-1});
  check({"x", DType::float64, {600, 10}}, as_bytes(values), lnorm::AxisList{{0}});
}
