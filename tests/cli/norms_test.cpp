#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "lnorm/core/text.hpp"
#include "support/commands.hpp"
#include "support/json.hpp"
#include "support/pace.hpp"

// Group, instance and batch norm as users ask for them, against what PyTorch and ONNX give.

namespace {

using namespace support;

const std::string kTorchNorms = data_file("norms/torch.npz");

std::string of_torch(const std::string& name) { return kTorchNorms + ":" + name; }

struct NormCase {
  std::string name;
  Words axes;
};

const std::vector<NormCase> kNormCases{
    {"group_1", "--groups 1"_w},
    {"group_2", "--groups 2"_w},
    {"group_3", "--groups 3 --channel-axis -3"_w},
    {"group_6", "--groups 6"_w},
    {"instance", "--axes 2,3 --affine-axes 1"_w},
    {"training", "--axes 0,2,3 --affine-axes 1"_w},
};

// Agrees with what PyTorch has computed in float64, to its own error.
void check_near_torch(const Workplace& at, const std::string& actual, const std::string& expected) {
  CAPTURE(actual, expected);
  const Outcome outcome =
      at.run({"compare", actual, expected, "--rtol", "1e-11", "--atol", "1e-12", "--quiet"});
  CHECK(outcome.status == 0);
}

}  // namespace

TEST_CASE("group, instance and batch norm are PyTorch's, forward and backward", "[norms]") {
  const Workplace at;
  for (const NormCase& c : kNormCases) {
    CAPTURE(c.name);
    const Words terms{"--weight", of_torch("weight"), "--bias", of_torch("bias"), "-o", "y.npy"};
    at.output(Words{of_torch("x")} + c.axes + terms);
    check_near_torch(at, "y.npy", of_torch(c.name + ".y"));
    at.output(Words{"grad", of_torch("x"), "--dy", of_torch("dy"), "--weight", of_torch("weight"),
                    "--dx", "dx.npy", "--dweight", "dw.npy", "--dbias", "db.npy"} +
              c.axes);
    check_near_torch(at, "dx.npy", of_torch(c.name + ".dx"));
    check_near_torch(at, "dw.npy", of_torch(c.name + ".dweight"));
    check_near_torch(at, "db.npy", of_torch(c.name + ".dbias"));
  }
}

TEST_CASE("batch norm in evaluation is PyTorch's, from a file and from a pipe", "[norms]") {
  const Workplace at;
  const Words words{
      "--axes",         "0,2,3",         "--affine-axes",      "1",        "--mean",
      of_torch("mean"), "--variance",    of_torch("variance"), "--weight", of_torch("weight"),
      "--bias",         of_torch("bias")};
  at.output(Words{of_torch("x"), "-o", "y.npy"} + words);
  check_near_torch(at, "y.npy", of_torch("evaluation.y"));
  at.output(Words{of_torch("x"), "--axes", "0", "--eps", "1", "-o", "x.npy"});
  const std::string piped = output_of(words, pipe_of(at.read("x.npy")));
  CHECK(piped == at.output(Words{"x.npy"} + words));
  const std::string route =
      at.run(Words{"--verbose", "-o", "z.npy"} + words, pipe_of(at.read("x.npy"))).err;
  CHECK(!contains(route, "temporary"));
}

TEST_CASE("the gradients of batch norm in evaluation are PyTorch's", "[norms][grad]") {
  const Workplace at;
  const Words given{"--axes", "0,2,3",          "--affine-axes", "1",
                    "--mean", of_torch("mean"), "--variance",    of_torch("variance")};
  at.output(Words{"grad", of_torch("x"), "--dy", of_torch("dy"), "--weight", of_torch("weight"),
                  "--dx", "dx.npy", "--dweight", "dw.npy", "--dbias", "db.npy"} +
            given);
  check_near_torch(at, "dx.npy", of_torch("evaluation.dx"));
  check_near_torch(at, "dw.npy", of_torch("evaluation.dweight"));
  check_near_torch(at, "db.npy", of_torch("evaluation.dbias"));
}

