#include "lnorm/layout/transpose.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"

TEMPLATE_TEST_CASE("columns become rows, whatever their number", "[transpose]", std::uint8_t,
                   std::uint16_t, std::uint32_t, std::uint64_t, (std::array<std::uint64_t, 2>)) {
  const std::int64_t rows = GENERATE(1, 3, 4, 16, 17, 31, 64, 70);
  const std::int64_t columns = GENERATE(1, 2, 15, 16, 33, 67);
  const std::int64_t gap = GENERATE(0, 3);
  CAPTURE(rows, columns, gap);
  const std::int64_t from_stride = rows + gap;
  const std::int64_t to_stride = columns + gap;
  const auto item = [](std::int64_t i) {
    TestType value{};
    if constexpr (sizeof(TestType) == 16) {
      value = {static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(-i)};
    } else {
      value = static_cast<TestType>(static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15);
    }
    return value;
  };
  std::vector<TestType> from;
  from.reserve(static_cast<std::size_t>(columns * from_stride));
  for (std::int64_t i = 0; i < columns * from_stride; ++i) from.push_back(item(i));
  std::vector<TestType> to(static_cast<std::size_t>(rows * to_stride));
  std::vector<TestType> expected = to;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      expected[static_cast<std::size_t>(i * to_stride + j)] = item(i + j * from_stride);
    }
  }
  lnorm::transpose(from.data(), from_stride, to.data(), to_stride, rows, columns);
  CHECK((to == expected));
}
