#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lnorm/core/text.hpp"
#include "support/commands.hpp"
#include "support/json.hpp"
#include "support/narrowed.hpp"

// lnorm explain: its numbers are those of PyTorch, and of the other commands.

namespace {

using namespace support;
using nlohmann::json;

json parsed(const Words& arguments, const Stream& in = {}) {
  return support::parsed_json(output_of(arguments, in));
}

json explained(const Words& arguments, const Stream& in = {}) {
  return parsed("explain --json"_w + arguments, in);
}

// The number of a dtype that is nearest.
double in_dtype(double value, lnorm::DType dtype) {
  return lnorm::visit(dtype, [&](auto element) {
    return static_cast<double>(widened(narrowed<decltype(element)>(value)));
  });
}

// The only row.
json row_of(const Words& arguments, const Stream& in = {}) {
  const json rows = explained(arguments, in)["rows"];
  REQUIRE(rows.size() == 1);
  return rows[0];
}

std::string seed(const std::string& name) { return data_file("seeds/" + name); }

Nested golden(const std::string& name) { return parse_nested(read_file(seed(name + ".json"))); }

double number(const json& value) {
  if (!value.is_string()) return value.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  return value == "NaN" ? std::nan("") : value == "Infinity" ? infinity : -infinity;
}

bool is_near(const json& actual, double expected, double tolerance) {
  return std::fabs(number(actual) - expected) <= tolerance;
}

// A member of every element against row r of a tensor that PyTorch computed.
void check_row(const json& row, const std::string& member, const Nested& expected, std::size_t r,
               double tolerance) {
  const std::size_t n = row["elements"].size();
  REQUIRE(n > 0);
  for (std::size_t i = 0; i < n; ++i) {
    CAPTURE(member, r, i);
    CHECK(is_near(row["elements"][i][member], expected.elements.at(r * n + i), tolerance));
  }
}

std::string explained_text(const Words& arguments, const std::string& locale = "C.UTF-8") {
  return output_of(
      {.arguments = Words{"explain"} + arguments, .environment = {{"LC_ALL", locale}}});
}

}  // namespace

TEST_CASE("explain walks through what the lecture shows", "[explain]") {
  const std::string batch = seed("lecture20/batch3.npy");
  const Nested y = golden("lecture20/batch3.layer_norm");
  const Nested softmax = golden("lecture20/batch3.softmax");
  const Nested y_variance = golden("lecture20/batch3.layer_norm.var");
  const Nested softmax_variance = golden("lecture20/batch3.softmax.var");
  for (std::size_t r = 0; r < 3; ++r) {
    const json row = row_of({batch, "--row", std::to_string(r)});
    check_row(row, "y", y, r, 1e-6);
    check_row(row, "xhat", y, r, 1e-6);
    check_row(row, "softmax", softmax, r, 1e-7);
    CHECK(is_near(row["output"]["variance"], y_variance.elements[r], 1e-6));
    CHECK(is_near(row["xhat"]["mean_square"], y_variance.elements[r], 1e-6));
    CHECK(is_near(row["softmax"]["variance"], softmax_variance.elements[r], 1e-9));
    CHECK(is_near(row["softmax"]["sum"], 1, 2e-7));
  }
  const Nested mean = golden("lecture20/activations.mean");
  const Nested variance = golden("lecture20/activations.var_unbiased");
  const Nested normalized = golden("lecture20/activations.normalized_unbiased_eps0");
  for (std::size_t r = 0; r < 2; ++r) {
    const json row = row_of({seed("lecture20/activations.npy"), "--unbiased", "--eps", "0", "--row",
                             std::to_string(r)});
    CHECK(is_near(row["input"]["mean"], mean.elements[r], 1e-7));
    CHECK(is_near(row["variance"]["unbiased"], variance.elements[r], 1e-7));
    CHECK(row["variance"]["used"] == row["variance"]["unbiased"]);
    CHECK(is_near(row["variance"]["biased"], variance.elements[r] * 5 / 6, 1e-7));
    CHECK(row["divisor"]["eps_on_variance"] == row["divisor"]["without_eps"]);
    CHECK(row["eps_difference"]["max"] == 0.0);
    check_row(row, "y", normalized, r, 1e-6);
  }
}

