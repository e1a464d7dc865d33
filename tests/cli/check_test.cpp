#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <span>
#include <vector>

#include "lnorm/core/small_float.hpp"
#include "support/catch.hpp"
#include "support/commands.hpp"
#include "support/elements.hpp"
#include "support/json.hpp"
#include "support/pace.hpp"

// What lnorm check says, how it ends, and what it refuses. (tests/property/check_test.cpp holds its verdicts against emulated
// kernels.)

namespace {

using namespace support;
using nlohmann::json;

std::string cause_of(const json& tensor) {
  const json& cause = tensor.at("cause");
  if (cause.is_null()) return "none";
  std::string ids;
  for (const json& id : cause.at("ids")) ids += (ids.empty() ? "" : "+") + id.get<std::string>();
  return ids;
}

const std::string kSeeds = LNORM_DATA_DIR "/seeds/";
const std::string kTorch = LNORM_DATA_DIR "/kernel/torch/";

json report_of(const Words& words) {
  const Workplace directory;
  return support::parsed_json(directory.run("check"_w + words + "--json"_w).out);
}

json numbers(const std::vector<std::size_t>& shape, unsigned seed, std::size_t axis = 0) {
  static std::mt19937_64 random;
  if (axis == 0) random.seed(seed);
  if (axis == shape.size()) return std::normal_distribution<double>()(random);
  json all = json::array();
  for (std::size_t i = 0; i < shape[axis]; ++i) all.push_back(numbers(shape, seed, axis + 1));
  return all;
}

struct Checks : Workplace {
  Checks() {
    write("x.json", "[[1, 2, 4], [3, 3, 9]]");
    output("x.json --dtype float32 -o y.npy"_w);
    output("x.json --dtype float32 --unbiased -o wrong.npy"_w);
  }
};

}  // namespace

TEST_CASE("the first line of check says the verdict, and the exit status does", "[check]") {
  const Checks files;
  struct Case {
    Words words;
    std::string first_line;
    int status;
  };
  files.write("nan.json", "[[NaN, 1, 2], [1, Infinity, 2]]");
  files.output("nan.json -o nan.npy"_w);
  files.write("near.json",
              "[[-1.0690416, -0.2672604, 1.336302], [-0.7071064, -0.7071064, 1.4142128]]");
  const std::vector<Case> cases{
      {"x.json y.npy"_w,
       "y.npy: correctly rounded, every element is that of layer norm of x.json (float32, shape "
       "(2, "
       "3))",
       0},
      {"x.json wrong.npy"_w, "wrong.npy: differs from layer norm of x.json (float32, shape (2, 3))",
       1},
      {"x.json y.npy --rms"_w, "y.npy: differs from RMS norm of x.json (float32, shape (2, 3))", 1},
      {"nan.json nan.npy"_w, "nan.npy: cannot be judged in float64 (float64, shape (2, 3))", 2},
      {"x.json y.npy --rows 2:"_w,
       "y.npy: cannot be judged: it has no elements (float32, shape (2, 3), none of 2 rows)", 2},
      {"x.json y.npy --rows 1:"_w,
       "y.npy: correctly rounded, every element is that of layer norm of x.json (float32, shape "
       "(2, "
       "3), row 1 of 2)",
       0},
      {"x.json near.json --arithmetic float32"_w,
       "near.json: within rounding of layer norm of x.json (float64, shape (2, 3))", 0},
  };
  for (const Case& one : cases) {
    const Outcome outcome = files.run("check"_w + one.words);
    CHECK(lines_of(outcome.out).front() == one.first_line);
    CHECK(outcome.status == one.status);
    CHECK(outcome.err == "");
    const Outcome quiet = files.run("check --quiet"_w + one.words);
    CHECK(quiet.out == "");
    CHECK(quiet.status == one.status);
  }
}

TEST_CASE("an infinity that rounding explains is no worst element of any size", "[check]") {
  const Workplace files;
  // y is 65519.99 everywhere. From 65520 on it is infinite in float16.
  std::string ones = "1";
  std::string results = "65504";
  for (int i = 0; i < 14; ++i) {
    ones += ", 1";
    results += ", 65504";
  }
  files.write("x.json", "[[" + ones + ", 1]]");
  files.write("y.json", "[[" + results + ", Infinity]]");
  files.output("convert y.json --dtype float16 -o y.npy"_w);
  const Outcome said =
      files.run("check x.json y.npy --as float32 --rms --weight 65520.3176 --arithmetic float32"_w);
  CAPTURE(said.out, said.err);
  CHECK(said.status == 0);
  CHECK(contains(said.out, "correctly rounded: 15 / 16"));
  CHECK(!contains(said.out, "inf times"));
}

TEST_CASE("with --eps 0 a kernel may divide by what its variance is in float32", "[check]") {
  const Checks files;
  // The squares of the first are no numbers of float32, and the elements of the second are all one there.
  files.write("tiny.json", "[[1e-30, -1e-30, 3e-30]]");
  files.write("far.json", "[[1, 1.000000000001, 1]]");
  files.write("plain.json", "[[1, 2, 4]]");
  for (const std::string y : {"[[Infinity, -Infinity, Infinity]]", "[[NaN, NaN, NaN]]"}) {
    files.write("lost.json", y);
    for (const std::string x : {"tiny.json", "far.json", "plain.json"}) {
      CAPTURE(x, y);
      const auto judged = [&](const Words& options) {
        return files.run(Words{"check", x, "lost.json"} + options).status;
      };
      CHECK(judged("--eps 0 --arithmetic float32"_w) ==
            (x == "plain.json" ? 1 : 2));  // 2: not judged
      CHECK(judged("--eps 0"_w) == 1);     // in float64 neither is lost
      CHECK(judged("--arithmetic float32"_w) == 1);
    }
  }
}

namespace {

// mean and 1 / s as a loop in float32 finds them.
std::pair<float, float> float_statistics(const std::vector<float>& x) {
  float sum = 0;
  for (const float one : x) sum += one;
  const float mean = sum / static_cast<float>(x.size());
  float squares = 0;
  for (const float one : x) squares += (one - mean) * (one - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<float>(x.size()) + 1e-5F)};
}

}  // namespace

// Means so large that float32 hardly has the deviations.
TEST_CASE("what rounding brings beyond the dtype is no lost element", "[check]") {
  const Checks files;
  std::mt19937 random(7);
  json x = json::array();
  json y = json::array();
  const float weight = 0.35F * 65504;
  for (int r = 0; r < 16; ++r) {
    std::vector<float> row(64);
    // About normal: the sum of twelve uniform numbers.
    for (float& one : row) {
      double sum = -6;
      for (int k = 0; k < 12; ++k) sum += static_cast<double>(random()) * 0x1p-32;
      one = static_cast<float>(1e7 + 3 * sum);
    }
    const auto [mean, rstd] = float_statistics(row);
    std::vector<double> result;
    for (const float one : row) result.push_back((one - mean) * rstd * weight);
    x.push_back(row);
    y.push_back(result);
  }
  files.write("x.json", x.dump());
  files.write("wide.json", y.dump());
  files.output("convert x.json --dtype float32 -o x32.npy"_w);
  files.output("convert wide.json --dtype float16 -o y16.npy"_w);
  CHECK(contains(files.output("convert y16.npy --to json"_w), "Infinity"));
  const Words judged{"check", "x32.npy", "y16.npy", "--weight", lnorm::concat(weight)};
  CHECK(files.run(judged).status != 1);
  // What is as far off by itself is lost.
  files.output({"x32.npy", "--weight", "1", "--dtype", "float16", "-o", "right.npy"});
  json lost = support::parsed_json(files.output("right.npy --to json --weight 0 --bias 1"_w));
  lost[3][5] = INFINITY;
  std::string text = lost.dump();
  text.replace(text.find("null"), 4, "Infinity");
  files.write("lost.json", text);
  files.output("convert lost.json --dtype float16 -o lost.npy"_w);
  CHECK(files.run("check x32.npy lost.npy"_w).status == 1);
}

TEST_CASE("with eps in max() a row whose deviation is eps has either derivative", "[check]") {
  const Checks files;
  files.write("x.json", "[[-3, 1], [0, 4], [1, 2]]");
  files.write("dy.json", "[[1, 2], [3, 1], [1, 3]]");
  files.write("none.json", "[[-0.25, 0.25], [0.5, -0.5], [-0.5, 0.5]]");
  files.write("wrong.json", "[[-0.25, 0.25], [0.5, -0.5], [-0.6, 0.5]]");
  const auto judged = [&](const std::string& dx) {
    return files
        .run(Words{"check", "x.json", "--dy", "dy.json", "--actual-dx", dx} +
             "--eps 2 --eps-on max --arithmetic float32"_w)
        .status;
  };
  CHECK(judged("none.json") == 0);
  CHECK(judged("wrong.json") == 1);
  files.output("grad x.json --dy dy.json --eps 2 --eps-on max --dx dx.npy"_w);
  CHECK(judged("dx.npy") == 0);
}

TEST_CASE("sums in the order of the file are right where a weight gives rows another", "[check]") {
  const Checks files;
  std::vector<float> row;
  for (int i = 0; i < 16384; ++i) row.push_back(static_cast<float>(i) / 16384);
  const auto [mean, rstd] = float_statistics(row);
  const auto nested = [](const auto& number) {
    json all = json::array();
    for (int i = 0; i < 16384; ++i) {
      if (i % 2048 == 0) all.push_back(json::array());
      if (i % 64 == 0) all.back().push_back(json::array());
      all.back().back().push_back(number(static_cast<std::size_t>(i)));
    }
    return all.dump();
  };
  files.write("x.json", nested([&](std::size_t i) { return row[i]; }));
  files.write("y.json",
              nested([&, m = mean, s = rstd](std::size_t i) { return (row[i] - m) * s; }));
  files.output("convert x.json --dtype float32 -o x.npy"_w);
  files.output("convert y.json --dtype float32 -o y.npy"_w);
  files.write("w.json", json(std::vector<int>(64, 1)).dump());
  for (const Words& options : {Words{}, "--affine-axes 2 --weight w.json"_w}) {
    CHECK(files.run("check x.npy y.npy --axes 0,1,2"_w + options).status == 0);
  }
}

TEST_CASE("either tensor of check may come from a pipe, in any format", "[check]") {
  const Checks files;
  CHECK(files.shell("cat y.npy | lnorm check x.json -").status == 0);
  CHECK(files.shell("cat x.json | lnorm check - y.npy").status == 0);
  CHECK(files.shell("cat wrong.npy | lnorm check x.json - --quiet").status == 1);
  CHECK(files.shell("lnorm x.json --to json | lnorm check x.json -").status == 0);
  CHECK(files.shell("lnorm check x.json wrong.npy | head -n 1").status == 0);
  CHECK(files.shell("lnorm check x.json wrong.npy > /dev/full").status == 2);
  const std::string whole = files.run("check x.json wrong.npy"_w).out;
  const std::string piped = files.shell("cat wrong.npy | lnorm check x.json -").out;
  CHECK(whole.substr(whole.find('\n')) == piped.substr(piped.find('\n')));
}

