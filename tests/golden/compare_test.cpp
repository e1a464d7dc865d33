#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/shape.hpp"
#include "support/commands.hpp"
#include "support/json.hpp"
#include "support/narrowed.hpp"
#include "support/pace.hpp"

// Pairs of tensors that NumPy compared (data/compare), compared by the program.

namespace {

using namespace support;
using lnorm::DType;
using lnorm::Float16;
using nlohmann::json;

const Words kMax{"greatest_absolute_difference", "greatest_relative_difference",
                 "greatest_ulp_distance"};

struct Tensor {
  std::string name;  // as compare is to call it
  DType dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;  // native-endian

  std::size_t count() const { return bytes.size() / lnorm::item_size(dtype); }
};

Tensor tensor(const json& golden, const std::string& name) {
  Tensor result{.name = name,
                .dtype = lnorm::parse_dtype(golden.at("dtype").get<std::string>()).value(),
                .shape = golden.at("shape").get<std::vector<std::int64_t>>(),
                .bytes = {}};
  const auto hex = golden.at("hex").get<std::string>();
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    result.bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  if constexpr (std::endian::native == std::endian::big) {
    result.bytes = swapped(result.bytes, lnorm::item_size(result.dtype));
  }
  return result;
}

std::string npy_of(const Tensor& tensor, std::endian order) {
  const std::size_t item = lnorm::item_size(tensor.dtype);
  const std::string mark = item == 1 ? "|" : order == std::endian::little ? "<" : ">";
  const char kind = lnorm::name(tensor.dtype)[0];  // as NumPy's code: bool, int, uint or float
  return npy(mark + kind + std::to_string(item), tensor.shape,
             order == std::endian::native ? tensor.bytes : swapped(tensor.bytes, item));
}

// ---- The text of elements: whole numbers, or 17 significant digits, or NaN or an infinity.

template <class T>
std::string element_text(T value) {
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(+value);
  } else {
    const double number = support::widened(value);
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.16e", number);
    return buffer.data();
  }
}

std::string element_text(const Tensor& tensor, std::size_t at) {
  return lnorm::visit(tensor.dtype, [&]<class T>(T element) {
    std::memcpy(&element, tensor.bytes.data() + at * sizeof(T), sizeof(T));
    return element_text(element);
  });
}

// The same of an element that the program wrote, in as many digits as its dtype needs.
std::string element_text(const json& written, DType dtype) {
  if (written.is_string()) return written.get<std::string>();
  if (!written.is_number() || !lnorm::is_floating(dtype)) return written.dump();
  return lnorm::visit(dtype, [&]<class T>(T) -> std::string {
    if constexpr (std::is_integral_v<T>) {
      return written.dump();
    } else {
      return element_text(narrowed<T>(written.get<double>()));
    }
  });
}

std::string json_of(const Tensor& tensor) {
  std::string data;
  for (std::size_t i = 0; i < tensor.count(); ++i) {
    data += (i == 0 ? "" : ", ") + element_text(tensor, i);
  }
  return R"({"shape": )" + json(tensor.shape).dump() + R"(, "data": [)" + data +
         R"(], "dtype": ")" + std::string(lnorm::name(tensor.dtype)) + "\"}";
}

// ---- The results.

// Calls visitor with every part of a result that has an index and elements.
template <class Visitor>
void for_each_place(json& result, const Visitor& visitor) {
  for (const std::string& key : kMax) {
    if (!result.at(key).is_null()) visitor(result.at(key));
  }
  for (json& mismatch : result.at("mismatches")) visitor(mismatch);
}

std::size_t position(const json& index, const std::vector<std::int64_t>& shape) {
  std::size_t position = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    position = position * static_cast<std::size_t>(shape[i]) + index.at(i).get<std::size_t>();
  }
  return position;
}

json description(const Tensor& tensor) {
  json result = json::object();
  result["name"] = tensor.name;
  result["dtype"] = std::string(lnorm::name(tensor.dtype));
  result["shape"] = tensor.shape;
  return result;
}

const Words kErrors{
    "mean",   "mean_absolute", "mean_toward_zero", "mean_away_from_zero", "root_mean_square",
    "cosine", "sqnr_db"};

// Whether a number that the program wrote is right to 1e-12, or to a margin, because terms cancel in it.
bool is_near(const json& written, const json& expected, double margin) {
  if (!written.is_number() || !expected.is_number()) return written == expected;
  const auto found = written.get<double>();
  const auto right = expected.get<double>();
  return std::fabs(found - right) <= std::max(1e-12 * std::fabs(right), margin);
}

// Takes the figures out that are held against each other with a margin.
json taken_errors(json& result) {
  json errors = json::object();
  for (const std::string& key : kErrors) {
    errors[key] = nullptr;
    if (result.at("errors").is_object()) std::swap(errors[key], result.at("errors").at(key));
  }
  for (json& failure : result.at("failed")) {
    if (failure.at("criterion") > "max_mismatched" || failure.at("criterion") == "max_mean_abs") {
      failure.erase("found");  // one of these
    }
  }
  return errors;
}

