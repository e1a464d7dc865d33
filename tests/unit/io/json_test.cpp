#include <cstdlib>
#include <memory>

#include "lnorm/io/json/json_number.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/memory_bytes.hpp"
#include "support/narrowed.hpp"
#include "support/sets.hpp"

using lnorm::DType;
using lnorm::Shape;

namespace {

using namespace support;
struct Parsed {
  lnorm::TensorInfo info;
  std::vector<double> values;
};

Parsed parse(const std::string& text, std::optional<std::string> member = {}) {
  const auto set = lnorm::open_json(std::make_unique<MemoryBytes>("x.json", text));
  const WholeTensor tensor = read_tensor(*set, member);
  const std::vector<std::byte>& bytes = tensor.elements;
  Parsed parsed{tensor.info, {}};
  lnorm::visit(parsed.info.dtype, [&](auto element) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof element) {
      std::memcpy(&element, bytes.data() + at, sizeof element);
      parsed.values.push_back(static_cast<double>(widened(element)));
    }
  });
  return parsed;
}

std::string json_error(const std::string& text, std::optional<std::string> member = {}) {
  return error_of([&] { parse(text, member); });
}

template <class T>
std::string number(T value) {
  char buffer[lnorm::kJsonNumberRoom];
  return std::string(lnorm::json_number(value, buffer));
}

}  // namespace

TEST_CASE("JSON tensors are read in all their forms", "[io][json]") {
  CHECK(parse("5").info.shape.empty());
  CHECK(parse(" -2.5e0\n").values == std::vector{-2.5});
  CHECK(parse("[[1, 2, 3], [4, 5, 6]]").info.shape == Shape{2, 3});
  CHECK(parse("[]").info.shape == Shape{0});
  CHECK(parse("[[], []]").info.shape == Shape{2, 0});
  CHECK(parse("\xef\xbb\xbf[1]").values == std::vector{1.0});
  CHECK(parse("[1e-400, -0.0]").values == std::vector{0.0, 0.0});
  CHECK(parse("[9007199254740993]").values == std::vector{9007199254740992.0});
  CHECK(std::isnan(parse("[NaN]").values[0]));
  CHECK(std::isnan(parse("NaN").values[0]));
  CHECK(std::isnan(parse("[1, null]").values[1]));
  CHECK(parse("[Infinity, -Infinity]").values == std::vector{HUGE_VAL, -HUGE_VAL});
  const Parsed described = parse(R"({"dtype": "int8", "shape": [2, 1], "data": [-128, 127]})");
  CHECK(described.info.dtype == DType::int8);
  CHECK(described.info.shape == Shape{2, 1});
  CHECK(described.values == std::vector{-128.0, 127.0});
  CHECK(parse(R"({"shape": [0, 3], "data": []})").info.shape == Shape{0, 3});
  CHECK(parse(R"({"shape": [], "data": 7})").values == std::vector{7.0});
  CHECK(parse(R"({"shape": [1, 2], "data": [[7, 8]]})").values == std::vector{7.0, 8.0});
  CHECK(parse(R"({"shape": [2], "data": [true, 0], "dtype": "bool"})").values ==
        std::vector{1.0, 0.0});
  const std::string members = R"({"a": [1], "b:c": {"shape": [1], "data": [2]}, "d": 3})";
  CHECK(parse(members, "a").values == std::vector{1.0});
  CHECK(parse(members, "b:c").values == std::vector{2.0});
  CHECK(parse(members, "d").values == std::vector{3.0});
  CHECK(parse(R"({"\u00e9\/\"": [4], "shape": 1})", "\u00e9/\"").values == std::vector{4.0});
  CHECK(parse(R"({"sh\u0061pe": [1], "data": [5]})").values == std::vector{5.0});
  CHECK(parse(members, "d").info.name == "x.json:d");
  CHECK(parse(std::string(64, '[') + "1" + std::string(64, ']')).info.shape == Shape(64, 1));
}