TEST_CASE("the seeds' questions are answered", "[check]") {
  const json eps = report_of({kSeeds + "eps_on_std/x.npy", kSeeds + "eps_on_std/eps_on_std.npy"});
  CHECK(eps.at("verdict") == "differs");
  CHECK(eps.at("cause").at("ids") == json{"eps-on-std"});
  CHECK(eps.at("cause").at("options") == json{"--eps-on std"});
  CHECK(eps.at("cause").at("explained") == 1);
  for (const char* const name : {"lecture20", "gpt_part2"}) {
    const std::string folder = kSeeds + name;
    const json found = report_of(
        {folder + "/activations.npy", folder + "/activations.normalized_unbiased_eps0.npy"});
    CHECK(found.at("cause").at("ids") == json{"eps-0", "ddof-1"});
    CHECK(found.at("cause").at("options") == json{"--eps 0", "--unbiased"});
    CHECK(report_of({folder + "/batch.npy", folder + "/batch.layer_norm.npy"}).at("agrees") ==
          true);
  }
}

TEST_CASE("PyTorch's own results are within rounding", "[check]") {
  for (const std::string dtype : {"float32", "float16", "float64"}) {
    const std::string file = kTorch + dtype + ".safetensors";
    const json found = report_of(
        {file + ":x", file + ":y", "--weight", file + ":weight", "--bias", file + ":bias"});
    INFO(dtype);
    CHECK(found.at("verdict") == "within rounding");
    CHECK(found.at("warning").is_null());
  }
  const std::string dump = LNORM_DATA_DIR "/gpt2/dump.npz:h.";
  const Words words{dump + "*.in", dump + "{1}.out",      "--weight", dump + "{1}.ln_1.weight",
                    "--bias",      dump + "{1}.ln_1.bias"};
  const json all = report_of(words);
  CHECK(all.at("verdict") == "within rounding");
  CHECK(all.at("agrees") == true);
  CHECK(all.at("tensors").size() == 12);
  const Workplace directory;
  const auto lines = lines_of(directory.output("check"_w + words));
  CHECK(lines.back() == "12 tensors, 12 within rounding");
}

TEST_CASE("PyTorch's float16 and bfloat16 gradients come of statistics and sums in that dtype",
          "[check]") {
  for (const std::string dtype : {"float32", "float16", "bfloat16"}) {
    const std::string file = LNORM_DATA_DIR "/kernel/torch26/" + dtype + ".pt:";
    const Words affine{"--weight", file + "weight", "--bias", file + "bias"};
    INFO(dtype);
    CHECK(report_of(Words{file + "x", file + "y"} + affine).at("verdict") != "differs");
    const Words rms{file + "x", file + "rms", "--weight", file + "weight", "--rms"};
    const bool is_narrow = dtype != "float32";
    CHECK(report_of(rms + (is_narrow ? "--round xhat"_w : Words())).at("verdict") != "differs");
    const json found =
        report_of(Words{file + "x", "--dy", file + "dy", "--actual-dx", file + "dx",
                        "--actual-dweight", file + "dweight", "--actual-dbias", file + "dbias"} +
                  affine);
    Words names;
    for (const json& tensor : found.at("tensors")) {
      names.push_back(is_narrow ? cause_of(tensor) : tensor.at("verdict").get<std::string>());
    }
    const std::string statistics = dtype + "-statistics";
    const std::string sums = dtype + "-dweight";
    CHECK(names == (is_narrow ? Words{statistics, statistics + "+" + sums, sums}
                              : Words(3, "within rounding")));
  }
}

TEST_CASE("check names the tensor of a set that is wrong", "[check]") {
  const Workplace files;
  files.write("x.json", R"({"a": [[1, 2, 4, 7]], "b": [[1, 5, 2, 9]], "c": [[2, 2, 3, 1]]})");
  files.output({"x.json:*", "-o", "y.npz"});
  files.output({"x.json:b", "--eps", "1e-3", "-o", "b.npy"});
  files.output({"x.json:a", "-o", "a.npy"});
  files.shell_output("mkdir y; mv a.npy b.npy y; lnorm x.json:c -o y/c.npy");
  CHECK(files.run({"check", "x.json", "y.npz"}).status == 0);
  for (const std::string output : {"y", "y:{}", "y:*"}) {
    const Outcome found = files.run({"check", "x.json", output});
    CHECK(found.status == 1);
    CHECK(lines_of(found.out) == Words{"a: correctly rounded", lines_of(found.out)[1],
                                       "  cause: eps is 1e-3 (eps-1e-3; --eps 1e-3): every element",
                                       "c: correctly rounded",
                                       "3 tensors, 2 correctly rounded, 1 differs; first: b"});
    CHECK(contains(lines_of(found.out)[1], "b: differs, worst element "));
  }
  CHECK(files.run({"check", "x.json", "y", "--max-abs", "1"}).status == 0);
  CHECK(files.fault({"check", "x.json", "nosuch.npz"}, {"OUTPUT nosuch.npz:a: No such file"}) ==
        "");
}

TEST_CASE("a tensor of a set that cannot be judged is an error of every report", "[check]") {
  const Workplace files;
  files.write("x.json", R"({"a": [[1, 2, 4, 7]], "b": [[1, 5, 2, 9]]})");
  files.output({"x.json:*", "-o", "y.npz"});
  files.write("more.json", R"({"a": [[1, 2, 4, 7]], "b": [[1, 5, 2, 9]], "c": [[1, 2]]})");
  const Outcome found =
      files.run("check more.json y.npz --keep-going --save-json r.json --save-junit r.xml"_w);
  CHECK(found.status == 2);
  CHECK(contains(found.err, "OUTPUT y.npz: there is no tensor 'c'"));
  CHECK(contains(found.out, "c: error\n"));
  CHECK(contains(found.out, "3 tensors, 2 correctly rounded, 1 error\n"));
  const json saved = support::parsed_json(files.read("r.json"));
  CHECK(saved.at("agrees") == false);
  CHECK(saved.at("verdict") == "correctly rounded");
  CHECK(saved.at("tensors").size() == 3);
  const std::string junit = files.read("r.xml");
  CHECK(contains(junit, R"(tests="3" failures="0" errors="1")"));
  CHECK(contains(junit, R"(<testcase name="c" classname="lnorm.check" time="0"><error message=)"));
}

TEST_CASE("weights of channels that are forgotten or others are named", "[check]") {
  const Workplace files;
  files.shell(
      "lnorm inputs --shape 6,4,5,5 --axes 2,3 --affine-axes 1 -o c; mv c/ordinary.x.npy x.npy");
  files.write("w.json", "[0.5, 1.25, -2, 3]");
  files.write("v.json", "[0.5, 1, -2, 3]");
  files.write("b.json", "[1, -1, 0.5, 2]");
  const auto cause = [&](const std::string& made, const std::string& asked) {
    files.shell("lnorm x.npy " + made + " -o y.npy");
    const std::string out = files.shell("lnorm check x.npy y.npy " + asked).out;
    const std::size_t at = out.find("cause: ");
    return at == out.npos ? out : out.substr(at + 7, out.find(" (other-affine)", at) - at - 7);
  };
  const std::string both = " --weight w.json --bias b.json";
  const std::string axes = "--axes 2,3";
  const std::string instance = axes + " --affine-axes 1";
  const std::string group = "--groups 2";
  CHECK(cause(group + both, group) == "y has a weight and a bias, and none is given");
  CHECK(cause(group + both, group + " --bias b.json") == "y has a weight, and none is given");
  CHECK(cause(group + both, group + " --weight w.json") == "y has a bias, and none is given");
  CHECK(cause(group + both, group + " --weight v.json --bias b.json") ==
        "the weight is not the one that is given, in parameter 1");
  CHECK(cause(instance + both, instance + " --weight b.json --bias b.json") ==
        "the weight is not the one that is given");
  CHECK(cause(instance + both, axes) ==
        "y has a weight and a bias along axis 1, and none is given");
  CHECK(cause("--axes 1,2,3 --affine-axes 1" + both, "--axes 1,2,3") ==
        "y has a weight and a bias along axis 1, and none is given");
}

TEST_CASE("another number of groups is named", "[check]") {
  const Workplace files;
  files.shell("lnorm inputs --shape 3,8,5,5 --axes 1,2,3 -o c; mv c/ordinary.x.npy x.npy");
  files.shell("lnorm x.npy --groups 4 -o y.npy; lnorm x.npy --groups 4 --unbiased -o z.npy");
  const std::string words = "cause: the channels are in another number of groups";
  for (const std::string asked : {"--groups 2", "--groups 8", "--axes 2,3", "--axes 1,2,3"}) {
    CAPTURE(asked);
    CHECK(contains(files.shell("lnorm check x.npy y.npy " + asked).out,
                   words + " (groups-4; --groups 4):"));
    CHECK(contains(files.shell("lnorm check x.npy z.npy " + asked).out,
                   "(groups-4+ddof-1; --groups 4 --unbiased):"));
  }
}

TEST_CASE("rows of groups are named by the axes of the file", "[check]") {
  const Workplace files;
  files.write("x.json", "[[[1, 2], [3, 4]], [[5, 6], [7, 9]]]");
  files.write("y.json", "[[[1, 2], [300, 4]], [[5, 6], [7, 9]]]");
  const Outcome found = files.run("check x.json y.json --groups 1 --channel-axis -1 --worst 1"_w);
  CHECK(contains(found.out, "where: 2 rows and 4 columns: every element\n"));
  CHECK(contains(found.out, "rows over axes 1 and 2: 2 / 2 differ"));
  CHECK(contains(found.out, "|expected| along axes 1 and 2;"));
}

