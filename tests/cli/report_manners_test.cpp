#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// What stats and compare say to people, a line each: a command, what it must print, its exit status.

namespace {

using namespace support;
using nlohmann::json;
using Words = std::vector<std::string>;

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

const std::vector<Line> kLines{
    // ---- stats: significant digits.
    {{"stats", "seeds/lecture20/batch3.npy"}, {"0.0326", "1.27e-08"}, {"0.0000"}},
    {{"stats", "reports/scales.json"}, {"2.33e+06", "1.56e-06", "6.67e-19", "-1e-09"}, {"0.0000"}},
    {{"stats", "sample.npy", "--digits", "2"}, {" 0.57 ", " 0.072 "}, {"0.574"}},
    {{"stats", "sample.npy", "--digits", "6"}, {" 0.574150 ", " 0.0716436 "}},
    {{"stats", "-"}, {"1.5e-08"}, {}, 0, "[1.5e-8]"},

    // ---- Rows: how they are numbered comes before the first number of one.
    {{"stats", "seeds/lecture20/batch3.npy"},
     {"shape (3, 5), normalized over axis 1\n",
      "3 rows of 5 elements, numbered 0 to 2 along axis 0\n", "     0 "}},
    {{"stats", "sample.npy"},
     {"shape (2, 3, 4), normalized over axis 2\n",
      "6 rows of 4 elements, numbered (0, 0) to (1, 2) along axes 0 and 1\n", "(0, 0) "}},
    {{"stats", "sample.npy", "--axes", "1"},
     {"8 rows of 3 elements, numbered (0, 0) to (1, 3) along axes 0 and 2\n"}},
    {{"stats", "sample.npy", "--axis", "0"},
     {"normalized over axes 0, 1 and 2\n", "1 row of 24 elements\n"},
     {"numbered"}},
    {{"stats", "reports/non_finite.json"},
     {"numbered 0 to 3 along axis 0\n",
      "NaN or infinity in 2 of 4 rows (3 elements), first in row 1;"}},

    // ---- The histogram.
    {{"stats", "corpus/good/medium_64x33_f4.npy", "--histogram"},
     {"elements of the input: 2112 from -3.26 to 3.74, 236 in the highest bar\n", "236 ┤",
      "  0 ┼──┬──", "\n      -3  ", " 0 ", " 3\n"}},
    {{"stats", "-", "--histogram"},
     {"elements of the input: 12 from 1.00 to 1e+30, 4 in the highest bar\n", "1 above 4.50 >\n",
      "elements of the output: 12"},
     {},
     0,
     kOutlier},
    {{"stats", "-", "--histogram"},
     {"elements of the input: 8 (and 1 NaN) from -1e+30 to 4.00, 3 in the highest bar\n",
      "< 1 below 0.500, 1 at -inf  ", "  2 at inf >\n",
      "elements of the output: 8 (and 4 NaN) from "},
     {},
     0,
     kOdd},
    {{"stats", "reports/nan_only.json", "--histogram"},
     {"elements of the input: 1 (and 2 NaN, 1 inf), all 1\n",
      "elements of the output: 0 (and 4 NaN)\n"}},

    // ---- compare: the worst elements.
    {{"compare", "seeds/eps_on_std/eps_on_std.npy", "seeds/eps_on_std/layer_norm.npy"},
     {"differ (float32, shape (4, 20))\n", "worst elements by ulp:\n", "expected", "ulp",
      "row max\n", "(2, 3)", "0.02940332", "0.029401729", "854", "(2, 15)", "730",
      "row max: the greatest |expected| along axis 1\n"},
     {"first mismatches"},
     1},
    {{"compare", "seeds/eps_on_std/eps_on_std.npy", "seeds/eps_on_std/layer_norm.npy", "--by",
      "abs", "--worst", "2"},
     {"worst elements by abs:\n", "(2, 0)", "7.96e-05", "(2, 14)", "row max:"},
     {"(1, 6)"},
     1},
    {{"compare", "seeds/eps_on_std/eps_on_std.npy", "seeds/eps_on_std/layer_norm.npy", "--by",
      "rel", "--max-diffs", "2"},
     {"worst elements by rel:\n", "(2, 3)", "5.41e-05", "first mismatches:\n",
      "  (0, 0): 0.9717706, expected 0.9717379\n", "  (0, 1): "},
     {"  (0, 2): "},
     1},
    {{"compare", "seeds/eps_on_std/eps_on_std.npy", "seeds/eps_on_std/layer_norm.npy", "--worst",
      "0"},
     {"mismatched: 57 / 80"},
     {"worst", "first mismatches"},
     1},
    {{"compare", "seeds/eps_on_std/eps_on_std.npy", "seeds/eps_on_std/layer_norm.npy", "--axes",
      "1", "--worst", "2", "--by", "abs"},
     {"rows over axis 1: 4 / 4 differ, the first is (0)\n", "worst rows by abs:\n", "row", "at",
      "(2)  (2, 0)", "(0)  (0, 1)", "row max: the greatest |expected| along axis 1\n"},
     {"(1)"},
     1},
    {{"compare", "seeds/eps_on_std/eps_on_std.npy", "seeds/eps_on_std/layer_norm.npy", "--axes",
      "0"},
     {"worst rows by ulp:\n", "(3)", "(2, 3)"},
     {"row max"},
     1},
    {{"compare", "sample.npy", "sample.npy"}, {" agree"}, {"worst"}},
    // A zero that is not quite one: the row says how little that is.
    {{"compare", "two.json:a", "two.json:b"},
     {"worst elements by ulp:\n", "(0, 1)", "1e-09", "0.500\n", "(1, 1)", "7.00\n",
      "near zero ulp and rel say little: at (0, 1) the difference is 2e-09 of row max\n"},
     {},
     1},
    {{"compare", "two.json:a", "two.json:b", "--by", "rel", "--worst", "1"},
     {"inf", "0.500\n"},
     {},
     1},
    {{"compare", "two.json:a", "two.json:b", "--by", "abs"}, {"row max: the"}, {"say little"}, 1},
    // What is not finite is worst of all.
    {{"compare", "reports/non_finite.json", "reports/non_finite_ref.json"},
     {"worst elements by ulp:\n", "(0, 2)", "4", "nan", "-", "(1, 2)", "inf", "(2, 0)", "(3, 1)",
      "1065353216"},
     {},
     1},
};

// A folder with the files of data/ and one of the table's own.
struct Data {
  Data() {
    for (const std::string name : {"seeds", "reports", "corpus", "sample.npy"}) {
      std::filesystem::create_symlink(data_file(name), directory / name);
    }
    write_file(directory / "two.json", kTwo);
  }
  Outcome run(const Line& line) const {
    return support::run({.arguments = line.arguments,
                         .in = line.in.empty() ? Stream{} : pipe_of(line.in),
                         .directory = directory.path().string(),
                         .environment = {{"LC_ALL", "C.UTF-8"}}});
  }
  TempDir directory;
};

// In characters.
std::ptrdiff_t widest_line(const std::string& text) {
  std::ptrdiff_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
    widest =
        std::max(widest, std::ssize(line) - std::count_if(line.begin(), line.end(), continues));
  }
  return widest;
}

}  // namespace