TEST_CASE("with constants for statistics every gradient is rounded once", "[norms][grad]") {
  const Workplace at;
  at.write("zeros.json", "[[0, 1, 0, -2], [3, 0, 0, 5]]");
  at.write("x.json", "[[7, 1, 0, -2], [3, 1e-3, 9, 5]]");
  const Words weight{"--weight", of_torch("weight")};
  const auto bytes = [&](const Words& words) {
    at.output(words + "-o result.safetensors --name t"_w);
    return at.read("result.safetensors");
  };
  // dx is dy normalized about 0; by either kernel.
  for (const Words& options :
       {"--axes 0,2,3 --affine-axes 1"_w, "--axes 2,3 --affine-axes 1 --eps-on std --eps 1e-3"_w,
        "--axes 0,2,3 --affine-axes 1 --zero-centered-weight --eps 0"_w}) {
    for (const std::string dtype : {"float16", "bfloat16", "float32", "float64"}) {
      CAPTURE(options, dtype);
      const std::string rows = options[1] == "2,3"
                                   ? "[[3, 0, 1e-9, 2, 5e6, 0.1], [1, 2, 3, 4, 5, 6]]"
                                   : "[3, 1e-30, 1e-9, 2, 5e6, 0.1]";
      const Words given = options + weight + Words{"--variance", rows, "--dtype", dtype};
      const Words grad =
          Words{"grad",         of_torch("x"), "--dy",
                of_torch("dy"), "--mean",      options[1] == "2,3" ? rows : of_torch("mean")} +
          given;
      const std::string expected = bytes(Words{of_torch("dy"), "--mean", "0"} + given);
      CHECK((bytes(grad) == expected));
      CHECK((bytes(grad + "--kernel reference"_w) == expected));
    }
  }
  CHECK((bytes("grad x.json --dy zeros.json --rms --variance [2,3]"_w) ==
         bytes("zeros.json --rms --variance [2,3]"_w)));
  // A deviation that is a number says the same as its reciprocal.
  const Words sums = "grad x.json --dy zeros.json --mean [1,2] --dweight w.npy --dbias b.npy"_w;
  at.output(sums + "--rstd [0.5,0.25]"_w);
  const std::string dweight = at.read("w.npy");
  for (const Words& other : {"--eps 0"_w, "--eps 0 --kernel reference"_w}) {
    at.output(sums + "--variance [4,16]"_w + other);
    CHECK((at.read("w.npy") == dweight));
  }
  // Else integers say the same as doubles do.
  at.output(sums + "--variance [2,3e-7]"_w);
  const std::string fast = at.read("w.npy");
  at.output(sums + "--variance [2,3e-7] --kernel reference"_w);
  CHECK((at.read("w.npy") == fast));
  CHECK(contains(at.output("grad x.json --dy zeros.json --mean [1,1] --variance [0,1] --eps 0"_w),
                 "NaN"));
}

TEST_CASE("the rows of groups and their statistics are numbered by sample and group", "[norms]") {
  const Workplace at;
  at.output({of_torch("x"), "--groups", "2", "-o", "y.npy", "--save-mean", "mean.npy"});
  CHECK(contains(at.output("show mean.npy --header"_w), "shape (2, 2)"));
  at.output({of_torch("x"), "--groups", "2", "--rows", "1:3", "--weight", of_torch("weight"), "-o",
             "rows.npy"});
  CHECK(contains(at.output("show rows.npy --header"_w), "shape (2, 3, 3, 4)"));
  at.output({of_torch("x"), "--groups", "2", "--weight", of_torch("weight"), "-o", "y.npy"});
  const auto elements = [&](const std::string& file, std::size_t from_end, std::size_t count) {
    const std::string bytes = at.read(file);
    return bytes.substr(bytes.size() - from_end * sizeof(double), count * sizeof(double));
  };
  CHECK(elements("rows.npy", 72, 72) == elements("y.npy", 144 - 36, 72));
  const std::string stats = at.output({"stats", of_torch("x"), "--groups", "2", "--json"});
  CHECK(contains(stats, "[1,1]"));
}

TEST_CASE("a norm that does not fit says what would", "[norms]") {
  const Workplace at;
  const auto fault = [&](const Words& words, const Words& expected) {
    return at.fault(Words{of_torch("x")} + words, expected);
  };
  const Words weight{"--weight", of_torch("weight")};
  CHECK(fault("--groups 4"_w, {"6 channels cannot be split into 4 groups", "a divisor of 6"}) ==
        "");
  CHECK(fault("--groups 2 --channel-axis 0"_w, {"channel axis 0", "expected 1 to 3"}) == "");
  CHECK(fault("--groups 2 --axes 1"_w, {"--groups and --axes"}) == "");
  CHECK(fault("--groups 2 --weight 1 --affine-axes 1"_w, {"--groups and --affine-axes"}) == "");
  CHECK(fault("--channel-axis 1"_w, {"without --groups"}) == "");
  CHECK(fault("--axes 2,3 --affine-axes 4"_w + weight, {"found axis 4", "-4 to 3"}) == "");
  CHECK(fault("--axes 2,3 --affine-axes 1,-3"_w + weight, {"axis 1 twice"}) == "");
  CHECK(fault("--axes 2,3 --affine-axes 2"_w + weight, {"shape (6)", "affine axes is (3)"}) == "");
  CHECK(fault("--axes 2,3 --mean 0"_w, {"--mean has no effect without --rstd or --variance"}) ==
        "");
  CHECK(fault("--axes 2,3 --variance 1"_w, {"--variance needs --mean"}) == "");
  CHECK(fault("--axes 0,2,3 --mean [1,2] --variance 1"_w,
              {"--mean has shape (2)", "(1, 6, 1, 1) or (6)"}) == "");
  CHECK(fault("--axes 0,2,3 --mean 0 --variance [1,1,-1,1,1,1]"_w,
              {"element (2) is -1", "0 or more"}) == "");
  CHECK(fault("--axes 0,2,3 --mean 0 --variance 1 --rstd 1"_w, {"--rstd and --variance"}) == "");
  const Words grad{"grad", of_torch("x"), "--dy", of_torch("dy"), "--axes", "0,2,3"};
  CHECK(at.fault(grad + "--variance 1"_w, {"--variance needs --mean"}) == "");
  CHECK(at.fault(grad + "--mean 1"_w, {"--mean has no effect without --rstd or --variance"}) == "");
  CHECK(at.fault(grad + "--mean [1,1,1,1,1,1] --variance [1,1,1,-1,1,1]"_w,
                 {"--variance: is -1 for row 3, expected a variance, 0 or more"}) == "");
  CHECK(at.fault(grad + "--mean 1 --variance 1 --ddof 1"_w,
                 {"--ddof has no effect beside --variance"}) == "");
  CHECK(fault("--num-groups 2"_w, {"--groups"}) == "");
  CHECK(fault("--running-mean 0"_w, {"--mean"}) == "");
  CHECK(fault("--running-var 1"_w, {"--variance"}) == "");
  CHECK(fault("--data-format NHWC"_w, {"--channel-axis"}) == "");
}