TEST_CASE("check writes JSON and JUnit beside its text", "[check]") {
  const Checks files;
  const Words words = "check x.json wrong.npy --save-json r.json --save-junit r.xml"_w;
  const std::string text = files.run(words).out;
  CHECK(text == files.run("check x.json wrong.npy"_w).out);
  const json saved = support::parsed_json(files.read("r.json"));
  CHECK(saved == support::parsed_json(files.run("check x.json wrong.npy --json"_w).out));
  CHECK(saved.at("schema") == 2);
  CHECK(saved.at("command") == "check");
  CHECK(saved.at("agrees") == false);
  CHECK(saved.at("cause").at("ids") == json{"ddof-1"});
  CHECK(saved.at("elements") == 6);
  CHECK(saved.at("beyond_rounding") == 6);
  CHECK(saved.at("affected_rows") == json{{"count", 2}, {"first", {0, 1}}});
  CHECK(saved.at("worst_index").size() == 2);
  CHECK(files.read("r.xml") ==
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites name=\"lnorm check\" tests=\"1\" failures=\"1\" errors=\"0\" time=\"0\">\n"
        "  <testsuite name=\"lnorm check\" tests=\"1\" failures=\"1\" errors=\"0\" time=\"0\" "
        "skipped=\"0\">\n"
        "    <testcase name=\"x\" classname=\"lnorm.check\" time=\"0\"><failure message=\"x "
        "differs: the "
        "variance is divided by n - 1 (ddof-1; --unbiased)\" type=\"differs\">x differs: the "
        "variance "
        "is divided by n - 1 (ddof-1; --unbiased)\n" +
            text.substr(text.find('\n') + 1, text.size() - text.find('\n') - 2) +
            "</failure></testcase>\n  </testsuite>\n</testsuites>\n");
}

TEST_CASE("what no emulated kernel has is named as well", "[check]") {
  const Workplace files;
  std::string x;
  std::string twice;
  for (int i = 0; i < 48; ++i) {
    x += std::to_string((i * 37) % 41) + ", ";
    twice += std::to_string((i * 37) % 41 + 2 * ((i * 11) % 13)) + ", ";
  }
  const auto tensor = [](const std::string& numbers) {
    return "{\"x\": [" + numbers.substr(0, numbers.size() - 2) + "]}";
  };
  std::string residual;
  for (int i = 0; i < 48; ++i) residual += std::to_string((i * 11) % 13) + ", ";
  files.write("x.json", tensor(x));
  files.write("twice.json", tensor(twice));
  files.write("r.json", tensor(residual));
  const auto explained_by = [&](const std::string& kernel, const std::string& asked_for) {
    files.shell_output("lnorm " + kernel);
    const Outcome found = files.shell("lnorm check " + asked_for + " --json");
    return cause_of(support::parsed_json(found.out));
  };
  CHECK(explained_by("x.json:x -o y.npy", "x.json:x y.npy --residual r.json:x") == "no-residual");
  CHECK(explained_by("twice.json:x -o y.npy", "x.json:x y.npy --residual r.json:x") ==
        "residual-twice");
  const std::string weight = " --normalized-shape 6 --weight '[1, 2, 3, 4, 5, 7]'";
  files.write("rows.json", "[[1, 5, 2, 9, 4, 4], [3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]]");
  CHECK(explained_by("rows.json -o y.npy" + weight,
                     "rows.json y.npy --zero-centered-weight" + weight) == "weight-without-one");
  CHECK(explained_by("rows.json --dtype bfloat16 --bias 1.5" + weight + " -o y.safetensors",
                     "rows.json y.safetensors --bias 1.5 --round xhat" + weight) == "unrounded");
  files.write("planes.json", "[[[1, 5, 2], [9, 4, 4]], [[3, 1, 4], [1, 5, 9]]]");
  CHECK(explained_by("planes.json --axes 1,2 --weight '[[1, 2, 3], [4, 5, 7]]' -o y.npy",
                     "planes.json y.npy --axes 1,2 --weight '[[1, 3, 5], [2, 4, 7]]'") ==
        "weight-transposed");
  CHECK(explained_by("planes.json --axes 1,2 --weight '[[1, 3, 5], [2, 4, 7]]' -o y.npy",
                     "planes.json y.npy --axes 1,2 --weight '[[1, 2, 3], [4, 5, 7]]'") ==
        "weight-transposed");
}

TEST_CASE("normalization over other axes is named", "[check]") {
  const Workplace files;
  files.write("planes.json", [] {
    std::string text = "[";
    for (int a = 0; a < 4; ++a) {
      text += a == 0 ? "[" : "], [";
      for (int b = 0; b < 5; ++b) {
        text += b == 0 ? "[" : ", [";
        for (int c = 0; c < 6; ++c) {
          text += (c == 0 ? "" : ", ") +
                  std::to_string((a * a * 31 + b * 17 + c * c * 7 + a * b * c) % 43);
        }
        text += "]";
      }
    }
    return text + "]]";
  }());
  for (const std::string axes : {"0", "1", "1,2", "0,1,2"}) {
    files.output({"planes.json", "--axes", axes, "-o", "y.npy"});
    const json found = support::parsed_json(files.run("check planes.json y.npy --json"_w).out);
    std::string id = "axes-" + axes;
    std::replace(id.begin(), id.end(), ',', '-');
    CHECK(cause_of(found) == id);
    CHECK(found.at("cause").at("options") == json{"--axes " + axes});
  }
  const auto without = [&](const std::string& ids) {
    return files.run("check planes.json y.npy --skip-kernels"_w + Words{ids}).out;
  };
  CHECK(contains(without("axes-*"),
                 "cause: the statistics are those of all rows together (all-rows)"));
  CHECK(contains(without("axes-*,all-rows"), "no known wrong kernel explains this"));
  // Weight and bias keep their axes.
  files.output("planes.json --axes 0,1,2 --affine-axes 2 --weight [3,1,2,5,4,6] -o y.npy"_w);
  CHECK(contains(files.run("check planes.json y.npy --weight [3,1,2,5,4,6]"_w).out,
                 "(axes-0-1-2; --axes 0,1,2 --affine-axes 2)"));
}

TEST_CASE("a mean or a variance of all rows is named", "[check]") {
  const Checks files;
  files.write("rows.json", "[[1, 2, 4, 9], [3, 7, 5, 6], [-3, 1, 0, 8], [11, 2, 5, 5]]");
  const json rows = json::parse(files.read("rows.json"));
  double of_all = 0;
  double about_it = 0;
  for (const json& row : rows) {
    for (const double x : row) of_all += x / 16;
  }
  for (const json& row : rows) {
    for (const double x : row) about_it += (x - of_all) * (x - of_all) / 16;
  }
  enum class Of { mean, mean_alone, variance };
  for (const Of of : {Of::mean, Of::mean_alone, Of::variance}) {
    json y = rows;
    for (json& row : y) {
      double own = 0;
      for (const double x : row) own += x / 4;
      const double mean = of == Of::variance ? own : of_all;
      const double center = of == Of::mean ? of_all : own;
      double variance = of == Of::variance ? about_it : 0;
      for (const double x : row)
        variance += of == Of::variance ? 0 : (x - center) * (x - center) / 4;
      for (json& x : row) x = (x.get<double>() - mean) / std::sqrt(variance + 1e-5);
    }
    files.write("y.json", y.dump());
    const json found = support::parsed_json(files.run("check rows.json y.json --json"_w).out);
    CHECK(cause_of(found) == (of == Of::variance ? "all-rows-variance" : "all-rows-mean"));
    const auto words = found.at("cause").at("words").get<std::string>();
    CHECK(contains(words, "the variance is right") == (of == Of::mean_alone));
  }
}

TEST_CASE("what the rows tell of a kernel's statistics is said", "[check]") {
  const Checks files;
  json rows;
  for (int r = 0; r < 12; ++r) {
    json row;
    for (int i = 0; i < 8; ++i) row.push_back((r * 7 + i * i * 3 + r * i) % 23 * (1 + r % 3) - r);
    rows.push_back(row);
  }
  files.write("rows.json", rows.dump());
  struct Kernel {
    double mean_factor;
    double variance_factor;
    double eps;
    double mean_square_factor;
    std::string said;
  };
  const std::vector<Kernel> kernels{
      {1, 1, 1e-5, 0.5,
       "(unmasked-12): every element\nhow it shows: the variance used is var + 0.5 mean^2\n"},
      {1, 1.25, 0.5, 0, "what the rows tell: the variance used is 1.25 var; the eps used is 0.5\n"},
      {0.75, 1, 1e-5, -0.01,
       "what the rows tell: the mean used is 0.75 mean; the variance used is var - 0.01 mean^2\n"},
      {1, 1, 1e-3, 0, "(eps-1e-3; --eps 1e-3): every element\n"},
      {0, 1, 1e-5, 1, "how it shows: no mean is used; the variance used is var + mean^2\n"},
      // Sums go on to 13 elements.
      {1, 8 / 7.0, 1e-5, 5 / 7.0, "(ddof-1+unmasked-13)"},
      {8 / 13.0, 1, 1e-5, 0, "(padded-13-mean)"}};
  for (const Kernel& kernel : kernels) {
    json y = rows;
    for (json& row : y) {
      double mean = 0;
      for (const double x : row) mean += x / 8;
      double variance = 0;
      for (const double x : row) variance += (x - mean) * (x - mean) / 8;
      const double square =
          kernel.variance_factor * variance + kernel.eps + kernel.mean_square_factor * mean * mean;
      for (json& x : row) x = (x.get<double>() - kernel.mean_factor * mean) / std::sqrt(square);
    }
    files.write("y.json", y.dump());
    const std::string text = files.run("check rows.json y.json"_w).out;
    CAPTURE(text);
    CHECK(contains(text, kernel.said));
    const json estimates =
        support::parsed_json(files.run("check rows.json y.json --json"_w).out).at("estimates");
    const auto tells = [&](const std::string& key, double number) {
      CAPTURE(key, number, estimates);
      const json& found = estimates.at(key);
      CHECK(std::fabs(found.at("number").get<double>() - number) <=
            6 * found.at("error").get<double>());
      CHECK(found.at("error").get<double>() < 1e-9);
    };
    tells("mean_factor", kernel.mean_factor);
    tells("variance_factor", kernel.variance_factor);
    tells("eps", kernel.eps);
    tells("mean_square_factor", kernel.mean_square_factor);
  }
  // Each row has an eps of its own: no four numbers tell that.
  json y = rows;
  for (std::size_t r = 0; r < y.size(); ++r) {
    for (json& x : y[r]) x = std::sqrt(static_cast<double>(r) + 1) * x.get<double>();
  }
  files.write("y.json", y.dump());
  const json found = support::parsed_json(files.run("check rows.json y.json --json"_w).out);
  CHECK(found.at("estimates").at("variance_factor").is_null());
}