void make_double(json& value) {
  if (value.is_number()) value = value.get<double>();
}

// Of what may be written without a point.
void make_doubles(json& result) {
  for (const std::string& key : kMax) {
    if (!result.at(key).is_null()) make_double(result.at(key).at("value"));
  }
  for (json& bound : result.at("tolerance")) make_double(bound);
  for (json& failure : result.at("failed")) make_double(failure.at("found"));
  if (result.at("ulp").is_null()) return;
  json counts = json::array();  // of 0, 1/2, 1, 2 ulp and so on
  for (const json& part : result.at("ulp").at("distribution")) {
    if (!part.is_object()) return;
    const double bound = counts.empty() ? 0 : std::ldexp(1.0, static_cast<int>(counts.size()) - 2);
    CHECK((part.at("at_most") == bound || (bound == 0x1p65 && part.at("at_most") == "Infinity")));
    counts.push_back(part.at("elements"));
  }
  result.at("ulp").at("distribution") = counts;
}

// What the program is to write, from a result of pairs.json, with elements as element_text.
json expected_result(json result, const Tensor& actual, const Tensor& expected) {
  for (json& mismatch : result.at("mismatches")) {
    json place = json::object();
    place["index"] = mismatch;
    mismatch = place;
  }
  for_each_place(result, [&](json& place) {
    const std::size_t at = position(place.at("index"), actual.shape);
    place["actual"] = element_text(actual, at);
    place["expected"] = element_text(expected, at);
  });
  make_doubles(result);
  result["schema"] = 1;
  result["command"] = "compare";
  result["actual"] = description(actual);
  result["expected"] = description(expected);
  return result;
}

// What the program wrote, with elements as element_text and real numbers as double.
json normalized(json result, const Tensor& actual, const Tensor& expected) {
  // What NumPy was not asked for.
  for (const char* const key : {"worst", "left_out", "where", "affected_rows", "affected_columns",
                                "fit", "greatest_row_ulp_distance"}) {
    result.erase(key);
  }
  for (const char* const key : {"max_row_ulp", "baseline"}) result.at("tolerance").erase(key);
  for_each_place(result, [&](json& place) {
    place["actual"] = element_text(place.at("actual"), actual.dtype);
    place["expected"] = element_text(place.at("expected"), expected.dtype);
  });
  make_doubles(result);
  return result;
}

struct Pair {
  Tensor actual;
  Tensor expected;
  Words options;
  json result;
};

Pair read_pair(const json& golden) {
  return {tensor(golden.at("actual"), "actual.npy"), tensor(golden.at("expected"), "expected.npy"),
          golden.at("options").get<Words>(), golden.at("result")};
}

std::vector<Pair> read_pairs() {
  std::vector<Pair> pairs;
  const json goldens = support::parsed_json(read_file(data_file("compare/pairs.json")));
  for (const json& golden : goldens.at("pairs")) pairs.push_back(read_pair(golden));
  return pairs;
}

void check(const Pair& pair, const TempDir& directory, const Stream& in = {}) {
  const Words arguments =
      Words{"compare", in.text.empty() ? pair.actual.name : "-", pair.expected.name, "--json"} +
      pair.options;
  CAPTURE(arguments, lnorm::name(pair.actual.dtype), lnorm::name(pair.expected.dtype));
  CAPTURE(lnorm::to_string(pair.actual.shape), lnorm::to_string(pair.expected.shape));
  const Outcome outcome = run({.arguments = arguments, .in = in, .directory = directory.path()});
  CHECK(outcome.status == (pair.result.at("equal").get<bool>() ? 0 : 1));
  CHECK(outcome.err == "");
  CHECK(outcome.out.ends_with("\n"));
  CAPTURE(outcome.out);
  json written = normalized(support::parsed_json(outcome.out), pair.actual, pair.expected);
  json expected = expected_result(pair.result, pair.actual, pair.expected);
  const json found_errors = taken_errors(written);
  const json right_errors = taken_errors(expected);
  for (const std::string& key : kErrors) {
    CAPTURE(key, found_errors.at(key).dump(), right_errors.at(key).dump());
    const json& absolute = right_errors.at("mean_absolute");
    double margin = 0;
    if (key == "mean" && absolute.is_number()) margin = 1e-28 * absolute.get<double>();
    const bool is_part = key == "mean_toward_zero" || key == "mean_away_from_zero";
    if (is_part && absolute.is_number()) margin = 0x1p-1000 * absolute.get<double>();
    if (key == "cosine") margin = 1e-28;
    if (key == "sqnr_db") margin = 1e-13;  // of a logarithm near 0
    CHECK(is_near(found_errors.at(key), right_errors.at(key), margin));
  }
  CHECK(written.dump(1) == expected.dump(1));  // in which equal numbers have equal text
}

