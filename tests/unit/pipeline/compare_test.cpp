#include "lnorm/pipeline/compare.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <vector>

#include "support/catch.hpp"
#include "unit/pipeline/memory_tensor.hpp"

namespace {

using lnorm::Comparison;
using lnorm::DType;

template <class T>
MemorySource source_of(const lnorm::Shape& shape, DType dtype, const std::vector<T>& values,
                       std::endian byte_order = std::endian::native) {
  const auto elements = std::as_bytes(std::span(values));
  std::vector<std::byte> bytes(elements.begin(), elements.end());
  if (byte_order != std::endian::native) {
    for (auto at = bytes.begin(); at != bytes.end(); at += sizeof(T)) {
      std::reverse(at, at + sizeof(T));
    }
  }
  return {lnorm::TensorInfo{"x", dtype, shape, byte_order}, std::move(bytes)};
}

constexpr std::endian kOtherByteOrder =
    std::endian::native == std::endian::little ? std::endian::big : std::endian::little;

}  // namespace

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
  auto a = source_of({kElements}, DType::float64, actual,
                     swap_actual ? kOtherByteOrder : std::endian::native);
  auto b = source_of({kElements}, DType::float32, expected,
                     swap_expected ? kOtherByteOrder : std::endian::native);
  std::vector<std::int64_t> progress;
  const Comparison result = lnorm::compare(
      a, b, {}, {100}, {0, [&](std::int64_t elements) { progress.push_back(elements); }});
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
  CHECK(a.largest_read <= 32768 * sizeof(double));
  CHECK(std::is_sorted(progress.begin(), progress.end()));
  CHECK(progress.back() == kElements);
}

TEST_CASE("tensors of different shapes are not read", "[pipeline]") {
  auto a = source_of<float>({2, 3}, DType::float32, {1, 2, 3, 4, 5, 6});
  for (const lnorm::Shape& shape : {lnorm::Shape{3, 2}, lnorm::Shape{6}, lnorm::Shape{1, 2, 3}}) {
    auto b = source_of<float>(shape, DType::float32, {1, 2, 3, 4, 5, 6});
    const Comparison result = lnorm::compare(a, b, {}, {10});
    CHECK(!result.same_shape);
    CHECK(!result.equal());
    CHECK(result.elements == 0);
    CHECK(a.largest_read == 0);
    CHECK(b.largest_read == 0);
  }
}

TEST_CASE("64-bit integers are compared exactly, with floats too", "[pipeline]") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  auto a = source_of<std::int64_t>({3}, DType::int64, {most, 5, most - 1000});
  auto b = source_of<std::int64_t>({3}, DType::int64, {most - 1, 5, most - 1000});
  const Comparison integers = lnorm::compare(a, b, {}, {10});
  CHECK(integers.mismatched == 1);
  CHECK(integers.absolute->value == 1);
  // A side without low parts after one with them: nothing of the one shows in the other.
  auto c = source_of<std::int64_t>({2}, DType::int64, {most, most});
  auto d = source_of<double>({2}, DType::float64, {0x1p63, 0x1p63});
  const Comparison mixed = lnorm::compare(c, d, {}, {10});
  CHECK(mixed.mismatched == 2);
  CHECK(mixed.absolute->value == 1);
  CHECK(mixed.first_mismatches[0].expected.low == 0);
}

TEST_CASE("tensors without elements are equal, and numbers are compared", "[pipeline]") {
  auto a = source_of<float>({0, 3}, DType::float32, {});
  auto b = source_of<double>({0, 3}, DType::float64, {});
  const Comparison empty = lnorm::compare(a, b, {}, {10});
  CHECK(empty.equal());
  CHECK(empty.elements == 0);
  CHECK(!empty.absolute);
  CHECK(a.finished);
  CHECK(b.finished);
  auto c = source_of<float>({}, DType::float32, {1});
  auto d = source_of<float>({}, DType::float32, {2});
  CHECK(lnorm::compare(c, d, {}, {10}).mismatched == 1);
}