TEST_CASE("explain goes through gamma and beta step by step", "[explain]") {
  const std::string folder = seed("step_by_step/");
  for (std::size_t r = 0; r < 2; ++r) {
    const json row =
        row_of({folder + "inputs.npy", "--normalized-shape", "1,3", "--weight",
                folder + "gamma.npy", "--bias", folder + "beta.npy", "--row", std::to_string(r)});
    CHECK(is_near(row["input"]["mean"], golden("step_by_step/mean").elements[r], 1e-7));
    CHECK(is_near(row["variance"]["biased"], golden("step_by_step/var").elements[r], 1e-8));
    CHECK(is_near(row["divisor"]["eps_on_variance"], golden("step_by_step/denominator").elements[r],
                  1e-7));
    check_row(row, "y", golden("step_by_step/layer_norm"), r, 1e-6);
    check_row(row, "weight", golden("step_by_step/gamma"), 0, 0);
    check_row(row, "bias", golden("step_by_step/beta"), 0, 0);
    CHECK(row["elements"][2]["index"] == json{0, 2});
  }
}

TEST_CASE("explain shows both places of eps, and what difference they make", "[explain]") {
  const Nested on_variance = golden("eps_on_std/layer_norm");
  const Nested on_std = golden("eps_on_std/eps_on_std");
  const std::string x = seed("eps_on_std/x.npy");
  for (std::size_t r = 0; r < 4; ++r) {
    const json row = row_of({x, "--row", std::to_string(r)});
    const json other = row_of({x, "--row", std::to_string(r), "--eps-on", "std"});
    check_row(row, "y", on_variance, r, 1e-6);
    check_row(other, "y", on_std, r, 1e-6);
    double difference = 0;
    for (std::size_t i = r * 20; i < (r + 1) * 20; ++i) {
      difference = std::max(difference, std::fabs(on_variance.elements[i] - on_std.elements[i]));
    }
    CHECK(is_near(row["eps_difference"]["max"], difference, 1e-6));
    CHECK(row["eps_difference"] == other["eps_difference"]);
    CHECK(row["divisor"] == other["divisor"]);
  }
  const auto line = [](const std::string& place) {
    const Outcome said = run({"explain", "[0, 1, 2]", "--eps", "2", "--eps-on", place});
    const std::size_t at = said.out.find("With eps on the ");
    return said.out.substr(at, said.out.find('\n', at) - at);
  };
  // 1 / sqrt(2/3 + 2), 1 / (sqrt(2/3) + 2) and 1 / 2
  CHECK(line("variance") == "With eps on the std y changes by 0.2573 at most, at y[0].");
  CHECK(line("std") == "With eps on the variance y changes by 0.2573 at most, at y[0].");
  CHECK(line("max") == "With eps on the variance y changes by 0.1124 at most, at y[0].");
}

