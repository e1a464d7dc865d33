#include "support/commands.hpp"
#include "support/gguf.hpp"
#include "support/zip.hpp"

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
  CHECK(at.fault("x.bin --shape -2"_w, {"--shape: size -2 is negative"}) == "");
  CHECK(at.fault("x.bin --shape=-1,-1"_w, {"--shape: '-1,-1' has -1 more than once"}) == "");
  CHECK(at.fault("x.bin --shape 2,x"_w, {"--shape: 'x'"}) == "");
  CHECK(at.fault("x.bin --offset -1"_w, {"--offset: '-1'"}) == "");
  CHECK(at.fault("x.bin --from raw --as complex64"_w, {"--as: 'complex64'"}) == "");
  CHECK(at.fault("compare x.npy x.npy --as float32"_w, {"--as float32 has no effect"}) == "");
  CHECK(at.fault("compare x.npy x.bin"_w, {"x.bin", "hint: ", "--from raw --as float32"}) == "");
}

TEST_CASE("one size of a raw file is what the file has") {
  const Workplace at;
  at.write("x.bin", "head" + bytes_of<float>({1, 2, 4, 3, 3, 9}));
  const Words options = "x.bin --to json --from raw --as float32 --offset 4 --shape"_w;
  for (const std::string shape : {"-1,3", "2,-1", "(2, -1)"}) {
    CAPTURE(shape);
    CHECK(at.output(options + Words{shape}) == at.output(options + "2,3"_w));
  }
  CHECK(at.fault(options + "-1,4"_w, {"x.bin: shape (-1, 4) of float32 needs a multiple of 16 "
                                      "bytes, found 24"}) == "");
  CHECK(at.fault(options + "-1,0"_w, {"shape (-1, 0) of float32 needs a multiple of 0 bytes"}) ==
        "");
  CHECK(fault_of("--from raw --as float32 --shape=-1,3"_w,
                 {"standard input", "(-1, 3)", "the length of a pipe is not known"},
                 pipe_of(at.read("x.bin"))) == "");
}

TEST_CASE("compare, check and grad take raw elements on both sides, by position") {
  const Workplace at;
  const std::vector<float> elements{1, 2, 4, 3, 3, 9};
  const std::string halves =
      bytes_of<std::uint16_t>({0x3c00, 0x4000, 0x4400, 0x4200, 0x4200, 0x4880});
  at.write("a.bin", bytes_of(elements));
  at.write("b.bin", "16 bytes of this" + halves);
  at.write("x.npy", npy_of<float>({2, 3}, elements));
  at.write("x.json", "[[1, 2, 4], [3, 3, 9]]");
  const auto agree = [&](const std::string& files, const std::string& options) {
    const auto words = [](const std::string& text) {
      return operator""_w(text.data(), text.size());
    };
    CHECK(contains(at.output("compare"_w + words(files + " --shape 2,3 --max-abs 0 " + options)),
                   "agree"));
  };
  agree("a.bin b.bin", "--from raw --as float32,float16 --offset 0,16");
  agree("b.bin b.bin", "--from raw --as float16 --offset 16");
  agree("a.bin x.npy", "--from raw --as float32");
  agree("x.npy a.bin", "--from raw --as float32");
  agree("x.npy a.bin", "--from npy,raw --as float32");
  agree("a.bin x.json", "--from raw,json --as float32");
  CHECK(contains(
      at.output("compare - a.bin --from raw --as f4 --shape 2,3"_w, pipe_of(bytes_of(elements))),
      "agree"));
  CHECK(at.output("x.npy -o y.bin"_w) == "");
  CHECK(contains(at.output("check a.bin y.bin --from raw --as float32 --shape=-1,3"_w),
                 "correctly rounded"));
  CHECK(contains(at.output("check x.json y.bin --from json,raw --as float32 --shape=-1,3"_w),
                 "correctly rounded"));
  CHECK(at.output("grad a.bin --dy b.bin --from raw --as f4,f2 --offset 0,16 --shape 2,3"_w) ==
        at.output("grad x.npy --dy x.npy"_w));
  CHECK(at.output("grad x.npy --dy a.bin --from raw --as float32 --shape 2,3"_w) ==
        at.output("grad x.npy --dy x.npy"_w));
  CHECK(at.fault("compare a.bin b.bin --from raw,npy,raw --as f4 --shape 6"_w,
                 {"--from takes one value, or one for each of 2 inputs, found 3"}) == "");
  CHECK(at.fault("grad a.bin --dy b.bin --from raw --as f4,f2,f4 --shape 6"_w,
                 {"--as takes one value, or one for each of 2 inputs, found 3"}) == "");
  CHECK(at.fault("compare a.bin b.bin --from raw --as f4 --shape 6"_w,
                 {"b.bin", "needs 24 bytes, found 28"}) == "");
  CHECK(at.fault("x.npy --from raw,npy --as f4 --shape 6"_w, {"--from: 'raw,npy'"}) == "");
}