TEST_CASE("a decimal is rounded once to its dtype", "[io][json]") {
  // Just above the midpoint of two floats, by less than a double can tell.
  const std::string decimal = "1.00000005960464477540000000000000000001";
  const auto parsed = parse(R"({"shape": [1], "dtype": "float32", "data": [)" + decimal + "]}");
  CHECK(parsed.values[0] == 1.00000011920928955078125);
  CHECK(parse(R"({"shape": [1], "dtype": "float32", "data": [1e-60]})").values[0] == 0);
  CHECK(parse(R"({"shape": [1], "dtype": "int64", "data": [9007199254740993]})").info.dtype ==
        DType::int64);
}

TEST_CASE("decimals of any length are read as the nearest double", "[io][json]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string decimal = i % 2 == 0 ? "0." : "-0.";
    decimal.append(random() % 4, '0');
    for (std::uint64_t count = 15 + random() % 12; count > 0; --count) {
      decimal += static_cast<char>('0' + random() % 10);
    }
    if (i % 3 == 0) decimal += "e" + std::to_string(static_cast<int>(random() % 600) - 330);
    // strtod is another reader than the library's.
    const double expected = std::strtod(decimal.c_str(), nullptr);
    CAPTURE(decimal);
    if (std::isfinite(expected)) {
      const std::vector<double> found = parse("[" + decimal + "]").values;
      if (found != std::vector{expected}) FAIL_CHECK(found[0]);
    } else if (json_error("[" + decimal + "]").find("not a value of float64") ==
               std::string::npos) {
      FAIL_CHECK("is taken");
    }
  }
}

TEST_CASE("a decimal beside a tie of a narrow dtype goes its way", "[io][json]") {
  const auto read = [](const std::string& dtype, const std::string& number) {
    return parse(R"({"dtype": ")" + dtype + R"(", "shape": [1], "data": [)" + number + "]}")
        .values[0];
  };
  const std::string more(20, '0');
  const std::string nines(20, '9');
  for (const std::string sign : {"", "-"}) {
    const double one = sign.empty() ? 1 : -1;
    CHECK(read("float16", sign + "1.00048828125") == one);
    CHECK(read("float16", sign + "1.00048828125" + more + "1") == one * 1.0009765625);
    CHECK(read("float16", sign + "1.00048828124" + nines) == one);
    CHECK(read("float16", sign + "0.000100048828125" + more + "1e4") == one * 1.0009765625);
    CHECK(read("float16", sign + "100146484375" + more + "1e-32") == one * 1.0019531250);
    CHECK(read("float16", sign + "1.00146484374" + nines) == one * 1.0009765625);
    CHECK(read("bfloat16", sign + "1.00390625" + more + "1") == one * 1.0078125);
    CHECK(read("bfloat16", sign + "1.00390625") == one);
    CHECK(read("float8_e4m3fn", sign + "1.0625" + more + "1") == one * 1.125);
    CHECK(read("float32", sign + "1.000000059604644775390625" + more + "1") ==
          one * 1.00000011920928955078125);
  }
}

