#include "lnorm/io/safetensors/safetensors.hpp"

#include "lnorm/core/text.hpp"
#include "lnorm/io/detect_format.hpp"
#include "support/commands.hpp"
#include "support/elements.hpp"
#include "support/memory_bytes.hpp"
#include "support/sets.hpp"

namespace {

using namespace support;
using lnorm::Shape;

std::unique_ptr<MemoryBytes> memory(const std::string& bytes, bool known) {
  using enum MemoryBytes::Kind;
  return std::make_unique<MemoryBytes>("x", bytes, known ? pipe_of_known_length : pipe);
}

std::string read(const std::string& bytes, const std::optional<std::string>& member, bool known) {
  const auto set = lnorm::open_safetensors(memory(bytes, known));
  return text_of(read_tensor(*set, member).elements);
}

std::string error(const std::string& bytes, const std::optional<std::string>& member = {},
                  bool known = true) {
  return error_of([&] { read(bytes, member, known); });
}

// The error of a header before 8 bytes of data.
std::string header_error(const std::string& header) {
  const std::string bytes = safetensors(header, "12345678");
  const std::string found = error(bytes);
  const std::string prefix = "x: safetensors header, byte ";
  CHECK(error(bytes, {}, false) == found);
  if (!found.starts_with(prefix)) return found;
  return found.substr(found.find(": ", prefix.size()) + 2);
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return lnorm::concat('"', name, R"(":{"dtype":")", dtype, R"(","shape":)", shape,
                       R"(,"data_offsets":)", offsets, "}");
}

// Members of an object.
template <class... Members>
std::string object(const std::string& first, const Members&... more) {
  return lnorm::concat("{", first, lnorm::concat(",", more)..., "}");
}

const std::string kGood = entry("a", "U8", "[8]", "[0,8]");

}  // namespace

TEST_CASE("tensors are read by name, wherever they lie, from files and pipes", "[io]") {
  const std::string header =
      object(entry("b", "U8", "[2,2]", "[4,8]"), entry("none", "F32", "[0,3]", "[4,4]"),
             R"("__metadata__":{"format":"pt","":"\u00e9"})", entry("a", "U8", "[4]", "[0,4]")) +
      "   ";
  const std::string bytes = safetensors(header, "12345678");
  for (const bool known : {false, true}) {
    CHECK(read(bytes, "a", known) == "1234");
    CHECK(read(bytes, "b", known) == "5678");
    CHECK(read(bytes, "none", known) == "");
    CHECK(read(safetensors(object(kGood), "12345678"), {}, known) == "12345678");
    CHECK(contains(error(bytes + "9", "a", known), "goes on"));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      if (error(bytes.substr(0, size), "a", known).find("cut off") == std::string::npos) FAIL(size);
    }
  }
}

TEST_CASE("no length of a header makes the file look like another format", "[io]") {
  // The bytes that a pickle, gzip and UTF-16 begin with.
  for (const std::size_t length : {0x280U, 0x380U, 0x480U, 0x580U, 0x8b1fU, 0xfeffU}) {
    std::string header = object(kGood);
    header.append(length - header.size(), ' ');
    const auto bytes = memory(safetensors(header, "12345678"), false);
    CHECK(lnorm::detect_format(*bytes) == lnorm::Format::safetensors);
  }
}

TEST_CASE("a header must have the form of the format and nothing else", "[io]") {
  CHECK(header_error("[]") == "found '[', expected '{'");
  CHECK(header_error("") == "found no JSON, expected an object");
  CHECK(header_error(" {}") == "found ' ', expected '{'");
  CHECK(header_error(object(kGood) + "\f") ==
        "found '\\x0c' after the object, expected blanks at most");
  CHECK(header_error(object(kGood) + std::string(1, '\0')) ==
        "found '\\x00' after the object, expected blanks at most");
  CHECK(header_error(object(kGood) + " {") ==
        "found '{' after the object, expected blanks at most");
  CHECK(header_error("{" + kGood).starts_with("not valid JSON"));
  CHECK(header_error("{" + kGood + ",}").starts_with("not valid JSON"));
  CHECK(header_error("{\"\xff\":1}").starts_with("not valid JSON"));
  CHECK(header_error(object(kGood, kGood)) == "tensor 'a' is there twice");
  CHECK(
      header_error(object(kGood, R"("\u0061":{"dtype":"U8","shape":[0],"data_offsets":[8,8]})")) ==
      "tensor 'a' is there twice");
  CHECK(header_error(R"({"a":1})") ==
        "tensor 'a': is a number, expected an object of dtype, shape and data_offsets");
  CHECK(contains(header_error(R"({"a":[[[[1]]]]})"), "is a list"));
  CHECK(header_error(R"({"a":{"dtype":{}}})") ==
        "tensor 'a': dtype: found an object, expected a string, such as \"F32\"");
  CHECK(header_error(R"({"a":{"dtype":"U8","dtype":"U8"}})") == "tensor 'a': dtype is there twice");
  CHECK(header_error(R"({"a":{"dtype":"U8","shape":[8]}})") ==
        "tensor 'a': data_offsets is missing");
  CHECK(header_error(R"({"a":{"size":1}})") ==
        "tensor 'a': field 'size' is unknown, expected dtype, shape and data_offsets");
  for (const std::string metadata :
       {R"({"k":1})", R"({"k":null})", R"({"k":{}})", R"({"k":[]})", R"([])", R"("k")", "null"}) {
    CAPTURE(metadata);
    CHECK(header_error(object(R"("__metadata__":)" + metadata, kGood)).starts_with("__metadata__"));
  }
  CHECK(header_error(R"({"__metadata__":{"k":"1","l":"2","k":"1"}})") ==
        "__metadata__: key 'k' is there twice");
  CHECK(header_error(R"({"__metadata__":{},"__metadata__":{}})") ==
        "'__metadata__' is there twice");
}

