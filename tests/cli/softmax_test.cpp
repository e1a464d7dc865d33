#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// softmax from the command line, on numbers whose answer is exact or was computed by PyTorch.

namespace {

using namespace support;
using Words = std::vector<std::string>;

Words softmax(const Words& options) {
  Words words{"softmax"};
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

}  // namespace

TEST_CASE("softmax of simple rows is exact") {
  struct Case {
    std::string in;
    Words options;
    std::string out;
  };
  const std::vector<Case> cases{
      {"[0,0]", {}, "[0.5,0.5]"},
      {"[[7,7,7,7],[-7,-7,-7,-7]]", {}, "[[0.25,0.25,0.25,0.25],[0.25,0.25,0.25,0.25]]"},
      {"[1e308,-1e308]", {}, "[1.0,0.0]"},
      {"[1000,1000]", {}, "[0.5,0.5]"},
      {"[-1000,-1000]", {}, "[0.5,0.5]"},
      {"[-Infinity,3,3]", {}, "[0.0,0.5,0.5]"},
      {"[[0,0],[NaN,0],[0,0]]", {}, "[[0.5,0.5],[NaN,NaN],[0.5,0.5]]"},
      {"[[0,0],[NaN,0],[0,0]]", {"--nan", "null"}, "[[0.5,0.5],[null,null],[0.5,0.5]]"},
      {"5", {}, "1.0"},
      {"[]", {}, R"({"shape":[0],"data":[],"dtype":"float64"})"},
      {"[0,0,0]", {"--dtype", "float32"}, "[0.33333334,0.33333334,0.33333334]"},
      {"[0,0,0]", {"--dtype", "float16"}, "[0.3333,0.3333,0.3333]"},
      {"[0,0]", {"--to", "text"}, "tensor([0.5000, 0.5000], dtype=torch.float64)"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.in, c.options);
    CHECK(output_of(softmax(c.options), pipe_of(c.in)) == c.out + "\n");
  }
}

TEST_CASE("softmax goes over the axes that are named in any of the three ways") {
  const std::string x = "[[1,1],[1,1]]";
  const std::string whole = "[[0.25,0.25],[0.25,0.25]]\n";
  for (const Words& options :
       {Words{"--axes", "0,1"}, {"--axes", "-1,0"}, {"--normalized-shape", "2,2"}}) {
    CAPTURE(options);
    CHECK(output_of(softmax(options), pipe_of(x)) == whole);
  }
  for (const Words& options :
       {Words{}, {"--axis", "1"}, {"--axes", "-1"}, {"--axis", "0"}, {"--axis=-2"}}) {
    CAPTURE(options);
    CHECK(output_of(softmax(options), pipe_of(x)) == "[[0.5,0.5],[0.5,0.5]]\n");
  }
  // --axis is that axis alone, as in PyTorch, NumPy and ONNX.
  CHECK(output_of(softmax({"--axis", "0"}), pipe_of("[[1,-Infinity],[-Infinity,2]]")) ==
        "[[1.0,0.0],[0.0,1.0]]\n");
  CHECK(output_of(softmax({"--axis", "1"}), pipe_of("[[[7],[7]],[[9],[9]]]")) ==
        "[[[0.5],[0.5]],[[0.5],[0.5]]]\n");
}

TEST_CASE("softmax writes where and what apply would") {
  const TempDir at;
  const std::string x = npy("<f4", {2}, bytes_of<float>({3, 3}));
  const std::string y = npy("<f4", {2}, bytes_of<float>({0.5, 0.5}));
  write_file(at / "x.npy", x);
  write_file(at / "int.npy", npy("<i4", {2}, bytes_of<std::int32_t>({3, 3})));
  const auto written = [&](const Words& options, const std::string& name) {
    CHECK(output_of({.arguments = softmax(options), .directory = at.path().string()}) == "");
    return read_file(at / name);
  };
  CHECK(difference(output_of(softmax({}), pipe_of(x)), y) == "");
  CHECK(difference(output_of(softmax({"-"}), file(at / "x.npy")), y) == "");
  CHECK(difference(written({"x.npy", "-o", "y.npy"}, "y.npy"), y) == "");
  CHECK(written({"x.npy", "-o", "y.json"}, "y.json") == "[0.5,0.5]\n");
  CHECK(written({"x.npy", "-o", "y.txt"}, "y.txt") == "tensor([0.5000, 0.5000])\n");
  CHECK(difference(written({"int.npy", "-o", "y.npy"}, "y.npy"),
                   npy("<f8", {2}, bytes_of<double>({0.5, 0.5}))) == "");
  CHECK(difference(written({"x.npy", "-o", "x.npy"}, "x.npy"), y) == "");
  CHECK(list_directory(at.path()) == Words{"int.npy", "x.npy", "y.json", "y.npy", "y.txt"});
}
