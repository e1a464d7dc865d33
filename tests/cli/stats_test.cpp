#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <sstream>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/shape.hpp"
#include "support/commands.hpp"
#include "support/json.hpp"
#include "support/narrowed.hpp"

// The numbers of stats: those that were published, and those of long double arithmetic.

namespace {

using namespace support;
using lnorm::DType;
using nlohmann::json;

json stats_json(const Words& arguments, const Stream& in = {}) {
  return support::parsed_json(output_of("stats --json"_w + arguments, in));
}

// The numbers in the lines of a text report that begin with the label: one in each block of columns.
std::vector<double> numbers(const std::string& text, const std::string& label) {
  std::istringstream lines(text);
  std::vector<double> result;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word != label) continue;
    while (words >> word) result.push_back(std::stod(word));
  }
  if (!result.empty()) return result;
  throw std::runtime_error("no line " + label + " in\n" + text);
}

// ---- The oracle.

struct Moments {
  std::int64_t non_finite = 0;
  long double sum = 0;
  long double mean = 0;
  long double variance = 0;
  long double min = 0;
  long double max = 0;
  long double largest = 0;  // magnitude
};

Moments moments(const long double* row, std::int64_t n, int ddof) {
  constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();
  Moments m{.min = kNan, .max = kNan};
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(row[i])) ++m.non_finite;
    m.sum += row[i];
    m.min = std::fmin(m.min, row[i]);
    m.max = std::fmax(m.max, row[i]);
    m.largest = std::max(m.largest, std::fabs(row[i]));
  }
  if (m.non_finite > 0) m.sum = kNan;
  m.mean = m.sum / static_cast<long double>(n);
  for (std::int64_t i = 0; i < n; ++i) m.variance += (row[i] - m.mean) * (row[i] - m.mean);
  m.variance /= static_cast<long double>(n - ddof);
  return m;
}

// What is wrong with a number of the report; empty if nothing is.
std::string fault(const json& reported, long double expected, long double tolerance) {
  const json special = std::isnan(expected)   ? json("NaN")
                       : std::isinf(expected) ? json(expected < 0 ? "-Infinity" : "Infinity")
                                              : json();
  const bool right =
      !special.is_null()
          ? reported == special
          : reported.is_number() && std::fabs(reported.get<double>() - expected) <= tolerance;
  if (right) return {};
  std::ostringstream text;
  text.precision(20);
  text << reported << ", expected " << expected << " within " << tolerance;
  return text.str();
}

// Within what lnorm/kernel/moments.hpp promises.
void check_moments(const json& reported, const Moments& expected, std::int64_t n, bool wide) {
  const long double length = n;
  const long double oracle = 0x1p-62L * length * expected.largest;  // what long double loses
  const long double narrow = 0x1p-48L * expected.largest;
  const auto within = [&](long double value, long double of_narrow) {
    return wide ? std::fabs(value) * 0x1.01p-53L + oracle : of_narrow;
  };
  CHECK(fault(reported.at("mean"), expected.mean, within(expected.mean, narrow)) == "");
  CHECK(fault(reported.at("variance"), expected.variance,
              expected.variance * (wide ? 1e-15L : 0x1p-46L) + oracle * oracle) == "");
  if (reported.contains("sum")) {
    CHECK(fault(reported.at("sum"), expected.sum, within(expected.sum, narrow * length)) == "");
  }
  if (reported.contains("min")) {
    CHECK(fault(reported.at("min"), static_cast<double>(expected.min), 0) == "");
    CHECK(fault(reported.at("max"), static_cast<double>(expected.max), 0) == "");
  }
}

// ---- Tensors.

using Random = std::mt19937_64;

