#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "support/commands.hpp"
#include "support/json.hpp"

// What stands out: rows, tensors and features of stats, rows of compare. The oracle sorts all of them.

namespace {

using namespace support;
using nlohmann::json;

constexpr std::int64_t kRowCount = 300;
constexpr std::int64_t kRowLength = 70;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// Means of 1e3 beside deviations of 1, outliers, zeros, NaN and infinity; rows that are equal.
std::vector<float> elements() {
  std::mt19937_64 random(7);
  std::vector<float> x;
  for (std::int64_t r = 0; r < kRowCount; ++r) {
    for (std::int64_t c = 0; c < kRowLength; ++c) {
      const auto noise = static_cast<float>(static_cast<double>(random() % 20001) / 1e4 - 1);
      x.push_back(c == 3 ? 0.0F : c % 5 == 0 ? noise + 1000 : random() % 50 == 0 ? 0 : noise);
    }
  }
  const auto at = [&](std::int64_t r, std::int64_t c) -> float& {
    return x[static_cast<std::size_t>(r * kRowLength + c)];
  };
  at(17, 11) = at(18, 11) = at(200, 69) = std::numeric_limits<float>::infinity();
  at(20, 69) = std::numeric_limits<float>::quiet_NaN();
  at(40, 8) = -3e4F;
  for (std::int64_t r = 0; r < kRowCount; ++r) at(r, 30) = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t c = 0; c < kRowLength; ++c) at(7, c) = at(250, c) = c == 3 ? 0 : 5;
  return x;
}

double finite_or_none(const json& value) {
  return value.is_string() ? kNoNumber : value.get<double>();
}

struct Numbers {
  double mean = kNoNumber;
  double variance = kNoNumber;
  double absmax = kNoNumber;
  double zeros = kNoNumber;
  std::int64_t non_finite = 0;
};

Numbers numbers_of(const std::vector<double>& all) {
  Numbers result;
  std::vector<long double> finite;
  for (const double x : all) {
    std::isfinite(x) ? finite.push_back(x) : static_cast<void>(++result.non_finite);
  }
  if (finite.empty()) return result;
  const auto n = static_cast<long double>(finite.size());
  const long double mean = std::accumulate(finite.begin(), finite.end(), 0.0L) / n;
  long double squares = 0;
  result.absmax = 0;
  double zeros = 0;
  for (const long double x : finite) {
    squares += (x - mean) * (x - mean);
    result.absmax = std::max(result.absmax, static_cast<double>(std::fabs(x)));
    zeros += x == 0 ? 1 : 0;
  }
  result.mean = static_cast<double>(mean);
  result.variance = static_cast<double>(squares / n);
  result.zeros = zeros / static_cast<double>(n);
  return result;
}

double score(const std::string& by, const Numbers& of) {
  return by == "mean"           ? std::fabs(of.mean)
         : by == "variance"     ? of.variance
         : by == "variance-min" ? -of.variance
         : by == "absmax"       ? of.absmax
         : by == "zeros"        ? of.zeros
                                : static_cast<double>(of.non_finite);
}

std::vector<std::int64_t> sorted_by(const std::string& by, const std::vector<Numbers>& all) {
  std::vector<std::int64_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const double left = score(by, all[static_cast<std::size_t>(a)]);
    const double right = score(by, all[static_cast<std::size_t>(b)]);
    return left > right || (std::isnan(right) && !std::isnan(left));
  });
  return order;
}

struct RankedTensor : Workplace {
  std::vector<Numbers> rows;
  std::vector<Numbers> features;

  RankedTensor() {
    const std::vector<float> x = elements();
    write("x.npy", npy_of<float>({kRowCount, kRowLength}, x));
    for (std::int64_t r = 0; r < kRowCount; ++r) {
      const auto begin = x.begin() + r * kRowLength;
      rows.push_back(numbers_of({begin, begin + kRowLength}));
      if (rows.back().non_finite > 0) {
        rows.back() = {kNoNumber, kNoNumber, kNoNumber, kNoNumber, rows.back().non_finite};
      }
    }
    for (std::int64_t c = 0; c < kRowLength; ++c) {
      std::vector<double> column;
      for (std::int64_t r = 0; r < kRowCount; ++r) {
        column.push_back(x[static_cast<std::size_t>(r * kRowLength + c)]);
      }
      features.push_back(numbers_of(column));
    }
  }