TEST_CASE("one --from raw leaves alone what tells its own format, and nothing that only looks so") {
  const Workplace at;
  const std::vector<float> elements{1, 2, 4, 3};
  at.write("a.bin", bytes_of(elements));
  at.write("x.npz", zip({{"x.npy", npy_of_floats(elements)}}));
  at.write("x.safetensors", safetensors("{" + safetensors_entry("x", "F32", "[4]", 0, 16) + "}",
                                        bytes_of(elements)));
  at.write("x.gguf", gguf({}, {gguf_tensor("x", {4}, 0, 0)}, bytes_of(elements)));
  for (const std::string file : {"x.npz", "x.safetensors", "x.gguf"}) {
    CAPTURE(file);
    const Words options = "--from raw --as float32 --shape 4"_w;
    CHECK(contains(at.output(Words{"compare", "a.bin", file} + options), "agree"));
    CHECK(contains(at.output(Words{"compare", file, "a.bin"} + options), "agree"));
  }
  // The length of a header that is not there, and the bracket where it would begin.
  at.write("b.bin", std::string("\4\0\0\0\0\0\0\0{\0\0\0\0\0\0\0", 16));
  CHECK(contains(at.output("compare b.bin b.bin --from raw --as int32 --shape 4"_w), "agree"));
  CHECK(at.run("compare b.bin b.bin --from safetensors,raw --as int32 --shape 4"_w).status == 2);
  // Where a command has one input, it is what --from says.
  CHECK(
      contains(at.output("show x.gguf --from raw --as uint8 --shape=-1"_w), " 71,  71,  85,  70"));
}

TEST_CASE("elements are written raw, in C order, little-endian") {
  const Workplace at;
  const std::vector<float> elements{1, 2, 4, 3, 3, 9};
  const std::string x = npy_of<float>({2, 3}, elements);
  const auto payload = [](const std::string& npy_file) { return npy_file.substr(128); };
  at.write("x.npy", x);
  const std::string expected = payload(at.output({"x.npy"}));
  for (const std::string file : {"y.bin", "y.raw", "Y.BIN"}) {
    CHECK(at.output({"x.npy", "-o", file}) == "");
    CHECK(at.read(file) == expected);
  }
  CHECK(at.output("x.npy --to raw"_w) == expected);
  CHECK(at.output("x.npy -o y.npy --to raw"_w) == "");
  CHECK(at.read("y.npy") == expected);
  CHECK(at.output("softmax x.npy --to raw --dtype float64"_w) ==
        payload(at.output("softmax x.npy --dtype float64"_w)));
  CHECK(at.output("x.npy --to raw --dtype bfloat16"_w).size() == 12);
  CHECK(at.output("x.npy --axes 0 -o y.bin --save-mean m.bin"_w) == "");
  CHECK(at.read("m.bin") == bytes_of<double>({2, 2.5, 6.5}));
  CHECK(at.output("grad x.npy --dy x.npy --dx dx.bin --dbias db.raw"_w) == "");
  CHECK(at.read("db.raw") == bytes_of<float>({4, 5, 13}));
  CHECK(at.read("dx.bin") == payload(at.output("grad x.npy --dy x.npy"_w)));
  at.write("two.json", R"({"a": [1, 2], "b": 3})");
  CHECK(at.fault("two.json:* -o y.bin"_w, {"raw holds one tensor, found 2"}) == "");
  CHECK(at.output("two.json:* -o y/ --to raw --eps 0"_w) == "");
  CHECK(at.read("y/a.raw") == bytes_of<double>({-1, 1}));
}