template <class T>
T draw(Random& random) {
  std::normal_distribution<double> normal;
  if constexpr (std::is_same_v<T, bool>) {
    return random() % 2 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else if constexpr (std::is_same_v<T, double>) {
    return 1e6 + 1e3 * normal(random);
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(3 + 100 * normal(random));
  } else {
    return narrowed<T>(normal(random));
  }
}

// One that is not finite.
template <class T>
T draw_special(Random& random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double values[]{std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity};
  return narrowed<T>(values[random() % 3]);
}

std::string random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Random& random) {
  std::string bytes;
  const std::int64_t count =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  const bool finite = random() % 2 == 0;
  lnorm::visit(dtype, [&]<class T>(T element) {
    for (std::int64_t i = 0; i < count; ++i) {
      element = draw<T>(random);
      if constexpr (!std::is_integral_v<T>) {
        if (!finite && random() % 16 == 0) element = draw_special<T>(random);
      }
      bytes.append(reinterpret_cast<const char*>(&element), sizeof(T));
    }
  });
  const std::size_t item = lnorm::item_size(dtype);
  std::string descr = item == 1 ? "|" : "<";
  descr += lnorm::name(dtype)[0];  // as NumPy's code: bool, int, uint or float
  return npy(descr + std::to_string(item), shape, bytes);
}

// Of an .npy file.
std::vector<long double> elements(const std::string& file, DType dtype) {
  std::vector<long double> result;
  lnorm::visit(dtype, [&]<class T>(T element) {
    for (std::size_t at = file.find('\n') + 1; at < file.size(); at += sizeof(T)) {
      std::memcpy(&element, file.data() + at, sizeof(T));
      result.push_back(static_cast<long double>(widened(element)));
    }
  });
  return result;
}

// ---- What the report must be.

// Over the rows that are finite, and of them the values that are not NaN.
void check_summary(const json& report, const std::string& tensor, const std::string& column) {
  std::vector<double> values;
  for (const json& row : report.at("rows")) {
    const json& value = row.at(tensor).at(column);
    if (row.at("non_finite") == 0 && value != "NaN") values.push_back(value.get<double>());
  }
  std::sort(values.begin(), values.end());
  const json& summary = report.at("summary").at(tensor).at(column);
  CAPTURE(tensor, column, summary);
  CHECK(summary.at("count") == values.size());
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const bool any = !values.empty();
  const std::size_t half = values.size() / 2;
  const double median = !any                     ? kNan
                        : values.size() % 2 == 1 ? values[half]
                                                 : (values[half - 1] + values[half]) / 2;
  CHECK(fault(summary.at("min"), any ? values.front() : kNan, 0) == "");
  CHECK(fault(summary.at("median"), median, 0) == "");
  CHECK(fault(summary.at("max"), any ? values.back() : kNan, 0) == "");
}

// The same report as CSV.
void check_csv(const std::string& csv, const json& report) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  Words columns;
  std::istringstream names(line);
  for (std::string name; std::getline(names, name, ',');) columns.push_back(name);
  for (const json& row : report.at("rows")) {
    REQUIRE(std::getline(lines, line));
    std::istringstream cells(line);
    std::string cell;
    for (const std::string& column : columns) {
      if (column == "index") {
        REQUIRE(std::getline(cells, cell));
        json index = support::parsed_json("[" + cell.substr(2, cell.size() - 4) + "]");  // "(1, 2)"
        CHECK(index == row.at(column));
        continue;
      }
      REQUIRE(std::getline(cells, cell, ','));
      const std::size_t split = column.find('_');
      const json& value = row.contains(column)
                              ? row.at(column)
                              : row.at(column.substr(0, split)).at(column.substr(split + 1));
      CAPTURE(column, cell, value);
      const std::string special = cell == "nan"    ? "NaN"
                                  : cell == "inf"  ? "Infinity"
                                  : cell == "-inf" ? "-Infinity"
                                                   : "";
      CHECK((special.empty() ? value == std::stod(cell) : value == special));
    }
    CHECK(!std::getline(cells, cell, ','));
  }
  CHECK(!std::getline(lines, line));
}

