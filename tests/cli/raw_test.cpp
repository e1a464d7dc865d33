#include "support/commands.hpp"

// Elements alone, of which the command line tells what they are.

namespace {

using namespace support;

const Words kFloats = "--from raw --as float32 --shape 2,3"_w;

}  // namespace

TEST_CASE("a raw file is the tensor that the options say, from a file and from a pipe") {
  const Workplace at;
  const std::vector<float> elements{1, 2, 4, 3, 3, 9};
  const std::string little = bytes_of(elements);
  at.write("x.npy", npy("<f4", {2, 3}, little));
  at.write("x.bin", little);
  at.write("header.bin", "16 bytes of this" + little);
  at.write("big.bin", swapped(little, 4));
  const std::string expected = at.output({"x.npy"});
  for (const auto& [file, options] : std::vector<std::pair<std::string, Words>>{
           {"x.bin", {}}, {"header.bin", "--offset 16"_w}, {"big.bin", {"--big-endian"}}}) {
    CAPTURE(file);
    const Words told = kFloats + options;
    CHECK(at.output(Words{file} + told) == expected);
    CHECK(output_of(told, pipe_of(at.read(file))) == expected);
    CHECK(contains(at.output(Words{"stats", file, "--json"} + told), "\"shape\""));
    CHECK(at.output(Words{"show", file, "--precision", "1"} + told) ==
          at.output("show x.npy --precision 1"_w));
    CHECK(at.output(Words{"softmax", file} + told) == at.output("softmax x.npy"_w));
  }
  CHECK(at.output({"x.bin", "--from", "raw", "--as", "f4", "--shape", "(2, 3)"}) == expected);
  CHECK(at.output("x.bin --weight x.npy --axes 0,1"_w + kFloats) ==
        at.output("x.npy --weight x.npy --axes 0,1"_w));
}

TEST_CASE("every dtype is read raw") {
  const Workplace at;
  const auto shown = [&](const std::string& dtype, const std::string& bytes) {
    at.write("x", bytes);
    return at.output({"show", "x", "--from", "raw", "--as", dtype, "--shape", "2"});
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
  const Workplace at;
  const auto fault = [&](std::size_t size, const Words& options, const Words& words) {
    const std::string bytes(size, 'x');
    at.write("x.bin", bytes);
    const std::string of_file = at.fault(Words{"x.bin"} + kFloats + options,
                                         words + Words{"x.bin", "shape (2, 3) of float32"});
    return of_file.empty() ? fault_of(kFloats + options,
                                      {"standard input", "shape (2, 3) of float32"}, pipe_of(bytes))
                           : of_file;
  };
  CHECK(fault(20, {}, {"needs 24 bytes, found 20"}) == "");
  CHECK(fault(0, {}, {"needs 24 bytes, found 0"}) == "");
  CHECK(fault(25, {}, {"needs 24 bytes, found 25"}) == "");
  CHECK(fault(39, "--offset 16"_w, {"needs 24 bytes behind the first 16, found 39"}) == "");
  CHECK(fault(41, "--offset 16"_w, {"needs 24 bytes behind the first 16, found 41"}) == "");
  CHECK(fault(10, "--offset 16"_w, {"needs 24 bytes behind the first 16, found 10"}) == "");
  CHECK(at.fault("x.bin --from raw --as float64 --shape 9223372036854775807,9223372036854775807"_w,
                 {"x.bin", "more than 2^63 - 1 bytes"}) == "");
  at.write("x.bin", std::string(24, 'x'));
  CHECK(at.fault(Words{"x.bin:x"} + kFloats,
                 {"x.bin", "holds one tensor without a name", "':x'"}) == "");
}

TEST_CASE("what a raw file does not tell must be told, and of no other file") {
  const Workplace at;
  at.write("x.bin", bytes_of<float>({1, 2, 4, 3, 3, 9}));
  at.write("x.npy", npy_of<float>({2, 3}, {1, 2, 4, 3, 3, 9}));
  CHECK(at.fault("x.bin --from raw"_w,
                 {"--from raw needs --as and --shape", "hint: --as float32 --shape 2,3"}) == "");
  CHECK(at.output("x.bin --from raw --as float32 --shape 2,3"_w) != "");
  CHECK(at.fault("x.bin --from raw --as float64"_w, {"hint: --shape 2,3"}) == "");
  CHECK(at.fault("x.bin --from raw --shape 6"_w, {"hint: --as float32"}) == "");
  CHECK(at.fault("x.npy --shape 3"_w, {"--shape has no effect without --from raw",
                                       "hint: a tensor keeps its shape; --axes or"}) == "");
  CHECK(at.fault("x.npy --offset 3"_w, {"--offset has no effect without --from raw"}) == "");
  CHECK(at.fault("show x.npy --big-endian"_w, {"--big-endian has no effect"}) == "");
  CHECK(at.fault("x.npy --as float64"_w, {"--as float64 has no effect"}) == "");
  CHECK(at.fault("x.bin --shape -1"_w, {"--shape: size -1 is negative"}) == "");
  CHECK(at.fault("x.bin --shape 2,x"_w, {"--shape: 'x'"}) == "");
  CHECK(at.fault("x.bin --offset -1"_w, {"--offset: '-1'"}) == "");
  CHECK(at.fault("x.bin --from raw --as complex64"_w, {"--as: 'complex64'"}) == "");
  CHECK(at.fault("compare x.npy x.npy --as float32"_w, {"--as: 'float32'"}) == "");
}
