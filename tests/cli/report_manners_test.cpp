#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/commands.hpp"

// What stats and compare say to people, a line each: a command, what it must print, its exit status.

namespace {

using namespace support;
using nlohmann::json;

struct Line {
  Words arguments;  // run in data/
  Words prints;     // one after another
  Words without = {};
  int status = 0;
  std::string in = {};
};

const std::string kOutlier = "[[1, 2, 3, 4], [2, 3, 2, 3], [1, 4, 1e30, 2]]";
const std::string kOdd = "[[1, 2, 3, 4], [2, 3, 2, -1e30], [Infinity, NaN, -Infinity, Infinity]]";
const std::string kTwo = R"({"a": [[0.5, 1e-9], [4, 5]], "b": [[0.5, 0], [4, 7]]})";

// The two tensors differ, since eps is in two places.
const Words kPlacesOfEps =
    "compare seeds/eps_on_std/eps_on_std.npy seeds/eps_on_std/layer_norm.npy"_w;

const std::vector<Line> kLines{
    // ---- stats: significant digits.
    {"stats seeds/lecture20/batch3.npy"_w, {"0.0326", "1.27e-08"}, {"0.0000"}},
    {"stats reports/scales.json"_w, "2.33e+06 1.56e-06 6.67e-19 -1e-09"_w, {"0.0000"}},
    {"stats sample.npy --digits 2"_w, {" 0.57 ", " 0.072 "}, {"0.574"}},
    {"stats sample.npy --digits 6"_w, {" 0.574150 ", " 0.0716436 "}},
    {"stats -"_w, {"1.5e-08"}, {}, 0, "[1.5e-8]"},

    // ---- Rows: how they are numbered comes before the first number of one.
    {"stats seeds/lecture20/batch3.npy"_w,
     {"shape (3, 5), normalized over axis 1\n",
      "3 rows of 5 elements, numbered 0 to 2 along axis 0\n", "     0 "}},
    {"stats sample.npy"_w,
     {"shape (2, 3, 4), normalized over axis 2\n",
      "6 rows of 4 elements, numbered (0, 0) to (1, 2) along axes 0 and 1\n", "(0, 0) "}},
    {"stats sample.npy --axes 1"_w,
     {"8 rows of 3 elements, numbered (0, 0) to (1, 3) along axes 0 and 2\n"}},
    {"stats sample.npy --axis 0"_w,
     {"normalized over axes 0, 1 and 2\n", "1 row of 24 elements\n"},
     {"numbered"}},
    {"stats reports/non_finite.json"_w,
     {"numbered 0 to 3 along axis 0\n",
      "NaN or infinity in 2 of 4 rows (3 elements), first in row 1, at (1, 0); not"}},

    // ---- The histogram.
    {"stats corpus/good/medium_64x33_f4.npy --histogram"_w,
     {"elements of the input: 2112 from -3.26 to 3.74, 236 in the highest bar\n", "236 ┤",
      "  0 ┼──┬──", "\n      -3  ", " 0 ", " 3\n"}},
    {"stats - --histogram"_w,
     {"elements of the input: 12 from 1.00 to 1e+30, 4 in the highest bar\n", "1 above 4.50 >\n",
      "elements of the output: 12"},
     {},
     0,
     kOutlier},
    {"stats - --histogram"_w,
     {"elements of the input: 8 (and 1 NaN) from -1e+30 to 4.00, 3 in the highest bar\n",
      "< 1 below 0.500, 1 at -inf  ", "  2 at inf >\n",
      "elements of the output: 8 (and 4 NaN) from "},
     {},
     0,
     kOdd},
    {"stats reports/nan_only.json --histogram"_w,
     {"elements of the input: 1 (and 2 NaN, 1 inf), all 1\n",
      "elements of the output: 0 (and 4 NaN)\n"}},

    // ---- compare: the worst elements.
    {kPlacesOfEps + "--by ulp"_w,
     {"differ (float32, shape (4, 20))\n", "worst elements by ulp:\n", "expected", "ulp",
      "row max\n", "(2, 3)", "0.02940332", "0.029401729", "854", "(2, 15)", "730",
      "row max: the greatest |expected| along axis 1; row-ulp: abs in its ulp\n"},
     {"first mismatches"},
     1},
    {kPlacesOfEps, {"where: 4 rows and ", "worst elements by row-ulp:\n"}, {"say little"}, 1},
    {kPlacesOfEps + "--by abs --worst 2"_w,
     {"worst elements by abs:\n", "(2, 0)", "7.96e-05", "(2, 14)", "row max:"},
     {"(1, 6)"},
     1},
    {kPlacesOfEps + "--by rel --max-diffs 2"_w,
     {"worst elements by rel:\n", "(2, 3)", "5.41e-05", "first mismatches:\n",
      "  (0, 0): 0.9717706, expected 0.9717379\n", "  (0, 1): "},
     {"  (0, 2): "},
     1},
    {kPlacesOfEps + "--worst 0"_w, {"mismatched: 57 / 80"}, {"worst", "first mismatches"}, 1},
    {kPlacesOfEps + "--axes 1 --worst 2 --by abs"_w,
     {"rows over axis 1: 4 / 4 differ, the first is (0)\n", "worst rows by abs:\n", "row", "at",
      "(2)  (2, 0)", "(0)  (0, 1)", "row max: the greatest |expected| along axis 1; "},
     {"(1)"},
     1},
    {kPlacesOfEps + "--axes 0 --by ulp"_w,
     {"worst rows by ulp:\n", "(3)", "(2, 3)", "row max: the greatest |expected| along axis 0"},
     {},
     1},
    {"compare sample.npy sample.npy"_w, {" agree"}, {"worst"}},
    // A zero that is not quite one: the row says how little that is.
    {"compare two.json:a two.json:b --by ulp"_w,
     {"worst elements by ulp:\n", "(0, 1)", "1e-09", "0.500\n", "(1, 1)", "7.00\n",
      "near zero ulp and rel say little: at (0, 1) the difference is 2e-09 of row max\n"},
     {},
     1},
    {"compare two.json:a two.json:b --by rel --worst 1"_w, {"inf", "0.500\n"}, {}, 1},
    {"compare two.json:a two.json:b --by abs"_w, {"row max: the"}, {"say little"}, 1},
    // What is not finite is worst of all.
    {"compare reports/non_finite.json reports/non_finite_ref.json --by ulp"_w,
     {"worst elements by ulp:\n", "(0, 2)", "4", "nan", "-", "(1, 2)", "inf", "(2, 0)", "(3, 1)",
      "1065353216"},
     {},
     1},
};

// A folder with the files of data/ and one of the table's own.
struct DataFolder : Workplace {
  DataFolder() {
    for (const std::string name : {"seeds", "reports", "corpus", "sample.npy"}) {
      std::filesystem::create_symlink(data_file(name), *this / name);
    }
    write("two.json", kTwo);
  }
  Outcome run(const Line& line) const {
    return support::run({.arguments = line.arguments,
                         .in = line.in.empty() ? Stream{} : pipe_of(line.in),
                         .directory = path().string(),
                         .environment = {{"LC_ALL", "C.UTF-8"}}});
  }
};

}  // namespace