TEST_CASE("what few numbers tell is named, and no chance", "[check]") {
  const Checks files;
  const auto found = [&](const std::string& made, const std::string& asked) {
    files.shell_output("lnorm " + made + " -o y.npy");
    return support::parsed_json(files.shell("lnorm check " + asked + " --json").out);
  };
  // One row, in 16 bits.
  files.write("row.json", "[2.5, 1.25, 3, 2, 1.75, 0.5, 2.25, 4, 3.5]");
  CHECK(cause_of(found("row.json --dtype float16 --eps 0.5", "row.json y.npy")) == "eps=0.5");
  // In more bits one row tells a plain number, and no other, which any kernel would have.
  CHECK(cause_of(found("row.json --dtype float32 --eps 0.123", "row.json y.npy")) == "eps=0.123");
  CHECK(cause_of(found("row.json --dtype float32 --eps 0.1234567", "row.json y.npy")) == "none");
  // Rows of two elements are lines by any weight.
  files.write("two.json", "[[1, 3], [2, 9], [4, 3], [-1, 5]]");
  const std::string two = " --dtype float32 --weight [2,3]";
  CHECK(cause_of(found("two.json" + two, "two.json y.npy --weight [2,3] --bias [1,-2]")) ==
        "no-bias");
  // An element of RMS norm that is 0 has no error.
  files.write("zeros.json", "[[1, 0, 3, -2], [0, 2, 1, -1], [3, 1, 0, 2]]");
  CHECK(cause_of(found("zeros.json --rms --weight [0.3,1.7,-0.6,1.1]",
                       "zeros.json y.npy --rms --weight [0.3,1.7,-0.6,1.1] --bias [1,2,3,4]")) ==
        "no-bias");
  // Options run as they stand.
  const json cause = found("x.json", "x.json y.npy --weight [2,3,4] --zero-centered-weight");
  CHECK(cause.at("cause").at("options") == json{"without --weight without --zero-centered-weight"});
  CHECK(found("x.json", "x.json y.npy --mean [0,0] --variance [9,9]").at("cause").at("options") ==
        json{"without --mean without --variance"});
  // What is not written is no other weight.
  files.output("zeros.json -o y.json"_w);
  json tail = json::parse(files.read("y.json"));
  for (json& row : tail) row[3] = row[2] = 0;
  files.write("y.json", tail.dump());
  CHECK(cause_of(support::parsed_json(files.run("check zeros.json y.json --json"_w).out)) ==
        "unwritten-tail");
  // As many free numbers as a row tells.
  files.write("y.json", "[-1, 4]");
  files.write("pair.json", "[1, 2]");
  CHECK(cause_of(support::parsed_json(files.run("check pair.json y.json --json"_w).out)) == "none");
}

TEST_CASE("blocks of whole channels are groups, and sums over rows are averaged over these",
          "[check]") {
  const Checks files;
  files.write("image.json", numbers({2, 8, 64}, 1).dump());
  files.output("image.json --groups 8 -o y.npy"_w);
  CHECK(cause_of(support::parsed_json(
            files.run("check image.json y.npy --groups 4 --json"_w).out)) == "groups-8");
  files.write("square.json", numbers({12, 12}, 1).dump());
  files.write("dy.json", numbers({12, 12}, 2).dump());
  files.output("grad square.json --dy dy.json --dbias dbias.json"_w);
  json dbias = json::parse(files.read("dbias.json"));
  for (json& one : dbias) one = one.get<double>() / 12;
  files.write("dbias.json", dbias.dump());
  CHECK(contains(files.run("check square.json --dy dy.json --actual-dbias dbias.json"_w).out,
                 "dbias-factor=1/R"));
}

TEST_CASE("float64 results have all their digits, and are as float32's only where they are",
          "[check]") {
  const Checks files;
  files.write("x.json", numbers({4, 64}, 1).dump());
  files.output("x.json -o y.json"_w);
  json y = json::parse(files.read("y.json"));
  y[2][5] = y[2][5].get<double>() * (1 + 1e-11);
  files.write("y.json", y.dump());
  const std::string one = files.run("check x.json y.json"_w).out;
  CHECK(std::regex_search(one, std::regex("exact -?[0-9]\\.[0-9]{14,}")));
  CHECK_FALSE(contains(one, "as far off as float32"));
  files.output("x.json --dtype float32 -o y.npy"_w);
  files.output("convert y.npy --dtype float64 -o wide.npy"_w);
  CHECK(contains(files.run("check x.json wide.npy"_w).out, "as far off as float32"));
}

TEST_CASE("a factor of a parameter gradient in 16 bits is no noise of sums", "[check]") {
  const Checks files;
  files.write("x.json", numbers({32, 48}, 1).dump());
  files.write("dy.json", numbers({32, 48}, 2).dump());
  files.output("convert x.json --dtype bfloat16 -o x.safetensors"_w);
  files.output("convert dy.json --dtype bfloat16 -o dy.safetensors"_w);
  files.output("grad x.safetensors --dy dy.safetensors --dweight dw.json --dtype float64"_w);
  json dweight = json::parse(files.read("dw.json"));
  for (json& one : dweight) one = one.get<double>() * 1.0043217;
  files.write("dw.json", dweight.dump());
  files.output("convert dw.json --dtype bfloat16 -o dw.safetensors"_w);
  const std::string text =
      files.run("check x.safetensors --dy dy.safetensors --actual-dweight dw.safetensors"_w).out;
  CHECK(contains(text, "differs"));
  CHECK_FALSE(contains(text, "bfloat16-"));
}

TEST_CASE("what becomes of the residual is named beside a rounded sum, quantized or not",
          "[check]") {
  const Checks files;
  files.write("x.json", numbers({16, 64}, 1).dump());
  files.write("r.json", numbers({16, 64}, 2).dump());
  json negated = json::parse(files.read("r.json"));
  for (json& row : negated) {
    for (json& one : row) one = -one.get<double>();
  }
  files.write("n.json", negated.dump());
  for (const std::string name : {"x", "r", "n"}) {
    files.output("convert "_w + Words{name + ".json"} + "--dtype float16 -o"_w +
                 Words{name + ".npy"});
  }
  const auto cause = [&](const std::string& made, const std::string& asked) {
    files.shell_output("lnorm x.npy --rms " + made + " -o y.npy");
    const json found =
        support::parsed_json(files.shell("lnorm check x.npy y.npy --rms --json " + asked).out);
    return cause_of(found);
  };
  const std::string round = " --round sum";
  const std::string row = " --quantize row";
  CHECK(cause("--residual n.npy" + round, "--residual r.npy" + round) == "residual-negated");
  CHECK(cause("--residual r.npy" + round + row + " --dtype int8", "--residual r.npy" + row) ==
        "rounded-sum");
}

// The outputs of such rows are the elements themselves, or next to them: their roundings are no noise.
TEST_CASE("rows whose deviation is near a power of two tell no more than they do", "[check]") {
  const Checks files;
  const auto found = [&](const std::string& made, const std::string& asked) {
    files.shell_output("lnorm x.safetensors --rms" + made + " -o y.safetensors");
    return cause_of(support::parsed_json(
        files.shell("lnorm check x.safetensors y.safetensors --rms" + asked + " --json").out));
  };
  constexpr std::int64_t kLength = 768;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    CAPTURE(seed);
    write_file(files / "w.npy", npy_of<float>({kLength}, normals<float>(kLength, seed + 9)));
    write_file(files / "x.npy", npy_of<float>({32, kLength}, normals<float>(32 * kLength, seed)));
    files.output("convert x.npy --dtype bfloat16 -o x.safetensors"_w);
    CHECK(found("", " --weight w.npy") == "no-weight");
    CHECK(found("", " --bias w.npy") == "no-bias");
    CHECK(found(" --unbiased", "") == "ddof-1");
    CHECK(found(" --weight w.npy", "") == "other-affine");
  }
  // Equal elements tell a divisor alone.
  files.write("x.json", "[[1, 1, 1, -1], [2, 2, 2, 2]]");
  files.output("convert x.json --dtype float32 -o x.safetensors"_w);
  CHECK(found(" --unbiased", "") == "ddof-1");
  CHECK(found(" --eps 1e-3", "") == "eps-1e-3");
  // Right float16 kernels, which compute in float32: no formula is closer.
  constexpr std::int64_t kRows = 32;
  for (const double deviation : {1.0001, 1.0004, 2.001}) {
    CAPTURE(deviation);
    auto x = normals<float>(kRows * kLength, 3);
    std::vector<float> y;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const auto row = std::span(x).subspan(static_cast<std::size_t>(r * kLength), kLength);
      double squares = 0;
      for (const float one : row) squares += static_cast<double>(one) * one;
      float sum = 0;
      for (float& one : row) {
        const double scaled = one * deviation / std::sqrt(squares / kLength);
        one = static_cast<float>(lnorm::to_double(lnorm::rounded_to<lnorm::Float16>(scaled)));
        sum += one * one;
      }
      const float rstd = 1 / std::sqrt(sum / kLength + 1e-5F);
      for (const float one : row) y.push_back(one * rstd);
    }
    write_file(files / "x.npy", npy_of<float>({kRows, kLength}, x));
    write_file(files / "y.npy", npy_of<float>({kRows, kLength}, y));
    files.output("convert x.npy --dtype float16 -o x.safetensors"_w);
    files.output("convert y.npy --dtype float16 -o y.safetensors"_w);
    CHECK(!contains(files.output("check x.safetensors y.safetensors --rms"_w), "closer"));
    if (deviation > 1.0002) CHECK(found("", " --weight w.npy") == "no-weight");
  }
}