  json report(const Words& options, const std::string& name = "x.npy") const {
    const Stream in = name == "-" ? pipe_of(read("x.npy")) : Stream();
    return support::parsed_json(output(Words{"stats", name, "--json"} + options, in));
  }
};

bool near(double found, double expected) {
  return (std::isnan(found) && std::isnan(expected)) ||
         std::fabs(found - expected) <= 1e-12 * std::max(1.0, std::fabs(expected));
}

}  // namespace

TEST_CASE("features are those of their finite elements, from a file, a pipe, and any threads") {
  const RankedTensor at;
  const json found = at.report("--features"_w);
  REQUIRE(found.at("features").size() == kRowLength);
  for (std::size_t i = 0; i < kRowLength; ++i) {
    const json& feature = found.at("features").at(i);
    const Numbers& expected = at.features[i];
    CAPTURE(i, feature.dump());
    CHECK(feature.at("index") == json{i});
    CHECK(near(finite_or_none(feature.at("mean")), expected.mean));
    CHECK(near(finite_or_none(feature.at("variance")), expected.variance));
    CHECK(near(finite_or_none(feature.at("absmax")), expected.absmax));
    CHECK(near(finite_or_none(feature.at("zeros")), expected.zeros));
    CHECK(feature.at("non_finite") == expected.non_finite);
  }
  CHECK(found.at("first_non_finite_index") == json{0, 30});
  const json features = found.at("features");
  CHECK(at.report("--features --threads 3"_w).at("features") == features);
  CHECK(at.report("--features"_w, "-").at("features") == features);
  CHECK(lines_of(at.output("stats x.npy --features --csv"_w)).size() == kRowLength + 1);
  const std::string text = at.output("stats x.npy --features"_w);
  CHECK(contains(text, "dead, all zeros: 1 feature: 3\n"));
  CHECK(contains(text, "first at (0, 30)"));
}

TEST_CASE("features of short rows, of zeros and of a sum are told as they are") {
  const Workplace files;
  files.write("x.json", "[[1], [2], [6]]");
  files.write("zeros.json", "[[0, 0], [0, 0]]");
  const json short_rows = json::parse(files.output("stats x.json --features --unbiased --json"_w));
  CHECK(short_rows.at("features").at(0).at("variance") == 7);
  const std::string zeros = files.output("stats zeros.json --features"_w);
  CHECK(contains(zeros, "dead, all zeros: 2 features: 0, 1\n\n"));
  const json sum = json::parse(files.output("stats x.json --residual x.json --features --json"_w));
  CHECK(sum.at("residual") == true);
  CHECK(sum.at("input").at("dtype") == "float64");
  CHECK(sum.at("features").at(0).at("absmax") == 12);
}

TEST_CASE("the rows and features of --top are those that a sort of all has first") {
  const RankedTensor at;
  for (const std::string by :
       {"mean", "variance", "variance-min", "absmax", "zeros", "non-finite"}) {
    for (const std::string most : {"1", "7", "1000"}) {
      CAPTURE(by, most);
      const Words top{"--top", most, "--by", by};
      const auto check = [&](const json& found, const std::vector<Numbers>& all) {
        const std::vector<std::int64_t> order = sorted_by(by, all);
        REQUIRE(found.size() == std::min(order.size(), std::stoul(most)));
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK(found.at(i).at("index") == json{order[i]});
        }
      };
      const json features = at.report("--features"_w + top);
      CHECK(features.at("top").at("by") == by);
      check(features.at("top").at("features"), at.features);
      if (by != "zeros") check(at.report(top).at("top").at("rows"), at.rows);
    }
  }
  CHECK(at.report("--top 3"_w) == at.report("--top 3 --by absmax"_w));
  CHECK(at.report("--by mean"_w) == at.report("--top 5 --by mean"_w));
  CHECK(at.fault("stats x.npy --by zeros --top 3"_w, {"--by zeros", "--features"}).empty());
}

