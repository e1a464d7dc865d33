#include <algorithm>
#include <limits>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"
#include "support/zip.hpp"

// Tensors of no elements, of no rows, of rows of nothing: every command and option, every format in and out.

namespace {

using namespace support;
using Shape = std::vector<std::int64_t>;
using Words = std::vector<std::string>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::int64_t product(const Shape& extents) {
  std::int64_t result = 1;
  for (const std::int64_t extent : extents) result *= extent;
  return result;
}

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
  std::string header = "{\"x\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + list(shape) +
                       "],\"data_offsets\":[0," + std::to_string(bytes.size()) + "]}}";
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
  std::string fortran = c;
  fortran.replace(fortran.find("False"), 5, "True ");
  return {{"c.npy", c},
          {"f.npy", fortran},
          {"big.npy", npy(">i8", shape, ones(shape, std::int64_t{0}))},
          {"x.npz", zip({{"x.npy", c}})},
          {"x.safetensors", safetensors_of(shape, "F32", ones(shape, 1.0F))},
          {"x.json", json_of(shape)},
          {"x.jsonl", json_of(shape) + "\n" + json_of(shape) + "\n"}};
}

// @ stands for the input. Several tensors, which JSON Lines are, need another output than one.
const std::vector<Words> kCommands{
    {"apply", "@"},
    {"apply", "@", "--to", "npy", "--threads", "2"},
    {"apply", "@", "--to", "safetensors", "--name", "y"},
    {"apply", "@", "--to", "json", "--nan", "null"},
    {"apply", "@", "--to", "jsonl", "--dtype", "float16"},
    {"apply", "@", "--to", "text", "--precision", "0", "--edgeitems", "0", "--threshold", "0"},
    {"apply", "@", "-o", "y.npy", "--save-mean", "m.npy", "--save-rstd", "r.npy"},
    {"apply", "@", "-o", "y.jsonl", "--save-mean", "m.jsonl", "--save-rstd", "r.txt"},
    {"apply", "@", "-o", "y.txt", "--save-mean", "m.txt", "--no-keepdim"},
    {"apply", "@", "-o", "y.safetensors", "--save-mean", "m.safetensors", "--no-keepdim"},
    {"apply", "@", "-o", "y.json", "--save-rstd", "r.json", "--eps", "0", "--eps-on", "std"},
    {"apply", "@", "--rms", "--save-rstd", "r.jsonl", "--kernel", "reference"},
    {"apply", "@", "--weight", "2", "--bias", "[]", "--zero-centered-weight"},
    {"apply", "@", "--weight", "[]", "--bias", "1", "--save-mean", "m.jsonl"},
    {"apply", "@", "--weight", "[[],[]]", "--dtype", "bfloat16"},
    {"apply", "@", "--ddof", "5", "--dtype", "float64", "--progress", "always"},
    {"apply", "@", "--unbiased", "--kernel", "portable"},
    {"softmax", "@"},
    {"softmax", "@", "--to", "text"},
    {"softmax", "@", "--to", "json", "--dtype", "float64"},
    {"softmax", "@", "-o", "y.safetensors"},
    {"softmax", "@", "-o", "y.jsonl", "--progress", "always"},
    {"stats", "@"},
    {"stats", "@", "--histogram", "--softmax", "--all", "--color", "always"},
    {"stats", "@", "--json", "--softmax", "--weight", "[]"},
    {"stats", "@", "--csv", "--rms"},
    {"stats", "@", "--ddof", "1", "--bias", "3", "--progress", "always"},
    {"compare", "@", "@"},
    {"compare", "@", "@", "--json", "--rtol", "0", "--atol", "0", "--max-ulp", "0"},
    {"compare", "@", "@", "--max-diffs", "0"},
    {"compare", "@", "@", "-q", "--no-equal-nan", "--progress", "always"},
};

const std::vector<Words> kShow{
    {"show", "@", "--header"},
    {"show", "@", "--precision", "0", "--edgeitems", "0", "--threshold", "0", "--linewidth", "0"},
    {"show", "@", "--sci-mode", "on", "--progress", "always"},
};

