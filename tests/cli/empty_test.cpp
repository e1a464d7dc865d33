#include <algorithm>
#include <limits>
#include <regex>

#include "support/commands.hpp"
#include "support/elements.hpp"
#include "support/zip.hpp"

// Tensors of no elements, of no rows, of rows of nothing: every command and option, every format in and out.

namespace {

using namespace support;
using Shape = std::vector<std::int64_t>;

std::string list(const Shape& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) {
    text += (text.empty() ? "" : ",") + std::to_string(number);
  }
  return text;
}

// The one tensor without dimensions among them has an element: 1.
template <class T>
std::string ones(const Shape& shape, T one) {
  return bytes_of(std::vector<T>(static_cast<std::size_t>(product(shape)), one));
}

std::string safetensors_of(const Shape& shape, const std::string& dtype, const std::string& bytes) {
  std::string header =
      "{" + safetensors_entry("x", dtype, "[" + list(shape) + "]", 0, bytes.size()) + "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  return safetensors(header, bytes);
}

std::string json_of(const Shape& shape) {
  return "{\"shape\":[" + list(shape) + "],\"data\":[" + (product(shape) == 1 ? "1" : "") +
         "],\"dtype\":\"float32\"}";
}

// One tensor in every format. x is float32 and y what apply and softmax make of it.
struct Input {
  std::string name;
  std::string bytes;
};
std::vector<Input> inputs_of(const Shape& shape) {
  const std::string c = npy("<f4", shape, ones(shape, 1.0F));
  return {{"c.npy", c},
          {"f.npy", in_fortran_order(c)},
          {"big.npy", npy(">i8", shape, ones(shape, std::int64_t{0}))},
          {"x.npz", zip({{"x.npy", c}})},
          {"x.safetensors", safetensors_of(shape, "F32", ones(shape, 1.0F))},
          {"x.json", json_of(shape)},
          {"x.jsonl", json_of(shape) + "\n" + json_of(shape) + "\n"}};
}

// @ stands for the input. Several tensors, which JSON Lines are, need another output than one.
const std::vector<Words> kCommands{
    "apply @"_w,
    "apply @ --to npy --threads 2"_w,
    "apply @ --to safetensors --name y"_w,
    "apply @ --to json --nan null"_w,
    "apply @ --to jsonl --dtype float16"_w,
    "apply @ --to text --precision 0 --edgeitems 0 --threshold 0"_w,
    "apply @ -o y.npy --save-mean m.npy --save-rstd r.npy"_w,
    "apply @ -o y.jsonl --save-mean m.jsonl --save-rstd r.txt"_w,
    "apply @ -o y.txt --save-mean m.txt --no-keepdim"_w,
    "apply @ -o y.safetensors --save-mean m.safetensors --no-keepdim"_w,
    "apply @ -o y.json --save-rstd r.json --eps 0 --eps-on std"_w,
    "apply @ --rms --save-rstd r.jsonl --kernel reference"_w,
    "apply @ --weight 2 --bias [] --zero-centered-weight"_w,
    "apply @ --weight [] --bias 1 --save-mean m.jsonl"_w,
    "apply @ --weight [[],[]] --dtype bfloat16"_w,
    "apply @ --ddof 5 --dtype float64 --progress always"_w,
    "apply @ --unbiased --kernel portable"_w,
    "softmax @"_w,
    "softmax @ --to text"_w,
    "softmax @ --to json --dtype float64"_w,
    "softmax @ -o y.safetensors"_w,
    "softmax @ -o y.jsonl --progress always"_w,
    "stats @"_w,
    "stats @ --histogram --softmax --all --color always"_w,
    "stats @ --json --softmax --weight []"_w,
    "stats @ --csv --rms"_w,
    "stats @ --ddof 1 --bias 3 --progress always"_w,
    "compare @ @"_w,
    "compare @ @ --json --rtol 0 --atol 0 --max-ulp 0"_w,
    "compare @ @ --max-diffs 0"_w,
    "compare @ @ -q --no-equal-nan --progress always"_w,
};

const std::vector<Words> kShow{
    "show @ --header"_w,
    "show @ --precision 0 --edgeitems 0 --threshold 0 --linewidth 0"_w,
    "show @ --sci-mode on --progress always"_w,
};

Words on(Words words, const Input& input, const Words& more) {
  std::replace(words.begin(), words.end(), std::string("@"), input.name);
  words += more;
  if (input.name.ends_with("jsonl") && words[0] != "compare") {
    words += "--from jsonl"_w;
  }
  return words;
}