TEST_CASE("the reports say what they mean", "[reports]") {
  const DataFolder data;
  for (const Line& line : kLines) {
    CAPTURE(line.arguments);
    const Outcome outcome = data.run(line);
    CAPTURE(outcome.out);
    CHECK(outcome.status == line.status);
    CHECK(outcome.err == "");
    std::size_t at = 0;
    for (const std::string& text : line.prints) {
      CAPTURE(text);
      const std::size_t found = outcome.out.find(text, at);
      CHECK(found != std::string::npos);
      if (found != std::string::npos) at = found + text.size();
    }
    for (const std::string& text : line.without) {
      CAPTURE(text);
      CHECK(!contains(outcome.out, text));
    }
  }
}

TEST_CASE("stats fits the terminal, and 80 columns where there is none", "[reports]") {
  const DataFolder data;
  const std::vector<Words> commands{
      "stats seeds/lecture20/batch3.npy --softmax --histogram"_w,
      "stats seeds/lecture20/batch3.npy --softmax --digits 9"_w,
      "stats reports/scales.json --softmax --digits 12"_w,
      "stats reports/non_finite.json --softmax --eps 0"_w,
      "stats sample.npy --weight 2.5e38 --histogram --softmax"_w,
      "stats corpus/good/medium_64x33_f4.npy --all --softmax"_w,
  };
  for (const Words& arguments : commands) {
    CAPTURE(arguments);
    Command command{.arguments = arguments,
                    .directory = data.path().string(),
                    .environment = {{"LC_ALL", "C.UTF-8"}, {"TERM", "dumb"}}};
    const std::string in_pipe = run(command).out;
    CHECK(widest_line(in_pipe) <= 80);
    for (const int columns : {40, 60, 80, 100, 200}) {
      CAPTURE(columns);
      command.out = terminal(columns);
      const std::string seen = run(command).out;
      CAPTURE(seen);
      CHECK(widest_line(seen) <= columns);
      if (columns == 80) CHECK(seen == in_pipe);
    }
  }
}