TEST_CASE("explain has the numbers of stats, apply and softmax", "[explain][many]") {
  struct Case {
    std::string input;
    Words options;    // of normalization and input
    Words axes = {};  // of softmax as well
  };
  const std::string good = data_file("corpus/good/");
  const std::string rounding = data_file("rounding/bfloat16.safetensors:");
  for (const Case& c : std::vector<Case>{
           {data_file("sample.npy"), {}},
           {data_file("sample.npy"), "--rms --eps-on std --ddof 2"_w},
           {data_file("sample.npy"), {"--weight", "[1, -2, 0.5, 3]", "--bias", "-1"}, "--axes 2"_w},
           {data_file("sample.npy"), {"--unbiased"}, "--axes 0,2"_w},
           {good + "fortran_2x3x4_be_f8.npy", {}, "--axes 1"_w},
           {good + "fortran_2x3x4_le_f4.npy", "--eps 0"_w, "--axes 0,1"_w},
           {good + "dtype_be_i8.npy", {}},
           {good + "dtype_b1.npy", {}},
           {good + "dtype_be_f2.npy", "--zero-centered-weight --weight 1e-3"_w},
           {good + "dtype_f8_e4m3.safetensors", {}},
           {good + "bf16.safetensors", {}},
           {good + "large_20x100.json", {}},
           {good + "medium_64x33_f4.npy", {}},
           {good + "shape_0d.npy", {}},
           {data_file("reports/non_finite.json"), {}},
           {data_file("reports/scales.json"), "--weight 1e300"_w},
           {data_file("reports/int64.json"), "--bias 0.25"_w},
           {rounding + "x",
            {"--rms", "--weight", rounding + "weight", "--residual", rounding + "residual",
             "--round", "sum,xhat"}},
           {data_file("sample.npy"), {"--residual", data_file("sample.npy")}},
       }) {
    CAPTURE(c.input, c.options, c.axes);
    const Words words = Words{c.input} + c.options + c.axes;
    const json stats = parsed("stats --softmax --json"_w + words);
    const json y = parsed("apply --to json"_w + words + "--nan null"_w);
    const bool has_residual = std::count(c.options.begin(), c.options.end(), "--residual") > 0;
    const json softmax =
        has_residual ? json()
                     : parsed(Words{"softmax", "--to", "json", "--nan", "null", c.input} + c.axes);
    const lnorm::DType out = *lnorm::parse_dtype(stats["output_dtype"].get<std::string>());
    const auto rows = stats["rows"].size();
    for (std::size_t r = 0; r < rows; r += std::max<std::size_t>(1, rows / 5)) {
      const json& expected = stats["rows"][r];
      std::string index;
      for (const json& i : expected["index"]) index += (index.empty() ? "" : ",") + i.dump();
      CAPTURE(index);
      const json all = explained(words + Words{"--row", index.empty() ? "0" : index});
      for (const std::string member : {"schema", "input", "output_dtype", "axes", "eps", "eps_on",
                                       "ddof", "rms", "weight", "zero_centered_weight", "bias"}) {
        CHECK(all[member] == stats[member]);
      }
      const json& row = all["rows"][0];
      for (const std::string member : {"row", "index", "non_finite", "output_non_finite"}) {
        CHECK(row[member] == expected[member]);
      }
      for (const std::string tensor : {"input", "output", "softmax"}) {
        for (const auto& [name, value] : expected[tensor].items()) {
          CAPTURE(tensor, name);
          if (tensor == "output" && name == "sum") continue;
          CHECK(row[tensor][name] == value);
        }
      }
      for (const json& element : row["elements"]) {
        const auto at = [&](json result) {
          std::size_t kept = 0;
          std::size_t normalized = 0;
          const std::size_t rank = stats["input"]["shape"].size();
          for (std::size_t axis = 0; axis < rank; ++axis) {
            const bool is_normalized =
                std::count(stats["axes"].begin(), stats["axes"].end(), axis) > 0;
            const json& i = is_normalized ? element["index"][normalized++] : row["index"][kept++];
            result = json(result[i.get<std::size_t>()]);
          }
          return result;
        };
        CAPTURE(element["index"]);
        // JSON has the shortest decimals of the dtype.
        const auto agrees = [&](const std::string& member, const json& value) {
          const double actual = number(element[member]);
          return value.is_null() ? std::isnan(actual) : actual == in_dtype(number(value), out);
        };
        CHECK(agrees("y", at(y)));
        if (!softmax.is_null()) CHECK(agrees("softmax", at(softmax)));
      }
    }
  }
}

