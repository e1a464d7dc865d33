#include "lnorm/report/torch_text.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/float16.hpp"
#include "support/catch.hpp"

namespace lnorm {
namespace {

using Json = nlohmann::json;
using Bytes = std::vector<std::byte>;

// The elements of a case, which make_cases.py describes.
Bytes elements(const Json& test, DType dtype) {
  Bytes bytes;
  if (test.contains("hex")) {
    const auto hex = test.at("hex").get<std::string>();
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    if constexpr (std::endian::native == std::endian::big) {
      const auto item = static_cast<std::ptrdiff_t>(item_size(dtype));
      for (auto at = bytes.begin(); at != bytes.end(); at += item) std::reverse(at, at + item);
    }
    return bytes;
  }
  const auto number = [&](const char* key) {
    return test.at("recipe").at(key).get<std::int64_t>();
  };
  const std::int64_t count = element_count(test.at("shape").get<Shape>());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t whole = i * number("multiplier") % number("modulus") + number("offset");
    visit(dtype, [&]<class T>(T element) {
      if constexpr (std::is_integral_v<T>) {
        element = static_cast<T>(whole);
      } else {
        const double value = static_cast<double>(whole) / static_cast<double>(number("divisor"));
        if constexpr (std::is_same_v<T, Float16>) {
          element = to_float16(value);
        } else {
          element = static_cast<T>(value);
        }
      }
      bytes.resize(bytes.size() + sizeof(T));
      std::memcpy(bytes.data() + bytes.size() - sizeof(T), &element, sizeof(T));
    });
  }
  return bytes;
}

PrintOptions print_options(const Json& json) {
  PrintOptions options;
  options.precision = json.value("precision", options.precision);
  options.threshold = json.value("threshold", options.threshold);
  options.edgeitems = json.value("edgeitems", options.edgeitems);
  options.linewidth = json.value("linewidth", options.linewidth);
  if (json.contains("sci_mode")) {
    options.sci_mode =
        json.at("sci_mode").get<bool>() ? PrintOptions::SciMode::on : PrintOptions::SciMode::off;
  }
  return options;
}

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
  std::ifstream file(LNORM_DATA_DIR "/torch_text/cases.json");
  const Json goldens = Json::parse(file);
  REQUIRE(goldens.at("cases").size() > 150);
  for (const Json& test : goldens.at("cases")) {
    const DType dtype = parse_dtype(test.at("dtype").get<std::string>()).value();
    const auto shape = test.at("shape").get<Shape>();
    const auto expected = test.at("text").get<std::string>();
    const PrintOptions options = print_options(test.at("options"));
    const Bytes bytes = elements(test, dtype);
    CAPTURE(name(dtype), to_string(shape), test.at("options").dump());
    for (const std::size_t piece : std::vector<std::size_t>{1, 7, 1021, 1 << 20}) {
      CAPTURE(piece);
      CHECK(print(dtype, shape, options, bytes, piece) == expected);
    }
  }
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