TEST_CASE("the reports say what they mean", "[reports]") {
  const Data data;
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
      CHECK(outcome.out.find(text) == std::string::npos);
    }
  }
}

TEST_CASE("stats fits the terminal, and 80 columns where there is none", "[reports]") {
  const Data data;
  const std::vector<Words> commands{
      {"stats", "seeds/lecture20/batch3.npy", "--softmax", "--histogram"},
      {"stats", "seeds/lecture20/batch3.npy", "--softmax", "--digits", "9"},
      {"stats", "reports/scales.json", "--softmax", "--digits", "12"},
      {"stats", "reports/non_finite.json", "--softmax", "--eps", "0"},
      {"stats", "sample.npy", "--weight", "2.5e38", "--histogram", "--softmax"},
      {"stats", "corpus/good/medium_64x33_f4.npy", "--all", "--softmax"},
  };
  for (const Words& arguments : commands) {
    CAPTURE(arguments);
    Command command{.arguments = arguments,
                    .directory = data.directory.path().string(),
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
  const Data data;
  const auto worst = [&](const Words& options) {
    Words arguments{"compare", "two.json:a", "two.json:b", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return json::parse(data.run({arguments, {}}).out).at("worst");
  };
  const json by_ulp = worst({});
  CHECK(by_ulp.at("by") == "ulp");
  CHECK(by_ulp.at("row_max_axes") == json{1});
  REQUIRE(by_ulp.at("elements").size() == 2);
  CHECK(by_ulp.at("elements").at(0) == json{{"index", {0, 1}},
                                            {"actual", 1e-9},
                                            {"expected", 0.0},
                                            {"ulp", 0x3e112e0be826d695},
                                            {"absolute", 1e-9},
                                            {"relative", "Infinity"},
                                            {"row_max", 0.5}});
  CHECK(by_ulp.at("elements").at(1).at("row_max") == 7.0);
  const json by_abs = worst({"--by", "abs", "--worst", "1"});
  CHECK(by_abs.at("by") == "abs");
  REQUIRE(by_abs.at("elements").size() == 1);
  CHECK(by_abs.at("elements").at(0).at("index") == json{1, 1});
  CHECK(by_abs.at("elements").at(0).at("absolute") == 2.0);
  const json rows = worst({"--axes", "0"});
  CHECK(rows.at("row_max_axes").is_null());
  REQUIRE(rows.at("elements").size() == 1);  // both lie in row 1
  CHECK(rows.at("elements").at(0).at("row") == json{1});
  CHECK(rows.at("elements").at(0).at("row_max").is_null());
  CHECK(worst({"--worst", "0"}).at("elements").empty());
  const json none = json::parse(
      data.run({{"compare", "sample.npy", "reports/non_finite.json", "--json"}, {}}).out);
  CHECK(none.at("worst").is_null());
}

TEST_CASE("the worst are the same by any number of threads, from a file and a pipe", "[reports]") {
  const TempDir at;
  constexpr std::int64_t kRows = 700;
  constexpr std::int64_t kLength = 333;  // so that rows cross the borders of blocks
  std::vector<float> expected;
  std::vector<float> actual;
  for (std::int64_t i = 0; i < kRows * kLength; ++i) {
    const auto value = static_cast<float>(i * i % 10'007 - 5000) / 64;
    expected.push_back(i % 90'001 == 5 ? 1e6F : value);
    actual.push_back(expected.back() + static_cast<float>(i * 31 % 97) / 1024);
  }
  write_file(at / "x.npy", npy("<f4", {kRows, kLength}, bytes_of(expected)));
  const std::string y = npy("<f4", {kRows, kLength}, bytes_of(actual));
  write_file(at / "y.npy", y);
  for (const Words& options : {Words{},
                               {"--by", "abs", "--worst", "300"},
                               {"--by", "rel"},
                               {"--axes", "1", "--worst", "40"},
                               {"--axes", "0", "--by", "abs"},
                               {"--axes", "0,1"}}) {
    CAPTURE(options);
    const auto found = [&](const Words& more, const std::string& name, const Stream& in = {}) {
      Words arguments{"compare", name, at / "x.npy", "--json"};
      arguments.insert(arguments.end(), options.begin(), options.end());
      arguments.insert(arguments.end(), more.begin(), more.end());
      return json::parse(run(arguments, in).out).at("worst");
    };
    const json one = found({"--threads", "1"}, at / "y.npy");
    REQUIRE(!one.at("elements").empty());
    CHECK(found({"--threads", "2"}, at / "y.npy") == one);
    CHECK(found({"--threads", "7"}, at / "y.npy") == one);
    CHECK(found({}, "-", pipe_of(y)) == one);
    // Rows as large as they are.
    for (const json& element : one.at("elements")) {
      if (element.at("row_max").is_null()) continue;
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