TEST_CASE("JSON lists the worst elements with all that the text says of them", "[reports]") {
  const DataFolder data;
  const auto worst = [&](const Words& options) {
    return json::parse(data.run({"compare two.json:a two.json:b --json"_w + options, {}}).out)
        .at("worst");
  };
  const json by_ulp = worst("--by ulp"_w);
  CHECK(by_ulp.at("by") == "ulp");
  CHECK(by_ulp.at("row_max_axes") == json{1});
  REQUIRE(by_ulp.at("elements").size() == 2);
  CHECK(by_ulp.at("elements").at(0) == json{{"index", {0, 1}},
                                            {"actual", 1e-9},
                                            {"expected", 0.0},
                                            {"ulp", 0x3e112e0be826d695},
                                            {"absolute", 1e-9},
                                            {"relative", "Infinity"},
                                            {"row_ulp", 1e-9 / 0x1p-53},
                                            {"row_max", 0.5}});
  CHECK(by_ulp.at("elements").at(1).at("row_max") == 7.0);
  const json by_abs = worst("--by abs --worst 1"_w);
  CHECK(by_abs.at("by") == "abs");
  REQUIRE(by_abs.at("elements").size() == 1);
  CHECK(by_abs.at("elements").at(0).at("index") == json{1, 1});
  CHECK(by_abs.at("elements").at(0).at("absolute") == 2.0);
  const json rows = worst("--axes 0"_w);
  CHECK(rows.at("row_max_axes") == json{0});
  REQUIRE(rows.at("elements").size() == 1);  // both lie in row 1
  CHECK(rows.at("elements").at(0).at("row") == json{1});
  CHECK(rows.at("elements").at(0).at("row_max") == 7.0);
  CHECK(worst("--worst 0"_w).at("elements").empty());
  const json none =
      json::parse(data.run({"compare sample.npy reports/non_finite.json --json"_w, {}}).out);
  CHECK(none.at("worst").is_null());
}

TEST_CASE("the worst are the same by any number of threads, from a file and a pipe", "[reports]") {
  const Workplace at;
  constexpr std::int64_t kRows = 700;
  constexpr std::int64_t kLength = 333;  // so that rows cross the borders of blocks
  std::vector<float> expected;
  std::vector<float> actual;
  for (std::int64_t i = 0; i < kRows * kLength; ++i) {
    const auto value = static_cast<float>(i * i % 10'007 - 5000) / 64;
    expected.push_back(i % 90'001 == 5 ? 1e6F : value);
    actual.push_back(expected.back() + static_cast<float>(i * 31 % 97) / 1024);
  }
  at.write("x.npy", npy_of<float>({kRows, kLength}, expected));
  const std::string y = npy_of<float>({kRows, kLength}, actual);
  at.write("y.npy", y);
  for (const Words& options : {Words{}, "--by abs --worst 300"_w, "--by rel"_w,
                               "--axes 1 --worst 40"_w, "--axes 0 --by abs"_w, "--axes 0,1"_w}) {
    CAPTURE(options);
    const auto found = [&](const Words& more, const std::string& name, const Stream& in = {}) {
      const Words words = Words{"compare", name, "x.npy", "--json"} + options + more;
      return json::parse(at.run(words, in).out).at("worst");
    };
    const json one = found("--threads 1"_w, "y.npy");
    REQUIRE(!one.at("elements").empty());
    CHECK(found("--threads 2"_w, "y.npy") == one);
    CHECK(found("--threads 7"_w, "y.npy") == one);
    CHECK(found({}, "-", pipe_of(y)) == one);
    // Rows as large as they are.
    for (const json& element : one.at("elements")) {
      if (one.at("row_max_axes") == json{0}) continue;
      const bool all = one.at("row_max_axes").size() == 2;
      const std::int64_t row = element.at("index").at(0);
      float greatest = 0;
      for (std::int64_t i = all ? 0 : row * kLength; i < (all ? kRows : row + 1) * kLength; ++i) {
        greatest = std::max(greatest, std::fabs(expected[static_cast<std::size_t>(i)]));
      }
      CHECK(element.at("row_max") == greatest);
    }
  }
}