TEST_CASE("of several tensors --top shows those with the most extreme row") {
  const Workplace at;
  at.write(
      "set.json",
      R"({"a": [[1, 2]], "b": [[-9, -9], [0, 1]], "c": [[Infinity, 4], [NaN, NaN]], "d": [5]})");
  const auto names = [&](const std::string& by) {
    std::string result;
    const json found =
        support::parsed_json(at.output({"stats", "set.json", "--json", "--top", "3", "--by", by}));
    for (const json& tensor : found.at("top").at("tensors")) result += tensor.at("name");
    return result;
  };
  CHECK(names("mean") == "bda");
  CHECK(names("absmax") == "bdc");
  CHECK(names("variance") == "abd");
  CHECK(names("non-finite") == "cab");
  const json all = support::parsed_json(at.output("stats set.json --json"_w));
  CHECK(all.at("tensors").at(2).at("first_non_finite_index") == json{0, 0});
  CHECK(all.at("tensors").at(0).at("first_non_finite_index").is_null());
}

TEST_CASE("the first element that is not finite is named, and explain names those of its row") {
  const Workplace at;
  at.write("x.json", "[[[1, 2], [3, 4]], [[5, NaN], [Infinity, 8]]]");
  const json found = support::parsed_json(at.output("stats x.json --axis 1 --json"_w));
  CHECK(found.at("first_non_finite_index") == json{1, 0, 1});
  CHECK(contains(at.output("stats x.json --axis 1"_w), "first in row 1, at (1, 0, 1)"));
  CHECK(contains(at.output("explain x.json --axis 1 --row 1"_w), "(1, 0, 1), (1, 1, 0)"));
  CHECK(support::parsed_json(at.output("explain x.json --axis 1 --row 1 --json"_w))
            .at("rows")
            .at(0)
            .at("non_finite_indices") == json{{1, 0, 1}, {1, 1, 0}});
  CHECK(support::parsed_json(at.output("stats x.json --json --rows :1 --axis 1"_w))
            .at("first_non_finite_index")
            .is_null());
}

TEST_CASE("errors are ranked and judged in ulp of the row's greatest element") {
  const Workplace at;
  const RankedTensor big;
  at.write("e.npy", npy_of<float>({2, 3}, std::vector<float>{1024, 1e-3F, 1, 1, 0.25F, 0}));
  at.write("a.npy", npy_of<float>({2, 3}, std::vector<float>{1024, 2e-3F, 1, 1, 0.25F, 0x1p-22F}));
  const auto found = [&](const Words& options) {
    return support::parsed_json(at.run("compare a.npy e.npy --json"_w + options).out);
  };
  const json report = found({});
  CHECK(report.at("worst").at("by") == "row-ulp");
  const json& worst = report.at("worst").at("elements").at(0);
  CHECK(worst.at("index") == json{0, 1});
  CHECK(worst.at("row_ulp") == static_cast<double>(2e-3F - 1e-3F) / 0x1p-13);
  CHECK(report.at("worst").at("elements").at(1).at("row_ulp") == 2.0);
  CHECK(found("--by abs --max-row-ulp 9"_w).at("equal") == true);
  CHECK(found("--max-row-ulp 3"_w).at("mismatched") == 1);
  CHECK(found("--max-row-ulp 1.999"_w).at("mismatched") == 2);
  CHECK(found("--max-row-ulp 1.999"_w).at("failed").at(0).at("criterion") == "max_row_ulp");
  // By columns, of which each has its own greatest.
  CHECK(found("--max-row-ulp 9"_w).at("mismatched") == 0);
  CHECK(found("--axes 0 --max-row-ulp 9"_w).at("mismatched") == 1);
}

TEST_CASE("long rows have the same figures from a file and a pipe, and their places in words") {
  const Workplace at;
  constexpr std::int64_t kLong = 300'000;
  std::vector<float> e(2 * kLong);
  for (std::size_t i = 0; i < e.size(); ++i) e[i] = static_cast<float>(i % 1000) / 8;
  std::vector<float> a = e;
  for (const std::int64_t place : {199L, kLong + 199}) a[static_cast<std::size_t>(place)] += 1;
  at.write("e.npy", npy_of<float>({2, kLong}, e));
  const std::string actual = npy_of<float>({2, kLong}, a);
  at.write("a.npy", actual);
  const json file = support::parsed_json(at.run("compare a.npy e.npy --json"_w).out);
  const json pipe = support::parsed_json(at.run("compare - e.npy --json"_w, pipe_of(actual)).out);
  for (const char* const key : {"worst", "where", "affected_rows", "affected_columns"}) {
    CHECK(file.at(key) == pipe.at(key));
  }
  CHECK(file.at("where") == json{"column 199 in all rows"});
  CHECK(file.at("affected_columns") == json{{"count", 1}, {"first", {199}}});
  CHECK(file.at("greatest_row_ulp_distance").at("value") == 0x1p17);
}

