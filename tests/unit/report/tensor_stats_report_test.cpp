#include <nlohmann/json.hpp>
#include <sstream>

#include "lnorm/report/reports.hpp"
#include "lnorm/report/table.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/written.hpp"

namespace {

using lnorm::DType;
using lnorm::NamedStats;
using lnorm::TensorStats;
using nlohmann::json;

TensorStats stats_of(DType dtype, const lnorm::Shape& shape, std::int64_t rows,
                     std::int64_t row_length) {
  TensorStats stats;
  stats.x = {"", dtype, shape};
  stats.axes = {shape.size() - 1};
  stats.rows = rows;
  stats.row_length = row_length;
  stats.means = {rows, -0.25, 0.5, 1};
  stats.variances = {rows, 1e-9, 2, 12.5};
  stats.largest = lnorm::LargestElement{{-7.5, 0}, 3};
  return stats;
}

TensorStats nothing(const lnorm::Shape& shape) {
  TensorStats stats;
  stats.x = {"", DType::float32, shape};
  stats.axes = {shape.size() - 1};
  return stats;
}

std::string written(const std::vector<NamedStats>& tensors, const std::string& kind,
                    lnorm::Style style = {}) {
  return support::written([&](lnorm::ByteSink& bytes) {
    kind == "json"  ? lnorm::write_json(tensors, {}, bytes)
    : kind == "csv" ? lnorm::write_csv(tensors, {}, bytes)
                    : lnorm::write_text(tensors, {}, 3, style, bytes);
  });
}

}  // namespace

TEST_CASE("the text says once what is the same for all tensors", "[report]") {
  const std::string text = written({{"h.0", stats_of(DType::float32, {2, 4}, 2, 4)},
                                    {"h.10", stats_of(DType::float32, {2, 4}, 2, 4)}},
                                   "text", {.width = 100});
  CHECK(text ==
        "float32, shape (2, 4), 2 rows of 4 elements along axis 1, biased variances (ddof 0)\n"
        "\n"
        "         largest |x|     mean                   variance\n"
        "tensor       x      at      min  median   max     min  median   max\n"
        "h.0      -7.50  (0, 3)   -0.250   0.500  1.00   1e-09    2.00  12.5\n"
        "h.10     -7.50  (0, 3)   -0.250   0.500  1.00   1e-09    2.00  12.5\n"
        "\n"
        "2 tensors, 16 elements, 64 B\n");
}

TEST_CASE("what differs has a column, and what is not finite is marked", "[report]") {
  TensorStats bad = stats_of(DType::int64, {3, 2, 4}, 6, 4);
  bad.largest->value.high = -7;
  bad.non_finite.add(1, 3);
  const std::string text =
      written({{"a", stats_of(DType::float32, {2, 4}, 2, 4)}, {"b", bad}, {"empty", nothing({0})}},
              "text", {.width = 200});
  CHECK(
      text ==
      "rows along the last axis, biased variances (ddof 0)\n"
      "\n"
      "                                               largest |x|        mean                   "
      "variance\n"
      "tensor  dtype    shape      rows  non-finite       x         at      min  median   max     "
      "min  median   max\n"
      "a       float32  (2, 4)        2               -7.50     (0, 3)   -0.250   0.500  1.00   "
      "1e-09    2.00  12.5\n"
      "b       int64    (3, 2, 4)     6           3   -7     (0, 0, 3)   -0.250   0.500  1.00   "
      "1e-09    2.00  12.5\n"
      "empty   float32  (0)           0                   -          -        -       -     -      "
      " "
      "-       -     -\n"
      "\n"
      "3 tensors, 32 elements, 224 B\n"
      "NaN or infinity in 1 of 3 tensors, first in b\n");
  CHECK(written({{"b", bad}}, "text", {.color = true}).find("\x1b[31mb ") != std::string::npos);
  CHECK(written({}, "text") == "no tensors\n");
}

TEST_CASE("the table fits the width, and columns that do not fit follow", "[report]") {
  std::vector<NamedStats> tensors;
  for (int layer = 0; layer < 12; ++layer) {
    const std::string name =
        "model.layers." + std::to_string(layer) + ".post_attention_layernorm.weight";
    tensors.push_back({name, stats_of(DType::bfloat16, {4096, 11008 + layer}, 4096, 11008)});
  }
  const std::string text = written(tensors, "text");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
  CHECK(text.find("model.layers.11.post_at") != std::string::npos);
}

TEST_CASE("the statistics of tensors as JSON and as CSV are whole", "[report]") {
  const std::vector<NamedStats> tensors{{"a, \"b\"", stats_of(DType::float32, {2, 4}, 2, 4)},
                                        {"empty", nothing({0})}};
  const json report = support::parsed_json(written(tensors, "json"));
  CHECK(report["schema"] == 1);
  CHECK(report["command"] == "stats");
  REQUIRE(report["tensors"].size() == 2);
  CHECK(report["tensors"][0] == support::parsed_json(R"({"name": "a, \"b\"", "dtype": "float32",
      "shape": [2, 4], "axes": [1], "ddof": 0, "rows": 2, "row_length": 4, "non_finite_rows": 0,
      "non_finite_elements": 0, "first_non_finite_index": null,
      "mean": {"count": 2, "min": -0.25, "median": 0.5, "max": 1.0},
      "variance": {"count": 2, "min": 1e-9, "median": 2.0, "max": 12.5},
      "largest": {"value": -7.5, "index": [0, 3]}})"));
  CHECK(report["tensors"][1]["largest"].is_null());
  CHECK(report["tensors"][1]["mean"]["min"] == "NaN");
  CHECK(report["summary"] == support::parsed_json(R"({"tensors": 2, "elements": 8, "bytes": 32,
      "non_finite_tensors": 0, "first_non_finite": null})"));
  CHECK(support::parsed_json(written({}, "json"))["tensors"] == json::array());
  CHECK(
      written(tensors, "csv") ==
      "tensor,dtype,shape,rows,row_length,non_finite_rows,non_finite_elements,mean_min,mean_median,"
      "mean_max,variance_min,variance_median,variance_max,largest,largest_index,axes,ddof,"
      "first_non_finite_index,mean_count,variance_count\n"
      "\"a, \"\"b\"\"\",float32,\"(2, 4)\",2,4,0,0,-0.25,0.5,1,1e-09,2,12.5,-7.5,\"(0, "
      "3)\",(1),0,,2,2\n"
      "empty,float32,(0),0,0,0,0,,,,,,,,,(0),0,,0,0\n");
}

TEST_CASE("a long name keeps its ends and its numbers", "[report]") {
  using lnorm::abbreviated;
  CHECK(abbreviated("h.1.weight", 10) == "h.1.weight");
  CHECK(abbreviated("model.layers.10.post_attention_layernorm.weight", 40) ==
        "model.layers.10.post_at...yernorm.weight");
  CHECK(abbreviated("abcdefghijklmnop", 9) == "abc...nop");
  CHECK(abbreviated("a.b.c.d.e.f.g.h.i.j.k", 9) == "a.b...j.k");
  const std::string accents = "h\u00e9h\u00e9h\u00e9h\u00e9h\u00e9h\u00e9";
  CHECK(abbreviated(accents, 8) == "h\u00e9h...h\u00e9");
  CHECK(abbreviated(std::string(1'000'000, '.'), 40).size() == 40);
}