TEST_CASE("a name takes what speaks for it, and the plainest name goes first", "[check]") {
  const Workplace files;
  // x, y and what is asked for as the program takes them; made: the wrong kernel's options.
  const auto named = [&](const std::vector<float>& x, std::int64_t rows, const std::string& dtype,
                         const std::string& made, const std::string& asked,
                         const std::function<void(std::span<float>)>& change = {}) {
    const auto length = std::ssize(x) / rows;
    files.write("x.npy", npy_of<float>({rows, length}, x));
    files.shell_output("lnorm convert x.npy -o x.safetensors --dtype " + dtype);
    files.shell_output("lnorm x.safetensors --dtype float32 -o y.npy " + made);
    const std::string bytes = files.read("y.npy");
    std::vector<float> y(x.size());
    const std::size_t size = y.size() * sizeof(float);
    std::memcpy(y.data(), bytes.data() + bytes.size() - size, size);
    if (change) change(y);
    files.write("y.npy", npy_of<float>({rows, length}, y));
    files.shell_output("lnorm convert y.npy -o y.safetensors --dtype " + dtype);
    return cause_of(support::parsed_json(
        files.shell("lnorm check x.safetensors y.safetensors --json " + asked).out));
  };
  // Rows that are alike are the same along other axes: the one wrong column tells.
  std::vector<float> alike;
  for (int i = 0; i < 4 * 220; ++i) alike.push_back(static_cast<float>(i % 220) / 219);
  const auto column = [](std::size_t length, float by) {
    return [=](std::span<float> y) {
      for (std::size_t i = length / 2; i < y.size(); i += length) y[i] += by;
    };
  };
  CHECK(named(alike, 4, "float32", "", "", column(220, 0.1F)) == "none");
  // All others are correctly rounded.
  auto b = normals<float>(300, 4);
  files.write("b.npy", npy_of<float>({300}, b));
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    const auto x = normals<float>(4 * 300, seed);
    CHECK(named(x, 4, "bfloat16", "--bias b.npy", "--bias b.npy", column(300, 0.02F)) == "none");
    // x.std() + eps, in two rows of 16 bits
    const auto two = normals<float>(2 * 1000, seed);
    CHECK(named(two, 2, "float16", "--eps-on std --unbiased", "") == "eps-on-std+ddof-1");
    auto small = normals<float>(32 * 64, seed);
    for (float& one : small) one /= 20;
    CHECK(named(small, 32, "bfloat16", "--eps 0", "--eps 1e-6") == "eps-0");
    // The statistics of half a row
    const auto halves = normals<float>(8 * 768, seed);
    CHECK(named(halves, 8, "float32", "--rms", "--rms", [&](std::span<float> y) {
            for (std::size_t r = 0; r < 8; ++r) {
              const auto row = std::span(halves).subspan(r * 768, 768);
              double squares = 0;
              for (const float one : row.first(384)) squares += static_cast<double>(one) * one;
              const double rstd = 1 / std::sqrt(squares / 384 + 1e-5);
              for (std::size_t i = 0; i < 768; ++i)
                y[r * 768 + i] = static_cast<float>(row[i] * rstd);
            }
          }) == "first-384");
    // Rows that tell nothing
    auto few = normals<float>(8 * 300, seed);
    for (std::size_t i = 0; i < 7 * 300; ++i) few[i] = few[i / 300 * 300];
    CHECK(named(few, 8, "float32", "", "--bias b.npy") == "no-bias");
    for (std::size_t i = 0; i < 300; ++i) few[7 * 300 + i] = 1;
    CHECK(named(few, 8, "float32", "--bias b.npy", "--bias b.npy", [](std::span<float> y) {
            for (float& one : y) one *= 2;
          }) == "bias-twice");
  }
}

TEST_CASE("sums in 16 bits are no cause of dweight where dbias is right", "[check]") {
  const Workplace files;
  constexpr std::size_t kRows = 64;
  constexpr std::size_t kLength = 100;
  auto x = normals<float>(kRows * kLength, 5, 0.5, 0.05);
  const auto dy = normals<float>(kRows * kLength, 6, 1, 1);
  std::vector<double> rstds;
  for (std::size_t r = 0; r < kRows; ++r) {
    double squares = 0;
    for (const float one : std::span(x).subspan(r * kLength, kLength)) squares += one * one;
    rstds.push_back(1 / std::sqrt(squares / kLength + 1e-5));
  }
  std::vector<float> dweight(kLength);
  for (std::size_t i = 0; i < kLength; ++i) {
    double sum = 0;  // by 1 / s of the row before
    for (std::size_t r = 0; r < kRows; ++r)
      sum += dy[r * kLength + i] * x[r * kLength + i] * rstds[(r + kRows - 1) % kRows];
    dweight[i] = static_cast<float>(sum);
  }
  write_file(files / "x.npy", npy_of<float>({kRows, kLength}, x));
  write_file(files / "dy.npy", npy_of<float>({kRows, kLength}, dy));
  write_file(files / "dw.npy", npy_of<float>({kLength}, dweight));
  const std::string check = "lnorm check x.npy --dy dy.npy --rms --actual-dweight dw.safetensors";
  files.shell_output("lnorm convert dw.npy --dtype float16 -o dw.safetensors");
  files.shell_output("lnorm grad x.npy --dy dy.npy --rms --dbias db.safetensors --dtype float16");
  const std::string alone = files.shell(check).out;
  CHECK(contains(alone, "differs"));
  const std::string both = files.shell(check + " --actual-dbias db.safetensors").out;
  CHECK(contains(both, "dbias: correctly rounded"));
  CHECK(!contains(both, "float16-dweight"));
}

TEST_CASE("criteria beside check decide its exit status, not its verdict", "[check]") {
  const Checks files;
  const Outcome loose = files.run("check x.json wrong.npy --max-abs 1"_w);
  CHECK(loose.status == 0);
  CHECK(contains(loose.out, "wrong.npy: differs from"));
  CHECK(contains(loose.out, "criteria hold: "));
  const Outcome strict = files.run("check x.json wrong.npy --max-ulp 1 --min-sqnr 100"_w);
  CHECK(strict.status == 1);
  CHECK(contains(strict.out, "criteria fail: max ulp 1 "));
  CHECK(files.run("check x.json y.npy --max-ulp 0"_w).status == 0);
}

TEST_CASE("the public reports of data/cases are answered", "[check]") {
  const Workplace files;
  int asked = 0;
  for (const auto& folder : std::filesystem::directory_iterator(LNORM_DATA_DIR "/cases")) {
    const json document = support::parsed_json(read_file(folder.path() / "case.json"));
    for (const json& question : document.at("checks")) {
      if (!support::takes(asked++)) continue;
      const std::string arguments = question.at("arguments").get<std::string>();
      CAPTURE(document.at("source").get<std::string>(), arguments);
      const Outcome found = files.shell("cd " + folder.path().string() + " && lnorm " + arguments);
      const std::string said = found.out + found.err;
      CAPTURE(said);
      const auto says = [&](const char* key) {
        const std::string pattern = question.at(key).get<std::string>();
        return std::regex_search(said, std::regex(pattern, std::regex::icase));
      };
      CHECK(found.status == question.at("exit_status").get<int>());
      CHECK(says("must_match"));
      CHECK((question.at("must_not_match") == "" || !says("must_not_match")));
    }
  }
  CHECK(asked == 122);
}

TEST_CASE("what no order of sums loses differs, however long the row is", "[check]") {
  // Beyond what a tree of additions explains, though n u is more. In float32 these sums lose nothing.
  const Workplace files;
  std::string x;
  std::string y;
  for (int i = 0; i < 384; ++i) {
    x += "1000, 1002, ";
    y += "-0.997995, 1.001995, ";  // 0.002 too much
  }
  files.write("x.json", "[[" + x.substr(0, x.size() - 2) + "]]");
  files.write("shifted.json", "[[" + y.substr(0, y.size() - 2) + "]]");
  const Outcome found = files.run("check x.json shifted.json --arithmetic float32"_w);
  CHECK(found.status == 1);
  CHECK(contains(found.out, "a plain loop explains at most "));
  CHECK(files.run("check x.json shifted.json --arithmetic float32 --depth 768"_w).status == 0);
  CHECK(files.run("check x.json shifted.json --arithmetic float32 --depth 3"_w).status == 1);
}

TEST_CASE("check refuses what it cannot hold together", "[check]") {
  const Checks files;
  files.write("s.json", "[[1, 2], [3, 4]]");
  files.write("i.npy", npy("<i4", {2, 3}, std::string(24, '\0')));
  CHECK(files.fault("check x.json"_w, {"check takes two tensors, INPUT and OUTPUT, found 1"}) ==
        "");
  CHECK(files.fault("check x.json s.json"_w,
                    {"OUTPUT s.json has shape (2, 2), but x.json has shape (2, 3)"}) == "");
  CHECK(files.fault("check x.json i.npy"_w, {"OUTPUT i.npy: is int32, expected ",
                                             ": nothing says the scale of integers"}) == "");
  CHECK(files.fault("check x.json nosuch.npy"_w, {"OUTPUT nosuch.npy: No such file"}) == "");
  CHECK(files.fault("check x.json y.npy --weight [1,2]"_w,
                    {"--weight has shape (2), but the normalized shape is (3)"}) == "");
  CHECK(files.fault("check x.json y.npy --kernel rms"_w,
                    {"there is no option --kernel", "here they are --kernels"}) == "");
  CHECK(files.fault("check x.json y.npy --kernels no-tail-9"_w,
                    {"no wrong kernel is called 'no-tail-9'", "did you mean no-tail-8?"}) == "");
  CHECK(files.fault("check x.json y.npy --kernels rms --quiet"_w,
                    {"--kernels has no effect beside --quiet"}) == "");
  CHECK(files.fault("check x.json y.npy --save-json y.npy"_w,
                    {"--save-json y.npy: names what is read, or another output"}) == "");
  CHECK(files.fault("check x.json y.npy --save-json r --save-junit r"_w,
                    {"--save-junit r: names what is read, or another output"}) == "");
  CHECK(files.fault("check - -"_w, {"standard input is named for two inputs"}) == "");
}

TEST_CASE("check --quiet of a pipe reads again what differs") {
  const Workplace files;
  files.shell("lnorm inputs --shape 100,64 -o cases");
  CHECK(files.shell("cat cases/ordinary.x.npy | lnorm check - cases/ordinary.x.npy -q || echo $?")
            .out == "1\n");
}

TEST_CASE("the wrong kernels that are tried can be chosen", "[check]") {
  const Checks files;
  const auto explained_by = [&](const Words& words) {
    return cause_of(support::parsed_json(files.run("check x.json wrong.npy --json"_w + words).out));
  };
  CHECK(explained_by({}) == "ddof-1");
  CHECK(explained_by("--kernels eps-*,rms"_w) == "none");
  CHECK(explained_by("--skip-kernels ddof-*"_w) == "divisor=2");
  CHECK(explained_by("--kernels d*"_w) == "ddof-1");
}

