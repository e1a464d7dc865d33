#include <random>

#include "support/commands.hpp"

// The same elements in another format or dtype.

namespace {

using namespace support;

// NumPy's code in words.
std::string dtype_of(const std::string& code) {
  const std::string kind = code[0] == 'i' ? "int" : code[0] == 'u' ? "uint" : "float";
  return kind + std::to_string(8 * (code[1] - '0'));
}

}  // namespace

TEST_CASE("converted elements keep every bit, in any format, byte order and memory order",
          "[many]") {
  const Workplace at;
  std::mt19937_64 random(5);
  std::string bytes;
  for (int i = 0; i < 6 * 8; ++i) bytes += static_cast<char>(random());
  for (const std::string code :
       {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}) {
    CAPTURE(code);
    const auto item = static_cast<std::size_t>(code[1] - '0');
    const std::string elements = bytes.substr(0, 6 * item);
    const std::string little = npy((item == 1 ? "|" : "<") + code, {2, 3}, elements);
    at.write("x.npy", little);
    at.write("big.npy", npy((item == 1 ? "|" : ">") + code, {2, 3}, swapped(elements, item)));
    CHECK(at.output("convert x.npy"_w) == little);
    CHECK(at.output("convert big.npy"_w) == little);
    CHECK(at.output("convert x.npy --to raw"_w) == elements);
    for (const std::string file : {"y.safetensors", "y.npz", "y.bin"}) {
      CHECK(at.output({"convert", "x.npy", "-o", file}) == "");
    }
    CHECK(at.output("convert y.safetensors --to npy"_w) == little);
    CHECK(at.output("convert y.npz"_w) == little);
    CHECK(at.output("convert - --from raw --shape 2,-1 --to npy --as"_w + Words{dtype_of(code)},
                    file(at / "y.bin")) == little);
    CHECK(at.output("convert"_w, pipe_of(little)) == little);
  }
  const std::vector<std::int32_t> elements{1, 2, 3, 4, 5, 6};
  at.write("fortran.npy", fortran_npy_of<std::int32_t>({3, 2}, elements));
  CHECK(at.output("convert fortran.npy"_w) == npy_of<std::int32_t>({3, 2}, elements));
  CHECK(at.output("convert fortran.npy --rows 1:3"_w) ==
        npy_of<std::int32_t>({2, 2}, std::vector{3, 4, 5, 6}));
}

TEST_CASE("integers and bool are converted to JSON and text as they are") {
  const Workplace at;
  at.write("i.npy",
           npy_of<std::int64_t>({2, 2}, std::vector<std::int64_t>{1, -2, INT64_MAX, INT64_MIN}));
  at.write("u.npy", npy_of<std::uint64_t>({1}, std::vector<std::uint64_t>{UINT64_MAX}));
  at.write("b.npy", npy("|b1", {3}, std::string("\0\1\2", 3)));
  at.write("none.npy", npy("<i2", {0, 2}, ""));
  CHECK(at.output("convert i.npy --to json"_w) ==
        "[[1,-2],[9223372036854775807,-9223372036854775808]]\n");
  CHECK(at.output("convert u.npy --to json"_w) == "[18446744073709551615]\n");
  CHECK(at.output("convert b.npy --to json"_w) == "[0,1,1]\n");
  CHECK(at.output("convert none.npy --to json"_w) == R"({"shape":[0,2],"data":[],"dtype":"int16"})"
                                                     "\n");
  CHECK(at.output("convert i.npy --to text"_w) == at.output("show i.npy"_w));
  CHECK(at.output("convert --from jsonl"_w, pipe_of("[1, 2]\n[[3.5]]\n")) ==
        "[1.0,2.0]\n[[3.5]]\n");
}

TEST_CASE("every element is rounded once to --dtype") {
  const Workplace at;
  // Twice rounded, by way of a double, the second one would be 2^60.
  const std::vector<std::int64_t> integers{(1LL << 53) + 1, (1LL << 60) + (1LL << 36) + 1, -3};
  at.write("i.npy", npy_of<std::int64_t>({3}, integers));
  CHECK(at.output("convert i.npy --dtype float64"_w) ==
        npy_of<double>({3}, std::vector{0x1p53, 0x1p60 + 0x1p36, -3.0}));
  CHECK(at.output("convert i.npy --dtype float32"_w) ==
        npy_of<float>({3}, std::vector{0x1p53F, 0x1p60F + 0x1p37F, -3.0F}));
  at.write("x.npy",
           npy_of<float>({6}, std::vector{0x1p-24F, 0x1p-25F, 65519.0F, 65520.0F, -0.0F, 2049.0F}));
  CHECK(at.output("convert x.npy --dtype float16"_w) ==
        npy("<f2", {6}, bytes_of<std::uint16_t>({1, 0, 0x7bff, 0x7c00, 0x8000, 0x6800})));
  CHECK(at.output("convert x.npy --dtype float8_e5m2 --saturate --to raw"_w) ==
        std::string("\0\0\x7b\x7b\x80\x68", 6));
  CHECK(at.output("convert x.npy --dtype float32"_w) == at.read("x.npy"));
  CHECK(at.fault("convert x.npy --saturate"_w, {"--saturate has no effect", "--dtype"}) == "");
}

TEST_CASE("a file of several tensors is converted as it is") {
  const Workplace at;
  const std::string dtypes = data_file("gguf/dtypes.gguf");
  CHECK(at.output({"convert", dtypes, "-o", "y.safetensors"}) == "");
  CHECK(contains(at.output({"compare", "y.safetensors", dtypes, "--max-ulp", "0"}), "10 agree"));
  CHECK(at.output({"show", "y.safetensors"}).size() == at.output({"show", dtypes}).size());
  CHECK(at.output({"convert", "y.safetensors", "-o", "y/"}) == "");
  CHECK(contains(at.output({"compare", "y", dtypes, "--max-ulp", "0"}), "10 agree"));
  CHECK(at.output({"convert", dtypes + ":*F*", "-o", "y.npz", "--dtype", "float16"}) == "");
  CHECK(contains(at.output("show y.npz"_w), "blk.0.F64   float16  (2, 3, 5)  60 B"));
  CHECK(at.fault({"convert", dtypes, "-o", "y.npy"}, {"npy holds one tensor, found 10"}) == "");
  const std::string model = data_file("gguf/model.gguf");
  CHECK(at.fault({"convert", model, "-o", "z.npz"}, {"token_embd.weight: is quantized as Q6_K"}) ==
        "");
  CHECK_FALSE(at.has("z.npz"));
  CHECK(at.run({"convert", model, "-o", "z.npz", "--keep-going"}).status == 2);
  CHECK(contains(at.output("show z.npz"_w), "12 tensors, 768 B"));
}

TEST_CASE("a tensor larger than what is held goes through in parts, from a file and a pipe") {
  const Workplace at;
  const std::string x = waves({300'001});
  at.write("x.npy", x);
  CHECK(at.output("convert x.npy"_w) == x);
  CHECK(at.output("convert"_w, pipe_of(x)) == x);
  CHECK(at.output("convert x.npy --dtype float64 -o y.npy"_w) == "");
  CHECK(at.output("convert y.npy --dtype float32 --threads 1"_w) == x);
  const std::string wide = waves({3, 70'001, 2});
  at.write("wide.npy", wide);
  CHECK(at.output("convert wide.npy"_w) == wide);
  CHECK(at.output("convert wide.npy -o wide.npy"_w) == "");
  CHECK(at.read("wide.npy") == wide);
}