TEST_CASE("ONNX's node tests of batch, instance and group normalization agree", "[norms][onnx]") {
  const Workplace at;
  const auto node = [](const std::string& test, const std::string& file) {
    return data_file("norms/onnx/" + test + "/" + file + ".pb");
  };
  const auto check = [&](const std::string& test, const Words& words) {
    CAPTURE(test);
    at.output(Words{node(test, "input_0"), "--weight", node(test, "input_1"), "--bias",
                    node(test, "input_2"), "-o", "y.npy"} +
              words);
    CHECK(at.run({"compare", "y.npy", node(test, "output_0"), "--rtol", "1e-3", "--atol", "1e-5",
                  "--quiet"})
              .status == 0);
  };
  for (const auto& [suffix, eps] : {std::pair{"_example", "1e-5"}, {"_epsilon", "1e-2"}}) {
    const std::string batch = std::string("batchnorm") + suffix;
    check(batch, {"--axes", "0,2,3", "--affine-axes", "1", "--eps", eps, "--mean",
                  node(batch, "input_3"), "--variance", node(batch, "input_4")});
    check(batch + "_training_mode", {"--axes", "0,2,3", "--affine-axes", "1", "--eps", eps});
    check(std::string("instancenorm") + suffix,
          {"--axes", "2,3", "--affine-axes", "1", "--eps", eps});
    check(std::string("groupnorm") + suffix, {"--groups", "2", "--eps", eps});
  }
  // Opset 18 has a scale and a bias for each group: they are repeated for its channels.
  const std::string x = node("groupnorm_example", "input_0");
  at.output(
      {x, "--groups", "2", "--weight", "[3,3,-0.5,-0.5]", "--bias", "[1,1,2,2]", "-o", "y.npy"});
  const std::string y = at.read("y.npy").substr(128);
  const std::string elements = at.output({"convert", x, "--to", "npy"}).substr(128);
  for (std::size_t row = 0; row < 6; ++row) {
    const bool is_first = row % 2 == 0;
    at.write("x.raw", elements.substr(32 * row, 32));
    const std::string group =
        at.output("x.raw --from raw --as float32 --shape 1,8 --to npy"_w +
                  (is_first ? "--weight 3 --bias 1"_w : "--weight -0.5 --bias 2"_w));
    CHECK((group.substr(128) == y.substr(32 * row, 32)));
  }
}

TEST_CASE("check judges the norms of groups by the weight and bias of each row", "[norms][check]") {
  const Workplace at;
  const Words affine{"--weight", of_torch("weight"), "--bias", of_torch("bias")};
  const auto report = [&](const Words& words) {
    return support::parsed_json(at.run("check"_w + words + "--json"_w).out);
  };
  for (const auto& [name, options] :
       std::vector<std::pair<std::string, Words>>{{"group_1", "--groups 1"_w},
                                                  {"group_2", "--groups 2"_w},
                                                  {"group_6", "--groups 6"_w},
                                                  {"instance", "--axes 2,3 --affine-axes 1"_w},
                                                  {"training", "--axes 0,2,3 --affine-axes 1"_w}}) {
    CAPTURE(name);
    const auto torch = report(Words{of_torch("x"), of_torch(name + ".y")} + affine + options);
    CHECK(torch.at("verdict") == "within rounding");
    CHECK(torch.at("elements") == 144);
    at.output(Words{of_torch("x"), "--dtype", "float32", "-o", "y.npy"} + affine + options);
    const auto own = report(Words{of_torch("x"), "y.npy"} + affine + options);
    CHECK(own.at("verdict") == "correctly rounded");
    CHECK(report(Words{of_torch("x"), "y.npy"} + affine + options + "--rows 1:2"_w).at("verdict") ==
          "correctly rounded");
    at.output(Words{of_torch("x"), "--unbiased", "--dtype", "float32", "-o", "y.npy"} + affine +
              options);
    CHECK(report(Words{of_torch("x"), "y.npy"} + affine + options).at("cause").at("ids") ==
          json{"ddof-1"});
    at.output(
        Words{of_torch("x"), "--weight", of_torch("weight"), "--dtype", "float32", "-o", "y.npy"} +
        options);
    CHECK(report(Words{of_torch("x"), "y.npy"} + affine + options).at("cause").at("ids") ==
          json{"no-bias"});
  }
  // Channels last: the elements of a row have another order than its axes.
  at.shell("lnorm convert " + of_torch("x") + " --to json -o x.json");
  const auto last = "x.json --groups 2 --channel-axis -1 --weight [1,2,3,4]"_w;
  at.output(last + "-o y.npy --dtype float16"_w);
  CHECK(report(last + "y.npy"_w).at("verdict") == "correctly rounded");
  at.output(last + "-o y.npy --dtype float32 --eps 1e-3"_w);
  CHECK(report(last + "y.npy --mask [1,0,1,1]"_w).at("cause").at("ids") == json{"eps-1e-3"});
}

