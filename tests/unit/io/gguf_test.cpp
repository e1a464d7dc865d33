#include "lnorm/io/gguf/gguf.hpp"

#include "support/commands.hpp"
#include "support/elements.hpp"
#include "support/gguf.hpp"
#include "support/memory_bytes.hpp"
#include "support/sets.hpp"

namespace {

using namespace support;
using lnorm::Shape;

std::unique_ptr<lnorm::TensorSet> open(const std::string& bytes) {
  return lnorm::open_gguf(std::make_unique<MemoryBytes>("x", bytes, MemoryBytes::Kind::file));
}

// The error of opening such a file, without the name of the header.
std::string error(const std::string& bytes) {
  const std::string found = error_of([&] { open(bytes); });
  const std::string prefix = "x: GGUF header, byte ";
  CHECK(found.starts_with(prefix));
  return found.substr(std::min(found.size(), prefix.size()));
}

// Of one pair, one tensor, or one tensor before so many bytes.
std::string pair_error(const std::string& pair) { return error(gguf({pair}, {}, "")); }
std::string tensor_error(const std::string& tensor, std::size_t bytes = 64) {
  return error(gguf({}, {tensor}, std::string(bytes, 'x')));
}

constexpr std::uint32_t kString = 8;
constexpr std::uint32_t kArray = 9;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;

std::string alignment(std::uint32_t bytes) { return gguf_pair("general.alignment", 4, u32(bytes)); }

// Arrays in arrays, so many.
std::string nested(int depth) {
  std::string value;
  for (int i = 1; i < depth; ++i) value += u32(kArray) + u64(1);
  return gguf_pair("a", kArray, value + u32(0) + u64(0));
}

}  // namespace

TEST_CASE("tensors of a GGUF file have NumPy's shapes and the bytes at their offsets", "[io]") {
  const std::string file =
      gguf({alignment(16), nested(4)},
           {gguf_tensor("b", {3, 2}, 24, 16), gguf_tensor("a", {2}, 25, 0),
            gguf_tensor("none", {0, 5}, 0, 32), gguf_tensor("one", {}, 24, 32)},
           std::string("\1\0\2\0............abcdef..........z", 33), 16);
  const auto set = open(file);
  REQUIRE(set->size() == 4);
  CHECK(set->tensor_name(0) == "b");
  CHECK(set->info(0).shape == Shape{2, 3});
  CHECK(set->info(0).dtype == lnorm::DType::int8);
  CHECK(set->info(0).byte_order == std::endian::little);
  CHECK(text_of(read_tensor(*set, "b").elements) == "abcdef");
  CHECK(text_of(read_tensor(*set, "a").elements) == std::string("\1\0\2\0", 4));
  CHECK(set->info(2).shape == Shape{5, 0});
  CHECK(read_tensor(*set, "none").elements.empty());
  CHECK(set->info(3).shape.empty());
  CHECK(text_of(read_tensor(*set, "one").elements) == "z");
  CHECK(set->place(0) > set->place(1));
  CHECK(open(gguf({}, {}, ""))->size() == 0);
  CHECK(open("GGUF" + u32(2) + u64(0) + u64(0))->size() == 0);
}

TEST_CASE("quantized tensors are listed with ggml's type, and refused by it", "[io]") {
  const auto set = open(gguf({},
                             {gguf_tensor("q", {64, 2}, 8, 0), gguf_tensor("k", {256}, 12, 160),
                              gguf_tensor("new", {7}, 4711, 320), gguf_tensor("old", {3}, 4, 320)},
                             std::string(320, 'x')));
  const auto members = list(*set);
  CHECK(members[0].dtype == "Q8_0");
  CHECK(members[0].shape == Shape{2, 64});
  CHECK(members[0].bytes == 136);
  CHECK(members[1].dtype == "Q4_K");
  CHECK(members[1].bytes == 144);
  CHECK(members[2].dtype == "type 4711");
  CHECK(members[2].bytes == std::nullopt);
  CHECK(members[3].dtype == "Q4_2");
  CHECK(error_of([&] { set->open(0); }) ==
        "x:q: is quantized as Q8_0, expected I8 to I64, F16, BF16, F32 or F64");
  CHECK_THROWS_AS(set->info(1), lnorm::UnsupportedDType);
}

TEST_CASE("a GGUF file's versions, byte orders and starts are told apart", "[io]") {
  CHECK(error("GGUF") == "4: the version is cut off: needs 4 bytes, found 0");
  CHECK(error("JUNK" + u32(3)) == "0: found 'JUNK', expected 'GGUF'");
  CHECK(error("GGUF" + u32(1) + u64(0)) == "4: version 1, expected 2 or 3");
  CHECK(error("GGUF" + u32(0x03000000) + u64(0)) ==
        "4: a big-endian file, expected a little-endian one");
  CHECK(error_of([] {
          lnorm::open_gguf(std::make_unique<MemoryBytes>("x", "GGUF", MemoryBytes::Kind::pipe));
        }) == "x: a GGUF file cannot be read from a pipe: its tensors may lie in any order");
}