// Where a row lies along the axes before the normalized ones.
std::vector<std::int64_t> index_of(std::int64_t row, std::vector<std::int64_t> shape,
                                   std::int64_t row_length) {
  std::int64_t length = 1;
  do {
    if (shape.empty()) break;
    length *= shape.back();
    shape.pop_back();
  } while (length < row_length);
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; row /= shape[axis]) {
    index[axis] = row % shape[axis];
  }
  return index;
}

struct Case {
  std::vector<std::int64_t> shape;
  std::int64_t row_length;
  Words axes;
  Words options;
  int ddof = 0;
};

const std::vector<Case> kCases{
    {{5, 7}, 7, {}, {}},
    {{2, 3, 4, 5}, 20, "--axes -1,2"_w, {}},
    {{4, 6}, 24, "--axes 0,1"_w, {"--unbiased"}, 1},
    {{3, 2, 9}, 9, "--normalized-shape 9"_w, "--ddof 2 --eps-on std"_w, 2},
    {{6, 3}, 3, {}, "--weight [1,-2,0.5] --bias 0.25 --eps 0"_w},
    {{5, 4}, 4, {}, "--rms --unbiased --zero-centered-weight --weight 1"_w, 1},
    {{3, 1}, 1, {}, "--eps 0"_w},
    {{}, 1, {}, {}},
    {{40, 50}, 50, {}, {}},
    {{3, 2000}, 2000, {}, "--kernel reference"_w},
};

void check(const Case& c, DType dtype, Random& random) {
  const Workplace directory;
  const std::string x = directory / "x.npy";
  const std::string file = random_tensor(dtype, c.shape, random);
  write_file(x, file);
  const DType out = lnorm::is_floating(dtype) ? dtype : DType::float64;
  const auto by_lnorm = [&](const Words& words) {
    return elements(output_of(words + c.axes + Words{x}), out);
  };
  const std::vector<std::pair<std::string, std::vector<long double>>> tensors{
      {"input", elements(file, dtype)},
      {"output", by_lnorm(Words{"apply"} + c.options)},
      {"softmax", by_lnorm({"softmax"})}};
  const Words arguments = c.axes + c.options + Words{"--softmax", x};
  const json report = stats_json(arguments);

  const json& rows = report.at("rows");
  CHECK(report.at("input").at("shape") == c.shape);
  CHECK(report.at("output_dtype") == lnorm::name(out));
  CHECK(report.at("ddof") == c.ddof);
  REQUIRE(std::ssize(rows) * c.row_length == std::ssize(tensors[0].second));
  std::int64_t non_finite_rows = 0;
  std::int64_t non_finite = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    CAPTURE(r);
    CHECK(rows[r].at("row") == r);
    CHECK(rows[r].at("index") == index_of(static_cast<std::int64_t>(r), c.shape, c.row_length));
    for (const auto& [tensor, all] : tensors) {
      CAPTURE(tensor);
      const long double* const row = all.data() + static_cast<std::int64_t>(r) * c.row_length;
      const Moments expected = moments(row, c.row_length, c.ddof);
      const bool wide = lnorm::item_size(tensor == "input" ? dtype : out) == 8;
      check_moments(rows[r].at(tensor), expected, c.row_length, wide);
      if (tensor != "input") continue;
      CHECK(rows[r].at("non_finite") == expected.non_finite);
      non_finite += expected.non_finite;
      non_finite_rows += expected.non_finite > 0 ? 1 : 0;
    }
  }
  CHECK(report.at("summary").at("rows") == rows.size());
  CHECK(report.at("summary").at("non_finite_rows") == non_finite_rows);
  CHECK(report.at("summary").at("non_finite_elements") == non_finite);
  for (const auto& [tensor, columns] : rows.at(0).items()) {
    if (!columns.is_object()) continue;
    for (const auto& [column, ignored] : columns.items()) check_summary(report, tensor, column);
  }
  check_csv(output_of("stats --csv"_w + arguments), report);
}

}  // namespace

