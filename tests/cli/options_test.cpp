#include <cmath>
#include <cstdint>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// What each option does, on numbers whose answer is exact and can be worked out by hand.

namespace {

using namespace support;

struct Case {
  std::string in;  // JSON on standard input
  std::vector<std::string> options;
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
  const TempDir directory;
  write_file(directory / "-x.json", "[1, 3]");
  const std::string expected = "[-0.9999950000374996,0.9999950000374996]\n";
  const auto output = [&](std::vector<std::string> arguments, const std::string& in = "") {
    return output_of({.arguments = std::move(arguments),
                      .in = pipe_of(in),
                      .directory = directory.path().string()});
  };
  CHECK(output({"--", "-x.json"}) == expected);
  CHECK(output({"apply", "--eps", "1e-5", "--", "-x.json"}) == expected);
  CHECK(output({"./-x.json", "--"}) == expected);
  const std::string members = "{\"a\": [1, 3], \"\\u00e9\": [1, 3]}";
  CHECK(output({"-:a"}, members) == expected);
  CHECK(output({"/dev/stdin:\u00e9"}, members) == expected);
  // A name in brackets is no list.
  write_file(directory / "a", "[8, 9]");
  for (const std::string name : {"[a]", "[a,b]", "[]", "{}", "[a,b].npy"}) {
    CAPTURE(name);
    write_file(directory / name, "[1, 3]");
    CHECK(output({name}) == expected);
    CHECK(output({"apply", name}) == expected);
    CHECK(output({"compare", name, name}).starts_with(name + " and " + name + " agree"));
  }
}

TEST_CASE("the formula's options give what the formula says") {
  check({
      {"[1,3]", {"--eps", "0"}, "[-1.0,1.0]"},
      {"[1,3]", {"--eps", "3"}, "[-0.5,0.5]"},
      {"[1,3]", {"--eps", "3", "--eps-on", "variance"}, "[-0.5,0.5]"},
      {"[1,3]", {"--eps", "3", "--eps-on", "std"}, "[-0.25,0.25]"},
      {"[1,3,5]", {"--eps", "0", "--unbiased"}, "[-1.0,0.0,1.0]"},
      {"[1,3,5]", {"--eps", "0", "--ddof", "1"}, "[-1.0,0.0,1.0]"},
      {"[0,2,2,4]", {"--eps", "0", "--ddof", "2"}, "[-1.0,0.0,0.0,1.0]"},
      {"[1,7]", {"--eps", "0", "--rms"}, "[0.2,1.4]"},
      {"[1,7]", {"--eps", "11", "--rms", "--weight", "12"}, "[2.0,14.0]"},
      {"[5,5]", {"--bias", "7"}, "[7.0,7.0]"},
      {"[5,5]", {"--eps", "0"}, "[NaN,NaN]"},
      {"5", {}, "0.0"},
      {"[[1,3],[1,NaN],[Infinity,3],[7,9]]",
       {"--eps", "0"},
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
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--axis", "0"},
                                             {"--axis", "-2"},
                                             {"--axis=-2"},
                                             {"--axes", "0,1"},
                                             {"--axes", "-1,0"},
                                             {"--normalized-shape", "2,2"}}) {
    std::vector<std::string> with_eps = options;
    with_eps.insert(with_eps.end(), {"--eps", "0"});
    check({{kSquare, with_eps, whole}});
  }
  check({{kSquare, {}, rows},
         {kSquare, {"--axis", "-1"}, rows},
         {kSquare, {"--axes", "1"}, rows},
         {kSquare, {"--normalized-shape", "2"}, rows}});
}

TEST_CASE("weight and bias come from files, members, literals and numbers") {
  const TempDir at;
  write_file(at / "w.npy", npy("<f4", {2}, bytes_of<float>({2, 3})));
  write_file(at / "i.npy", npy(">i2", {2}, std::string("\0\2\0\3", 4)));
  write_file(at / "w.json", "[2, 3]");
  write_file(at / "m.json", R"({"w": [2, 3], "one": 1, "d": {"shape": [2], "data": [2, 3]}})");
  write_file(at / "m.json:w", "[20, 30]");
  write_file(at / "7", "[5, 5]");
  const std::string weighted = "[-2.0,3.0]";
  for (const std::string weight :
       {"w.npy", "i.npy", "w.json", "m.json:d", "[2, 3]", R"({"shape": [2], "data": [2, 3]})"}) {
    check({{"[1,3]", {"--eps", "0", "--weight", weight}, weighted}}, at.path().string());
  }
  check(
      {
          {"[1,3]", {"--eps", "0", "--gamma", "[2,3]"}, weighted},
          {"[1,3]", {"--eps", "0", "--scale", "[2,3]"}, weighted},
          {"[1,3]", {"--eps", "0", "--weight", "m.json:w"}, "[-20.0,30.0]"},  // is a file
          {"[1,3]", {"--eps", "0", "--weight", "7"}, "[-5.0,5.0]"},           // and so is this
          {"[1,3]", {"--eps", "0", "--weight", "-2"}, "[2.0,-2.0]"},
          {"[1,3]", {"--eps", "0", "--weight", "5e-1"}, "[-0.5,0.5]"},
          {"[1,3]", {"--eps", "0", "--weight", "m.json:one"}, "[-1.0,1.0]"},
          {"[1,3]", {"--eps", "0", "--weight", "[2,3]", "--bias", "[10,20]"}, "[8.0,23.0]"},
          {"[1,3]", {"--eps", "0", "--bias", "-1"}, "[-2.0,0.0]"},
          {"[1,3]", {"--eps", "0", "--beta", "w.npy"}, "[1.0,4.0]"},
          {"[1,3]", {"--eps", "0", "--shift", "w.json"}, "[1.0,4.0]"},
          {"[1,3]", {"--eps", "0", "--weight", "[1,2]", "--zero-centered-weight"}, weighted},
          {"[1,3]", {"--eps", "0", "--weight", "0", "--zero-centered-weight"}, "[-1.0,1.0]"},
          {"[2,3]", {"m.json:w", "--eps", "0"}, "[-1.0,1.0]"},
          {"[2,3]", {"m.json:d", "--eps", "0", "--weight", "-"}, weighted},
          {"2", {"w.json", "--eps", "0", "--bias", "-"}, "[1.0,3.0]"},
          {kSquare,
           {"--eps", "0", "--axis", "0", "--weight", "[[1,2],[3,4]]", "--bias", "[[0,0],[0,1]]"},
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
  const std::string le2("\0\0\1\0", 4);
  const std::string be2("\0\0\0\1", 4);
  const std::string pad2(2, '\0');
  const std::string pad6(6, '\0');
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
  const std::string f4 = npy("<f4", {1, 2}, bytes_of<float>({-1, 1}));
  const std::string f8 = npy("<f8", {1, 2}, bytes_of<double>({-1, 1}));
  for (const Type& type : types) {
    CAPTURE(type.descr);
    const Stream in = pipe_of(npy(type.descr, {1, 2}, type.zero_one));
    const auto written = [&](const std::string& dtype) {
      return output_of({"--eps", "0", "--dtype", dtype}, in);
    };
    CHECK(difference(written("float16"), f2) == "");
    CHECK(difference(written("float32"), f4) == "");
    CHECK(difference(written("float64"), f8) == "");
    const std::string& own = type.name == "float16" ? f2 : type.name == "float32" ? f4 : f8;
    CHECK(difference(output_of({"--eps", "0"}, in), own) == "");
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
  check({{in, {"--eps", "0"}, "[[NaN,NaN],[-1.0,1.0]]"},
         {in, {"--eps", "0", "--nan", "python"}, "[[NaN,NaN],[-1.0,1.0]]"},
         {in, {"--eps", "0", "--nan", "null"}, "[[null,null],[-1.0,1.0]]"},
         {"[[1,null],[1,3]]", {"--eps", "0"}, "[[NaN,NaN],[-1.0,1.0]]"}});
}

TEST_CASE("mean and rstd are saved with the normalized axes as 1, or without them") {
  const TempDir at;
  const std::string x = npy("<f4", {2, 1, 2}, bytes_of<float>({1, 3, 10, 30}));
  struct Saved {
    std::vector<std::string> options;
    std::string mean;
    std::string rstd;
  };
  const std::vector<Saved> cases{
      {{"--eps", "0"}, "[[[2.0]],[[20.0]]]", "[[[1.0]],[[0.1]]]"},
      {{"--eps", "0", "--no-keepdim"}, "[[2.0],[20.0]]", "[[1.0],[0.1]]"},
      {{"--eps", "0", "--axes", "1,2"}, "[[[2.0]],[[20.0]]]", "[[[1.0]],[[0.1]]]"},
      {{"--eps", "0", "--axes", "1,2", "--no-keepdim"}, "[2.0,20.0]", "[1.0,0.1]"},
      {{"--eps", "3", "--eps-on", "std"},
       "[[[2.0]],[[20.0]]]",
       "[[[0.25]],[[0.07692307692307693]]]"},
      {{"--eps", "12.5", "--axis", "0"}, "[[[11.0]]]", "[[[0.08333333333333333]]]"},
      {{"--eps", "12.5", "--axis", "0", "--no-keepdim"}, "11.0", "0.08333333333333333"},
  };
  for (const Saved& saved : cases) {
    CAPTURE(saved.options);
    Command command{.arguments = {"--save-mean", at / "m.json", "--save-rstd", at / "r.json", "-o",
                                  at / "y.npy"},
                    .in = pipe_of(x)};
    command.arguments.insert(command.arguments.end(), saved.options.begin(), saved.options.end());
    CHECK(output_of(command) == "");
    CHECK(read_file(at / "m.json") == saved.mean + "\n");
    CHECK(read_file(at / "r.json") == saved.rstd + "\n");
  }
  output_of({"--eps", "0", "--save-mean", at / "m.npy", "--save-rstd", at / "r.npy"}, pipe_of(x));
  CHECK(difference(read_file(at / "m.npy"), npy("<f8", {2, 1, 1}, bytes_of<double>({2, 20}))) ==
        "");
  CHECK(difference(read_file(at / "r.npy"), npy("<f8", {2, 1, 1}, bytes_of<double>({1, 0.1}))) ==
        "");
}

TEST_CASE("the format follows the content, the extension of -o, and what is asked for") {
  const TempDir at;
  const std::string as_npy = npy("<f8", {2}, bytes_of<double>({-1, 1}));
  const std::string as_json = "[-1.0,1.0]\n";
  const std::string as_text = "tensor([-1.,  1.], dtype=torch.float64)\n";
  write_file(at / "x.npy", npy("<f8", {2}, bytes_of<double>({1, 3})));
  write_file(at / "x.json", "[1,3]");
  write_file(at / "is-npy.json", read_file(at / "x.npy"));
  write_file(at / "is-json.npy", "\xef\xbb\xbf [1,3]");
  struct Written {
    std::string input;
    std::string output;
    std::vector<std::string> options;
    std::string expected;
  };
  const std::vector<Written> cases{
      {"x.npy", "y", {}, as_npy},
      {"x.json", "y", {}, as_json},
      {"is-npy.json", "y", {}, as_npy},
      {"is-json.npy", "y", {}, as_json},
      {"is-npy.json", "y", {"--from", "npy"}, as_npy},
      {"x.npy", "y.json", {}, as_json},
      {"x.json", "y.npy", {}, as_npy},
      {"x.json", "y.txt", {}, as_text},
      {"x.npy", "y.json", {"--to", "npy"}, as_npy},
      {"x.npy", "y.npy", {"--to", "text"}, as_text},
      {"x.npy", "y", {"--to", "json"}, as_json},
  };
  for (const Written& written : cases) {
    CAPTURE(written.input, written.output, written.options);
    Command command{.arguments = {written.input, "-o", written.output, "--eps", "0"},
                    .directory = at.path().string()};
    command.arguments.insert(command.arguments.end(), written.options.begin(),
                             written.options.end());
    CHECK(output_of(command) == "");
    CHECK(difference(read_file(at / written.output), written.expected) == "");
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
  const std::string json = output_of({"--to", "json"}, pipe_of(x));
  CHECK(json == R"({"shape":[2,0,4],"data":[],"dtype":"float32"})"
                "\n");
  CHECK(output_of({"--to", "json"}, pipe_of(json)) == json);
  const std::string none = R"({"shape":[0],"data":[],"dtype":"float64"})";
  check({{"[]", {}, none}, {"[]", {"--ddof", "1"}, none}});
}

TEST_CASE("every kernel gives the same JSON for a simple tensor") {
  for (const std::string kernel : {"portable", "reference"}) {
    check({{"[[1,3],[10,30]]", {"--eps", "0", "--kernel", kernel}, "[[-1.0,1.0],[-1.0,1.0]]"}});
  }
}
