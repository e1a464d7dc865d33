#include "lnorm/pipeline/compare.hpp"

#include <algorithm>
#include <memory>
#include <random>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/chunk.hpp"
#include "support/pace.hpp"
#include "unit/pipeline/memory_tensor.hpp"

namespace {

using lnorm::Comparison;
using lnorm::DType;
using namespace support;

template <class T>
MemorySource make_source(const lnorm::Shape& shape, DType dtype, const std::vector<T>& values,
                         std::endian byte_order = std::endian::native) {
  return ::source_of(lnorm::TensorInfo{"x", dtype, shape, byte_order}, values);
}

const lnorm::Criteria kExact{.tolerance = lnorm::Tolerance{}};

// The same without blocks and threads, each element decoded.
Comparison plainly_compared(MemorySource& a, MemorySource& b, const lnorm::Criteria& criteria,
                            lnorm::WorstBy by, std::int64_t row_length) {
  Comparison result;
  result.actual = a.info();
  result.expected = b.info();
  result.criteria = criteria;
  result.same_shape = true;
  result.worst = lnorm::WorstElements(5, by);
  const auto actual = std::make_unique<lnorm::Chunk>();
  const auto expected = std::make_unique<lnorm::Chunk>();
  // Of every row, from all of it.
  std::vector<double> row_maxima;
  {
    std::vector<std::byte> bytes;
    const auto size = static_cast<std::size_t>(lnorm::element_count(b.info().shape));
    MemorySource copy(b.info(), b.bytes());
    copy.read(bytes, size * lnorm::item_size(b.info().dtype));
    for (std::size_t i = 0; i < size; ++i) {
      lnorm::load(bytes.data() + i * lnorm::item_size(b.info().dtype), b.info().dtype,
                  b.info().byte_order, 1, *expected);
      if (static_cast<std::int64_t>(i) % row_length == 0) row_maxima.push_back(lnorm::kNoneFinite);
      const double element = std::fabs(expected->high[0]);
      if (std::isfinite(element)) row_maxima.back() = std::max(row_maxima.back(), element);
    }
  }
  const auto elements = lnorm::element_count(a.info().shape);
  for (std::int64_t start = 0; start < elements; start += lnorm::kChunk) {
    const std::int64_t count = std::min(lnorm::kChunk, elements - start);
    const auto load = [&](MemorySource& source, lnorm::Chunk& chunk) {
      std::vector<std::byte> bytes;
      source.read(bytes, static_cast<std::size_t>(count) * lnorm::item_size(source.info().dtype));
      lnorm::load(bytes.data(), source.info().dtype, source.info().byte_order, count, chunk);
    };
    load(a, *actual);
    load(b, *expected);
    std::vector<lnorm::RowRun> runs;
    for (std::int64_t i = start; i < start + count; ++i) {  // an element each
      const std::int64_t row = i / row_length;
      runs.push_back(
          {1, row, i % row_length,
           lnorm::scale_of_row(row_maxima[static_cast<std::size_t>(row)], result.ulp_dtype())});
    }
    lnorm::compare_elements(*actual, *expected, runs, 7, result);
  }
  return result;
}

void check_same(const Comparison& found, const Comparison& expected) {
  const auto check_pair = [](const lnorm::ElementPair& a, const lnorm::ElementPair& b) {
    CHECK(a.position == b.position);
    CHECK(same_bits(a.actual.high, b.actual.high));
    CHECK(same_bits(a.expected.high, b.expected.high));
    CHECK(a.expected.low == b.expected.low);
  };
  const auto check_greatest = [&](const auto& a, const auto& b) {
    REQUIRE(a.has_value() == b.has_value());
    if (!a) return;
    CHECK(a->value == b->value);
    check_pair(a->at, b->at);
  };
  CHECK(found.elements == expected.elements);
  CHECK(found.mismatched == expected.mismatched);
  CHECK(found.non_finite_one_side == expected.non_finite_one_side);
  CHECK(found.non_finite_differing == expected.non_finite_differing);
  check_greatest(found.absolute, expected.absolute);
  check_greatest(found.relative, expected.relative);
  check_greatest(found.ulps, expected.ulps);
  check_greatest(found.row_ulps, expected.row_ulps);
  CHECK(found.ulp_counts == expected.ulp_counts);
  CHECK(found.correctly_rounded() == expected.correctly_rounded());
  CHECK(found.errors.pairs() == expected.errors.pairs());
  CHECK(found.errors.equal_numbers() == expected.errors.equal_numbers());
  CHECK(found.errors.equal_bits() == expected.errors.equal_bits());
  // The sums of blocks are added in another order.
  for (const auto figure :
       {&lnorm::ErrorStats::mean, &lnorm::ErrorStats::mean_absolute,
        &lnorm::ErrorStats::mean_toward_zero, &lnorm::ErrorStats::mean_away_from_zero,
        &lnorm::ErrorStats::root_mean_square, &lnorm::ErrorStats::cosine,
        &lnorm::ErrorStats::sqnr}) {
    const auto a = (found.errors.*figure)();
    const auto b = (expected.errors.*figure)();
    REQUIRE(a.has_value() == b.has_value());
    if (a) CHECK((*a == *b || std::fabs(*a - *b) <= 1e-14 * std::fabs(*b)));
  }
  REQUIRE(found.first_mismatches.size() == expected.first_mismatches.size());
  for (std::size_t i = 0; i < found.first_mismatches.size(); ++i) {
    check_pair(found.first_mismatches[i], expected.first_mismatches[i]);
  }
  REQUIRE(found.worst.elements().size() == expected.worst.elements().size());
  for (std::size_t i = 0; i < found.worst.elements().size(); ++i) {
    check_pair(found.worst.elements()[i].pair, expected.worst.elements()[i].pair);
    CHECK(found.worst.elements()[i].row_max == expected.worst.elements()[i].row_max);
  }
}

}  // namespace