TEST_CASE("stats shows the numbers that the lecture prints") {
  const std::string text =
      output_of({"stats", data_file("seeds/lecture20/batch3.npy"), "--softmax", "--digits", "4"});
  const std::vector<double> softmax_variances{0.0013, 0.0017, 0.0037};
  const std::vector<double> normalized_variances{0.9997, 0.9998, 0.9999};
  for (std::size_t r = 0; r < 3; ++r) {
    CAPTURE(r);
    // Of the input mean, variance, min, max; of the output mean, variance, sum; of softmax sum,
    // mean, variance.
    const std::vector<double> row = numbers(text, std::to_string(r));
    REQUIRE(row.size() == 10);
    CHECK(std::fabs(row[4]) < 1e-7);
    CHECK(row[5] == normalized_variances[r]);
    CHECK(std::fabs(row[6]) < 1e-6);
    CHECK(row[7] == 1);
    CHECK(row[8] == 0.2);
    CHECK(std::fabs(row[9] - softmax_variances[r]) < 0.5e-4);
  }
}

TEST_CASE("stats --unbiased gives the means and variances that PyTorch computed") {
  for (const std::string folder : {"lecture20", "gpt_part2"}) {
    CAPTURE(folder);
    const std::string x = data_file("seeds/" + folder + "/activations");
    const Nested means = parse_nested(read_file(x + ".mean.json"));
    const Nested variances = parse_nested(read_file(x + ".var_unbiased.json"));
    const json report = stats_json({"--unbiased", x + ".npy"});
    const std::string text = output_of({"stats", "--unbiased", x + ".npy", "--digits", "5"});
    CHECK(contains(text, "unbiased variances (ddof 1)"));
    REQUIRE(report.at("rows").size() == means.elements.size());
    for (std::size_t r = 0; r < means.elements.size(); ++r) {
      CAPTURE(r);
      const json& input = report.at("rows").at(r).at("input");
      CHECK(std::fabs(input.at("mean").get<double>() - means.elements[r]) < 1e-7);
      CHECK(std::fabs(input.at("variance").get<double>() - variances.elements[r]) < 1e-8);
      const std::vector<double> row = numbers(text, std::to_string(r));
      CHECK(std::fabs(row.at(0) - means.elements[r]) < 5.1e-5);
      CHECK(std::fabs(row.at(1) - variances.elements[r]) < 5.1e-5);
    }
  }
}

TEST_CASE("the rows and the summary of stats are right for every dtype", "[many]") {
  Random random(20);
  for (const DType dtype : {DType::boolean, DType::int8, DType::int16, DType::int32, DType::int64,
                            DType::uint8, DType::uint16, DType::uint32, DType::uint64,
                            DType::float16, DType::float32, DType::float64}) {
    for (const Case& c : kCases) {
      CAPTURE(lnorm::name(dtype), lnorm::to_string(c.shape), c.axes, c.options);
      check(c, dtype, random);
    }
  }
}

TEST_CASE("the variance of a row far from zero does not suffer") {
  constexpr int kLength = 1000;
  Random random(8);
  std::vector<double> row;
  lnorm::Int128 sum = 0;
  lnorm::Int128 squares = 0;
  for (int i = 0; i < kLength; ++i) {
    const auto steps =
        static_cast<std::int64_t>(0x1p20 * std::normal_distribution<double>()(random));
    row.push_back(1e8 + 0x1p-20 * static_cast<double>(steps));  // exact
    sum += steps;
    squares += lnorm::Int128{steps} * steps;
  }
  const double expected = static_cast<double>(
      static_cast<long double>(kLength * squares - sum * sum) / (0x1p40L * kLength * kLength));
  const json report = stats_json({}, pipe_of(npy_of<double>({kLength}, row)));
  const double variance = report.at("rows").at(0).at("input").at("variance");
  CHECK(std::fabs(variance - expected) <= 1e-12 * expected);
}