TEST_CASE("bad JSON is refused with line, column and index path", "[io][json]") {
  struct Case {
    std::string text;
    std::string error;
  };
  const std::vector<Case> cases{
      {"", "x.json:1:1: found no value, expected a tensor"},
      {"[[1, 2, 3],\n [1, 2]]", "x.json:2:2: row 1 has 2 elements, expected 3"},
      {"[[[1],[2]],[[1],[2,3]]]", "x.json:1:17: row [1][1] has 2 elements, expected 1"},
      {"[[1, 2], 3]", "x.json:1:10: [1] is a number, expected a list of 2"},
      {"[1, [2]]", "x.json:1:5: [1] is a list, expected a number"},
      {"[[], 1]", "x.json:1:6: [1] is a number, expected a list of 0"},
      {"[1,\n\"é\", \"2\"]", "x.json:2:1: [1] is a string, expected a number"},
      {"[true]", "x.json:1:2: [0] is a boolean, expected a number"},
      {"[{}]", "x.json:1:2: [0] is an object, expected a number"},
      {"[1e400]", "x.json:1:2: [0] is '1e400', which is not a value of float64"},
      {"[01]", "x.json:1:2: [0] is '01', expected a number"},
      {"[nan]", "x.json:1:2: [0] is 'nan', expected a number"},
      {"[1 2]", "x.json:1:4: found '2]', expected ',' or the end of the list or object"},
      {"[1, 2", "x.json:1:1: what starts here is not closed: a ']' or '}' is missing"},
      {"[1,2],3", "x.json:1:6: found ',3' after the first value, expected the end"},
      {"1,2", "x.json:1:2: found ',2' after the first value, expected the end"},
      {"tensor([1])", "x.json:1:1: the value is 'tensor(', expected a number"},
      {std::string("[1]\0", 4),
       "x.json:1:4: found '\\x00' after the first value, expected the end"},
      {R"({"a": "b"})", "x.json:1:7: the value is a string, expected a number"},
      {R"({"shape": [1]})", R"(x.json:1:1: found an object of shape, expected "shape" and "data")"},
      {R"({"shape": [1], "shape": [1]})", "x.json:1:16: key 'shape' is there twice"},
      {R"({"shape": [2, 3], "data": [1, 2, 3]})",
       R"(x.json:1:27: "data" has shape (3), expected 6 elements for shape (2, 3))"},
      {R"({"shape": [4294967296, 4294967296], "data": []})",
       "x.json:1:1: shape (4294967296, 4294967296) has more than 2^63 - 1 elements"},
      {R"({"shape": [-1], "data": []})",
       R"(x.json:1:11: "shape" is not a list of sizes, such as [2, 3])"},
      {R"({"shape": [1], "data": [300], "dtype": "uint8"})",
       "x.json:1:25: [0] is '300', which is not a value of uint8"},
      {R"({"shape": [1], "data": [1.5], "dtype": "int8"})",
       "x.json:1:25: [0] is '1.5', which is not a value of int8"},
      {R"({"shape": [1], "data": [1e39], "dtype": "float32"})",
       "x.json:1:25: [0] is '1e39', which is not a value of float32"},
      {R"({"shape": [1], "data": [1], "dtype": "complex64"})",
       "x.json:1:38: dtype 'complex64' is not supported, expected bool, int8 to int64, uint8 to "
       "uint64, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e8m0fnu, float16, bfloat16, "
       "float32 or float64"},
      {"[1,\n\n\"\xff\"]", "x.json:3:1: this line is not valid UTF-8"},
      {std::string(65, '[') + std::string(65, ']'), "x.json:1:65: lists are nested deeper than 64"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(json_error(c.text) == c.error);
  }
  CHECK(json_error(R"({"a": {"b": [1]}})", "a") ==
        "x.json:1:7: found an object of b, expected a tensor");
  CHECK(json_error("{\"a\":\n[\"b\tc\"]}") ==
        "x.json:2:4: found '\\tc\"]}' in a string, expected it escaped");
  CHECK(json_error("[1,\n\"a\\\"]") == "x.json:2:1: the string that starts here does not end");
}

TEST_CASE("JSON numbers are laid out as Python's repr", "[io][json]") {
  CHECK(number(0.1) == "0.1");
  CHECK(number(0.1f) == "0.1");
  CHECK(number(1.0) == "1.0");
  CHECK(number(-0.0) == "-0.0");
  CHECK(number(1e-5) == "1e-05");
  CHECK(number(0.0001) == "0.0001");
  CHECK(number(1e16) == "1e+16");
  CHECK(number(123456789012345.6) == "123456789012345.6");
  CHECK(number(1234567890123456.0) == "1234567890123456.0");
  CHECK(number(std::numeric_limits<double>::max()) == "1.7976931348623157e+308");
  CHECK(number(std::numeric_limits<float>::denorm_min()) == "1e-45");
  CHECK(number(16777216.0f) == "16777216.0");
  CHECK(number(lnorm::Float16{0x2e66}) == "0.1");
  CHECK(number(lnorm::Float16{0x7bff}) == "65500.0");
  CHECK(number(lnorm::Float16{1}) == "6e-08");
  CHECK(number(lnorm::Float16{0x2400}) == "0.01563");  // a tie; only the upper one reads back
  CHECK(number(-std::numeric_limits<double>::infinity()) == "-Infinity");
  CHECK(number(std::numeric_limits<float>::quiet_NaN()) == "NaN");
}

TEST_CASE("JSON numbers read back as the same value, and no shorter decimal does", "[io][json]") {
  std::mt19937_64 random(1);
  const auto digits = [](const std::string& text) {
    std::string found;
    for (const char c : text.substr(0, text.find('e'))) {
      if (c >= '0' && c <= '9' && !(found.empty() && c == '0')) found += c;
    }
    return found.substr(0, found.find_last_not_of('0') + 1).size();
  };
  for (int i = 0; i < 20000; ++i) {
    const auto bits = random();
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const auto value = std::bit_cast<double>(bits);
    if (!std::isfinite(single) || !std::isfinite(value)) continue;
    const std::string text = number(single);
    CAPTURE(text, number(value));
    REQUIRE(std::strtof(text.c_str(), nullptr) == single);
    REQUIRE(std::strtod(number(value).c_str(), nullptr) == value);
    char shorter[64];
    std::snprintf(shorter, sizeof shorter, "%.*e", std::max(0, static_cast<int>(digits(text)) - 2),
                  static_cast<double>(single));
    if (digits(text) > 1) REQUIRE(std::strtof(shorter, nullptr) != single);
  }
  CHECK(number(lnorm::BFloat16{0x3dcd}) == "0.1");
  CHECK(number(lnorm::BFloat16{0x7f7f}) == "3.39e+38");
  CHECK(number(lnorm::BFloat16{1}) == "9e-41");
  CHECK(number(lnorm::BFloat16{0xff80}) == "-Infinity");
  CHECK(number(lnorm::Float8E4M3{0x7e}) == "450.0");
  CHECK(number(lnorm::Float8E4M3{0xff}) == "NaN");
  CHECK(number(lnorm::Float8E4M3{0x80}) == "-0.0");
  CHECK(number(lnorm::Float8E5M2{0x7b}) == "60000.0");
  CHECK(number(lnorm::Float8E5M2{1}) == "2e-05");
  CHECK(number(lnorm::Float8E5M2{0xfc}) == "-Infinity");
  for (unsigned bits = 0; bits < 0x7c; ++bits) {
    const auto code = static_cast<std::uint8_t>(bits);
    for (const std::string& text :
         {number(lnorm::Float8E4M3{code}), number(lnorm::Float8E5M2{code})}) {
      if (digits(text) > 3) FAIL(text << " is longer than a float8 needs");
    }
    const auto back = [](const std::string& text) { return std::strtod(text.c_str(), nullptr); };
    CHECK(lnorm::rounded_to<lnorm::Float8E4M3>(back(number(lnorm::Float8E4M3{code}))).bits == bits);
    CHECK(lnorm::rounded_to<lnorm::Float8E5M2>(back(number(lnorm::Float8E5M2{code}))).bits == bits);
  }
  for (unsigned bits = 0; bits < 0x7f80; ++bits) {
    const lnorm::BFloat16 value{static_cast<std::uint16_t>(bits)};
    const std::string text = number(value);
    if (lnorm::rounded_to<lnorm::BFloat16>(std::strtod(text.c_str(), nullptr)).bits != bits)
      FAIL(text);
    if (digits(text) > 4) FAIL(text << " is longer than a bfloat16 needs");
  }
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    const lnorm::Float16 half{static_cast<std::uint16_t>(bits)};
    const std::string text = number(half);
    if (lnorm::rounded_to<lnorm::Float16>(std::strtod(text.c_str(), nullptr)).bits != bits)
      FAIL(text);
    if (digits(text) > 5) FAIL(text << " is longer than a float16 needs");
  }
}