TEST_CASE("explain reads rows of any length, from a file or a pipe, in fixed memory",
          "[explain][many]") {
  const Workplace at;
  // Longer than what is held.
  constexpr std::int64_t kLength = 700'001;
  std::vector<float> values;
  for (std::int64_t i = 0; i < 2 * kLength; ++i) {
    values.push_back(static_cast<float>(std::sin(static_cast<double>(i * i % 10007))));
  }
  const std::string path = at / "x.npy";
  write_file(path, npy_of<float>({2, kLength}, values));
  const json stats = parsed({"stats", "--softmax", "--json", path})["rows"];
  const std::string bytes = read_file(path);
  for (std::size_t r = 0; r < 2; ++r) {
    const json row = row_of({path, "--row", std::to_string(r)});
    CHECK(row["input"]["mean"] == stats[r]["input"]["mean"]);
    CHECK(row["input"]["variance"] == stats[r]["input"]["variance"]);
    CHECK(row["output"]["mean"] == stats[r]["output"]["mean"]);
    CHECK(row["output"]["variance"] == stats[r]["output"]["variance"]);
    for (const auto& [name, value] : stats[r]["softmax"].items()) {
      CAPTURE(name);
      CHECK(row["softmax"][name] == value);
    }
    REQUIRE(row["elements"].size() == 10);
    CHECK(row["elements"][4]["element"] == 4);
    CHECK(row["elements"][5]["element"] == kLength - 5);
    CHECK(row_of({"--row", std::to_string(r)}, pipe_of(bytes)) == row);
  }
  // The same row as a column, and in Fortran order.
  std::vector<float> turned;
  for (std::int64_t i = 0; i < kLength; ++i) {
    for (const std::int64_t r : {std::int64_t{0}, std::int64_t{1}}) {
      turned.push_back(values[static_cast<std::size_t>(r * kLength + i)]);
    }
  }
  at.write("columns.npy", npy_of<float>({kLength, 2}, turned));
  const json column = row_of({at / "columns.npy", "--axes", "0", "--row", "1"});
  const json row = row_of({path, "--row", "1"});
  CHECK(column["elements"] == row["elements"]);
  CHECK(column["divisor"] == row["divisor"]);
  CHECK(row_of("--axes 0 --row 1"_w, pipe_of(at.read("columns.npy"))) == column);

#ifndef LNORM_SANITIZED  // which needs much more itself
  const long least = run({"explain"}, pipe_of("[1, 2]")).peak_kib;
  write_sparse_npy(at / "long.npy", {4'000'000}, 1, 2);
  const Outcome outcome = at.run("explain long.npy"_w);
  CHECK(outcome.status == 0);
  CHECK(outcome.peak_kib < least + 8 * 1024);
#endif
}

TEST_CASE("explain finds a row of a huge file at once", "[explain]") {
  const Workplace at;
  const std::string path = at / "huge.npy";
  constexpr std::int64_t kRows = 200'000'000;
  constexpr std::int64_t kColumns = 100;
  write_sparse_npy(path, {kRows, kColumns}, 1, 3);
  for (const Words& words :
       {Words{path, "--row", "-1"}, {path, "--row", "199999999", "--residual", path}}) {
    const auto begin = std::chrono::steady_clock::now();
    const json row = row_of(words);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    CHECK(taken.count() < 2);
    CHECK(row["row"] == kRows - 1);
    CHECK(row["input"]["max"] == (words.size() > 3 ? 6.0 : 3.0));
  }
}

TEST_CASE("explain refuses rows that are not there", "[explain]") {
  const std::string sample = data_file("sample.npy");
  struct Case {
    Words words;
    Words said;
  };
  for (const Case& c : std::vector<Case>{
           {{sample, "--row", "6"}, {"--row 6 is out of range, expected -6 to 5"}},
           {{sample, "--row", "0,0,0"},
            {"--row (0, 0, 0) has 3 numbers, expected one or 2", "0 (0, 0) to 5 (1, 2)",
             "axes 0 and 1"}},
           {{sample, "--row", "2,0"},
            {"--row (2, 0) is out of range, expected -2 to 1 along axis 0"}},
           {{sample, "--row", "0,-4"}, {"expected -3 to 2 along axis 1"}},
           {{sample, "--row", "one"}, {"--row: 'one' is not an integer"}},
           {{sample, "--row", "1.5"}, {"--row: '1.5' is not an integer"}},
           {{sample, "--axis", "0", "--row", "1"}, {"--row 1 is out of range", "one row"}},
           {{sample, "--row", "1", "--row", "2"}, {"--row is given twice"}},
           {{sample, "--ddof", "4"}, {"ddof is 4, but a row has only 4 elements"}},
           {{data_file("corpus/good/shape_2x0x4.npy")}, {"shape (2, 0, 4) has no rows"}},
           {{sample, "--json", "--digits", "3"}, {"--digits has no effect beside --json"}},
           {{sample, "--round", "xhat"}, {"--round xhat has no effect without"}},
           {{sample, "--softmax"}, {"no option --softmax"}},
           {{sample, "--weight", "[1, 2]"}, {"--weight has shape (2)", "(4)"}},
           {{data_file("gpt2/dump.npz")}, {"found 48 tensors", "dump.npz:*"}},
       }) {
    CAPTURE(c.words);
    CHECK(fault_of(Words{"explain"} + c.words, c.said) == "");
  }
  const std::string bytes = read_file(sample);
  for (const std::string row : {"0,0", "1,2"}) {
    const Words words{"explain", "--row", row};
    CHECK(fault_of(words, {"cut off"}, pipe_of(bytes.substr(0, bytes.size() - 1))) == "");
    CHECK(fault_of(words, {"goes on after the tensor"}, pipe_of(bytes + "x")) == "");
  }
}

