#include "lnorm/report/torch_text.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "lnorm/core/error.hpp"
#include "support/catch.hpp"
#include "support/torch_cases.hpp"

namespace lnorm {
namespace {

using namespace support;
using Bytes = std::vector<std::byte>;

// The text of a tensor that arrives in pieces of so many elements.
std::string print(DType dtype, Shape shape, PrintOptions options, const Bytes& bytes,
                  std::size_t piece = 4096) {
  TorchText text(dtype, std::move(shape), options);
  piece *= item_size(dtype);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    text.add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
  }
  return text.str();
}

template <class T>
Bytes bytes_of(std::initializer_list<T> values) {
  const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("TorchText prints what PyTorch printed", "[torch_text]") {
  const TorchCases cases = torch_cases();
  REQUIRE(cases.all.size() > 150 + cases.random_count);
  REQUIRE(cases.random_count >= 300);
  for (const TorchCase& test : cases.all) {
    CAPTURE(name(test.dtype), to_string(test.shape), test.arguments);
    for (const std::size_t piece : std::vector<std::size_t>{1, 7, 1021, 1 << 20}) {
      CAPTURE(piece);
      CHECK(print(test.dtype, test.shape, test.options, test.elements, piece) == test.text);
    }
  }
}

TEST_CASE("TorchText prints pieces that are not kept", "[torch_text]") {
  std::size_t printed = 0;
  for (const TorchCase& test : torch_cases().all) {
    const TorchText text(test.dtype, test.shape, test.options);
    if (!text.shows_all()) continue;
    ++printed;
    CAPTURE(name(test.dtype), to_string(test.shape), test.arguments);
    const std::size_t item = item_size(test.dtype);
    const std::span<const std::byte> bytes(test.elements);
    for (const std::size_t piece : std::vector<std::size_t>{1, 7, 1021}) {
      CAPTURE(piece);
      const auto each = [&](auto see) {
        for (std::size_t at = 0; at < bytes.size(); at += piece * item) {
          see(at / item, bytes.subspan(at, std::min(piece * item, bytes.size() - at)));
        }
      };
      TorchRange range;
      each([&](std::size_t, auto elements) {
        TorchRange part;
        part.add(test.dtype, elements);
        range.add(part);
      });
      const TorchElements format(test.dtype, range, test.options);
      std::string result;
      std::string buffer;
      each([&](std::size_t first, auto elements) {
        result += text.print(format, static_cast<std::int64_t>(first), elements, buffer);
      });
      result += text.end(result.size() - (result.rfind('\n') + 1));
      CHECK(result == test.text);
    }
  }
  CHECK(printed > 100);
}

TEST_CASE("TorchText prints a summary without edge items", "[torch_text]") {
  PrintOptions options;
  options.threshold = 0;
  for (const std::int64_t edgeitems : {0, -1}) {
    options.edgeitems = edgeitems;
    const Bytes bytes = bytes_of<std::int32_t>({1, 2, 3, 4});
    CHECK(print(DType::int32, {4}, options, bytes) == "tensor([...], dtype=torch.int32)");
    CHECK(print(DType::int32, {1, 4}, options, bytes, 1) == "tensor([...], dtype=torch.int32)");
    CHECK(print(DType::int32, {1, 1, 4}, options, bytes) == "tensor([...], dtype=torch.int32)");
    CHECK(print(DType::float32, {}, options, bytes_of<float>({7.5f})) == "tensor(7.5000)");
    CHECK(print(DType::float32, {2, 0}, options, {}) == "tensor([], size=(2, 0))");
  }
}

TEST_CASE("TorchText prints the largest integers", "[torch_text]") {
  CHECK(print(DType::uint64, {2}, {}, bytes_of<std::uint64_t>({0, ~std::uint64_t{0}})) ==
        "tensor([                   0, 18446744073709551615], dtype=torch.uint64)");
  CHECK(print(DType::int64, {}, {},
              bytes_of<std::int64_t>({std::numeric_limits<std::int64_t>::min()})) ==
        "tensor(-9223372036854775808)");
}

TEST_CASE("TorchText takes any options", "[torch_text]") {
  const Bytes bytes = bytes_of<float>({1.5f, -2.25f});
  PrintOptions options;
  options.precision = -1;
  options.threshold = -1;
  options.linewidth = std::numeric_limits<std::int64_t>::min();
  CHECK(print(DType::float32, {2}, options, bytes) == "tensor([ 2,\n        -2])");
  options.precision = 300;
  options.threshold = options.edgeitems = options.linewidth =
      std::numeric_limits<std::int64_t>::max();
  const std::string zeros(298, '0');
  CHECK(print(DType::float32, {2}, options, bytes) ==
        "tensor([ 1.50" + zeros + ", -2.25" + zeros + "])");
}

TEST_CASE("TorchText keeps only what it shows of a large tensor", "[torch_text]") {
  // 2^35 elements, of which each piece holds a whole row.
  constexpr std::int64_t kRow = std::int64_t{1} << 24;
  const Bytes row(static_cast<std::size_t>(kRow), std::byte{1});
  TorchText text(DType::int8, {2, 1 << 10, kRow}, {});
  for (int i = 0; i < 2 << 10; ++i) text.add(row);
  const std::string shown = "[1, 1, 1,  ..., 1, 1, 1]";
  std::string block = "[" + shown;
  for (int i = 1; i < 3; ++i) block += ",\n         " + shown;
  block += ",\n         ...";
  for (int i = 0; i < 3; ++i) block += ",\n         " + shown;
  block += "]";
  CHECK(text.str() == "tensor([" + block + ",\n\n        " + block + "], dtype=torch.int8)");
}

// As PyTorch 2.6.0 prints them.
TEST_CASE("TorchText prints float8 as PyTorch does", "[torch_text]") {
  const Bytes bytes = bytes_of<std::uint8_t>({29, 188, 126, 127, 127, 127, 0, 126, 127, 127});
  CHECK(print(DType::float8_e4m3fn, {10}, {}, bytes) ==
        "tensor([ 1.0156e-01, -1.5000e+00,  4.4800e+02,         nan,         nan,\n"
        "                nan,  0.0000e+00,  4.4800e+02,         nan,         nan],\n"
        "       dtype=torch.float8_e4m3fn)");
  const Bytes others = bytes_of<std::uint8_t>({46, 190, 95, 95, 124, 127, 0, 95, 124, 123});
  CHECK(print(DType::float8_e5m2, {10}, {}, others) ==
        "tensor([ 9.3750e-02, -1.5000e+00,  4.4800e+02,  4.4800e+02,         inf,\n"
        "                nan,  0.0000e+00,  4.4800e+02,         inf,  5.7344e+04],\n"
        "       dtype=torch.float8_e5m2)");
  CHECK(print(DType::float8_e5m2, {3}, {}, bytes_of<std::uint8_t>({60, 64, 66})) ==
        "tensor([1., 2., 3.], dtype=torch.float8_e5m2)");
  CHECK(print(DType::float8_e4m3fn, {}, {}, bytes_of<std::uint8_t>({58})) ==
        "tensor(1.2500, dtype=torch.float8_e4m3fn)");
}

TEST_CASE("TorchText ignores elements beyond the last", "[torch_text]") {
  const Bytes bytes = bytes_of<std::int64_t>({1, 2, 3});
  CHECK(print(DType::int64, {2}, {}, bytes, 1) == "tensor([1, 2])");
  CHECK(print(DType::int64, {}, {}, bytes) == "tensor(1)");
  CHECK(print(DType::int64, {0}, {}, bytes) == "tensor([], dtype=torch.int64)");
}

TEST_CASE("TorchText rejects a shape of more than 2^63 - 1 elements", "[torch_text]") {
  CHECK_THROWS_AS(TorchText(DType::int8, {std::int64_t{1} << 32, std::int64_t{1} << 32}, {}),
                  Error);
}

}  // namespace
}  // namespace lnorm