Words on(Words words, const Input& input, const Words& more) {
  std::replace(words.begin(), words.end(), std::string("@"), input.name);
  words.insert(words.end(), more.begin(), more.end());
  if (input.name.ends_with("jsonl") && words[0] != "compare") {
    words.insert(words.end(), {"--from", "jsonl"});
  }
  return words;
}

// The ways to normalize over some axes of a shape, and an axis that it need not have.
std::vector<Words> ways_of(const Shape& shape) {
  std::vector<Words> ways{{}, {"--axes", "0"}, {"--axes", "1"}};
  if (shape.size() > 1) ways.insert(ways.end(), {{"--axis", "0"}, {"--axes", "-1,0"}});
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
  return npy("<f8", shape,
             bytes_of(std::vector<double>(static_cast<std::size_t>(product(shape)), element)));
}

}  // namespace

TEST_CASE("no command stumbles over a tensor without elements", "[empty]") {
  const std::vector<Shape> shapes{{},        {0},       {1, 0},    {0, 1}, {0, 3},      {3, 0},
                                  {2, 0, 3}, {2, 3, 0}, {0, 2, 3}, {0, 0}, {2, 2, 0, 2}};
  const TempDir directory;
  std::size_t runs = 0;
#ifdef LNORM_SANITIZED
  constexpr std::size_t kStep = 9;  // of so many runs one
#else
  constexpr std::size_t kStep = 1;
#endif
  std::size_t done = 0;
  std::size_t refused = 0;
  const auto pass = [&](const Words& words) {
    if (runs++ % kStep != 0) return;
    const Outcome outcome = run({.arguments = words, .directory = directory.path().string()});
    CAPTURE(words, outcome.status, outcome.out, outcome.err);
    CHECK(fault_of(outcome) == "");
    ++(outcome.status == 0 ? done : refused);
  };
  for (const Shape& shape : shapes) {
    const std::vector<Input> inputs = inputs_of(shape);
    for (const Input& input : inputs) write_file(directory / input.name, input.bytes);
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

TEST_CASE("what has no elements is normalized to what has none", "[empty]") {
  struct Case {
    Shape shape;
    std::string json;
    std::string text;
  };
  const std::vector<Case> cases{
      {{0}, R"({"shape":[0],"data":[],"dtype":"float32"})", "tensor([])"},
      {{3, 0}, R"({"shape":[3,0],"data":[],"dtype":"float32"})", "tensor([], size=(3, 0))"},
      {{0, 3}, R"({"shape":[0,3],"data":[],"dtype":"float32"})", "tensor([], size=(0, 3))"},
      {{2, 0, 3}, R"({"shape":[2,0,3],"data":[],"dtype":"float32"})", "tensor([], size=(2, 0, 3))"},
      {{0, 0}, R"({"shape":[0,0],"data":[],"dtype":"float32"})", "tensor([], size=(0, 0))"}};
  const TempDir directory;
  for (const Case& c : cases) {
    const std::vector<Input> inputs = inputs_of(c.shape);
    for (const char* const name : {"c.npy", "f.npy", "x.npz", "x.safetensors", "x.json"}) {
      const auto input = std::find_if(inputs.begin(), inputs.end(),
                                      [&](const Input& i) { return i.name == name; });
      write_file(directory / name, input->bytes);
      for (const std::string command : {"apply", "softmax"}) {
        CAPTURE(c.shape, name, command);
        const auto out = [&](const std::string& format, const Words& more = {}) {
          Words words{command, name, "--axes", "0", "--to", format};
          words.insert(words.end(), more.begin(), more.end());
          return output_of({.arguments = words, .directory = directory.path().string()});
        };
        CHECK(out("npy") == npy("<f4", c.shape, ""));
        CHECK(out("safetensors", {"--name", "x"}) == safetensors_of(c.shape, "F32", ""));
        CHECK(out("json") == c.json + "\n");
        CHECK(out("text") == c.text + "\n");
      }
    }
  }
}

TEST_CASE("mean and rstd of rows of no elements are NaN", "[empty]") {
  struct Case {
    Shape shape;
    std::string axes;
    Shape kept;  // the shape of mean and rstd
    Shape dropped;
    std::string json;  // the mean
    std::string text;
  };
  const std::vector<Case> cases{
      {{0}, "0", {1}, {}, "[NaN]", "tensor([nan], dtype=torch.float64)"},
      {{2, 0},
       "1",
       {2, 1},
       {2},
       "[[NaN],[NaN]]",
       "tensor([[nan],\n        [nan]], dtype=torch.float64)"},
      {{3, 0},
       "0",
       {1, 0},
       {0},
       R"({"shape":[1,0],"data":[],"dtype":"float64"})",
       "tensor([], size=(1, 0), dtype=torch.float64)"},
      {{0, 3},
       "0",
       {1, 3},
       {3},
       "[[NaN,NaN,NaN]]",
       "tensor([[nan, nan, nan]], dtype=torch.float64)"},
      {{0, 3},
       "1",
       {0, 1},
       {0},
       R"({"shape":[0,1],"data":[],"dtype":"float64"})",
       "tensor([], size=(0, 1), dtype=torch.float64)"},
      {{2, 0, 2},
       "1",
       {2, 1, 2},
       {2, 2},
       "[[[NaN,NaN]],[[NaN,NaN]]]",
       "tensor([[[nan, nan]],\n\n        [[nan, nan]]], dtype=torch.float64)"},
      {{2, 0, 2},
       "0,2",
       {1, 0, 1},
       {0},
       R"({"shape":[1,0,1],"data":[],"dtype":"float64"})",
       "tensor([], size=(1, 0, 1), dtype=torch.float64)"},
      {{0, 0}, "0,1", {1, 1}, {}, "[[NaN]]", "tensor([[nan]], dtype=torch.float64)"}};
  const TempDir directory;
  for (const Case& c : cases) {
    for (const Input& input : inputs_of(c.shape)) {
      if (input.name.ends_with(".jsonl")) continue;
      CAPTURE(c.shape, c.axes, input.name);
      write_file(directory / input.name, input.bytes);
      const auto save = [&](const std::string& mean, const std::string& rstd,
                            const Words& more = {}) {
        Words words{input.name, "--axes", c.axes, "--save-mean", mean, "--save-rstd", rstd};
        words.insert(words.end(), more.begin(), more.end());
        // As JSON, as .npy: to a pipe and to a place in a file.
        words.insert(words.end(), {"-o", more.empty() ? "y.npy" : "y.json"});
        output_of({.arguments = words, .directory = directory.path().string()});
      };
      const auto saved = [&](const char* name) { return read_file(directory / name); };
      const std::string bytes = as_f8(c.kept, kNan).substr(128);
      save("m.npy", "r.npy");
      CHECK(saved("m.npy") == as_f8(c.kept, kNan));
      CHECK(saved("r.npy") == as_f8(c.kept, kNan));
      save("m.json", "r.safetensors");
      CHECK(saved("m.json") == c.json + "\n");
      CHECK(saved("r.safetensors").ends_with(bytes));
      save("m.txt", "r.npy", {"--no-keepdim"});
      CHECK(saved("r.npy") == as_f8(c.dropped, kNan));
      save("m.txt", "r.jsonl", {"--kernel", "reference"});
      CHECK(saved("m.txt") == c.text + "\n");
      CHECK(saved("r.jsonl") == c.json + "\n");
    }
  }
}

TEST_CASE("rows of no elements are listed by stats --json and --csv", "[empty]") {
  const TempDir directory;
  for (const Input& input : inputs_of({3, 0})) {
    if (input.name.ends_with(".jsonl")) continue;
    CAPTURE(input.name);
    write_file(directory / input.name, input.bytes);
    const auto printed = [&](const Words& more) {
      Words words{"stats", input.name};
      words.insert(words.end(), more.begin(), more.end());
      return output_of({.arguments = words, .directory = directory.path().string()});
    };
    CHECK(printed({"--csv"}) ==
          "row,non_finite,output_non_finite,input_mean,input_variance,input_min,input_max,"
          "output_mean,output_variance\n"
          "0,0,0,nan,nan,nan,nan,nan,nan\n"
          "1,0,0,nan,nan,nan,nan,nan,nan\n"
          "2,0,0,nan,nan,nan,nan,nan,nan\n");
    const std::string json = printed({"--json", "--softmax"});
    CHECK(json.find(R"({"row":2,"index":[2],"non_finite":0,"output_non_finite":0,)"
                    R"("input":{"mean":"NaN","variance":"NaN","min":"NaN","max":"NaN"},)"
                    R"("output":{"mean":"NaN","variance":"NaN","sum":0.0},)"
                    R"("softmax":{"sum":0.0,"mean":"NaN","variance":"NaN"}})") !=
          std::string::npos);
    CHECK(json.find(R"("summary":{"rows":3,"non_finite_rows":0)") != std::string::npos);
    CHECK(printed({"--axes", "0", "--csv"}).ends_with("output_variance\n"));  // no rows
  }
  const std::string huge = R"({"shape":[40000000000,0],"data":[],"dtype":"float64"})";
  for (const std::string option : {"--csv", "--json"}) {
    CHECK(refusal_fault(run({"stats", option}, pipe_of(huge)),
                        {option + " of 40000000000 rows of no elements"}) == "");
  }
  CHECK(output_of({"stats"}, pipe_of(huge)).find("no elements\n") != std::string::npos);
}

TEST_CASE("JSON Lines of no elements are lines of their own", "[empty]") {
  const TempDir directory;
  const Outcome outcome = run({.arguments = {"--from", "jsonl", "--save-mean", "m.jsonl"},
                               .in = pipe_of("[[],[]]\n[]\n[[1,1]]\n"),
                               .directory = directory.path().string()});
  CHECK(outcome.status == 0);
  CHECK(outcome.out ==
        "{\"shape\":[2,0],\"data\":[],\"dtype\":\"float64\"}\n{\"shape\":[0],\"data\":[],\"dtype\":"
        "\"float64\"}\n[[0.0,0.0]]\n");
  CHECK(read_file(directory / "m.jsonl") == "[[NaN],[NaN]]\n[NaN]\n[[1.0]]\n");
}

// The extents say that there is nothing, but their product without the 0 is more than 2^63.
TEST_CASE("extents of a tensor without elements may be as large as they like", "[empty]") {
  const std::string json = R"({"shape":[0,4000000000,4000000000,5],"data":[],"dtype":"float64"})";
  for (const Words& words : {Words{"apply", "-", "--axes", "3", "--save-mean", "/dev/null"},
                             {"softmax", "--axes", "3"},
                             {"apply", "-", "--axes", "0,1"},
                             {"apply", "-", "--axes", "0,1,2,3"}}) {
    CAPTURE(words);
    CHECK(output_of(words, pipe_of(json)) == json + "\n");
  }
  CHECK(output_of({"stats", "--axes", "0,1,2"}, pipe_of(json))
            .find("5 rows of 0 elements, numbered 0 to 4 along axis 3\n") != std::string::npos);
  for (const Words& words :
       {Words{"--axes", "1", "--json"}, {"--axes", "3"}, {"--axes", "0,1,2"}}) {
    CAPTURE(words);
    const TempDir directory;
    write_file(directory / "x.json", json);
    Words all{"compare", "x.json", "x.json"};
    all.insert(all.end(), words.begin(), words.end());
    CHECK(run({.arguments = all, .directory = directory.path().string()}).status == 0);
  }
  // One mean for every row: that is said, not tried.
  CHECK(refusal_fault(run({"--axes", "0", "--save-mean", "/dev/null"}, pipe_of(json)), {"2^63"}) ==
        "");
  CHECK(refusal_fault(run({"--axes", "0,1", "--save-mean", "/dev/null"}, pipe_of(json)),
                      {"--save-mean", "20000000000 rows of no elements"}) == "");
}
