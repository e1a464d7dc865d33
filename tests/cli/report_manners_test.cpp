#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/commands.hpp"
#include "support/json.hpp"

// What stats and compare say to people: widths, the worst elements. tests/transcripts/reports.md has their texts.

namespace {

using namespace support;
using nlohmann::json;

const std::string kTwo = R"({"a": [[0.5, 1e-9], [4, 5]], "b": [[0.5, 0], [4, 7]]})";

// A folder with the files of data/ and one of the table's own.
struct DataFolder : Workplace {
  DataFolder() {
    for (const std::string name : {"seeds", "reports", "corpus", "sample.npy"}) {
      std::filesystem::create_symlink(data_file(name), *this / name);
    }
    write("two.json", kTwo);
  }
  Outcome run(const Words& words) const {
    return support::run(
        {.arguments = words, .directory = path().string(), .environment = {{"LC_ALL", "C.UTF-8"}}});
  }
};

}  // namespace

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
    return support::parsed_json(data.run("compare two.json:a two.json:b --json"_w + options).out)
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
      support::parsed_json(data.run("compare sample.npy reports/non_finite.json --json"_w).out);
  CHECK(none.at("worst").is_null());
}

TEST_CASE("the worst are the same by any number of threads, from a file and a pipe",
          "[reports][many]") {
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
      return support::parsed_json(at.run(words, in).out).at("worst");
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