TEST_CASE("what is equal byte by byte is compared as if it were decoded", "[pipeline]") {
  const DType dtype =
      GENERATE(DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::int64);
  const bool equal_nan = GENERATE(true, false);
  const bool swapped = GENERATE(false, true);
  const std::int64_t row_length = GENERATE(768, 50'000);
  CAPTURE(lnorm::name(dtype), equal_nan, swapped, row_length);
  std::mt19937_64 random(static_cast<std::uint64_t>(row_length));
  const std::int64_t rows = 100'000 / row_length;
  const lnorm::Shape shape{rows, row_length};
  const auto elements = static_cast<std::size_t>(rows * row_length);
  const std::size_t item = lnorm::item_size(dtype);
  const std::vector<double> special{kNan, kInfinity, -kInfinity, 0.0, -0.0};
  for (int round = 0; round < support::share(6, 3); ++round) {
    std::vector<double> values(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      // Of each run of 3000 elements either all are zeros, NaN or infinities, or some.
      const bool all = (i / 3000 + static_cast<std::size_t>(round)) % 3 == 0;
      const bool integer = dtype == DType::int64;
      values[i] = all && !integer                  ? special[i / 3000 % special.size()]
                  : random() % 64 == 0 && !integer ? special[random() % special.size()]
                  : all                            ? 0
                                                   : static_cast<double>(random() % 9) - 4;
    }
    std::vector<std::byte> expected(elements * item);
    for (std::size_t i = 0; i < elements; ++i) {
      if (dtype == DType::int64) {
        const auto integer = static_cast<std::int64_t>(values[i]);
        std::memcpy(expected.data() + i * item, &integer, item);
      } else {
        lnorm::store(&values[i], 1, dtype, expected.data() + i * item);
      }
    }
    std::vector<std::byte> actual = expected;
    // The rounds: nothing differs; signs, also of zeros; a few elements; most of them.
    const std::uint64_t rarity = round < 2 ? 0 : round == 2 ? 5000 : round < 5 ? 20'000 : 2;
    for (std::size_t i = 0; rarity > 0 && i < elements; ++i) {
      if (random() % rarity == 0) {
        actual[i * item + (round == 2 ? item - 1 : 0)] ^= std::byte{0x80};
      }
    }
    const lnorm::TensorInfo info{"x", dtype, shape,
                                 swapped ? kOtherByteOrder : std::endian::native};
    if (swapped) {
      lnorm::make_native(actual, dtype, kOtherByteOrder);
      lnorm::make_native(expected, dtype, kOtherByteOrder);
    }
    lnorm::Criteria criteria;
    criteria.tolerance = lnorm::default_tolerance(dtype, dtype);
    criteria.equal_nan = equal_nan;
    const auto by = static_cast<lnorm::WorstBy>(round % 4);
    CAPTURE(round, lnorm::name(by));
    MemorySource a(info, actual);
    MemorySource b(info, expected);
    MemorySource c(info, actual);
    MemorySource d(info, expected);
    check_same(lnorm::Comparer().compare(a, b, criteria, {7, 5, by}, {2}),
               plainly_compared(c, d, criteria, by, row_length));
  }
}

TEST_CASE("tensors of several blocks are compared to their last element", "[pipeline]") {
  // Chunks are of 1024 elements, blocks of 32 chunks.
  constexpr std::int64_t kElements = 3 * 32768 + 1024 + 17;
  std::vector<float> expected;
  for (std::int64_t i = 0; i < kElements; ++i) expected.push_back(static_cast<float>(i % 1009));
  std::vector<double> actual(expected.begin(), expected.end());
  constexpr std::int64_t kWorst = 40'000;
  const std::vector<std::int64_t> places{0,     1023,  1024,  32767,         32768,        kWorst,
                                         65535, 65536, 98304, kElements - 2, kElements - 1};
  for (const std::int64_t place : places) {
    actual[static_cast<std::size_t>(place)] += place == kWorst ? 8 : 0.5;
  }
  const bool swap_actual = GENERATE(false, true);
  const bool swap_expected = GENERATE(false, true);
  CAPTURE(swap_actual, swap_expected);
  auto a = make_source({kElements}, DType::float64, actual,
                       swap_actual ? kOtherByteOrder : std::endian::native);
  auto b = make_source({kElements}, DType::float32, expected,
                       swap_expected ? kOtherByteOrder : std::endian::native);
  Progress progress;
  const Comparison result = lnorm::Comparer().compare(a, b, kExact, {100}, {0, progress.report()});
  CHECK(result.same_shape);
  CHECK(result.elements == kElements);
  CHECK(result.mismatched == std::ssize(places));
  std::vector<std::int64_t> found;
  for (const lnorm::ElementPair& pair : result.first_mismatches) {
    found.push_back(pair.position);
    CHECK(pair.expected.high == static_cast<double>(pair.position % 1009));
  }
  CHECK(found == places);
  CHECK(result.absolute->value == 8);
  CHECK(result.absolute->at.position == kWorst);
  CHECK(result.actual.dtype == DType::float64);
  CHECK(result.expected.dtype == DType::float32);
  CHECK(a.finished);
  CHECK(b.finished);
  // A block, or a row where that is longer.
  const auto row = static_cast<std::size_t>(a.info().shape.back());
  CHECK(a.largest_read <= std::max<std::size_t>(32768, row) * sizeof(double));
  progress.check_end(kElements);
}

TEST_CASE("tensors of different shapes are not read", "[pipeline]") {
  auto a = make_source<float>({2, 3}, DType::float32, {1, 2, 3, 4, 5, 6});
  for (const lnorm::Shape& shape : {lnorm::Shape{3, 2}, lnorm::Shape{6}, lnorm::Shape{1, 2, 3}}) {
    auto b = make_source<float>(shape, DType::float32, {1, 2, 3, 4, 5, 6});
    const Comparison result = lnorm::Comparer().compare(a, b, kExact, {10});
    CHECK(!result.same_shape);
    CHECK(!result.equal());
    CHECK(result.elements == 0);
    CHECK(a.largest_read == 0);
    CHECK(b.largest_read == 0);
  }
}

TEST_CASE("64-bit integers are compared exactly, with floats too", "[pipeline]") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  auto a = make_source<std::int64_t>({3}, DType::int64, {most, 5, most - 1000});
  auto b = make_source<std::int64_t>({3}, DType::int64, {most - 1, 5, most - 1000});
  const Comparison integers = lnorm::Comparer().compare(a, b, kExact, {10});
  CHECK(integers.mismatched == 1);
  CHECK(integers.absolute->value == 1);
  // A side without low parts after one with them: nothing of the one shows in the other.
  auto c = make_source<std::int64_t>({2}, DType::int64, {most, most});
  auto d = make_source<double>({2}, DType::float64, {0x1p63, 0x1p63});
  const Comparison mixed = lnorm::Comparer().compare(c, d, kExact, {10});
  CHECK(mixed.mismatched == 2);
  CHECK(mixed.absolute->value == 1);
  CHECK(mixed.first_mismatches[0].expected.low == 0);
}