TEST_CASE("gradients are judged, and what is wrong with them is named", "[check]") {
  const Workplace files;
  constexpr std::int64_t kRows = 37;
  constexpr std::int64_t kColumns = 19;
  std::vector<double> x;
  std::vector<double> dy;
  std::vector<double> weight;
  std::vector<double> bias;
  for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
    const auto t = static_cast<double>(i);
    x.push_back(static_cast<float>(2 * std::sin(1.7 * t) + std::cos(0.3 * t * t)));
    dy.push_back(static_cast<float>(std::cos(2.3 * t) + 0.2));
  }
  for (std::int64_t i = 0; i < kColumns; ++i) {
    weight.push_back(static_cast<float>(1 + 0.3 * std::sin(static_cast<double>(i))));
    bias.push_back(static_cast<float>(0.3 * std::cos(static_cast<double>(3 * i))));
  }
  const auto put = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                       const std::vector<double>& numbers) {
    files.write(name + ".npy", npy_of<float>(shape, numbers));
  };
  put("x", {kRows, kColumns}, x);
  put("dy", {kRows, kColumns}, dy);
  put("w", {kColumns}, weight);
  put("b", {kColumns}, bias);
  const Words outputs = "--dx dx.npy --dweight dw.npy --dbias db.npy"_w;
  const Words judged =
      "--actual-dx dx.npy --actual-dweight dw.npy --actual-dbias db.npy --weight w.npy"_w;
  const auto verdicts = [&](const Words& more) {
    const Outcome outcome = files.run("check x.npy --dy dy.npy --json"_w + judged + more);
    const json report = support::parsed_json(outcome.out);
    std::vector<std::string> found;
    for (const json& tensor : report.at("tensors")) {
      const std::string cause = cause_of(tensor);
      found.push_back(tensor.at("name").get<std::string>() + ": " +
                      (cause == "none" ? tensor.at("verdict").get<std::string>() : cause));
    }
    return found;
  };
  const Words right{"dx: correctly rounded", "dweight: correctly rounded",
                    "dbias: correctly rounded"};
  files.output("grad x.npy --dy dy.npy --weight w.npy"_w + outputs);
  CHECK(verdicts({}) == right);
  CHECK(files.run("check x.npy --dy dy.npy"_w + judged).status == 0);
  for (const Words& more : {"--rms"_w, "--ddof 1"_w, "--eps-on std"_w, "--eps 1e-3"_w}) {
    files.output("grad x.npy --dy dy.npy --weight w.npy"_w + more + outputs);
    CHECK(verdicts(more) == right);
  }
  files.output("grad x.npy --dy dy.npy --weight w.npy --unbiased"_w + outputs);
  CHECK(verdicts({}).front() == "dx: other-ddof");
  files.output("grad x.npy --dy dy.npy --weight w.npy --eps 1e-3"_w + outputs);
  CHECK(verdicts({}) == Words{"dx: eps-1e-3", "dweight: eps-1e-3", right[2]});
  files.output("grad x.npy --dy dy.npy --weight w.npy --eps 1e-3 --eps-on std"_w + outputs);
  CHECK(verdicts({"--eps", "1e-3"}) == Words{"dx: eps-on-std", "dweight: eps-on-std", right[2]});
  files.output("grad x.npy --dy dy.npy --weight w.npy --rms"_w + outputs);
  CHECK(verdicts({}) == Words{"dx: rms", "dweight: rms", right[2]});
  files.output("grad x.npy --dy dy.npy"_w + outputs);
  CHECK(verdicts({}) == Words{"dx: weight-forgotten", right[1], right[2]});
  files.output("grad x.npy --dy dy.npy --weight w.npy --rows :-5"_w + outputs);
  files.output("grad x.npy --dy dy.npy --weight w.npy --dx dx.npy"_w);
  CHECK(verdicts({}) == Words{right[0], "dweight: last-row-lost", "dbias: last-row-lost"});
  files.output("grad x.npy --dy dy.npy --weight w.npy --rows :-1"_w + outputs);
  files.output("grad x.npy --dy dy.npy --weight w.npy --dx dx.npy"_w);
  CHECK(verdicts({}) == Words{right[0], "dweight: last-row-lost", "dbias: last-row-lost"});

  // Sums of twelve rows each, joined in float16.
  files.write("sum.json", json(std::vector<double>(kColumns, 0)).dump());
  for (std::int64_t first = 0; first < kRows; first += 12) {
    const std::string rows = std::to_string(first) + ":" + std::to_string(first + 12);
    files.output("grad x.npy --dy dy.npy --dtype float16 --dweight part.npy --rows"_w +
                 Words{std::min(first + 12, kRows) == kRows ? std::to_string(first) + ":" : rows});
    files.output("convert part.npy -o part.json"_w);
    const auto sum = support::parsed_json(files.read("sum.json")).get<std::vector<double>>();
    auto joined = support::parsed_json(files.read("part.json")).get<std::vector<double>>();
    std::ranges::transform(joined, sum, joined.begin(), std::plus<>());
    files.write("joined.json", json(joined).dump());
    files.output("convert joined.json --dtype float16 -o sum.npy"_w);
    files.output("convert sum.npy -o sum.json"_w);
  }
  // So few rows do not tell whether each was rounded.
  const std::string partials = files.run("check x.npy --dy dy.npy --actual-dweight sum.npy"_w).out;
  CHECK(partials.find("cause: ") != std::string::npos);
  CHECK(partials.find("float16-partials") != std::string::npos);

  // One weight for all columns.
  files.output("grad x.npy --dy dy.npy --weight 1.5 --dweight one.npy"_w);
  CHECK(lines_of(files.run("check x.npy --dy dy.npy --weight 1.5 --actual-dweight one.npy"_w).out)
            .front() == "dweight: correctly rounded");

  // Kernels in float32 that lack a term.
  struct Wrong {
    bool has_mean = true;
    bool has_variance = true;
    bool has_affine = false;
    std::int64_t summed = kColumns;
    bool is_divided = true;
    float factor = 1;
    float of_dy = 0;
  };
  const auto kernel = [&](const Wrong& wrong) {
    const auto& [has_mean, has_variance, has_affine, summed, is_divided, factor, of_dy] = wrong;
    std::vector<double> dx(x.size());
    for (std::int64_t r = 0; r < kRows; ++r) {
      const double* const row = x.data() + r * kColumns;
      const double* const gradient = dy.data() + r * kColumns;
      float mean = 0;
      for (std::int64_t i = 0; i < kColumns; ++i) mean += static_cast<float>(row[i]);
      mean /= kColumns;
      float squares = 0;
      for (std::int64_t i = 0; i < kColumns; ++i) {
        const float d = static_cast<float>(row[i]) - mean;
        squares += d * d;
      }
      const float rstd = 1 / std::sqrt(squares / kColumns + 1e-5F);
      float c1 = 0;
      float c2 = 0;
      std::vector<float> xhat;
      for (std::int64_t i = 0; i < kColumns; ++i) {
        const auto c = static_cast<std::size_t>(i);
        xhat.push_back((static_cast<float>(row[i]) - mean) * rstd);
        if (has_affine) {
          xhat.back() = xhat.back() * static_cast<float>(weight[c]) + static_cast<float>(bias[c]);
        }
        const float g = static_cast<float>(gradient[i]) * static_cast<float>(weight[c]);
        if (i >= summed) continue;
        c1 += g / kColumns;
        c2 += g * xhat.back() / kColumns;
      }
      for (std::int64_t i = 0; i < kColumns; ++i) {
        const auto c = static_cast<std::size_t>(i);
        const float g = static_cast<float>(gradient[i]) * static_cast<float>(weight[c]);
        dx[static_cast<std::size_t>(r * kColumns + i)] =
            (g - (has_mean ? c1 : 0) - (has_variance ? xhat[c] * c2 : 0)) *
                (is_divided ? rstd : 1) * factor +
            of_dy * static_cast<float>(gradient[i]);
      }
    }
    put("dx", {kRows, kColumns}, dx);
    return verdicts({"--bias", "b.npy"}).front();
  };
  CHECK(kernel({}) == "dx: within rounding");
  CHECK(kernel({.has_mean = false}) == "dx: no-mean-of-g");
  CHECK(kernel({.has_variance = false}) == "dx: no-variance-term");
  CHECK(kernel({.has_mean = false, .has_variance = false}) == "dx: no-mean-terms");
  CHECK(kernel({.has_affine = true}) == "dx: xhat-with-affine");
  CHECK(kernel({.summed = 16}) == "dx: dx-no-tail-8");
  CHECK(kernel({.is_divided = false}) == "dx: dx-no-division");
  CHECK(kernel({.factor = -1}) == "dx: dx-negated");
  CHECK(kernel({.factor = 0}) == "dx: gradient-zeros");
  CHECK(kernel({.factor = 1024}) == "dx: dx-factor=1024");
  CHECK(kernel({.factor = 1.125F}) == "dx: dx-factor=1.125");
  CHECK(kernel({.of_dy = 1}) == "dx: dx-plus-dy");
  // Sums over rows of other terms.
  const auto sums_of = [&](const std::string& name, const auto& term) {
    std::vector<double> numbers(kColumns);
    for (std::size_t i = 0; i < x.size(); ++i) numbers[i % kColumns] += term(i);
    put(name, {kColumns}, numbers);
    return verdicts({})[name == "dw" ? 1 : 2];
  };
  CHECK(sums_of("db", [&](std::size_t i) { return dy[i] * weight[i % kColumns]; }) ==
        "dbias: weight-in-sums");
  const auto sums = [&](const auto& term) { return sums_of("dw", term); };
  std::vector<double> mean(kRows);
  std::vector<double> s(kRows);
  for (std::size_t r = 0; r < kRows; ++r) {
    const auto row = std::span(x).subspan(r * kColumns, kColumns);
    for (const double value : row) mean[r] += value / kColumns;
    for (const double value : row) s[r] += (value - mean[r]) * (value - mean[r]) / kColumns;
    s[r] = std::sqrt(s[r] + 1e-5);
  }
  const auto d = [&](std::size_t i) { return x[i] - mean[i / kColumns]; };
  const auto xhat = [&](std::size_t i) { return d(i) / s[i / kColumns]; };
  CHECK(sums([&](std::size_t i) { return dy[i] * xhat(i); }) == "dweight: correctly rounded");
  CHECK(sums([&](std::size_t i) { return dy[i] * x[i]; }) == "dweight: dweight-of-x");
  CHECK(sums([&](std::size_t i) { return dy[i] * d(i); }) == "dweight: dweight-no-division");
  CHECK(sums([&](std::size_t i) { return 2 * dy[i] * xhat(i); }) == "dweight: dweight-factor=2");
  CHECK(sums([&](std::size_t i) { return dy[i] * xhat(i) / kRows; }) ==
        "dweight: dweight-factor=1/R");
  // Rows that no number of the list leaves out.
  CHECK(sums([&](std::size_t i) { return i < x.size() / 2 ? dy[i] * xhat(i) : 0; }) ==
        "dweight: differs");
  // Beside OUTPUT, whose name is its own.
  files.output("x.npy --weight w.npy -o y.npy"_w);
  CHECK(lines_of(files.run("check x.npy y.npy --dy dy.npy"_w + judged).out).front() ==
        "y: correctly rounded");
  CHECK(files.fault("check x.npy --dy dy.npy"_w,
                    {"--dy has no effect without --actual-dx or --actual-dweight or "
                     "--actual-dbias"}) == "");
  CHECK(files.fault("check x.npy y.npy --actual-dx dx.npy"_w,
                    {"--actual-dx has no effect without --dy"}) == "");
  CHECK(files.fault("check x.npy --dy dy.npy --actual-dweight dx.npy"_w,
                    {"--actual-dweight dx.npy has shape (37, 19), expected (19), that of the "
                     "normalized axes"}) == "");
}

