#include "support/commands.hpp"
#include "support/gguf.hpp"
#include "support/zip.hpp"

// What is read: members, dtypes, and elements alone.

using namespace support;

TEST_CASE("an object of very many members is searched in no time that counts") {
  std::string members = "{";
  for (int i = 0; i < 300'000; ++i) members += "\"k" + std::to_string(i) + "\": 1, ";
  const Outcome outcome = run({"-:last"}, pipe_of(members + "\"last\": [1, 3]}"));
  CHECK(outcome.out == "[-0.9999950000374996,0.9999950000374996]\n");
  CHECK(outcome.cpu_seconds < 5);  // what no file may cost
}

TEST_CASE("a folder of many tensors is not listed again for each", "[many]") {
  const Workplace dir;
  dir.shell("mkdir d");
  for (int i = 0; i < 2000; ++i) {
    dir.write("d/" + std::to_string(i) + ".npy", npy("<f4", {2}, bytes_of<float>({-1, 1})));
  }
  for (const Words& words : {"check d/:* d/:{1} -q --eps 0"_w, "d/:* --weight d/:{1} -o out/"_w}) {
    CAPTURE(words);
    const Outcome outcome = dir.run(words);
    CHECK(outcome.status == 0);
    CHECK(outcome.cpu_seconds < 5);  // as above; listed again and again 20
  }
}

TEST_CASE("every dtype is read, and written as the one that is asked for") {
  struct Type {
    std::string name;  // empty: integers, which give float64
    std::string descr;
    std::string zero_one;
  };
  const std::vector<Type> types{
      {"float16", "<f2", bytes_of<std::uint16_t>({0, 0x3c00})},
      {"float16", ">f2", std::string("\0\0\x3c\0", 4)},
      {"float32", "<f4", bytes_of<float>({0, 1})},
      {"float32", ">f4", std::string("\0\0\0\0\x3f\x80\0\0", 8)},
      {"float64", "<f8", bytes_of<double>({0, 1})},
      {"float64", ">f8", std::string(8, '\0') + std::string("\x3f\xf0\0\0\0\0\0\0", 8)},
      {"", "|b1", std::string("\0\1", 2)},
      {"", "|i1", std::string("\0\1", 2)},
      {"", "|u1", std::string("\0\1", 2)},
      {"", "<i2", bytes_of<std::int16_t>({0, 1})},
      {"", ">u2", std::string("\0\0\0\1", 4)},
      {"", "<u4", bytes_of<std::uint32_t>({0, 1})},
      {"", ">i4", std::string("\0\0\0\0\0\0\0\1", 8)},
      {"", "<i8", bytes_of<std::int64_t>({0, 1})},
      {"", ">u8", std::string(15, '\0') + '\1'},
  };
  const std::string f2 = npy("<f2", {1, 2}, bytes_of<std::uint16_t>({0xbc00, 0x3c00}));
  const std::string f4 = npy_of<float>({1, 2}, {-1, 1});
  const std::string f8 = npy_of<double>({1, 2}, {-1, 1});
  for (const Type& type : types) {
    CAPTURE(type.descr);
    const Stream in = pipe_of(npy(type.descr, {1, 2}, type.zero_one));
    const auto written = [&](const std::string& dtype) {
      return output_of({"--eps", "0", "--dtype", dtype}, in);
    };
    CHECK(difference(written("float16"), f2) == "");
    CHECK(difference(written("float32"), f4) == "");
    CHECK(difference(written("float64"), f8) == "");
    const std::string& as_it_is = type.name == "float16" ? f2 : type.name == "float32" ? f4 : f8;
    CHECK(difference(output_of("--eps 0"_w, in), as_it_is) == "");
  }
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
