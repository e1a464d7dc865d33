#include "support/commands.hpp"

// softmax from the command line, on numbers whose answer is exact or was computed by PyTorch.

namespace {

using namespace support;

Words softmax(const Words& options) { return Words{"softmax"} + options; }

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
      {"[[0,0],[NaN,0],[0,0]]", "--nan null"_w, "[[0.5,0.5],[null,null],[0.5,0.5]]"},
      {"5", {}, "1.0"},
      {"[]", {}, R"({"shape":[0],"data":[],"dtype":"float64"})"},
      {"[0,0,0]", "--dtype float32"_w, "[0.33333334,0.33333334,0.33333334]"},
      {"[0,0,0]", "--dtype float16"_w, "[0.3333,0.3333,0.3333]"},
      {"[0,0]", "--to text"_w, "tensor([0.5000, 0.5000], dtype=torch.float64)"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.in, c.options);
    CHECK(output_of(softmax(c.options), pipe_of(c.in)) == c.out + "\n");
  }
}

TEST_CASE("softmax goes over the axes that are named in any of the three ways") {
  const std::string x = "[[1,1],[1,1]]";
  const std::string whole = "[[0.25,0.25],[0.25,0.25]]\n";
  for (const Words& options : {"--axes 0,1"_w, "--axes -1,0"_w, "--normalized-shape 2,2"_w}) {
    CAPTURE(options);
    CHECK(output_of(softmax(options), pipe_of(x)) == whole);
  }
  for (const Words& options : {Words{}, "--axis 1"_w, "--axes -1"_w, "--axis 0"_w, {"--axis=-2"}}) {
    CAPTURE(options);
    CHECK(output_of(softmax(options), pipe_of(x)) == "[[0.5,0.5],[0.5,0.5]]\n");
  }
  // --axis is that axis alone, as in PyTorch, NumPy and ONNX.
  CHECK(output_of(softmax("--axis 0"_w), pipe_of("[[1,-Infinity],[-Infinity,2]]")) ==
        "[[1.0,0.0],[0.0,1.0]]\n");
  CHECK(output_of(softmax("--axis 1"_w), pipe_of("[[[7],[7]],[[9],[9]]]")) ==
        "[[[0.5],[0.5]],[[0.5],[0.5]]]\n");
}

TEST_CASE("softmax writes where and what apply would") {
  const Workplace at;
  const std::string x = npy_of<float>({2}, {3, 3});
  const std::string y = npy_of<float>({2}, {0.5, 0.5});
  at.write("x.npy", x);
  at.write("int.npy", npy_of<std::int32_t>({2}, {3, 3}));
  const auto written = [&](const Words& options, const std::string& name) {
    CHECK(at.output(softmax(options)) == "");
    return at.read(name);
  };
  CHECK(difference(output_of(softmax({}), pipe_of(x)), y) == "");
  CHECK(difference(at.output(softmax({"-"}), file(at / "x.npy")), y) == "");
  CHECK(difference(written("x.npy -o y.npy"_w, "y.npy"), y) == "");
  CHECK(written("x.npy -o y.json"_w, "y.json") == "[0.5,0.5]\n");
  CHECK(written("x.npy -o y.txt"_w, "y.txt") == "tensor([0.5000, 0.5000])\n");
  CHECK(difference(written("int.npy -o y.npy"_w, "y.npy"), npy_of<double>({2}, {0.5, 0.5})) == "");
  CHECK(difference(written("x.npy -o x.npy"_w, "x.npy"), y) == "");
  CHECK(at.files() == Words{"int.npy", "x.npy", "y.json", "y.npy", "y.txt"});
}