TEST_CASE("every count and length of a GGUF header is held against the file", "[io]") {
  CHECK(error("GGUF" + u32(3) + u64(kHuge) + u64(0)) ==
        "8: found a count of 9223372036854775808 tensors, expected at most 0 in the 8 bytes that "
        "are left");
  CHECK(error("GGUF" + u32(3) + u64(0) + u64(kHuge)) ==
        "16: found a count of 9223372036854775808 key-value pairs, expected at most 0 in the 0 "
        "bytes that are left");
  CHECK(error("GGUF" + u32(3) + u64(0) + u64(1) + std::string(20, '\xff')) ==
        "24: a key of 18446744073709551615 bytes, expected at most 65535");
  CHECK(pair_error(gguf_pair("a", kString, u64(kHuge))) ==
        "37: found a count of 9223372036854775808 bytes of a string, expected at most 19 in the 19 "
        "bytes that are left");
  CHECK(contains(pair_error(gguf_pair("a", kArray, u32(kString) + u64(1000))),
                 "found a count of 1000 elements of an array"));
  CHECK(contains(pair_error(gguf_pair("a", kArray, u32(12) + u64(kHuge / 4))),
                 "found a count of 2305843009213693952 elements of an array"));
  CHECK(contains(pair_error(gguf_pair("a", kArray, u32(kArray) + u64(9))), "elements of an array"));
  CHECK(contains(pair_error(gguf_pair("a", 13, "")), "a value of type 13, expected 0 to 12"));
  CHECK(contains(pair_error(gguf_pair("a", kArray, u32(99) + u64(0))), "a value of type 99"));
  CHECK(contains(pair_error(nested(5)), "arrays in arrays, expected a depth of at most 4"));
  const std::string whole = gguf({alignment(32)}, {gguf_tensor("a", {2}, 24, 0)}, "xy");
  const std::size_t header = 24 + alignment(32).size() + gguf_tensor("a", {2}, 24, 0).size();
  for (std::size_t size = 4; size < header; ++size) {
    CAPTURE(size);
    CHECK(!error(whole.substr(0, size)).empty());
  }
}

TEST_CASE("an alignment of a GGUF file is a power of two that is at least 8, and there once",
          "[io]") {
  for (const std::uint32_t bytes : {0U, 1U, 4U, 24U, 33U, 0xffffffffU}) {
    CAPTURE(bytes);
    CHECK(contains(pair_error(alignment(bytes)), "expected a power of two that is at least 8"));
  }
  CHECK(contains(pair_error(gguf_pair("general.alignment", 10, u64(32))), "is of type 10"));
  CHECK(contains(error(gguf({alignment(32), alignment(64)}, {}, "")), "is there twice"));
  CHECK(open(gguf({alignment(0x80000000)}, {gguf_tensor("a", {0}, 0, 0)}, ""))->size() == 1);
}

TEST_CASE("tensors of a GGUF file lie within it, at multiples of the alignment, without overlap",
          "[io]") {
  CHECK(contains(tensor_error(gguf_tensor("a", {1, 1, 1, 1, 1}, 0, 0)),
                 "tensor 'a': 5 dimensions, expected at most 4"));
  CHECK(contains(tensor_error(gguf_tensor("a", {kHuge}, 24, 0)), "tensor 'a': a size of 92233720"));
  CHECK(contains(tensor_error(gguf_tensor("a", {kHuge / 2, 4}, 0, 0)), "more than 2^63 - 1 bytes"));
  CHECK(contains(tensor_error(gguf_tensor("a", {kHuge / 2, 4}, 99, 0)), "more than 2^63 - 1"));
  CHECK(
      contains(tensor_error(gguf_tensor("a", {2}, 24, 4)), "offset 4, expected a multiple of 32"));
  CHECK(contains(tensor_error(gguf_tensor("a", {2}, 24, kHuge)), "is beyond the file"));
  CHECK(contains(tensor_error(gguf_tensor("a", {33}, 24, 32)),
                 "tensor 'a' of 33 bytes at offset 32 goes beyond the file, which has 64 bytes of "
                 "data"));
  CHECK(contains(tensor_error(gguf_tensor("a", {64}, 8, 0)), "'a' of 68 bytes at offset 0"));
  CHECK(contains(tensor_error(gguf_tensor("a", {65}, 8, 0)),
                 "rows of 65 elements, expected a multiple of the 32 of a block of Q8_0"));
  CHECK(contains(tensor_error(gguf_tensor("\xff", {1}, 24, 0)), "is not UTF-8"));
  const auto two = [](const std::string& first, const std::string& second) {
    return error(gguf({}, {first, second}, std::string(64, 'x')));
  };
  CHECK(contains(two(gguf_tensor("a", {1}, 24, 32), gguf_tensor("b", {33}, 24, 0)),
                 "tensors 'b' and 'a' overlap"));
  CHECK(contains(two(gguf_tensor("a", {1}, 24, 0), gguf_tensor("b", {1}, 24, 0)), "overlap"));
  CHECK(contains(two(gguf_tensor("a", {1}, 24, 0), gguf_tensor("a", {1}, 24, 32)),
                 "tensor 'a' is there twice"));
}
