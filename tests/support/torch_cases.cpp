#include "support/torch_cases.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/files.hpp"
#include "support/narrowed.hpp"

namespace support {

namespace {

using Json = nlohmann::json;
using Bytes = std::vector<std::byte>;

Bytes from_hex(const std::string& hex, lnorm::DType dtype) {
  Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  if constexpr (std::endian::native == std::endian::big) {
    const auto item = static_cast<std::ptrdiff_t>(lnorm::item_size(dtype));
    for (auto at = bytes.begin(); at != bytes.end(); at += item) std::reverse(at, at + item);
  }
  return bytes;
}

Bytes from_tile(const Bytes& tile, std::size_t size) {
  if (tile.empty()) throw std::runtime_error("the tile is empty");
  Bytes bytes;
  while (bytes.size() < size) {
    const std::size_t count = std::min(tile.size(), size - bytes.size());
    bytes.insert(bytes.end(), tile.begin(), tile.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return bytes;
}

Bytes from_recipe(const Json& recipe, lnorm::DType dtype, std::int64_t count) {
  const auto number = [&](const char* key) { return recipe.at(key).get<std::int64_t>(); };
  Bytes bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t whole = i * number("multiplier") % number("modulus") + number("offset");
    lnorm::visit(dtype, [&]<class T>(T element) {
      if constexpr (std::is_integral_v<T>) {
        element = static_cast<T>(whole);
      } else {
        const double value = static_cast<double>(whole) / static_cast<double>(number("divisor"));
        element = narrowed<T>(value);
      }
      bytes.resize(bytes.size() + sizeof(T));
      std::memcpy(bytes.data() + bytes.size() - sizeof(T), &element, sizeof(T));
    });
  }
  return bytes;
}

Bytes elements(const Json& test, lnorm::DType dtype, const lnorm::Shape& shape) {
  const std::int64_t count = lnorm::element_count(shape);
  if (test.contains("recipe")) return from_recipe(test.at("recipe"), dtype, count);
  const std::size_t size = static_cast<std::size_t>(count) * lnorm::item_size(dtype);
  Bytes bytes = test.contains("tile")
                    ? from_tile(from_hex(test.at("tile").get<std::string>(), dtype), size)
                    : from_hex(test.at("hex").get<std::string>(), dtype);
  if (bytes.size() != size) throw std::runtime_error("a case has too few or too many elements");
  return bytes;
}

lnorm::PrintOptions print_options(const Json& json) {
  lnorm::PrintOptions options;
  options.precision = json.value("precision", options.precision);
  options.threshold = json.value("threshold", options.threshold);
  options.edgeitems = json.value("edgeitems", options.edgeitems);
  options.linewidth = json.value("linewidth", options.linewidth);
  if (json.contains("sci_mode")) {
    using SciMode = lnorm::PrintOptions::SciMode;
    options.sci_mode = json.at("sci_mode").get<bool>() ? SciMode::on : SciMode::off;
  }
  return options;
}

std::vector<std::string> print_arguments(const Json& json) {
  std::vector<std::string> arguments;
  for (const auto& [name, value] : json.items()) {
    if (name == "sci_mode") {
      arguments.insert(arguments.end(), {"--sci-mode", value.get<bool>() ? "on" : "off"});
    } else {
      arguments.insert(arguments.end(), {"--" + name, value.dump()});
    }
  }
  return arguments;
}

TorchCase torch_case(const Json& test) {
  const auto dtype = lnorm::parse_dtype(test.at("dtype").get<std::string>()).value();
  const auto shape = test.at("shape").get<lnorm::Shape>();
  const Json& options = test.at("options");
  return {.dtype = dtype,
          .shape = shape,
          .elements = elements(test, dtype, shape),
          .options = print_options(options),
          .arguments = print_arguments(options),
          .text = test.at("text").get<std::string>()};
}

}  // namespace

TorchCases torch_cases() {
  const Json goldens = Json::parse(read_file(data_file("torch_text/cases.json")));
  TorchCases cases;
  for (const char* const list : {"cases", "random"}) {
    for (const Json& test : goldens.at(list)) cases.all.push_back(torch_case(test));
  }
  cases.random_count = goldens.at("random").size();
  return cases;
}

}  // namespace support
