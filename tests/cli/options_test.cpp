#include <cmath>

#include "support/commands.hpp"

// What each option does, on numbers whose answer is exact and can be worked out by hand.

namespace {

using namespace support;

struct Case {
  std::string in;  // JSON on standard input
  Words options;
  std::string out;
};

void check(const std::vector<Case>& cases, const std::string& directory = ".") {
  for (const Case& c : cases) {
    CAPTURE(c.in, c.options);
    CHECK(output_of({.arguments = c.options, .in = pipe_of(c.in), .directory = directory}) ==
          c.out + "\n");
  }
}

const std::string kSquare = "[[1,1],[3,3]]";  // constant rows; as a whole mean 2, variance 1

}  // namespace

TEST_CASE("an object of very many members is searched in no time that counts") {
  std::string members = "{";
  for (int i = 0; i < 300'000; ++i) members += "\"k" + std::to_string(i) + "\": 1, ";
  const Outcome outcome = run({"-:last"}, pipe_of(members + "\"last\": [1, 3]}"));
  CHECK(outcome.out == "[-0.9999950000374996,0.9999950000374996]\n");
  CHECK(outcome.cpu_seconds < 5);  // what no file may cost
}

TEST_CASE("an input is named in every way the shell allows") {
  const Workplace directory;
  directory.write("-x.json", "[1, 3]");
  const std::string expected = "[-0.9999950000374996,0.9999950000374996]\n";
  const auto output = [&](Words arguments, const std::string& in = "") {
    return directory.output(std::move(arguments), pipe_of(in));
  };
  CHECK(output("-- -x.json"_w) == expected);
  CHECK(output("apply --eps 1e-5 -- -x.json"_w) == expected);
  CHECK(output("./-x.json --"_w) == expected);
  const std::string members = "{\"a\": [1, 3], \"\\u00e9\": [1, 3]}";
  CHECK(output({"-:a"}, members) == expected);
  CHECK(output({"/dev/stdin:\u00e9"}, members) == expected);
  // A name in brackets is no list.
  directory.write("a", "[8, 9]");
  for (const std::string name : {"[a]", "[a,b]", "[]", "{}", "[a,b].npy"}) {
    CAPTURE(name);
    directory.write(name, "[1, 3]");
    CHECK(output({name}) == expected);
    CHECK(output({"apply", name}) == expected);
    CHECK(output({"compare", name, name}).starts_with(name + " and " + name + " agree"));
  }
}

TEST_CASE("the formula's options give what the formula says") {
  check({
      {"[1,3]", "--eps 0"_w, "[-1.0,1.0]"},
      {"[1,3]", "--eps 3"_w, "[-0.5,0.5]"},
      {"[1,3]", "--eps 3 --eps-on variance"_w, "[-0.5,0.5]"},
      {"[1,3]", "--eps 3 --eps-on std"_w, "[-0.25,0.25]"},
      {"[1,3,5]", "--eps 0 --unbiased"_w, "[-1.0,0.0,1.0]"},
      {"[1,3,5]", "--eps 0 --ddof 1"_w, "[-1.0,0.0,1.0]"},
      {"[0,2,2,4]", "--eps 0 --ddof 2"_w, "[-1.0,0.0,0.0,1.0]"},
      {"[1,7]", "--eps 0 --rms"_w, "[0.2,1.4]"},
      {"[1,7]", "--eps 11 --rms --weight 12"_w, "[2.0,14.0]"},
      {"[5,5]", "--bias 7"_w, "[7.0,7.0]"},
      {"[5,5]", "--eps 0"_w, "[NaN,NaN]"},
      {"5", {}, "0.0"},
      {"[[1,3],[1,NaN],[Infinity,3],[7,9]]", "--eps 0"_w,
       "[[-1.0,1.0],[NaN,NaN],[NaN,NaN],[-1.0,1.0]]"},
  });
  const Nested by_default = parse_nested(output_of({}, pipe_of("[1,3]")));
  REQUIRE(by_default.elements.size() == 2);
  CHECK(std::fabs(by_default.elements[1] - 1 / std::sqrt(1 + 1e-5)) < 1e-15);
}

TEST_CASE("NaN stays in its row under --rms, too, and fills it") {
  const std::string x = R"({"shape": [2, 2], "data": [1, NaN, 1, 7], "dtype": "float32"})";
  for (const std::string kernel : {"portable", "reference"}) {
    CHECK(output_of({"--rms", "--eps", "0", "--kernel", kernel}, pipe_of(x)) ==
          "[[NaN,NaN],[0.2,1.4]]\n");
  }
}

TEST_CASE("the normalized axes may be named in three ways") {
  const std::string rows = "[[0.0,0.0],[0.0,0.0]]";
  const std::string whole = "[[-1.0,-1.0],[1.0,1.0]]";
  check({{kSquare, "--axis 0 --eps 0"_w, whole},
         {kSquare, "--axis -2 --eps 0"_w, whole},
         {kSquare, "--axis=-2 --eps 0"_w, whole},
         {kSquare, "--axes 0,1 --eps 0"_w, whole},
         {kSquare, "--axes -1,0 --eps 0"_w, whole},
         {kSquare, "--normalized-shape 2,2 --eps 0"_w, whole}});
  check({{kSquare, {}, rows},
         {kSquare, "--axis -1"_w, rows},
         {kSquare, "--axes 1"_w, rows},
         {kSquare, "--normalized-shape 2"_w, rows}});
}

TEST_CASE("weight and bias come from files, members, literals and numbers") {
  const Workplace at;
  at.write("w.npy", npy_of<float>({2}, {2, 3}));
  at.write("i.npy", npy(">i2", {2}, std::string("\0\2\0\3", 4)));
  at.write("w.json", "[2, 3]");
  at.write("m.json", R"({"w": [2, 3], "one": 1, "d": {"shape": [2], "data": [2, 3]}})");
  at.write("m.json:w", "[20, 30]");
  at.write("7", "[5, 5]");
  const std::string weighted = "[-2.0,3.0]";
  for (const std::string weight :
       {"w.npy", "i.npy", "w.json", "m.json:d", "[2, 3]", R"({"shape": [2], "data": [2, 3]})"}) {
    check({{"[1,3]", {"--eps", "0", "--weight", weight}, weighted}}, at.path().string());
  }
  check(
      {
          {"[1,3]", "--eps 0 --gamma [2,3]"_w, weighted},
          {"[1,3]", "--eps 0 --scale [2,3]"_w, weighted},
          {"[1,3]", "--eps 0 --weight m.json:w"_w, "[-20.0,30.0]"},  // is a file
          {"[1,3]", "--eps 0 --weight 7"_w, "[-5.0,5.0]"},           // and so is this
          {"[1,3]", "--eps 0 --weight -2"_w, "[2.0,-2.0]"},
          {"[1,3]", "--eps 0 --weight 5e-1"_w, "[-0.5,0.5]"},
          {"[1,3]", "--eps 0 --weight m.json:one"_w, "[-1.0,1.0]"},
          {"[1,3]", "--eps 0 --weight [2,3] --bias [10,20]"_w, "[8.0,23.0]"},
          {"[1,3]", "--eps 0 --bias -1"_w, "[-2.0,0.0]"},
          {"[1,3]", "--eps 0 --beta w.npy"_w, "[1.0,4.0]"},
          {"[1,3]", "--eps 0 --shift w.json"_w, "[1.0,4.0]"},
          {"[1,3]", "--eps 0 --weight [1,2] --zero-centered-weight"_w, weighted},
          {"[1,3]", "--eps 0 --weight 0 --zero-centered-weight"_w, "[-1.0,1.0]"},
          {"[2,3]", "m.json:w --eps 0"_w, "[-1.0,1.0]"},
          {"[2,3]", "m.json:d --eps 0 --weight -"_w, weighted},
          {"2", "w.json --eps 0 --bias -"_w, "[1.0,3.0]"},
          {kSquare, "--eps 0 --axis 0 --weight [[1,2],[3,4]] --bias [[0,0],[0,1]]"_w,
           "[[-1.0,-2.0],[3.0,5.0]]"},
      },
      at.path().string());
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

TEST_CASE("JSON holds the shortest decimals that read back as the same value") {
  // A weight of 0 leaves the bias, rounded to the output's dtype.
  const auto written = [](const std::string& dtype, const std::string& bias) {
    return output_of({"--dtype", dtype, "--weight", "0", "--bias", bias}, pipe_of("[1,2,3,4]"));
  };
  CHECK(written("float16", "[0.1,65504,5.9604644775390625e-08,0.33325195]") ==
        "[0.1,65500.0,6e-08,0.3333]\n");
  CHECK(written("float32", "[0.1,16777216,3.4028234663852886e38,1e-45]") ==
        "[0.1,16777216.0,3.4028235e+38,1e-45]\n");
  CHECK(written("float64", "[0.1,0.30000000000000004,1e22,5e-324]") ==
        "[0.1,0.30000000000000004,1e+22,5e-324]\n");
  CHECK(written("float16", "[1e6,-1e6,-0.0,NaN]") == "[Infinity,-Infinity,0.0,NaN]\n");
}

TEST_CASE("NaN in JSON is a token of Python's, or null") {
  const std::string in = "[[1,NaN],[1,3]]";
  check({{in, "--eps 0"_w, "[[NaN,NaN],[-1.0,1.0]]"},
         {in, "--eps 0 --nan python"_w, "[[NaN,NaN],[-1.0,1.0]]"},
         {in, "--eps 0 --nan null"_w, "[[null,null],[-1.0,1.0]]"},
         {"[[1,null],[1,3]]", "--eps 0"_w, "[[NaN,NaN],[-1.0,1.0]]"}});
}

TEST_CASE("mean and rstd are saved with the normalized axes as 1, or without them") {
  const Workplace at;
  const std::string x = npy_of<float>({2, 1, 2}, {1, 3, 10, 30});
  struct Saved {
    Words options;
    std::string mean;
    std::string rstd;
  };
  const std::vector<Saved> cases{
      {"--eps 0"_w, "[[[2.0]],[[20.0]]]", "[[[1.0]],[[0.1]]]"},
      {"--eps 0 --no-keepdim"_w, "[[2.0],[20.0]]", "[[1.0],[0.1]]"},
      {"--eps 0 --axes 1,2"_w, "[[[2.0]],[[20.0]]]", "[[[1.0]],[[0.1]]]"},
      {"--eps 0 --axes 1,2 --no-keepdim"_w, "[2.0,20.0]", "[1.0,0.1]"},
      {"--eps 3 --eps-on std"_w, "[[[2.0]],[[20.0]]]", "[[[0.25]],[[0.07692307692307693]]]"},
      {"--eps 12.5 --axis 0"_w, "[[[11.0]]]", "[[[0.08333333333333333]]]"},
      {"--eps 12.5 --axis 0 --no-keepdim"_w, "11.0", "0.08333333333333333"},
  };
  for (const Saved& saved : cases) {
    CAPTURE(saved.options);
    CHECK(at.output("--save-mean m.json --save-rstd r.json -o y.npy"_w + saved.options,
                    pipe_of(x)) == "");
    CHECK(at.read("m.json") == saved.mean + "\n");
    CHECK(at.read("r.json") == saved.rstd + "\n");
  }
  at.output("--eps 0 --save-mean m.npy --save-rstd r.npy"_w, pipe_of(x));
  CHECK(difference(at.read("m.npy"), npy_of<double>({2, 1, 1}, {2, 20})) == "");
  CHECK(difference(at.read("r.npy"), npy_of<double>({2, 1, 1}, {1, 0.1})) == "");
}

TEST_CASE("the format follows the content, the extension of -o, and what is asked for") {
  const Workplace at;
  const std::string as_npy = npy_of<double>({2}, {-1, 1});
  const std::string as_json = "[-1.0,1.0]\n";
  const std::string as_text = "tensor([-1.,  1.], dtype=torch.float64)\n";
  at.write("x.npy", npy_of<double>({2}, {1, 3}));
  at.write("x.json", "[1,3]");
  at.write("is-npy.json", at.read("x.npy"));
  at.write("is-json.npy", "\xef\xbb\xbf [1,3]");
  struct Written {
    std::string input;
    std::string output;
    Words options;
    std::string expected;
  };
  const std::vector<Written> cases{
      {"x.npy", "y", {}, as_npy},
      {"x.json", "y", {}, as_json},
      {"is-npy.json", "y", {}, as_npy},
      {"is-json.npy", "y", {}, as_json},
      {"is-npy.json", "y", "--from npy"_w, as_npy},
      {"x.npy", "y.json", {}, as_json},
      {"x.json", "y.npy", {}, as_npy},
      {"x.json", "y.txt", {}, as_text},
      {"x.npy", "y.json", "--to npy"_w, as_npy},
      {"x.npy", "y.npy", "--to text"_w, as_text},
      {"x.npy", "y", "--to json"_w, as_json},
  };
  for (const Written& written : cases) {
    CAPTURE(written.input, written.output, written.options);
    CHECK(at.output(Words{written.input, "-o", written.output, "--eps", "0"} + written.options) ==
          "");
    CHECK(difference(at.read(written.output), written.expected) == "");
  }
}

TEST_CASE("an .npy file is written as NumPy writes it") {
  const std::string seed = read_file(data_file("seeds/lecture20/batch.npy"));  // by NumPy
  CHECK(output_of({}, pipe_of(seed)).substr(0, 128) == seed.substr(0, 128));
  for (const std::string file : {"shape_0d", "shape_0", "shape_1", "shape_2x0x4", "shape_32d"}) {
    CAPTURE(file);
    const std::string by_numpy = read_file(data_file("corpus/good/" + file + ".npy"));
    const std::string header = by_numpy.substr(0, by_numpy.find('\n') + 1);
    CHECK(difference(output_of({}, pipe_of(by_numpy)).substr(0, header.size()), header) == "");
  }
}

TEST_CASE("an empty tensor keeps its shape") {
  const std::string x = npy("<f4", {2, 0, 4}, "");
  CHECK(difference(output_of({}, pipe_of(x)), x) == "");
  const std::string json = output_of("--to json"_w, pipe_of(x));
  CHECK(json == R"({"shape":[2,0,4],"data":[],"dtype":"float32"})"
                "\n");
  CHECK(output_of("--to json"_w, pipe_of(json)) == json);
  const std::string none = R"({"shape":[0],"data":[],"dtype":"float64"})";
  check({{"[]", {}, none}, {"[]", "--ddof 1"_w, none}});
}

TEST_CASE("every kernel gives the same JSON for a simple tensor") {
  for (const std::string kernel : {"portable", "reference"}) {
    check({{"[[1,3],[10,30]]", {"--eps", "0", "--kernel", kernel}, "[[-1.0,1.0],[-1.0,1.0]]"}});
  }
}