TEST_CASE("check judges the gradients of norms that share weights", "[norms][check]") {
  const Workplace at;
  const Words inputs{of_torch("x"),      "--dy",   of_torch("dy"),  "--weight",
                     of_torch("weight"), "--bias", of_torch("bias")};
  const auto report = [&](const Words& words) {
    return support::parsed_json(at.run("check"_w + words + "--json"_w).out);
  };
  const auto gradients = [](const std::string& name) {
    return Words{"--actual-dx",      of_torch(name + ".dx"),
                 "--actual-dweight", of_torch(name + ".dweight"),
                 "--actual-dbias",   of_torch(name + ".dbias")};
  };
  for (const NormCase& c : kNormCases) {
    CAPTURE(c.name);
    const auto torch = report(inputs + c.axes + gradients(c.name));
    CHECK(torch.at("verdict") != "differs");
    CHECK(torch.at("tensors").size() == 3);
    const Words own = Words{"grad"} + Words(inputs.begin(), inputs.begin() + 5) + c.axes;
    at.output(own + "--dtype float32 --dx dx.npy --dweight dw.npy --dbias db.npy"_w);
    const Words outputs = "--actual-dx dx.npy --actual-dweight dw.npy --actual-dbias db.npy"_w;
    CHECK(report(inputs + c.axes + outputs).at("verdict") == "correctly rounded");
    at.output(own + "--dtype float32 --dx dx.npy --dweight dw.npy --eps 1e-2"_w);
    const auto wrong = report(inputs + c.axes + outputs);
    CHECK(wrong.at("tensors").at(0).at("verdict") == "differs");
    CHECK(wrong.at("tensors").at(1).at("verdict") == "differs");
    CHECK(wrong.at("tensors").at(2).at("verdict") == "correctly rounded");
    at.output(Words{"grad", of_torch("x"), "--dy", of_torch("dy")} + c.axes +
              "--dtype float32 --dx dx.npy --dbias db.npy"_w);
    CHECK(report(inputs + c.axes + "--actual-dx dx.npy"_w)
              .at("tensors")
              .at(0)
              .at("cause")
              .at("ids") == json{"weight-forgotten"});
  }
  CHECK(at.fault(Words{"check"} + inputs + "--groups 2 --actual-dweight [[1]]"_w, {}) == "");
  CHECK(
      at.fault(Words{"check"} + inputs + Words{"--groups", "2", "--actual-dweight", of_torch("x")},
               {"expected (6), that of the channels"}) == "");
}

TEST_CASE("check judges norms by the statistics that they were given", "[norms][check]") {
  const Workplace at;
  const Words axes = "--axes 0,2,3 --affine-axes 1"_w;
  const Words affine{"--weight", of_torch("weight"), "--bias", of_torch("bias")};
  const Words given{"--mean", of_torch("mean"), "--variance", of_torch("variance")};
  const auto report = [&](const Words& words) {
    return support::parsed_json(
        at.run(Words{"check", of_torch("x")} + words + axes + affine + "--json"_w).out);
  };
  CHECK(report(Words{of_torch("evaluation.y")} + given).at("verdict") == "within rounding");
  CHECK(report(Words{"--dy", of_torch("dy"), "--actual-dx", of_torch("evaluation.dx"),
                     "--actual-dweight", of_torch("evaluation.dweight"), "--actual-dbias",
                     of_torch("evaluation.dbias")} +
               given)
            .at("verdict") != "differs");
  CHECK(report(Words{of_torch("training.y")} + given).at("cause").at("ids") ==
        json{"own-statistics"});
  const auto backward = report(Words{"--dy", of_torch("dy"), "--actual-dx", of_torch("training.dx"),
                                     "--actual-dweight", of_torch("training.dweight")} +
                               given);
  CHECK(backward.at("tensors").at(0).at("cause").at("ids") == json{"own-statistics"});
  CHECK(backward.at("tensors").at(1).at("cause").at("ids") == json{"own-statistics"});
  const auto write = [&](const Words& words) {
    at.output(Words{of_torch("x"), "--dtype", "float32", "-o", "y.npy"} + words + axes + affine);
  };
  write(given);
  const auto exact = report("y.npy --worst 1"_w + given);
  CHECK(exact.at("verdict") == "correctly rounded");
  CHECK(exact.at("comparison").at("mismatched") == 0);
  CHECK(report("y.npy --rows 2:4"_w + given).at("verdict") == "correctly rounded");
  write(given + "--eps 1e-3"_w);
  CHECK(report("y.npy"_w + given).at("cause").at("ids") == json{"eps-1e-3"});
  write(given + "--eps-on std --eps 1e-3"_w);
  CHECK(report("y.npy --eps 1e-3"_w + given).at("cause").at("ids") == json{"eps-on-std"});
  const Words rstd = "--mean 0.5 --rstd 0.25"_w;
  write(rstd);
  CHECK(report("y.npy"_w + rstd).at("verdict") == "correctly rounded");
  write("--mean 0.5 --rstd 0.5"_w);
  CHECK(report("y.npy"_w + rstd).at("verdict") == "differs");
  CHECK(at.fault(Words{"check", of_torch("x"), "y.npy", "--mean", "0", "--variance", "-1"},
                 {"--variance: is -1, expected a variance, 0 or more"}) == "");
  CHECK(at.fault(Words{"check", of_torch("x"), "y.npy", "--mean", "0"},
                 {"--mean has no effect without --rstd or --variance"}) == "");
}