TEST_CASE("statistics that a kernel has saved are judged as well", "[check]") {
  const Workplace at;
  at.output({LNORM_DATA_DIR "/kernel/x.npy", "-o", at / "y.npy", "--save-mean", at / "m.npy",
             "--save-rstd", at / "r.npy", "--dtype", "float32"});
  const Words check{"check", LNORM_DATA_DIR "/kernel/x.npy", "y.npy"};
  const auto lines = [&](const Words& words) { return lines_of(at.run(check + words).out); };
  CHECK(lines("--actual-mean m.npy --actual-rstd r.npy"_w) ==
        std::vector<std::string>{"y: correctly rounded", "mean: correctly rounded",
                                 "rstd: correctly rounded", "3 tensors, 3 correctly rounded"});
  // In float32, as kernels save them, with the row's axis or without; one of them off.
  at.output("convert m.npy -o m32.npy --dtype float32"_w);
  CHECK(lines("--actual-mean m32.npy"_w)[1] == "mean: correctly rounded");
  CHECK(lines("--actual-mean m32.npy --rows 3:9"_w)[1] == "mean: correctly rounded");
  at.output({LNORM_DATA_DIR "/kernel/x.npy", "-o", at / "z.npy", "--unbiased", "--save-rstd",
             at / "r1.npy", "--no-keepdim"});
  const std::vector<std::string> off = lines("--actual-rstd r1.npy"_w);
  CHECK(off[1].starts_with("rstd: differs, worst element "));
  CHECK(off[2] ==
        "  cause: it is 1 / s by the variance divided by n - 1 (saved-ddof-1): every element");
  CHECK(lines("--actual-rstd r1.npy --rows 3:9"_w)[1].starts_with("rstd: differs"));
  CHECK(at.run(check + "--actual-rstd r1.npy --quiet"_w).status == 1);
  CHECK(at.fault(check + "--actual-rstd y.npy"_w,
                 {"y.npy has shape", "expected a number for each row"}) == "");
  CHECK(at.fault(check + "--rms --actual-mean m.npy"_w,
                 {"--actual-mean has no effect beside --rms"}) == "");
  CHECK(at.fault({"check", LNORM_DATA_DIR "/kernel/x.npy", "--dy", "y.npy", "--actual-dx", "y.npy",
                  "--actual-mean", "m.npy"},
                 {"--actual-mean is judged beside OUTPUT, which is missing"}) == "");
}

TEST_CASE(
    "gradients of plain loops are within rounding by the sums that are run, which cover nothing "
    "else",
    "[check]") {
  const Workplace files;
  const auto judged = [&](const std::vector<std::int64_t>& shape, const std::string& of,
                          auto change) {
    const std::int64_t rows = shape[0];
    const auto columns = static_cast<std::size_t>(shape[1]);
    std::vector<double> x;
    std::vector<double> dy;
    for (std::int64_t i = 0; i < rows * shape[1]; ++i) {
      const auto t = static_cast<double>(i);
      x.push_back(static_cast<float>(2 * std::sin(1.7 * t) + std::cos(0.3 * t * t)));
      dy.push_back(static_cast<float>(std::cos(2.3 * t) + 1.1));
    }
    std::vector<float> dx(x.size());
    std::vector<float> dbias(columns);
    for (std::size_t first = 0; first < x.size(); first += columns) {
      const auto n = static_cast<double>(columns);
      double mean = 0;
      double squares = 0;
      for (std::size_t i = first; i < first + columns; ++i) mean += x[i] / n;
      for (std::size_t i = first; i < first + columns; ++i)
        squares += (x[i] - mean) * (x[i] - mean);
      const auto rstd = static_cast<float>(1 / std::sqrt(squares / n + 1e-5));
      const auto xhat = [&](std::size_t i) { return static_cast<float>(x[i] - mean) * rstd; };
      float c1 = 0;
      float c2 = 0;
      for (std::size_t i = first; i < first + columns; ++i) {
        const auto g = static_cast<float>(dy[i]);
        dbias[i - first] += g;
        c1 += g;
        c2 += g * xhat(i);
      }
      for (std::size_t i = first; i < first + columns; ++i) {
        const auto g = static_cast<float>(dy[i]);
        dx[i] = (g - c1 / static_cast<float>(n) - xhat(i) * (c2 / static_cast<float>(n))) * rstd;
      }
    }
    std::vector<double> found;
    for (const float one : of == "dx" ? dx : dbias) {
      found.push_back(static_cast<float>(change(found.size(), one)));
    }
    files.write("x.npy", npy_of<float>(shape, x));
    files.write("dy.npy", npy_of<float>(shape, dy));
    files.write("found.npy", npy_of<float>(of == "dx" ? shape : std::vector{shape[1]}, found));
    const Outcome outcome =
        files.run("check x.npy --dy dy.npy --json"_w + Words{"--actual-" + of, "found.npy"});
    const json tensor = support::parsed_json(outcome.out).at("tensors").at(0);
    return tensor.at("verdict").get<std::string>() +
           (tensor.at("as_loop") == true ? ", as a loop's" : "");
  };
  const auto right = [](std::size_t, double value) { return value; };
  const auto one_off = [](std::size_t i, double value) { return i == 2 ? 1.0005 * value : value; };
  const auto all_off = [](std::size_t, double value) { return 1.0005 * value; };
  const std::vector<std::int64_t> wide{2, 65536};
  const std::vector<std::int64_t> tall{40000, 3};
  CHECK(judged(wide, "dx", right) == "within rounding, as a loop's");
  CHECK(judged(wide, "dx", one_off) == "differs");
  CHECK(judged(wide, "dx", all_off) == "differs");
  CHECK(judged(tall, "dbias", right) == "within rounding, as a loop's");
  CHECK(judged(tall, "dbias", one_off) == "differs");
  CHECK(judged(tall, "dbias", all_off) == "differs");
}

TEST_CASE("gradients whose sums leave the range are not judged", "[check]") {
  const Workplace files;
  files.write("x.npy", npy_of<float>({2, 4}, {1, 2, 3, 5, 2, 0, 1, -3}));
  files.write("dy.npy", npy_of<float>({2, 4}, {2e38F, 1, 2e38F, 1, 1, 1, 1, 2}));
  files.write("dx.npy", npy_of<float>({2, 4}, {NAN, NAN, NAN, NAN, 0, 0, 0, 0}));
  files.write("dbias.npy", npy_of<float>({4}, {2e38F, 2, 2e38F, 3}));
  const auto status = [&](const Words& words) {
    return files.run("check x.npy --dy dy.npy"_w + words).status;
  };
  CHECK(status("--actual-dx dx.npy --rows :1"_w) == 2);
  CHECK(status("--actual-dx dx.npy"_w) == 1);
  CHECK(status("--actual-dbias dbias.npy --affine-axes 1"_w) == 0);
}

TEST_CASE("what explains no gradient is looked for in little memory", "[check]") {
  const Workplace files;
  constexpr std::int64_t kLength = 65536;
  files.write("x.npy", waves({8, kLength}));
  files.output("convert x.npy -o wrong.npy --dtype float16"_w);
  const Outcome found = files.run("check x.npy --dy x.npy --weight 2 --actual-dx wrong.npy"_w);
  CHECK(found.status == 1);
#ifndef LNORM_SANITIZED  // which needs much more itself
  CHECK(found.peak_kib < 200 * 1024);
#endif
}

TEST_CASE("a cause is not named without what speaks for it", "[check]") {
  const Workplace files;
  // What the check of a wrong output says; change(y, i).
  const auto explanations = [&](float mean,
                                const std::function<float(float, std::size_t)>& change) {
    std::vector<float> x;
    for (int i = 0; i < 64 * 96; ++i) x.push_back(static_cast<float>(i * i % 9973) / 9973 + mean);
    files.write("x.npy", npy_of<float>({64, 96}, x));
    files.output("x.npy -o y.npy"_w);
    const std::string bytes = files.read("y.npy");
    std::vector<float> y(x.size());
    const std::size_t size = y.size() * sizeof(float);
    std::memcpy(y.data(), bytes.data() + bytes.size() - size, size);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = change(y[i], i);
    files.write("wrong.npy", npy_of<float>({64, 96}, y));
    const Outcome found = files.run("check x.npy wrong.npy --json"_w);
    CHECK(found.status == 1);
    return json::parse(found.out)["explanations"].dump();
  };
  // Each row's 1 / s comes out too small; one pass would go either way.
  const auto scaled = [](float y, std::size_t i) {
    return y * (1 - 0x1p-13F * static_cast<float>(1 + i / 96 % 3));
  };
  CHECK(explanations(8, scaled).find("one-pass") == std::string::npos);
  const auto lost = [](float y, std::size_t i) { return i == 98 ? INFINITY : y; };
  CHECK(explanations(0, lost).find("other-affine") == std::string::npos);
  const auto shifted = [](float y, std::size_t) { return y - 1e-5F; };
  CHECK(explanations(0, shifted).find("other-affine") == std::string::npos);
}

TEST_CASE("a tensor without axes is a row of one element", "[check]") {
  const Workplace files;
  files.write("x.npy", npy_of<float>({}, {3}));
  files.output("x.npy --bias 2 -o y.npy"_w);
  CHECK(files.run("check x.npy y.npy --bias 2"_w).status == 0);
  CHECK(files.run("check x.npy y.npy"_w).status == 1);
  CHECK(files.run("check x.npy --dy y.npy --actual-dx x.npy"_w).status == 1);
  CHECK(files.run("mutants x.npy --kernels no-bias --bias 2"_w).status == 0);
}

TEST_CASE("the options of a divisor take the place of --unbiased", "[check]") {
  const Workplace files;
  files.write("x.npy", waves({32, 64}));
  files.output("x.npy -o y.npy"_w);
  const std::string text = files.run("check x.npy y.npy --unbiased"_w).out;
  CHECK(text.find("(ddof-0; without --unbiased)") != std::string::npos);
}

TEST_CASE("what explains no row of very many is looked for in little memory", "[check]") {
  const Workplace files;
  constexpr std::int64_t kRows = 524'288;
  files.write("x.npy", waves({kRows, 4}));
  files.write("wrong.npy", waves({kRows, 4}, 0.7));
  const Outcome found = files.run("check x.npy wrong.npy"_w);
  CHECK(found.status == 1);
#ifndef LNORM_SANITIZED  // which needs much more itself
  CHECK(found.peak_kib < 100 * 1024);
#endif
}