TEST_CASE("tensors without elements are equal, and numbers are compared", "[pipeline]") {
  auto a = make_source<float>({0, 3}, DType::float32, {});
  auto b = make_source<double>({0, 3}, DType::float64, {});
  const Comparison empty = lnorm::Comparer().compare(a, b, kExact, {10});
  CHECK(empty.equal());
  CHECK(empty.elements == 0);
  CHECK(!empty.absolute);
  CHECK(a.finished);
  CHECK(b.finished);
  auto c = make_source<float>({}, DType::float32, {1});
  auto d = make_source<float>({}, DType::float32, {2});
  CHECK(lnorm::Comparer().compare(c, d, kExact, {10}).mismatched == 1);
}

TEST_CASE("a fit of float64 is told from a block of elements", "[compare]") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (int number = 0; number < 24; ++number) {
    const double scale = 1.1 + number;
    std::vector<double> expected(lnorm::kComparedElements);
    std::ranges::generate(expected, [&] { return normal(random); });
    std::vector<double> actual = expected;
    for (double& one : actual) one *= scale;
    MemorySource a = make_source({std::ssize(actual)}, DType::float64, actual);
    MemorySource b = make_source({std::ssize(actual)}, DType::float64, expected);
    const Comparison found = lnorm::Comparer().compare(a, b, kExact);
    REQUIRE(found.fit);
    CHECK(found.fit->scale == scale);
  }
}