TEST_CASE("all blanks of JSON may stand in a header, and behind it", "[io]") {
  constexpr std::size_t kLong = std::size_t{5} << 20;  // is read by the other parser
  for (const char blank : {' ', '\t', '\r', '\n'}) {
    CAPTURE(blank);
    const std::string inside = lnorm::concat('{', blank, kGood, blank, '}');
    CHECK(header_error(inside) == "no error");
    CHECK(header_error(inside + blank) == "no error");
    CHECK(header_error(inside + std::string(kLong, blank)) == "no error");
    CHECK(header_error(blank + inside).ends_with(", expected '{'"));
  }
}

TEST_CASE("shapes, dtypes and offsets must fit one another and the file", "[io]") {
  const auto of = [](const std::string& dtype, const std::string& shape,
                     const std::string& offsets) {
    return header_error(object(entry("a", dtype, shape, offsets)));
  };
  CHECK(of("U8", "[8]", "[0,8]") == "no error");
  CHECK(contains(of("U8", "[-8]", "[0,8]"), "a negative number"));
  CHECK(contains(of("U8", "[-0]", "[0,8]"), "a negative number"));
  CHECK(contains(of("U8", "[8.0]", "[0,8]"), "the number '8.0'"));
  CHECK(contains(of("U8", "[1e1]", "[0,8]"), "the number '1e1'"));
  CHECK(contains(of("U8", "[18446744073709551616]", "[0,8]"), "18446744073709551616"));
  CHECK(contains(of("U8", "[9223372036854775808]", "[0,8]"), "2^63 - 1"));
  CHECK(contains(of("F64", "[4294967296,4294967296]", "[0,8]"), "2^63 - 1"));
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  CHECK(contains(of("U8", "[" + ones + "]", "[0,1]"), "more than 64 dimensions"));
  CHECK(contains(of("U8", "[8]", "[0,8,9]"), "another number of values"));
  CHECK(contains(of("U8", "[8]", "[]"), "another number of values"));
  CHECK(of("U8", "[8]", "[8,0]") == "tensor 'a': data_offsets [8, 0] end before they begin");
  CHECK(of("U16", "[8]", "[0,8]") ==
        "tensor 'a': data_offsets [0, 8] hold 8 bytes, but shape (8) of U16 needs 16 bytes");
  CHECK(contains(of("F4", "[15]", "[0,8]"), "needs a part of 8 bytes"));
  CHECK(of("F4", "[16]", "[0,8]") ==
        "x:a: dtype F4, expected one of BOOL, I8 to I64, U8 to U64, F8_E4M3, F8_E5M2, "
        "F8_E4M3FNUZ, F8_E8M0, F16, BF16, F32 or F64");
  CHECK(of("F8_E9M9", "[8]", "[0,8]").find("x:a: dtype F8_*") == 0);
  CHECK(of("C64", "[1]", "[0,8]").find("x:a: dtype C64") == 0);
  CHECK(contains(of("f32", "[2]", "[0,8]"), "dtype 'f32' is unknown"));

  const auto two = [](const std::string& a, const std::string& b) {
    return error(
        safetensors(object(entry("a", "U8", "[4]", a), entry("b", "U8", "[4]", b)), "12345678"),
        "a");
  };
  CHECK(two("[0,4]", "[4,8]") == "no error");
  CHECK(two("[4,8]", "[0,4]") == "no error");
  CHECK(contains(two("[0,4]", "[0,4]"), "overlap"));
  CHECK(contains(two("[0,4]", "[3,7]"), "overlap"));
  CHECK(contains(two("[0,4]", "[5,9]"), "hole"));
  CHECK(contains(two("[1,5]", "[5,9]"), "hole"));
}

TEST_CASE("other dtypes are in nobody's way, and listed", "[io]") {
  const std::string bytes = safetensors(
      object(entry("q", "F8_E5M2FNUZ", "[4]", "[0,4]"), entry("a", "U8", "[2,2]", "[4,8]")),
      "12345678");
  CHECK(read(bytes, "a", true) == "5678");
  CHECK(contains(error(bytes, "q"), "F8_E5M2FNUZ"));
  const auto members = list(*lnorm::open_safetensors(memory(bytes, false)));
  REQUIRE(members.size() == 2);
  CHECK(members.at(0).name == "a");
  CHECK(members.at(0).dtype == "uint8");
  CHECK(members.at(1).dtype == "F8_E5M2FNUZ");
  CHECK(members.at(1).shape == Shape{4});
  CHECK(members.at(1).bytes == 4);
}