TEST_CASE("explain shows the statistics that are given beside the row's own", "[norms][explain]") {
  const Workplace at;
  at.write("x.json", "[[1, 2, 6], [0, 0, 3]]");
  const std::string text =
      at.output("explain x.json --row 0 --mean [1,5] --variance [4,9] --eps 0"_w);
  for (const std::string line :
       {" given:      mean = 1\n", "of the row: mean = sum(x) / n = 3\n", " given:    var = 4\n",
        "biased:   var = 4.667\n", "x[0] - mean = 1 - 1 = 0\n", "(4 + 0) = 2\n"}) {
    CAPTURE(line);
    CHECK(contains(text, line));
  }
  const auto row = [&](const Words& words) {
    return support::parsed_json(at.output("explain x.json --json"_w + words)).at("rows").at(0);
  };
  const auto by_rstd = row("--row 1 --mean [1,5] --rstd [4,0.5] --weight [1,1,10]"_w);
  CHECK(by_rstd.at("given").at("mean") == 5);
  CHECK(by_rstd.at("given").at("rstd") == 0.5);
  CHECK(by_rstd.at("elements").at(2).at("xhat") == -1);
  CHECK(by_rstd.at("elements").at(2).at("y") == -10);
  CHECK(by_rstd.at("input").at("mean") == 1);
  // As apply has it, with weights along other axes, and in every row.
  const Words words{"--axes",   "0,2,3",           "--affine-axes", "1",
                    "--mean",   of_torch("mean"),  "--variance",    of_torch("variance"),
                    "--weight", of_torch("weight")};
  const auto y = support::parsed_json(at.output(Words{of_torch("x"), "--to", "json"} + words));
  for (std::size_t c = 0; c < 6; ++c) {
    const auto explained = support::parsed_json(
        at.output(Words{"explain", of_torch("x"), "--json", "--row", std::to_string(c)} + words));
    const auto& elements = explained.at("rows").at(0).at("elements");
    CHECK(elements.front().at("y") == y[0][c][0][0]);
    CHECK(elements.back().at("y") == y[1][c][2][3]);
  }
}

TEST_CASE("one number may be the statistic of all rows in grad", "[norms][grad]") {
  const Workplace at;
  const auto gradients = [&](const Words& statistics) {
    at.output(Words{"grad", of_torch("x"), "--dy", of_torch("dy"), "--axes", "2,3", "--dx",
                    "dx.npy", "--dweight", "dw.npy"} +
              statistics);
    return at.read("dx.npy") + at.read("dw.npy");
  };
  const std::string rows = "[[0.5,0.5,0.5,0.5,0.5,0.5],[0.5,0.5,0.5,0.5,0.5,0.5]]";
  for (const std::string spread : {"--rstd", "--variance"}) {
    CHECK(
        (gradients({"--mean", "0.5", spread, "0.5"}) == gradients({"--mean", rows, spread, rows})));
    CHECK((gradients({"--mean", rows, spread, "0.5", "--rows", "1:"}) ==
           gradients({"--mean", "0.5", spread, rows, "--rows", "1:"})));
  }
  CHECK((at.output(Words{"grad", of_torch("x"), "--dy", of_torch("dy"), "--groups", "3", "--mean",
                         "0.5", "--rstd", "2", "--to", "npy"}) ==
         at.output(Words{"grad", of_torch("x"), "--dy", of_torch("dy"), "--groups", "3", "--mean",
                         "[[0.5,0.5,0.5],[0.5,0.5,0.5]]", "--rstd", "[[2,2,2],[2,2,2]]", "--to",
                         "npy"})));
  CHECK(at.fault(
            Words{"grad", of_torch("x"), "--dy", of_torch("dy"), "--mean", "0", "--variance", "-1"},
            {"--variance: is -1, expected a variance, 0 or more"}) == "");
}