// The ways to normalize over some axes of a shape, and an axis that it need not have.
std::vector<Words> ways_of(const Shape& shape) {
  std::vector<Words> ways{{}, "--axes 0"_w, "--axes 1"_w};
  if (shape.size() > 1) ways.insert(ways.end(), {"--axis 0"_w, "--axes -1,0"_w});
  if (!shape.empty()) ways.push_back({"--normalized-shape", std::to_string(shape.back())});
  return ways;
}

// A fault of a run that may refuse, in words, and if not must succeed, saying nothing on standard error.
std::string fault_of(const Outcome& outcome) {
  if (outcome.status == 2) {
    // What is known only when the second of two tensors comes leaves the first one there.
    Outcome refusal = outcome;
    refusal.out.clear();
    return refusal_fault(refusal, {});
  }
  if (outcome.status != 0) return "exit status " + std::to_string(outcome.status);
  return outcome.err.empty() ? "" : "standard error: " + outcome.err;
}

std::string as_f8(const Shape& shape, double element) {
  return npy_of<double>(shape,
                        std::vector<double>(static_cast<std::size_t>(product(shape)), element));
}

}  // namespace

TEST_CASE("no command stumbles over a tensor without elements", "[empty][many]") {
  const std::vector<Shape> shapes{{},        {0},       {1, 0},    {0, 1}, {0, 3},      {3, 0},
                                  {2, 0, 3}, {2, 3, 0}, {0, 2, 3}, {0, 0}, {2, 2, 0, 2}};
  const Workplace directory;
  std::size_t runs = 0;
#ifdef LNORM_SANITIZED
  constexpr std::size_t kStep = 9;  // of so many runs one
#else
  constexpr std::size_t kStep = 3;  // no divisor of how many commands and inputs there are
#endif
  std::size_t done = 0;
  std::size_t refused = 0;
  const auto pass = [&](const Words& words) {
    if (runs++ % kStep != 0) return;
    const Outcome outcome = directory.run(words);
    CAPTURE(words, outcome.status, outcome.out, outcome.err);
    CHECK(fault_of(outcome) == "");
    ++(outcome.status == 0 ? done : refused);
  };
  for (const Shape& shape : shapes) {
    const std::vector<Input> inputs = inputs_of(shape);
    for (const Input& input : inputs) directory.write(input.name, input.bytes);
    // Every command with every way to name axes; the inputs take turns.
    std::size_t turn = 0;
    for (const Words& way : ways_of(shape)) {
      for (const Words& command : kCommands) pass(on(command, inputs[turn++ % inputs.size()], way));
    }
    for (const Words& command : kShow) {
      for (const Input& input : inputs) pass(on(command, input, {}));
    }
  }
  CHECK(done > 2 * refused);
}

TEST_CASE("what has no elements is normalized to what has none", "[empty][many]") {
  const Workplace directory;
  for (const Shape& shape : {Shape{0}, {3, 0}, {0, 3}, {2, 0, 3}, {0, 0}}) {
    const std::vector<Input> inputs = inputs_of(shape);
    for (const char* const name : {"c.npy", "f.npy", "x.npz", "x.safetensors", "x.json"}) {
      const auto input = std::find_if(inputs.begin(), inputs.end(),
                                      [&](const Input& i) { return i.name == name; });
      directory.write(name, input->bytes);
      for (const std::string command : {"apply", "softmax"}) {
        CAPTURE(shape, name, command);
        const auto out = [&](const std::string& format, const Words& more = {}) {
          return directory.output(Words{command, name, "--axes", "0", "--to", format} + more);
        };
        CHECK(out("npy") == npy("<f4", shape, ""));
        CHECK(out("safetensors", {"--name", "x"}) == safetensors_of(shape, "F32", ""));
        CHECK(out("json") ==
              R"({"shape":[)" + list(shape) + R"(],"data":[],"dtype":"float32"})" + "\n");
        const std::string size =
            shape.size() == 1
                ? ""
                : ", size=(" + std::regex_replace(list(shape), std::regex(","), ", ") + ")";
        CHECK(out("text") == "tensor([]" + size + ")\n");
      }
    }
  }
}

