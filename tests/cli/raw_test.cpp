#include <algorithm>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// Elements alone, of which the command line tells what they are.

namespace {

using namespace support;
using Words = std::vector<std::string>;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string backwards(std::string bytes, std::size_t item) {
  for (std::size_t i = 0; i < bytes.size(); i += item) {
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(i);
    std::reverse(first, first + static_cast<std::ptrdiff_t>(item));
  }
  return bytes;
}

const Words kFloats{"--from", "raw", "--as", "float32", "--shape", "2,3"};

}  // namespace

TEST_CASE("a raw file is the tensor that the options say, from a file and from a pipe") {
  const TempDir at;
  const std::vector<float> elements{1, 2, 4, 3, 3, 9};
  const std::string little = bytes_of(elements);
  write_file(at / "x.npy", npy("<f4", {2, 3}, little));
  write_file(at / "x.bin", little);
  write_file(at / "header.bin", "16 bytes of this" + little);
  write_file(at / "big.bin", backwards(little, 4));
  const std::string expected = output_of({at / "x.npy"});
  for (const auto& [file, options] : std::vector<std::pair<std::string, Words>>{
           {"x.bin", {}}, {"header.bin", {"--offset", "16"}}, {"big.bin", {"--big-endian"}}}) {
    CAPTURE(file);
    const Words told = with(kFloats, options);
    CHECK(output_of(with({at / file}, told)) == expected);
    CHECK(output_of(told, pipe_of(read_file(at / file))) == expected);
    CHECK(output_of(with({"stats", at / file, "--json"}, told)).find("\"shape\"") !=
          std::string::npos);
    CHECK(output_of(with({"show", at / file, "--precision", "1"}, told)) ==
          output_of({"show", at / "x.npy", "--precision", "1"}));
    CHECK(output_of(with({"softmax", at / file}, told)) == output_of({"softmax", at / "x.npy"}));
  }
  CHECK(output_of({at / "x.bin", "--from", "raw", "--as", "f4", "--shape", "(2, 3)"}) == expected);
  CHECK(output_of(with({at / "x.bin", "--weight", at / "x.npy", "--axes", "0,1"}, kFloats)) ==
        output_of({at / "x.npy", "--weight", at / "x.npy", "--axes", "0,1"}));
}

TEST_CASE("every dtype is read raw") {
  const TempDir at;
  const auto shown = [&](const std::string& dtype, const std::string& bytes) {
    write_file(at / "x", bytes);
    return output_of({"show", at / "x", "--from", "raw", "--as", dtype, "--shape", "2"});
  };
  CHECK(shown("bool", std::string("\0\1", 2)) == "tensor([False,  True])\n");
  CHECK(shown("int8", "\xff\x01") == "tensor([-1,  1], dtype=torch.int8)\n");
  CHECK(shown("uint64", bytes_of<std::uint64_t>({1, 2})) == "tensor([1, 2], dtype=torch.uint64)\n");
  CHECK(shown("bfloat16", bytes_of<std::uint16_t>({0x3f80, 0x4000})) ==
        "tensor([1., 2.], dtype=torch.bfloat16)\n");
  CHECK(shown("float8_e4m3fn", "\x38\x40") == "tensor([1., 2.], dtype=torch.float8_e4m3fn)\n");
  CHECK(shown("float8_e5m2", "\x3c\x40") == "tensor([1., 2.], dtype=torch.float8_e5m2)\n");
  CHECK(shown("float16", bytes_of<std::uint16_t>({0x3c00, 0x4000})) ==
        "tensor([1., 2.], dtype=torch.float16)\n");
  CHECK(shown("float64", bytes_of<double>({1, 2})) == "tensor([1., 2.], dtype=torch.float64)\n");
}

TEST_CASE("the size of a raw file must be that of its tensor") {
  const TempDir at;
  const auto fault = [&](std::size_t size, const Words& options, const Words& words) {
    const std::string bytes(size, 'x');
    write_file(at / "x.bin", bytes);
    const std::string of_file = refusal_fault(run(with(with({at / "x.bin"}, kFloats), options)),
                                              with(words, {"x.bin", "shape (2, 3) of float32"}));
    return of_file.empty() ? refusal_fault(run(with(kFloats, options), pipe_of(bytes)),
                                           {"standard input", "shape (2, 3) of float32"})
                           : of_file;
  };
  CHECK(fault(20, {}, {"needs 24 bytes, found 20"}) == "");
  CHECK(fault(0, {}, {"needs 24 bytes, found 0"}) == "");
  CHECK(fault(25, {}, {"needs 24 bytes, found 25"}) == "");
  CHECK(fault(39, {"--offset", "16"}, {"needs 24 bytes behind the first 16, found 39"}) == "");
  CHECK(fault(41, {"--offset", "16"}, {"needs 24 bytes behind the first 16, found 41"}) == "");
  CHECK(fault(10, {"--offset", "16"}, {"needs 24 bytes behind the first 16, found 10"}) == "");
  CHECK(refusal_fault(run({at / "x.bin", "--from", "raw", "--as", "float64", "--shape",
                           "9223372036854775807,9223372036854775807"}),
                      {"x.bin", "more than 2^63 - 1 bytes"}) == "");
  write_file(at / "x.bin", std::string(24, 'x'));
  CHECK(refusal_fault(run(with({at / "x.bin:x"}, kFloats)),
                      {"x.bin", "holds one tensor without a name", "':x'"}) == "");
}

TEST_CASE("what a raw file does not tell must be told, and of no other file") {
  const TempDir at;
  write_file(at / "x.bin", bytes_of<float>({1, 2, 4, 3, 3, 9}));
  write_file(at / "x.npy", npy("<f4", {2, 3}, bytes_of<float>({1, 2, 4, 3, 3, 9})));
  const auto refused = [&](const Words& words, const Words& expected) {
    return refusal_fault(run(words), expected);
  };
  CHECK(refused({at / "x.bin", "--from", "raw"},
                {"--from raw needs --as and --shape", "hint: --as float32 --shape 2,3"}) == "");
  CHECK(output_of({at / "x.bin", "--from", "raw", "--as", "float32", "--shape", "2,3"}) != "");
  CHECK(refused({at / "x.bin", "--from", "raw", "--as", "float64"}, {"hint: --shape 2,3"}) == "");
  CHECK(refused({at / "x.bin", "--from", "raw", "--shape", "6"}, {"hint: --as float32"}) == "");

  CHECK(refused({at / "x.npy", "--shape", "3"}, {"--shape has no effect without --from raw",
                                                 "hint: a tensor keeps its shape; --axes or"}) ==
        "");
  CHECK(refused({at / "x.npy", "--offset", "3"}, {"--offset has no effect without --from raw"}) ==
        "");
  CHECK(refused({"show", at / "x.npy", "--big-endian"}, {"--big-endian has no effect"}) == "");
  CHECK(refused({at / "x.npy", "--as", "float64"}, {"--as float64 has no effect"}) == "");
  CHECK(refused({at / "x.bin", "--shape", "-1"}, {"--shape: size -1 is negative"}) == "");
  CHECK(refused({at / "x.bin", "--shape", "2,x"}, {"--shape: 'x'"}) == "");
  CHECK(refused({at / "x.bin", "--offset", "-1"}, {"--offset: '-1'"}) == "");
  CHECK(refused({at / "x.bin", "--from", "raw", "--as", "complex64"}, {"--as: 'complex64'"}) == "");
  CHECK(refused({"compare", at / "x.npy", at / "x.npy", "--as", "float32"}, {"--as: 'float32'"}) ==
        "");
}