TEST_CASE("inputs of norms that share weights leave no wrong kernel alive", "[norms][mutants]") {
  const Workplace at;
  int number = 0;
  for (const Words& options :
       {"--shape 4,6,10,10 --groups 3"_w, "--shape 3,5,5,4 --groups 2 --channel-axis -1"_w,
        "--shape 4,6,8,8 --axes 2,3 --affine-axes 1 --dtype bfloat16"_w,
        "--shape 8,6,5,5 --axes 0,2,3 --affine-axes 1 --eps-on std"_w}) {
    CAPTURE(options);
    if (!support::takes(number++, 3)) continue;
    std::filesystem::remove_all(at / "cases");
    const Outcome made = at.run("inputs -o cases/"_w + options);
    CHECK(made.err == "");
    CHECK(made.status == 0);
    Words normalization(options.begin() + 2, options.end());
    const auto dtype = std::find(normalization.begin(), normalization.end(), "--dtype");
    normalization.erase(dtype, dtype == normalization.end() ? dtype : dtype + 2);
    const Outcome found = at.run("mutants cases/ --skip-kernels truncated,away"_w + normalization);
    CHECK(found.status == 0);
    CHECK(found.err == "");
    CHECK(support::parsed_json(at.read("cases/manifest.json")).at("options") ==
          lnorm::joined(normalization, " "));
  }
  CHECK(at.fault("inputs --shape 4,5 --groups 2 -o c/"_w,
                 {"5 channels cannot be split into 2 groups"}) == "");
}

TEST_CASE("mutants of groups are those of the same rows", "[norms][mutants]") {
  const Workplace at;
  at.shell("lnorm convert " + of_torch("x") + " --dtype float32 -o x.npy");
  at.shell("tail -c 576 x.npy > x.raw");
  const auto found = [&](const Words& words) {
    return support::parsed_json(at.run("mutants"_w + words + "--json"_w).out).at("mutants");
  };
  const auto groups = found("x.npy --groups 3"_w);
  auto rows = found("x.raw --from raw --as float32 --shape 2,3,24 --skip-kernels axes-*"_w);
  REQUIRE(groups.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].dump(), groups[i].dump());
    CHECK(rows[i].at("id") == groups[i].at("id"));
    CHECK(rows[i].at("mismatched") == groups[i].at("mismatched"));
    CHECK(rows[i].at("max_abs") == groups[i].at("max_abs"));
  }
  // A weight of each channel is that of its elements.
  const auto shared = found(
      "x.npy --axes 2,3 --affine-axes 1 --weight [3,1,-2,5,0.5,7] --kernels no-weight,ddof-1"_w);
  at.output("x.npy --axes 2,3 --affine-axes 1 --weight [3,1,-2,5,0.5,7] -o y.npy"_w);
  at.output("x.npy --axes 2,3 -o plain.npy"_w);
  const auto compared = support::parsed_json(at.run("compare plain.npy y.npy --json"_w).out);
  CHECK(shared.at(1).at("id") == "no-weight");
  CHECK(shared.at(1).at("mismatched") == compared.at("mismatched"));
  CHECK(at.run("mutants x.npy --groups 2 --weight [3,1,-2,5,0.5,7] --dy x.npy --quiet"_w).status ==
        1);
}

