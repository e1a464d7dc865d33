#include <nlohmann/json.hpp>

#include "support/commands.hpp"
#include "support/json.hpp"

// What compare says and, above all, its exit status. (tests/golden/compare_test.cpp holds its
// numbers against NumPy's.)

namespace {

using namespace support;
using nlohmann::json;

// Compares JSON on standard input with JSON in a file.
Outcome compare(const std::string& actual, const std::string& expected, const Words& options = {}) {
  const Workplace directory;
  directory.write("expected.json", expected);
  return directory.run("compare - expected.json"_w + options, pipe_of(actual));
}

std::string line_of(const std::string& text, const std::string& start) {
  const std::size_t at = text.find("\n" + start);
  return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

// A tensor of zeros and one of ones, so that a list of mismatches is long.
struct LongLists : Workplace {
  LongLists() : Workplace("compare zeros.npy"_w) {
    write("zeros.npy", npy("<f8", {100'000}, std::string(800'000, '\0')));
    write("ones.npy", npy_of<double>({100'000}, std::vector<double>(100'000, 1.0)));
  }
};

}  // namespace

TEST_CASE("the exit status of compare says whether the tensors agree", "[many]") {
  struct Case {
    std::string actual;
    std::string expected;
    Words options;
    int status;
  };
  const std::vector<Case> cases{
      {"[1, 2]", "[1, 2]", {}, 0},
      {"[1, 2]", "[1, 2.1]", {}, 1},
      {"[-0.0]", "[0.0]", "--rtol 0 --atol 0"_w, 0},
      // By the formula, in which the expected one is the measure.
      {"[1.5]", "[1]", "--rtol 0 --atol 0.5"_w, 0},
      {"[1.5]", "[1]", "--rtol 0 --atol 0.49"_w, 1},
      {"[90]", "[100]", "--rtol 0.1 --atol 0"_w, 0},
      {"[100]", "[90]", "--rtol 0.1 --atol 0"_w, 1},
      {"[100]", "[90]", "--rtol 0.1 --atol 1"_w, 0},
      {"[1.0000003]", "[1]", {}, 1},
      {"[1.0000001]", "[1]", {}, 0},
      // One unit in the last place of float64.
      {"[1.0000000000000002]", "[1]", "--rtol 0 --atol 0"_w, 1},
      {"[1.0000000000000002]", "[1]", "--max-ulp 1"_w, 0},
      {"[1.0000000000000004]", "[1]", "--max-ulp 1"_w, 1},
      {"[1e-323]", "[-1e-323]", "--max-ulp 4"_w, 0},
      // A criterion that is given replaces the defaults; all that are given must hold.
      {"[1.0000000000000002]", "[1]", "--max-ulp 0"_w, 1},
      {"[1.0000000000000002]", "[1]", "--rtol 0 --atol 0 --max-ulp 1"_w, 1},
      {"[1.0000000000000004]", "[1]", "--atol 1 --max-ulp 1"_w, 1},
      {"[1.00000001]", "[1]", "--atol 1e-9"_w, 1},
      {"[1e-9]", "[0]", "--rtol 1"_w, 1},
      {"[NaN]", "[NaN]", {}, 0},
      {"[NaN]", "[NaN]", {"--no-equal-nan"}, 1},
      {"[NaN]", "[1]", "--atol 1e308"_w, 1},
      {"[Infinity]", "[Infinity]", {"--no-equal-nan"}, 0},
      {"[Infinity]", "[-Infinity]", "--rtol 1e308"_w, 1},
      {"[1e308]", "[Infinity]", "--rtol 1e308"_w, 1},
      // Nothing is broadcast.
      {"[1, 1]", "[[1, 1]]", {}, 1},
      {"[1]", "1", {}, 1},
      {"[1]", "[1, 1]", {}, 1},
      {"[]", "[]", {}, 0},
      {"[]", "[[]]", {}, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.actual, c.expected, c.options);
    const Outcome said = compare(c.actual, c.expected, c.options);
    CHECK(said.status == c.status);
    CHECK(said.err == "");
    CHECK(contains(said.out, c.status == 0 ? " agree (" : " differ "));
    const Outcome as_json = compare(c.actual, c.expected, c.options + Words{"--json"});
    CHECK(as_json.status == c.status);
    CHECK(support::parsed_json(as_json.out).at("equal") == (c.status == 0));
    for (const Words& quiet : {Words{"-q"}, {"--quiet"}}) {
      const Outcome silent = compare(c.actual, c.expected, c.options + quiet);
      CHECK(silent.status == c.status);
      CHECK(silent.out == "");
      CHECK(silent.err == "");
    }
  }
}

TEST_CASE("the default tolerances are those of the looser dtype") {
  const auto status = [](const std::string& dtype, const std::string& other, double factor) {
    const auto tensor = [](const std::string& type, double value) {
      const json element = type == "int32" ? json(static_cast<int>(value)) : json(value);
      return json{{"shape", {1}}, {"data", {element}}, {"dtype", type}}.dump();
    };
    return compare(tensor(dtype, 1024 * factor), tensor(other, 1024)).status;
  };
  CHECK(status("float64", "float64", 1 + 0.9e-7) == 0);
  CHECK(status("float64", "float64", 1 + 1.1e-7) == 1);
  CHECK(status("float64", "float32", 1 + 1.2e-6) == 0);
  CHECK(status("float32", "float64", 1 + 1.5e-6) == 1);
  CHECK(status("float64", "float16", 1 + 0.9e-3) == 0);
  CHECK(status("float16", "float32", 1 + 0x1p-10) == 0);
  CHECK(status("float32", "float16", 1 + 1.1e-3) == 1);
  CHECK(status("int32", "int32", 1 + 0x1p-10) == 1);
  CHECK(status("float32", "int32", 1 + 1.2e-6) == 0);
}

TEST_CASE("compare measures the article's experiment of eps beside the deviation") {
  const std::string folder = data_file("seeds/eps_on_std/");
  const std::string layer_norm = folder + "layer_norm.npy";
  const std::string greatest = "greatest absolute difference: ";
  // What PyTorch computed in two ways differs by the article's figure.
  const Outcome torch = run({"compare", folder + "eps_on_std.npy", layer_norm});
  CHECK(torch.status == 1);
  CHECK(line_of(torch.out, greatest).starts_with(greatest + "7.96e-05 at "));
  // PyTorch's own eps_on_std is one unit in the last place off there; exact is 7.975e-05.
  const std::string ours = output_of({folder + "x.npy", "--eps-on", "std"});
  const Outcome differ = run({"compare", "-", layer_norm}, pipe_of(ours));
  CHECK(differ.status == 1);
  CHECK(line_of(differ.out, greatest).starts_with(greatest + "7.98e-05 at "));
  const Outcome as_json = run({"compare", "-", layer_norm, "--json"}, pipe_of(ours));
  const json difference = support::parsed_json(as_json.out).at("greatest_absolute_difference");
  CHECK(std::abs(difference.at("value").get<double>() - 7.975e-05) < 1e-8);
  const Outcome agree = run({"compare", "-", layer_norm, "--atol", "1e-4"}, pipe_of(ours));
  CHECK(agree.status == 0);
  CHECK(line_of(agree.out, greatest) == line_of(differ.out, greatest));
}

TEST_CASE("tensors of two formats are compared") {
  const std::string folder = data_file("seeds/lecture20/");
  for (const Words& pair : {Words{"batch.json", "batch.npy"}, {"batch.npy", "batch.json"}}) {
    const Outcome outcome = run({.arguments = {"compare", pair[0], pair[1]}, .directory = folder});
    CHECK(outcome.status == 0);
    CHECK(outcome.out.starts_with(pair[0] + " and " + pair[1] + " agree (float"));
  }
  CHECK(
      run({.arguments = "compare batch.json batch.layer_norm.npy"_w, .directory = folder}).status ==
      1);
}

TEST_CASE("ACTUAL and EXPECTED are taken in the order in which they stand") {
  const Workplace directory;
  directory.write("m.json", R"({"w": [1, 2], "b": [1, 3]})");
  struct Case {
    Words arguments;
    std::string first_line;
    std::string greatest;
  };
  const std::string kStdinFirst = "standard input:w and m.json:b differ (";
  const std::string kStdinLast = "m.json:b and standard input:w differ (";
  const std::vector<Case> cases{
      {"-:w m.json:b"_w, kStdinFirst, "1 at (1): 2, expected 3"},
      {"m.json:b -:w"_w, kStdinLast, "1 at (1): 3, expected 2"},
      {"m.json:b --atol 0 -:w"_w, kStdinLast, "1 at (1): 3, expected 2"},
      {"--atol 0 -:w --rtol 0 m.json:b"_w, kStdinFirst, "1 at (1): 2, expected 3"},
      {"-- m.json:b -:w"_w, kStdinLast, "1 at (1): 3, expected 2"},
      {"-:w -- m.json:b"_w, kStdinFirst, "1 at (1): 2, expected 3"},
      {{"m.json:w", "m.json:b"}, "m.json:w and m.json:b differ (", "1 at (1): 2, expected 3"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.arguments);
    const Outcome outcome =
        directory.run(Words{"compare"} + c.arguments, pipe_of(directory.read("m.json")));
    CHECK(outcome.status == 1);
    CHECK(outcome.err == "");
    CHECK(outcome.out.starts_with(c.first_line));
    CHECK(line_of(outcome.out, "greatest abs") == "greatest absolute difference: " + c.greatest);
  }
}

TEST_CASE("compare lists as many mismatches as are asked for", "[many]") {
  const LongLists at;
  const auto mismatches = [&](const Words& options) {
    const Outcome outcome = at.run("ones.npy --json"_w + options);
    return support::parsed_json(outcome.out).at("mismatches");
  };
  CHECK(mismatches({}).size() == 5);
  CHECK(mismatches("--max-diffs 0"_w).empty());
  const json many = mismatches("--max-diffs 70000"_w);
  REQUIRE(many.size() == 70'000);
  CHECK(many.back() == json{{"index", {69'999}}, {"actual", 0.0}, {"expected", 1.0}});
  CHECK(mismatches("--max-diffs 1000000"_w).size() == 100'000);
}

TEST_CASE("compare tells the verdict to whoever has stopped reading") {
  const LongLists at;
  const auto status = [&](const std::string& expected, const Words& options, std::size_t limit) {
    const Outcome outcome = run(at.command(Words{expected} + options).to(pipe_until(limit)));
    CHECK(outcome.err == "");
    CHECK(outcome.out.size() == limit);
    return outcome.status;
  };
  for (const Words& options : {"--max-diffs 100000"_w, {"--json"}, {}}) {
    CAPTURE(options);
    for (const std::size_t limit : {0U, 1U, 100U}) {
      CHECK(status("ones.npy", options, limit) == 1);
      CHECK(status("zeros.npy", options, limit) == 0);
    }
  }
}

TEST_CASE("compare that cannot say what it found has failed") {
  const LongLists at;
  for (const std::string expected : {"zeros.npy", "ones.npy"}) {
    CAPTURE(expected);
    const Command command = at.command({expected});
    CHECK(fault_of(command.to(file("/dev/full")), {"standard output: No space left on device"}) ==
          "");
    CHECK(fault_of(command.to(closed()), {"standard output"}) == "");
    // -q says nothing.
    CHECK(run(at.command({expected, "-q"}).to(closed())).status ==
          (expected == "zeros.npy" ? 0 : 1));
  }
}

TEST_CASE("a report names every criterion that does not hold, and no other") {
  struct Case {
    Words options;
    std::string fails;  // empty: they agree
  };
  // Errors 0, 2, 0, 0.
  const std::vector<Case> cases{
      {"--max-abs 2"_w, ""},
      {"--max-abs 1.99"_w, "max abs 1.99 (2)"},
      {"--max-mean-abs 0.5"_w, ""},
      {"--max-mean-abs 0.4999"_w, "max mean abs 0.4999 (0.5)"},
      {"--max-rmse 1"_w, ""},
      {"--max-rmse 0.9999999"_w, "max rmse 0.9999999 (1)"},
      {"--min-cosine 0.98"_w, ""},
      {"--min-cosine 0.985"_w, "min cosine 0.985 (0.984)"},
      {"--min-sqnr 7.9"_w, ""},
      {"--min-sqnr 8"_w, "min sqnr 8 dB (7.96)"},
      {"--max-mismatched 1"_w, ""},
      {"--max-mismatched 25%"_w, ""},
      {"--max-mismatched 24.9%"_w, "max mismatched 24.9% (1 element)"},
      {"--max-mismatched 0 --max-abs 2"_w, ""},
      {"--max-mismatched 1 --max-abs 1"_w, ""},
      {"--rtol 0.5 --max-ulp 1 --max-rmse 0.5 --min-sqnr 1"_w,
       "max ulp 1 (2.25e+15), max rmse 0.5 (1)"},
      {{}, "tolerance (1 element)"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.options);
    const Outcome said = compare("[3, 6, 0, 0]", "[3, 4, 0, 0]", c.options);
    CHECK(said.err == "");
    CHECK(said.status == (c.fails.empty() ? 0 : 1));
    CHECK(line_of(said.out, "fails: ") == (c.fails.empty() ? "" : "fails: " + c.fails));
    const Outcome quiet = compare("[3, 6, 0, 0]", "[3, 4, 0, 0]", c.options + Words{"--quiet"});
    CHECK(quiet.status == said.status);
  }
  // What is not finite is never overlooked.
  for (const Words& options : {"--max-mismatched 100%"_w, "--min-sqnr 1"_w, "--max-ulp 1e300"_w}) {
    CAPTURE(options);
    const Outcome said = compare("[1, NaN]", "[1, 2]", options);
    CHECK(said.status == 1);
    CHECK(line_of(said.out, "fails: ") == "fails: NaN or infinity (1 element)");
    CHECK(compare("[1, NaN]", "[1, NaN]", options).status == 0);
    CHECK(compare("[1, NaN]", "[1, NaN]", options + Words{"--no-equal-nan"}).status == 1);
  }
}

TEST_CASE("float16 results are judged in ulp of float16 against float64") {
  const Workplace directory;
  const std::string folder = directory.path().string();
  const std::string x = data_file("corpus/good/medium_64x33_f4.npy");
  directory.write("y16.npy", output_of({x, "--dtype", "float16"}));
  const std::string exact = output_of({x, "--dtype", "float64"});
  const auto against_exact = [&](const Words& options) {
    return run(
        {.arguments = "compare y16.npy -"_w + options, .in = pipe_of(exact), .directory = folder});
  };
  const Outcome ours = against_exact("--max-ulp 0.5"_w);
  CHECK(ours.status == 0);
  CHECK(line_of(ours.out, "greatest distance")
            .starts_with("greatest distance in ulp of float16 (units in the last place): 0."));
  CHECK(line_of(ours.out, "ulp: ").ends_with(" <= 0.5 in all"));
  CHECK(against_exact("--max-ulp 0.25"_w).status == 1);
  const json report = support::parsed_json(against_exact("--max-ulp 0.5 --json"_w).out);
  CHECK(report.at("ulp").at("dtype") == "float16");
  const json& distribution = report.at("ulp").at("distribution");
  CHECK(distribution.size() == 2);
  CHECK(distribution.back() == json{{"at_most", 0.5}, {"elements", 64 * 33}});
  const Outcome drawn = against_exact("--max-ulp 0.5 --histogram"_w);
  CHECK(line_of(drawn.out, "distances in ulp") == "distances in ulp of float16: 2112 pairs");
  CHECK(line_of(drawn.out, "<= 0.5  ").starts_with("<= 0.5  2"));
}

TEST_CASE("against a wider dtype the report says how many are correctly rounded") {
  const Workplace at;
  const auto said = [&](const std::string& actual, const std::string& expected) {
    const Outcome outcome = run({"compare", actual, expected, "--max-ulp", "1e9"});
    REQUIRE(outcome.status == 0);
    return line_of(outcome.out, "correctly rounded: ");
  };
  const std::string x = data_file("kernel/x.npy");
  at.output({x, "--dtype", "float64", "-o", "exact.npy"});
  at.output({x, "--dtype", "float16", "-o", "y.npy"});
  CHECK(said(at / "y.npy", at / "exact.npy") == "correctly rounded: 24576 / 24576 (100%)");
  // Ties go to the even neighbor; at a power of two the ulp below it is half as large.
  const auto pair = [&](std::uint16_t actual, double expected) {
    at.write("a.npy", npy("<f2", {1}, bytes_of(std::vector<std::uint16_t>{actual})));
    at.write("e.npy", npy_of<double>({1}, std::vector<double>{expected}));
    return said(at / "a.npy", at / "e.npy");
  };
  const std::string right = "correctly rounded: 1 / 1 (100%)";
  const std::string wrong = "correctly rounded: 0 / 1 (0%)";
  CHECK(pair(0x6800, 2049) == right);  // 2048
  CHECK(pair(0x6801, 2049) == wrong);  // 2050
  CHECK(pair(0x6802, 2051) == right);  // 2052
  CHECK(pair(0x6801, 2051) == wrong);
  CHECK(pair(0x6801, 2049.0001) == right);
  CHECK(pair(0x6800, 2049.0001) == wrong);
  CHECK(pair(0x3bff, 1) == wrong);  // half an ulp of 1 below it
  CHECK(pair(0x3c00, 1) == right);
  CHECK(pair(0x0000, 0x1p-25) == right);  // half the least subnormal
  CHECK(pair(0x0001, 0x1p-25) == wrong);
  CHECK(pair(0x7bff, 65519.9) == right);  // the greatest finite number
  CHECK(pair(0x7bff, 65520) == wrong);    // which rounds to infinity
  const json errors = support::parsed_json(at.run("compare a.npy e.npy --json"_w).out)["errors"];
  CHECK(errors["correctly_rounded"] == 0);
  CHECK(support::parsed_json(run({"compare", x, x, "--json"}).out)["errors"]["correctly_rounded"]
            .is_null());
  CHECK(line_of(run({"compare", x, x}).out, "correctly rounded: ") == "");
}

TEST_CASE("a report says how much of the error is toward zero") {
  const Outcome cut = compare("[1.5, -2.25, 3]", "[1.75, -2.75, 3]", "--atol 1"_w);
  CHECK(line_of(cut.out, "mean error: ") ==
        "mean error: 0.0833, absolute: 0.25, root mean square: 0.323");
  CHECK(line_of(cut.out, "mean error toward zero: ") ==
        "mean error toward zero: 0.25, away from zero: 0");
  const Outcome away = compare("[2, -3, 3, 0.5]", "[1.75, -2.75, 3, 0]", "--atol 1"_w);
  CHECK(line_of(away.out, "mean error toward zero: ") ==
        "mean error toward zero: 0, away from zero: 0.25");
  const Outcome across = compare("[-1, -2, 3]", "[1, 2, -3]", "--atol 9"_w);
  CHECK(line_of(across.out, "mean error toward zero: ") ==
        "mean error toward zero: 2, away from zero: 2");
}

TEST_CASE("a row of which no expected element is finite has no row max") {
  const std::string actual = "[[1, 2], [3, 4], [0.5, 0]]";
  const std::string expected = "[[NaN, Infinity], [3, 8], [0, 0]]";
  const std::string text = compare(actual, expected, "--by abs"_w).out;
  CHECK(line_of(text, "(0, 0)").ends_with("  -"));
  CHECK(line_of(text, "(0, 1)").ends_with("  -"));
  CHECK(line_of(text, "(1, 1)").ends_with("  8.00"));
  CHECK(line_of(text, "(2, 0)").ends_with("  0"));
  const json worst =
      support::parsed_json(compare(actual, expected, "--json --by abs"_w).out)["worst"];
  CHECK(worst["elements"][0]["row_max"].is_null());
  CHECK(worst["elements"][2]["row_max"] == 8.0);
  CHECK(worst["elements"][3]["row_max"] == 0.0);
}

TEST_CASE("a long histogram of distances leaves empty classes out") {
  const Outcome said =
      compare("[1, 1.0000000000000002, 2]", "[1, 1, 2.5]", "--histogram --color never"_w);
  CHECK(line_of(said.out, "distances in ulp") == "distances in ulp: 3 pairs");
  CHECK(line_of(said.out, "    ...") == "    ...");
  CHECK(line_of(said.out, "<= 2^50").starts_with("<= 2^50  1  33.3%  "));
}

TEST_CASE("every figure of compare is the same for every number of threads") {
  const Workplace directory;
  std::vector<float> actual(300'000);
  std::vector<float> expected(actual.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    expected[i] = static_cast<float>(i * 7919 % 65'537) / 3 - 9000;
    actual[i] = expected[i] * (1 + static_cast<float>(i % 11) * 1e-7F);
  }
  const auto elements = static_cast<std::int64_t>(actual.size());
  directory.write("actual.npy", npy_of<float>({elements}, actual));
  directory.write("expected.npy", npy_of<float>({elements}, expected));
  const auto report = [&](const std::string& threads) {
    return directory.run({"compare", "actual.npy", "expected.npy", "--json", "--threads", threads})
        .out;
  };
  const std::string one = report("1");
  CHECK(support::parsed_json(one).at("errors").at("pairs") == elements);
  for (const char* const threads : {"2", "3", "7"}) CHECK(report(threads) == one);
}

TEST_CASE("compare writes its report as JSON and JUnit beside the text") {
  const Workplace at;
  at.write("a.json", R"({"x": [1, 2], "y": [1, 2], "z": [1], "only": [1]})");
  at.write("b.json", R"({"x": [1, 2], "y": [1, 3], "z": [1, 2]})");
  const Outcome plain = at.run("compare a.json b.json"_w);
  const Outcome saved = at.run("compare a.json b.json --save-json r.json --save-junit r.xml"_w);
  CHECK(saved.status == 1);
  CHECK(saved.out == plain.out);
  CHECK(at.read("r.json") == at.run("compare a.json b.json --json"_w).out);
  const std::string xml = at.read("r.xml");
  for (const std::string part :
       {R"(<testsuites name="lnorm compare" tests="4" failures="3")",
        R"(<testcase name="x" classname="lnorm.compare" time="0"></testcase>)",
        R"x(<failure message="criteria fail: tolerance (1 element)" type="differs">)x",
        "greatest absolute difference: 1", R"x(message="shape (1), expected (2)")x",
        R"(message="only in a.json")"}) {
    INFO(part);
    CHECK(xml.find(part) != std::string::npos);
  }
  const Outcome two = at.run("compare a.json:y b.json:y --save-json y.json --quiet"_w);
  CHECK(two.status == 1);
  CHECK(two.out.empty());
  CHECK(at.read("y.json") == at.run("compare a.json:y b.json:y --json"_w).out);
  CHECK(at.run("compare a.json:y b.json:y --save-json y.json"_w).out ==
        at.run("compare a.json:y b.json:y"_w).out);
  CHECK(at.fault("compare a.json b.json --save-json a.json"_w,
                 {"--save-json a.json: names what is read, or another output"}) == "");
}