TEST_CASE("mean and rstd of rows of no elements are NaN", "[empty][many]") {
  const Workplace directory;
  // Mean and rstd have a shape where the normalized axes are kept, and another where they are not; the mean is given in
  // JSON and as text.
  const auto check = [&](const Shape& shape, const std::string& axes, const Shape& kept,
                         const Shape& dropped, const std::string& json, const std::string& text) {
    for (const Input& input : inputs_of(shape)) {
      if (input.name.ends_with(".jsonl")) continue;
      CAPTURE(shape, axes, input.name);
      directory.write(input.name, input.bytes);
      const auto save = [&](const std::string& mean, const std::string& rstd,
                            const Words& more = {}) {
        // As JSON, as .npy: to a pipe and to a place in a file.
        directory.output(
            Words{input.name, "--axes", axes, "--save-mean", mean, "--save-rstd", rstd} + more +
            Words{"-o", more.empty() ? "y.npy" : "y.json"});
      };
      save("m.npy", "r.npy");
      CHECK(directory.read("m.npy") == as_f8(kept, kNan));
      CHECK(directory.read("r.npy") == as_f8(kept, kNan));
      save("m.json", "r.safetensors");
      CHECK(directory.read("m.json") == json + "\n");
      CHECK(directory.read("r.safetensors").ends_with(as_f8(kept, kNan).substr(128)));
      save("m.txt", "r.npy", {"--no-keepdim"});
      CHECK(directory.read("r.npy") == as_f8(dropped, kNan));
      save("m.txt", "r.jsonl", {"--kernel", "reference"});
      CHECK(directory.read("m.txt") == "tensor(" + text + ", dtype=torch.float64)\n");
      CHECK(directory.read("r.jsonl") == json + "\n");
    }
  };
  const auto none = [](const std::string& shape) {
    return R"({"shape":[)" + shape + R"(],"data":[],"dtype":"float64"})";
  };
  check({0}, "0", {1}, {}, "[NaN]", "[nan]");
  check({2, 0}, "1", {2, 1}, {2}, "[[NaN],[NaN]]", "[[nan],\n        [nan]]");
  check({3, 0}, "0", {1, 0}, {0}, none("1,0"), "[], size=(1, 0)");
  check({0, 3}, "0", {1, 3}, {3}, "[[NaN,NaN,NaN]]", "[[nan, nan, nan]]");
  check({0, 3}, "1", {0, 1}, {0}, none("0,1"), "[], size=(0, 1)");
  check({2, 0, 2}, "1", {2, 1, 2}, {2, 2}, "[[[NaN,NaN]],[[NaN,NaN]]]",
        "[[[nan, nan]],\n\n        [[nan, nan]]]");
  check({2, 0, 2}, "0,2", {1, 0, 1}, {0}, none("1,0,1"), "[], size=(1, 0, 1)");
  check({0, 0}, "0,1", {1, 1}, {}, "[[NaN]]", "[[nan]]");
}

TEST_CASE("rows of no elements are listed by stats --json and --csv", "[empty]") {
  const Workplace directory;
  for (const Input& input : inputs_of({3, 0})) {
    if (input.name.ends_with(".jsonl")) continue;
    CAPTURE(input.name);
    directory.write(input.name, input.bytes);
    const auto printed = [&](const Words& more) {
      return directory.output(Words{"stats", input.name} + more);
    };
    CHECK(printed({"--csv"}) ==
          "row,non_finite,output_non_finite,input_mean,input_variance,input_min,input_max,"
          "output_mean,output_variance\n"
          "0,0,0,nan,nan,nan,nan,nan,nan\n"
          "1,0,0,nan,nan,nan,nan,nan,nan\n"
          "2,0,0,nan,nan,nan,nan,nan,nan\n");
    const std::string json = printed("--json --softmax"_w);
    CHECK(contains(json, R"({"row":2,"index":[2],"non_finite":0,"output_non_finite":0,)"
                         R"("input":{"mean":"NaN","variance":"NaN","min":"NaN","max":"NaN"},)"
                         R"("output":{"mean":"NaN","variance":"NaN","sum":0.0},)"
                         R"("softmax":{"sum":0.0,"mean":"NaN","variance":"NaN"}})"));
    CHECK(contains(json, R"("summary":{"rows":3,"non_finite_rows":0)"));
    directory.write("mask.json", R"({"shape":[3,0],"data":[],"dtype":"bool"})");
    CHECK(printed("--csv --mask mask.json"_w) ==
          "row,non_finite,output_non_finite,input_mean,input_variance,input_min,input_max\n"
          "0,0,0,nan,nan,nan,nan\n"
          "1,0,0,nan,nan,nan,nan\n"
          "2,0,0,nan,nan,nan,nan\n");
    CHECK(printed("--axes 0 --csv"_w).ends_with("output_variance\n"));  // no rows
  }
  const std::string huge = R"({"shape":[40000000000,0],"data":[],"dtype":"float64"})";
  for (const std::string option : {"--csv", "--json"}) {
    CHECK(fault_of({"stats", option}, {option + " of 40000000000 rows of no elements"},
                   pipe_of(huge)) == "");
  }
  CHECK(contains(output_of({"stats"}, pipe_of(huge)), "no elements\n"));
}