// Every set of normalized axes of a tensor of three, with every set of axes of a weight.
TEST_CASE("a weight along any axes is judged as it is applied, and scaled in groups", "[norms]") {
  const Workplace at;
  constexpr std::size_t kExtents[] = {2, 3, 4};
  json x;
  for (std::size_t i = 0; i < 24; ++i) {
    x[i / 12][i / 4 % 3][i % 4] = static_cast<double>(7 * i % 11) + static_cast<double>(i) / 8;
  }
  at.write("x.json", x.dump());
  json mask;
  for (std::size_t i = 0; i < 24; ++i) mask[i / 12][i / 4 % 3][i % 4] = i == 14 ? 0 : 1;
  at.write("m.json", mask.dump());
  mask[1][0][2] = 1;
  mask[0][1][3] = 0;
  at.write("others.json", mask.dump());
  // The numbers along some axes, also along more of them than they depend on.
  const auto weight = [&](unsigned depends, unsigned along) {
    const std::function<json(std::size_t, int)> from = [&](std::size_t axis, int number) -> json {
      if (axis == 3) return number;
      json all;
      for (std::size_t k = 0; k < ((along >> axis & 1) != 0 ? kExtents[axis] : 1); ++k) {
        const int more = (depends >> axis & 1) != 0 ? static_cast<int>(k) + 1 : 1;
        all.push_back(from(axis + 1, 5 * number + more));
      }
      return (along >> axis & 1) != 0 ? all : all[0];
    };
    return from(0, 1).dump();
  };
  const auto list = [](unsigned axes) {
    std::vector<std::string> names;
    for (unsigned axis = 0; axis < 3; ++axis) {
      if ((axes >> axis & 1) != 0) names.push_back(std::to_string(axis));
    }
    return lnorm::joined(names, ",", [](const std::string& name) { return name; });
  };
  for (unsigned axes = 1; axes < 8; ++axes) {
    for (unsigned affine = 1; affine < 8; ++affine) {
      const Words norm{"--axes",     list(axes), "--affine-axes",
                       list(affine), "--weight", weight(affine, affine)};
      CAPTURE(norm);
      at.output("x.json --dtype float32 -o y.npy"_w + norm);
      CHECK(at.run("check x.json y.npy --quiet"_w + norm).status == 0);
      // Each row is explained with the numbers that its elements have.
      at.output("convert y.npy -o y.json"_w);
      const json y = json::parse(at.read("y.json"));
      const json rows =
          support::parsed_json(at.run("explain x.json --row 0 --json"_w + norm).out).at("rows");
      for (const json& element : rows.at(0).at("elements")) {
        std::size_t along = 0;
        json number = y;
        for (unsigned axis = 0; axis < 3; ++axis) {
          const bool is_normalized = (axes >> axis & 1) != 0;
          number = json(
              number.at(is_normalized ? element.at("index").at(along++).get<std::size_t>() : 0));
        }
        const double rounded = number;
        CHECK(std::fabs(element.at("y").get<double>() - rounded) <= 1e-6 * std::fabs(rounded));
      }
      if (axes != 7) CHECK(at.run("check x.json y.npy --quiet --rows 1:2"_w + norm).status == 0);
      // An element is named by its place in the input, whatever order rows have.
      std::string spoiled = at.read("y.npy");
      spoiled[128 + 4 * 14 + 3] ^= 0x40;  // of (1, 0, 2)
      at.write("z.npy", spoiled);
      const json wrong = support::parsed_json(at.run("check x.json z.npy --json"_w + norm).out);
      CHECK(wrong.at("worst_index") == json{1, 0, 2});
      const int column =
          ((axes & 1) != 0 ? ((axes & 2) != 0 ? 3 : 1) * ((axes & 4) != 0 ? 4 : 1) : 0) +
          ((axes & 4) != 0 ? 2 : 0);
      CHECK(wrong.at("affected_columns").at("first") == json{column});
      // A mask leaves that element out, with and without a choice of rows.
      for (const Words& some : {Words{}, "--rows :"_w}) {
        const Words masked = "check x.json z.npy --quiet"_w + norm + some;
        CHECK(at.run(masked + "--mask m.json"_w).status == 0);
        CHECK(at.run(masked + "--mask others.json"_w).status == 1);
      }
      if ((affine & ~axes) != 0) continue;
      // The same numbers along all normalized axes.
      const Words whole{"--axes", list(axes), "--weight", weight(affine, axes)};
      for (const std::string quantize : {"row", "group:1", "group:2"}) {
        if (quantize == "group:2" && axes == 2) continue;  // rows of three
        const Words words = "x.json --dtype int8 --quantize"_w + Words{quantize};
        CHECK(at.output(words + norm) == at.output(words + whole));
        // Scales lie where rows do. For some rows those of the whole tensor are given.
        const Words options = "--quantize"_w + Words{quantize} + norm;
        at.output("x.json --dtype int8 -o q.npy --save-scale s.npy"_w + options);
        const Words check = "check x.json q.npy --actual-scale s.npy --quiet"_w + options;
        CHECK(at.run(check).status == 0);
        if (axes != 7) CHECK(at.run(check + "--rows 1:2"_w).status == 0);
      }
    }
  }
}

TEST_CASE("rows of groups are compared with the exact ones", "[norms][check]") {
  const Workplace at;
  at.write("x.json", "[[1, 2, 4], [3, 3, 9]]");
  const Words check = "check x.json x.json --groups 1 --worst 1 --json"_w;
  const auto worst = [&](const Words& words) {
    return support::parsed_json(at.run(check + words).out).at("comparison").at("worst");
  };
  CHECK(worst("--rows :"_w) == worst({}));
  CHECK(!worst({}).is_null());
}

TEST_CASE("rows with weights of their own are explained together", "[norms][check]") {
  const Workplace at;
  const Words axes = "--axes 2,3 --affine-axes 1"_w;
  const Words affine{"--weight", of_torch("weight"), "--bias", of_torch("bias")};
  const auto report = [&](const Words& words) {
    return support::parsed_json(
        at.run(Words{"check", of_torch("x")} + words + axes + affine + "--json"_w).out);
  };
  // One row is garbage where all others lack the bias.
  at.output(
      Words{of_torch("x"), "--weight", of_torch("weight"), "--dtype", "float32", "-o", "y.npy"} +
      axes);
  CHECK(report("y.npy"_w).at("cause").at("ids") == json{"no-bias"});
  CHECK(report("y.npy"_w).at("cause").at("explained") == 1);
  std::string spoiled = at.read("y.npy");
  for (std::size_t i = 0; i < 12; ++i) spoiled[128 + 4 * (5 * 12 + i) + 2] ^= 0x55;
  at.write("y.npy", spoiled);
  const auto found = report("y.npy"_w);
  CHECK(found.at("cause").is_null());
  CHECK(found.at("most_like").at("ids") == json{"no-bias"});
  CHECK(found.at("most_like").at("explained") < 1);
  CHECK(!found.at("where").empty());
}