// ---- The same many times over, as one pair with an axis more.

void repeat(Tensor& tensor, std::int64_t times) {
  std::string bytes;
  for (std::int64_t i = 0; i < times; ++i) bytes += tensor.bytes;
  tensor.bytes = std::move(bytes);
  tensor.shape.insert(tensor.shape.begin(), times);
}

json longer_index(const json& index, std::int64_t first) {
  json result = json::array({first});
  result.insert(result.end(), index.begin(), index.end());
  return result;
}

void multiply(json& count, std::int64_t times) {
  if (!count.is_null()) count = count.get<std::int64_t>() * times;
}

Pair repeated(Pair pair, std::int64_t times) {
  constexpr std::size_t kMaxDiffs = 5;
  repeat(pair.actual, times);
  repeat(pair.expected, times);
  for (const char* key : {"elements", "mismatched", "non_finite_one_side", "rounded_to_infinity",
                          "non_finite_differing"}) {
    multiply(pair.result.at(key), times);
  }
  for (const char* key : {"pairs", "equal_bits", "equal_numbers", "correctly_rounded"}) {
    multiply(pair.result.at("errors").at(key), times);
  }
  for (json& part : pair.result.at("ulp").at("distribution")) {
    multiply(part, times);
  }
  for (json& failure : pair.result.at("failed")) {
    const json& criterion = failure.at("criterion");
    const bool counts = criterion == "finite" || criterion == "tolerance";
    if (counts) multiply(failure.at("found"), times);
  }
  for (const std::string& key : kMax) {
    json& greatest = pair.result.at(key);
    if (!greatest.is_null()) greatest.at("index") = longer_index(greatest.at("index"), 0);
  }
  json mismatches = json::array();
  for (std::int64_t i = 0; i < times; ++i) {
    for (const json& index : pair.result.at("mismatches")) {
      if (mismatches.size() < kMaxDiffs) mismatches.push_back(longer_index(index, i));
    }
  }
  pair.result.at("mismatches") = mismatches;
  return pair;
}

bool can_repeat(const Pair& pair) {
  const bool has_elements = pair.actual.shape == pair.expected.shape && pair.actual.count() > 0;
  const auto& options = pair.options;
  const auto has = [&](const char* option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  return has_elements && !has("--max-diffs") && !has("--max-mismatched");
}

}  // namespace

TEST_CASE("compare finds what NumPy finds", "[many]") {
  const Workplace directory;
  const std::vector<Pair> pairs = read_pairs();
  REQUIRE(pairs.size() > 350);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    Pair pair = pairs[i];
    CAPTURE(i);
    const auto order = [](bool big) { return big ? std::endian::big : std::endian::little; };
    directory.write("actual.npy", npy_of(pair.actual, order(i % 3 == 1)));
    directory.write("expected.npy", npy_of(pair.expected, order(i % 4 == 2)));
    check(pair, directory);
    if (i % 3 == 0 && lnorm::is_floating(pair.actual.dtype)) {
      const std::string text = json_of(pair.actual);
      pair.actual.name = "standard input";
      check(pair, directory, pipe_of(text));
    }
  }
}

TEST_CASE("compare judges a float16 layer norm of PyTorch by the exact one") {
  const json goldens = support::parsed_json(read_file(data_file("compare/layer_norm.json")));
  for (const json& golden : goldens.at("layer_norms")) {
    const Workplace directory;
    const Pair pair = read_pair(golden.at("pair"));
    const Tensor x = tensor(golden.at("x"), "x.npy");
    directory.write("x.npy", npy_of(x, std::endian::little));
    directory.write("actual.npy", npy_of(pair.actual, std::endian::little));
    const std::string exact = directory.output("x.npy --dtype float64"_w);
    CHECK(exact == npy_of(pair.expected, std::endian::little));
    directory.write("expected.npy", exact);
    check(pair, directory);
    CHECK(pair.result.at("ulp").at("dtype") == "float16");
  }
}

TEST_CASE("compare finds in large tensors what NumPy finds in small ones") {
  constexpr std::size_t kElements = 100'000;
  const Workplace directory;
  int repeatable = 0;
  for (const Pair& small : read_pairs()) {
    if (!can_repeat(small) || ++repeatable % 9 != 0 || !support::takes(repeatable / 9)) continue;
    const Pair pair =
        repeated(small, static_cast<std::int64_t>(kElements / small.actual.count() + 1));
    directory.write("actual.npy", npy_of(pair.actual, std::endian::little));
    directory.write("expected.npy", npy_of(pair.expected, std::endian::big));
    check(pair, directory);
  }
  CHECK(repeatable > 150);
}