TEST_CASE("stats counts rows that are not finite and keeps them out of the summary") {
  const json report = stats_json({}, pipe_of("[[1, 3], [NaN, 1e300], [Infinity, 5], [2, 8]]"));
  const json& summary = report.at("summary");
  CHECK(summary.at("rows") == 4);
  CHECK(summary.at("non_finite_rows") == 2);
  CHECK(summary.at("non_finite_elements") == 2);
  CHECK(summary.at("input").at("mean") ==
        json{{"count", 2}, {"min", 2.0}, {"median", 3.5}, {"max", 5.0}});
  CHECK(summary.at("input").at("max") ==
        json{{"count", 2}, {"min", 3.0}, {"median", 5.5}, {"max", 8.0}});
  const json& row = report.at("rows").at(1);
  CHECK(row.at("non_finite") == 1);
  CHECK(row.at("input") ==
        json{{"mean", "NaN"}, {"variance", "NaN"}, {"min", 1e300}, {"max", 1e300}});
  CHECK(row.at("output_non_finite") == 2);
  CHECK(row.at("output") == json{{"mean", "NaN"}, {"variance", "NaN"}});
  CHECK(summary.at("output_non_finite_rows") == 0);  // that were finite before
  CHECK(summary.at("output_non_finite_elements") == 0);
}

TEST_CASE("stats counts rows whose output alone is not finite") {
  const Words arguments{"--eps", "0", "--weight", "[1, 1e308, -1e308]"};
  const std::string x = "[[1, 2, 3], [4, 4, 4], [NaN, 1, 2], [2, 0, 9]]";
  const json report = stats_json(arguments, pipe_of(x));
  const json& rows = report.at("rows");
  CHECK(rows.at(0).at("output_non_finite") == 0);  // [-1.2247, 0, -1.2247e308]
  CHECK(rows.at(1).at("output_non_finite") == 3);  // 0/0
  CHECK(rows.at(2).at("output_non_finite") == 3);
  CHECK(rows.at(3).at("output_non_finite") == 0);
  const json& summary = report.at("summary");
  CHECK(summary.at("non_finite_rows") == 1);
  CHECK(summary.at("output_non_finite_rows") == 1);
  CHECK(summary.at("output_non_finite_elements") == 3);
  const std::string text = output_of("stats --eps 0"_w, pipe_of(x));
  CHECK(contains(text, "NaN or infinity in 1 of 4 rows (1 element), first in row 2, at (2, 0)"));
  CHECK(
      contains(text,
               "NaN or infinity in the output alone of 1 of 4 rows (3 elements), first in row 1,\n"
               "  at (1, 0)\n"));
}

TEST_CASE("the table shows 20 rows, of more the first and the last five, and all on request") {
  const auto labels = [](int rows, const Words& options) {
    std::string x;
    for (int r = 0; r < rows; ++r) x += r == 0 ? "[1,3]" : ",[1,3]";
    std::istringstream lines(output_of(Words{"stats"} + options, pipe_of("[" + x + "]")));
    Words result;
    for (std::string line; std::getline(lines, line);) {
      std::string label;
      std::istringstream(line) >> label;
      if (line.find(" elements") != std::string::npos) continue;
      if (label == "..." || std::isdigit(static_cast<unsigned char>(label[0])) != 0) {
        result.push_back(label);
      }
    }
    return result;
  };
  Words all;
  for (int r = 0; r < 20; ++r) all.push_back(std::to_string(r));
  CHECK(labels(20, {}) == all);
  CHECK(labels(21, {}) == Words{"0", "1", "2", "3", "4", "...", "16", "17", "18", "19", "20"});
  all.emplace_back("20");
  CHECK(labels(21, {"--all"}) == all);
}