TEST_CASE("reports of groups have the shape and the indices of the file", "[norms]") {
  const Workplace at;
  at.output(Words{of_torch("x"), "--groups", "3", "--dtype", "float32", "-o", "y.npy"});
  std::string spoiled = at.read("y.npy");
  spoiled.replace(128 + 4 * (72 + 3 * 12 + 5), 4, bytes_of<float>({99}));  // (1, 3, 1, 1)
  at.write("y.npy", spoiled);
  const Words checked{"check", of_torch("x"), "y.npy", "--groups", "3"};
  const auto verdict = support::parsed_json(at.run(checked + "--json --worst 1"_w).out);
  const nlohmann::json index{1, 3, 1, 1};
  CHECK(verdict.at("worst_index") == index);
  CHECK(verdict.at("input").at("shape") == nlohmann::json{2, 6, 3, 4});
  CHECK(verdict.at("comparison").at("worst").at("elements").at(0).at("index") == index);
  const std::string text = at.run(checked + "--worst 1 --rows-out rows.csv"_w).out;
  CHECK(contains(text, "shape (2, 6, 3, 4)"));
  CHECK(contains(text, "mismatched: 1 / 144"));
  CHECK(at.read("rows.csv").starts_with("row,elements,mismatched,max_abs,index\n4,24,1,"));
  spoiled.replace(128 + 4 * (72 + 3 * 12 + 5), 4, bytes_of<float>({std::nanf("")}));
  at.write("nan.npy", spoiled);
  CHECK(contains(at.output("stats nan.npy --groups 3"_w), "at (1, 3, 1,"));  // then it is folded
  CHECK(contains(at.output("explain nan.npy --groups 3 --row 1,1"_w), "at (1, 3, 1, 1)"));
  const auto stats = support::parsed_json(at.output("stats nan.npy --groups 3 --json"_w));
  CHECK(stats.at("axes") == nlohmann::json{1, 2, 3});
  CHECK(stats.at("groups") == 3);
  CHECK(stats.at("first_non_finite_index") == index);
  CHECK(contains(at.output("stats y.npy --groups 3"_w), "normalized in 3 groups of axis 1"));
}

TEST_CASE("stats says which statistics are given", "[norms][stats]") {
  const Workplace at;
  const Words stats{"stats", of_torch("x"), "--mean", "0"};
  CHECK(contains(at.output(stats + "--rstd 2"_w),
                 "outputs by the mean and rstd that are given, biased variances"));
  CHECK(contains(at.output(stats + "--variance 2"_w),
                 "outputs by the mean and variance that are given, eps 1e-05 on the variance"));
  CHECK(support::parsed_json(at.output(stats + "--rstd 2 --json"_w)).at("given") == "rstd");
}

TEST_CASE("gradients of no elements are zeros in the shape of the weight", "[norms][grad]") {
  const Workplace at;
  at.write("none.npy", npy("<f4", {2, 3, 0}, ""));
  at.write("rows.npy", npy("<f4", {0, 3, 4}, ""));
  for (const Words& words : {"none.npy --groups 3"_w, "rows.npy --axes 2 --affine-axes 1"_w,
                             "rows.npy --axes 0,2 --affine-axes 1"_w, "none.npy --axes 1"_w}) {
    CAPTURE(words);
    at.output("grad"_w + words +
              Words{"--dy", words[0], "--dweight", "dw.npy", "--dbias", "db.npy"});
    CHECK(at.read("dw.npy").substr(128) == std::string(12, '\0'));
    CHECK(at.read("db.npy").substr(128) == std::string(12, '\0'));
  }
}

TEST_CASE("statistics that are not numbers make no numbers", "[norms]") {
  const Workplace at;
  at.write("x.json", "[[1, 2], [3, 5]]");
  for (const Words& kernel : {Words{}, "--kernel reference"_w, "--eps 0"_w, "--eps-on std"_w}) {
    CHECK(at.output("x.json --mean 0 --variance [NaN,1e300]"_w + kernel + "--dtype float32"_w)
              .starts_with("[[NaN,NaN],[0.0,"));
    CHECK(at.output("x.json --mean [0,NaN] --variance 1"_w + kernel).ends_with("[NaN,NaN]]\n"));
  }
  CHECK(at.output("x.json --mean 0 --rstd NaN"_w) == "[[NaN,NaN],[NaN,NaN]]\n");
  CHECK(at.output("x.json --mean 0 --variance Infinity"_w) == "[[0.0,0.0],[0.0,0.0]]\n");
}

// By hand: sqrt(2e308) is 1.4142135623730951e154, and the others are quotients of two numbers.
TEST_CASE("a divisor by a given variance may be beyond the range of its parts", "[norms]") {
  const Workplace at;
  at.write("x.json", "[[0, 2]]");
  at.write("small.json", "[[0, 1e-300]]");
  for (const Words& kernel : {Words{}, "--kernel reference"_w}) {
    const auto y = [&](const Words& options) { return at.output(options + kernel); };
    CHECK(y("x.json --variance 1e308 --eps 1e308 --mean 0"_w) ==
          "[[0.0,1.414213562373095e-154]]\n");
    CHECK(y("x.json --variance 1 --eps 1e301 --eps-on max --mean 0"_w) ==
          "[[0.0,1.9999999999999997e-301]]\n");
    CHECK(y("x.json --variance 1 --eps 1e301 --eps-on std --mean 0"_w) ==
          "[[0.0,1.9999999999999997e-301]]\n");
    CHECK(y("small.json --variance 0 --eps 1e-305 --eps-on max --mean 0"_w) ==
          "[[0.0,100000.0]]\n");
    CHECK(y("x.json --variance 0 --eps 1e-310 --eps-on std --dtype float32 --mean 0"_w) ==
          "[[0.0,Infinity]]\n");
    CHECK(y("x.json --variance 0 --eps 0 --mean 0"_w) == "[[NaN,Infinity]]\n");
  }
}