TEST_CASE("criteria decide over gradients too", "[check]") {
  const Workplace at;
  const std::string x = LNORM_DATA_DIR "/kernel/x.npy";
  at.output({"grad", x, "--dy", x, "--dx", at / "dx.npy", "--dweight", at / "dw.npy", "--dtype",
             "float32"});
  at.output({"grad", x, "--dy", x, "--eps", "1e-3", "--dx", at / "dx3.npy", "--dweight",
             at / "dw3.npy", "--dtype", "float32"});
  const auto run = [&](const std::string& of, const Words& criteria) {
    return at.run(Words{"check", x, "--dy", x, "--actual-dx", "dx" + of + ".npy",
                        "--actual-dweight", "dw" + of + ".npy"} +
                  criteria);
  };
  CHECK(run("", "--max-ulp 0"_w).status == 0);
  CHECK(run("3", {}).status == 1);
  CHECK(run("3", "--max-abs 1000"_w).status == 0);
  const Outcome strict = run("3", "--max-ulp 0 --json"_w);
  CHECK(strict.status == 1);
  const json found = support::parsed_json(strict.out);
  for (const json& tensor : found.at("tensors")) {
    CHECK(tensor.at("verdict") == "differs");
    CHECK(tensor.at("failed")[0].at("criterion") == "max_ulp");
    CHECK(tensor.at("failed")[0].at("found") > 0);
  }
}

TEST_CASE("check takes the tensors that are chosen", "[check]") {
  const Workplace at;
  const std::string dump = LNORM_DATA_DIR "/gpt2/dump.npz:h.";
  const Words words{
      "check",  dump + "*.in",         dump + "{1}.out", "--weight", dump + "{1}.ln_1.weight",
      "--bias", dump + "{1}.ln_1.bias"};
  CHECK(lines_of(at.output(words + "--only h.1*.in --skip h.11.in"_w)) ==
        std::vector<std::string>{
            "h.1.in: within rounding, worst element 0.128 of what rounding explains",
            "h.10.in: within rounding, worst element 0.101 of what rounding explains",
            "2 tensors, 2 within rounding"});
  CHECK(at.fault(words + "--only h.99.in"_w, {"--only: 'h.99.in' matches no tensor of"}) == "");
  CHECK(at.fault(words + "--skip *"_w, {"--skip leaves no tensor of"}) == "");
  CHECK(at.fault({"check", dump + "0.in", dump + "0.out", "--only", "*"},
                 {"--only has no effect: there is one tensor"}) == "");
}

TEST_CASE("check shows what compare does of the output and the exact result", "[check]") {
  const Workplace files;
  files.write("x.json", "[[1, 2, 4, 3], [3, 3, 9, 1], [0, 1, 5, 2]]");
  files.shell("lnorm x.json -o e.npy; lnorm x.json --unbiased -o y.npy");
  const json held =
      support::parsed_json(files.shell("lnorm compare y.npy e.npy --worst 2 --json").out);
  json told = support::parsed_json(files.shell("lnorm check x.json y.npy --worst 2 --json").out)
                  .at("comparison");
  CHECK(told.at("expected").at("name") == "the exact result");
  told["expected"] = held.at("expected");
  for (const auto& [key, value] : told.items()) {
    CAPTURE(key);
    // JSON lists five of the first mismatches there.
    if (key != "mismatches") CHECK(value == held.at(key));
  }
  const std::string text = files.run("check x.json y.npy --worst 1 --histogram"_w).out;
  CHECK(text.starts_with("y.npy: differs from layer norm of x.json"));
  CHECK(contains(text, "\ny.npy and the exact result differ"));
  CHECK(contains(text, "worst elements by row-ulp:"));
  files.shell(
      "lnorm compare y.npy e.npy --rows-out held.csv -q; "
      "lnorm check x.json y.npy --rows-out told.csv -q");
  CHECK(read_file(files.path() / "told.csv") == read_file(files.path() / "held.csv"));
  CHECK(files.run("check x.json y.npy --page p.html --spec s -q"_w).status == 1);
  const std::string page = read_file(files.path() / "p.html");
  CHECK(contains(page, "y.npy: differs from layer norm of x.json"));
  CHECK(contains(page, "cause: the variance is divided by n - 1 (ddof-1; --unbiased)"));
  CHECK(contains(page, "What the errors are like"));
  CHECK(contains(files.shell("cat y.npy | lnorm check x.json - --worst 1").out, "worst elements"));
  CHECK(files.fault(
            "check x.json y.npy --worst 1 --actual-mean x.json"_w,
            {"--worst shows OUTPUT alone, found gradients or statistics to judge as well"}) == "");
  CHECK(files.fault("check x.json y.npy --page -"_w, {"--page takes a file"}) == "");
}

TEST_CASE("check judges float8 by the scale and the saturation that apply has", "[check]") {
  const Workplace files;
  files.write("x.json", "[[1, 2, 4, 3, 0.5, 7], [3, 3, 9, 1, 2, 2]]");
  files.write("w.json", "[1, 2, 3, 0.5, 0.25, 1]");
  for (const std::string options :
       {"--output-scale 20", "--output-scale 400 --saturate", "--saturate --weight w.json",
        "--output-scale 3 --weight w.json --bias 2 --zero-centered-weight"}) {
    CAPTURE(options);
    files.shell("lnorm x.json --dtype float8_e4m3fn -o y.safetensors " + options);
    const json right =
        support::parsed_json(files.shell("lnorm check x.json y.safetensors --json " + options).out);
    CHECK(right.at("verdict") == "correctly rounded");
  }
  files.shell(
      "lnorm x.json --dtype float8_e5m2 --output-scale 4 --weight w.json "
      "--zero-centered-weight -o y.safetensors");
  CHECK(
      contains(files.shell("lnorm check x.json y.safetensors --output-scale 4 --weight w.json").out,
               "cause: 1 + weight multiplies (weight-plus-one; --zero-centered-weight)"));
  files.shell("lnorm x.json -o y.npy");
  CHECK(files.fault("check x.json y.npy --output-scale 4"_w,
                    {"--output-scale is for float8, and OUTPUT y.npy is float64"}) == "");
}

TEST_CASE("what overflows in the right result is no reason to pass what does not", "[check]") {
  const Workplace files;
  files.write("x.json", "[[1, 2, 4, 8], [3, 3, 9, 2]]");
  files.shell("lnorm x.json --dtype float16 -o y.npy");
  const json found = support::parsed_json(
      files.shell("lnorm check x.json y.npy --weight '[1e6, 1e6, 1e6, 1e6]' --json").out);
  CHECK(found.at("verdict") == "differs");
  CHECK(found.at("beyond_rounding") == 8);
  // An infinity is right there, and the right sign is asked for.
  files.shell("lnorm x.json --dtype float16 --weight '[1e6, 1e6, 1e6, 1e6]' -o inf.npy");
  CHECK(files.run("check x.json inf.npy --weight [1e6,1e6,1e6,1e6] -q"_w).status == 0);
  CHECK(files.run("check x.json inf.npy --weight [-1e6,-1e6,-1e6,-1e6] -q"_w).status == 1);
  // What saturates is right if that is asked for.
  files.shell("lnorm x.json --dtype float8_e5m2 --output-scale 1e9 --saturate -o s.safetensors");
  const std::string saturated = "lnorm check x.json s.safetensors --output-scale 1e9 -q";
  CHECK(files.shell(saturated + " --saturate").status == 0);
  CHECK(files.shell(saturated).status == 1);
}

TEST_CASE("one element that is wrong in its own way does not hide what explains the others",
          "[check]") {
  const Workplace files;
  files.shell(
      "lnorm inputs --shape 8,64 -o c.npz && lnorm c.npz:ordinary.x --unbiased -o y.npy && "
      "lnorm convert y.npy --to json -o y.json");
  json y = support::parsed_json(read_file(files.path() / "y.json"));
  y[3][5] = 9.0;
  files.write("y.json", y.dump());
  files.shell("lnorm convert y.json --dtype float32 -o y.npy");
  CHECK(contains(files.shell("lnorm check c.npz:ordinary.x y.npy").out,
                 "most like the variance is divided by n - 1 (ddof-1; --unbiased): 99.8% of the "
                 "elements"));
}

TEST_CASE("a report is never written over what is read, or over another one", "[check]") {
  const Workplace files;
  files.write("x.json", "[[1, 2, 4]]");
  files.write("w.json", "[1, 2, 3]");
  files.shell("lnorm x.json --weight w.json -o y.npy; ln -s y.npy link.npy");
  const std::string other = ": names what is read, or another output";
  for (const std::string option : {"--rows-out", "--save-json", "--save-junit"}) {
    for (const std::string name : {"x.json", "y.npy", "w.json", "./y.npy", "link.npy"}) {
      CHECK(files.fault({"check", "x.json", "y.npy", "--weight", "w.json", option, name},
                        {option + " " + name + other}) == "");
    }
    CHECK(files.fault({"compare", "y.npy", "y.npy", option, "y.npy"},
                      {option + " y.npy" + other}) == "");
  }
  files.fault("check x.json y.npy --rows-out a --save-json a"_w, {"--rows-out a" + other});
  CHECK(files.fault("check x.json y.npy --rows-out -"_w,
                    {"--rows-out takes a file: standard output has the report"}) == "");
  CHECK(
      files.run("check x.json y.npy --weight w.json --save-json /dev/null --save-junit /dev/null"_w)
          .status == 0);
  CHECK(contains(files.run("check x.json y.npy --weight w.json --mask 0"_w).out,
                 "cannot be judged: the mask leaves no elements"));
}

TEST_CASE("errors beyond a threshold are described by it", "[check]") {
  const Workplace files;
  files.shell(
      "lnorm inputs --shape 16,64 -o c.npz && lnorm c.npz:ordinary.x -o y.npy && "
      "lnorm convert y.npy --to json -o y.json");
  const json exact = support::parsed_json(read_file(files.path() / "y.json"));
  const auto where = [&](double (*change)(double)) {
    json y = exact;
    for (json& row : y) {
      for (json& number : row) number = change(number.get<double>());
    }
    files.write("changed.json", y.dump());
    files.shell("lnorm convert changed.json --dtype float32 -o changed.npy");
    return files.shell("lnorm check c.npz:ordinary.x changed.npy").out;
  };
  CHECK(contains(where([](double y) { return std::clamp(y, -1.5, 1.5); }),
                 "where: elements with |y| above 1.5: all "));
  CHECK(contains(where([](double y) { return std::max(y, 0.01 * y); }),
                 "where: elements with y up to "));
  CHECK(contains(where([](double y) { return y > 1 ? y * 1.01 : y; }),
                 "where: elements with y above 1: all "));
  CHECK(!contains(where([](double y) { return y * 1.01; }), "elements with"));
}