TEST_CASE("stats of more rows than memory keeps is the same as of few", "[many]") {
  const Workplace directory;
  const std::string path = directory / "x.npy";
  // Row r holds m - 1, m, m + 1, where m takes every value below rows once, in no order.
  const auto mean_of = [](std::int64_t r, std::int64_t rows) { return r * 7919 % rows; };
  const auto make = [&](std::int64_t rows) {
    std::vector<float> x;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (const std::int64_t step : {-1, 0, 1}) {
        x.push_back(static_cast<float>(mean_of(r, rows) + step));
      }
    }
    write_file(path, npy_of<float>({rows, 3}, x));
  };

  // Memory keeps 48 MiB, of 6 doubles a row.
  constexpr std::int64_t kMany = 1'100'000;
  make(kMany);
  std::istringstream lines(output_of({"stats", path, "--csv"}));
  std::string line;
  std::getline(lines, line);
  std::int64_t unlike = 0;
  for (std::int64_t r = 0; r < kMany; ++r) {
    const std::int64_t mean = mean_of(r, kMany);
    std::string expected = std::to_string(r) + ",0,0," + std::to_string(mean);
    expected += ",0.6666666666666666," + std::to_string(mean - 1);
    expected += ',' + std::to_string(mean + 1) + ",0,";
    std::getline(lines, line);
    unlike += line.starts_with(expected) ? 0 : 1;
  }
  CHECK(unlike == 0);
  CHECK(!std::getline(lines, line));

  constexpr int kRows = 20'000;
  const auto mean = [&](int r) { return static_cast<double>(mean_of(r, kRows)); };
  make(kRows);

  const json report = stats_json({path});
  const json& rows = report.at("rows");
  REQUIRE(rows.size() == kRows);
  std::int64_t wrong = 0;
  for (int r = 0; r < kRows; ++r) {
    const json& row = rows[static_cast<std::size_t>(r)];
    const json& input = row.at("input");
    const bool right = row.at("row") == r && row.at("index") == json{r} &&
                       input.at("mean") == mean(r) && input.at("min") == mean(r) - 1 &&
                       input.at("max") == mean(r) + 1;
    wrong += right ? 0 : 1;
  }
  CHECK(wrong == 0);
  const json& summary = report.at("summary").at("input");
  CHECK(summary.at("mean") ==
        json{{"count", kRows}, {"min", 0.0}, {"median", (kRows - 1) / 2.0}, {"max", kRows - 1.0}});
  CHECK(summary.at("min").at("min") == -1);
  CHECK(summary.at("max").at("median") == (kRows + 1) / 2.0);
  check_csv(output_of({"stats", path, "--csv"}), report);

  const std::string text = output_of({"stats", path});
  const auto shown = [&](const std::string& label) { return numbers(text, label).at(0); };
  CHECK(std::fabs(shown("4") / mean(4) - 1) < 1e-4);
  CHECK(std::fabs(shown(std::to_string(kRows - 5)) / mean(kRows - 5) - 1) < 1e-4);
  CHECK(std::fabs(shown("median") / (kRows - 1) * 2 - 1) < 1e-4);
  const std::string all = output_of({"stats", path, "--all"});
  CHECK(std::count(all.begin(), all.end(), '\n') ==
        std::count(text.begin(), text.end(), '\n') + kRows - 11);
}

TEST_CASE("stats is the same from a pipe, a file, another byte order and another format") {
  const Workplace directory;
  const std::vector<double> x{1, 2, 4, 8, -16, 0.5};
  std::string swapped = bytes_of(x);
  for (auto at = swapped.begin(); at != swapped.end(); at += 8) std::reverse(at, at + 8);
  const std::string file = npy_of<double>({2, 3}, x);
  directory.write("x.npy", file);
  directory.write("x.big", npy(">f8", {2, 3}, swapped));
  directory.write("x.json", R"({"w": [[1, 2, 4], [8, -16, 0.5]], "other": [1]})");
  const auto report = [](const Words& arguments, const Stream& in = {}) {
    json result = stats_json(arguments + Words{"--softmax"}, in);
    result.at("input").erase("name");
    return result;
  };
  const json expected = report({directory / "x.npy"});
  CHECK(report({}, pipe_of(file)) == expected);
  CHECK(report({"-"}, pipe_of(file)) == expected);
  CHECK(report({directory / "x.big"}) == expected);
  CHECK(report({directory / "x.json:w"}) == expected);
  CHECK(report({"-:w"}, pipe_of(directory.read("x.json"))) == expected);
}