TEST_CASE("the rows that fail go into a file, and a baseline says how far off is allowed") {
  const Workplace at;
  at.write("e.json", "[[1, 2], [3, 4], [5, 6]]");
  at.write("a.json", "[[1, 2], [3.5, 4.25], [NaN, 6]]");
  at.write("b.json", "[[1, 2], [3, 4.25], [5, 6]]");
  CHECK(at.run("compare a.json e.json --rows-out r.csv"_w).status == 1);
  CHECK(at.read("r.csv") == "row,elements,mismatched,max_abs\n1,2,2,0.5\n2,2,1,0\n");
  CHECK(at.run("compare a.json e.json --rows 1: --rows-out r.csv -q"_w).status == 1);
  CHECK(at.read("r.csv") == "row,elements,mismatched,max_abs\n1,2,2,0.5\n2,2,1,0\n");
  const auto status = [&](const std::string& words) {
    return at.run("compare"_w + support::operator""_w(words.data(), words.size())).status;
  };
  CHECK(status("a.json e.json --baseline b.json --factor 2 --rows :2 -q") == 0);
  CHECK(status("a.json e.json --baseline b.json --factor 1.9 --rows :2 -q") == 1);
  CHECK(status("a.json e.json --baseline b.json -q") == 1);  // NaN
  CHECK(status("a.json e.json --baseline none.json -q") == 2);
  // The mask leaves the same elements out of the baseline, whatever axes rows have.
  at.write("m.json", "[[1, 1], [1, 0], [1, 1]]");
  CHECK(status("b.json e.json --baseline b.json --mask m.json -q") == 0);
  CHECK(contains(
      at.run("compare a.json e.json --baseline b.json --mask m.json --axes 0,1 --rows :"_w).out,
      "tolerance baseline 0,"));
  CHECK(at.run("compare a.json - --baseline b.json -q --rows :2"_w,
               pipe_of("[[1, 2], [3, 4], [5, 6]]"))
            .status == 0);
}

TEST_CASE("where one scale and one offset explain all elements, a line says so") {
  const Workplace at;
  std::vector<float> e;
  for (int i = 0; i < 4000; ++i) e.push_back(static_cast<float>(i * 37 % 1009) / 64 - 8);
  const auto fit = [&](double scale, double offset, bool breaks = false) {
    std::vector<float> a;
    for (const float x : e) a.push_back(static_cast<float>(scale * x + offset));
    if (breaks) a.back() += 1;
    at.write("e.npy", npy_of<float>({40, 100}, e));
    at.write("a.npy", npy_of<float>({40, 100}, a));
    return support::parsed_json(at.run("compare a.npy e.npy --json"_w).out).at("fit");
  };
  CHECK(fit(1, 1) == json{{"scale", 1.0}, {"offset", 1.0}});
  CHECK(fit(1.0625, 0) == json{{"scale", 1.0625}, {"offset", 0.0}});
  CHECK(fit(-0.7, 0.01) == json{{"scale", -0.7}, {"offset", 0.01}});
  CHECK(fit(1, 0).is_null());
  CHECK(fit(1, 1, true).is_null());
  at.write("s.json", R"({"a": [1, 2, 3, 4, 5, 6, 7, 8, 9], "b": [2, 4, 6, 8, 1, 3, 5, 7, 0]})");
  at.write("t.json", R"({"a": [0, 1, 2, 3, 4, 5, 6, 7, 8], "b": [1, 3, 5, 7, 0, 2, 4, 6, -1]})");
  CHECK(contains(at.run("compare s.json t.json"_w).out, "\nactual = expected + 1 in all 2\n"));
}