TEST_CASE("explain takes sets by a pattern, and a line of JSON Lines after the other",
          "[explain]") {
  const std::string text = explained_text({data_file("gpt2/dump.npz:h.1*.in"), "--weight",
                                           data_file("gpt2/dump.npz:h.1{1}.ln_1.weight")});
  const Words lines = lines_of(text);
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.find("shape (2, 4, 16)") != std::string::npos;
        }) == 3);
  const std::string rows =
      output_of("explain --from jsonl --json"_w, pipe_of("[1, 2]\n[[3, 4], [5, 7]]\n"));
  REQUIRE(lines_of(rows).size() == 2);
  CHECK(support::parsed_json(lines_of(rows)[1])["rows"][0]["input"]["mean"] == 3.5);
}

TEST_CASE("explain says what has no number", "[explain]") {
  const auto said = [](const Words& words, const std::string& input, const std::string& text) {
    const std::string found = output_of({.arguments = Words{"explain"} + words,
                                         .in = pipe_of(input),
                                         .environment = {{"LC_ALL", "C"}}});
    CAPTURE(found);
    std::string joined;
    for (const std::string& line : lines_of(found))
      joined += line.substr(std::min(line.size(), line.find_first_not_of(' '))) + " ";
    CHECK(contains(joined, text));
  };
  said({}, "[1, NaN, 3]", "1 of 3 elements is NaN or infinite, at (1).");
  said({}, "[1, NaN, 3]", "It has no number here.");
  said({}, "[1, -Infinity, 3]", "What is -inf is masked: it gets 0.");
  said("--eps 0"_w, "[3, 3]", "and eps is 0: xhat is 0 / 0, which is NaN.");
  said({}, "[3, 3]", "Here all elements are the same: eps alone keeps s above 0.");
  said({"--rms"}, "[0, 0]", "Here all elements are 0: eps alone keeps s above 0.");
  said({}, "[3]", "sum((x - mean)^2) / (n - 1) = 0 / 0 = no number");
  said({}, "[[], []]", "The row has no elements");
  said("--eps 0"_w, "[1, 3]", "The sum of xhat is 0, and the mean of its squares is 1.");
  said({"--unbiased"}, "[1, 3]", "not 1, because of eps and division by n - 1.");
  said({}, "[[1, 3], [2, 5]]",
       "row 0 of rows 0 to 1 along axis 0: 2 elements (--row names another)");
}

TEST_CASE("explain fits 80 columns, in UTF-8 and in ASCII", "[explain]") {
  const std::string rounding = data_file("rounding/bfloat16.safetensors:");
  for (const Words& words :
       {Words{data_file("sample.npy"), "--weight", "[1, -2e30, 0.5, 3e-30]", "--bias", "-1"},
        Words{data_file("sample.npy"), "--axes", "1,2", "--eps-on", "std", "--ddof", "3"},
        Words{data_file("sample.npy"), "--rms", "--row", "1,2"},
        Words{data_file("reports/non_finite.json")},
        Words{data_file("reports/scales.json"), "--axis", "0"},
        Words{data_file("reports/int64.json")}, Words{data_file("corpus/good/large_20x100.json")},
        Words{data_file("corpus/good/dtype_be_i8.npy")},
        Words{rounding + "x", "--rms", "--weight", rounding + "weight", "--residual",
              rounding + "residual", "--round", "sum,xhat"}}) {
    for (const std::string digits : {"1", "4", "17"}) {
      for (const std::string locale : {"C", "C.UTF-8"}) {
        CAPTURE(words, digits, locale);
        const std::string text = explained_text(words + Words{"--digits", digits}, locale);
        const bool is_ascii = std::all_of(
            text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
        CHECK(is_ascii == (locale == "C"));
        for (const std::string& line : lines_of(text)) {
          CAPTURE(line);
          CHECK((lnorm::character_count(line) <= 80 || line.find(data_file("")) == 0));
          CHECK(!line.ends_with(' '));
        }
      }
    }
  }
}
