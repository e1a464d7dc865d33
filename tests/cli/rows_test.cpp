#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// --rows A:B, as users barrier it: what is done part by part is what is done at once.

namespace {

using namespace support;
using nlohmann::json;
using Words = std::vector<std::string>;
using Shape = std::vector<std::int64_t>;

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::int64_t product(const Shape& extents) {
  std::int64_t result = 1;
  for (const std::int64_t extent : extents) result *= extent;
  return result;
}

// A shape and the normalized axes.
struct Layout {
  Shape shape;
  Shape axes;

  bool is_normalized(std::size_t axis) const {
    return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
  }
  Shape extents(bool normalized) const {
    Shape result;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (is_normalized(i) == normalized) result.push_back(shape[i]);
    }
    return result;
  }
  std::int64_t rows() const { return product(extents(false)); }
  std::int64_t row_length() const { return product(extents(true)); }
  Shape part_shape(std::int64_t rows) const {
    Shape result = extents(true);
    result.insert(result.begin(), rows);
    return result;
  }
  Words option() const {
    std::string list;
    for (const std::int64_t axis : axes) list += (list.empty() ? "" : ",") + std::to_string(axis);
    return {"--axes", list};
  }

  // Where the elements lie, row by row.
  std::vector<std::size_t> places(bool fortran) const {
    std::vector<std::size_t> result(static_cast<std::size_t>(product(shape)));
    for (std::int64_t c = 0; c < product(shape); ++c) {
      std::int64_t row = 0;
      std::int64_t element = 0;
      std::int64_t place = 0;
      std::int64_t stride = fortran ? 1 : product(shape);
      std::int64_t rest = c;
      std::int64_t below = product(shape);
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        below /= shape[axis];
        const std::int64_t index = rest / below;
        rest %= below;
        std::int64_t& number = is_normalized(axis) ? element : row;
        number = number * shape[axis] + index;
        if (!fortran) stride /= shape[axis];
        place += index * stride;
        if (fortran) stride *= shape[axis];
      }
      result[static_cast<std::size_t>(row * row_length() + element)] =
          static_cast<std::size_t>(place);
    }
    return result;
  }
};

const std::vector<Layout> kLayouts{
    {{7, 5}, {1}},       {{1, 6}, {1}},    {{6}, {0}},       {{0, 3}, {1}},
    {{3, 0}, {1}},       {{7, 5}, {0}},    {{2, 3, 4}, {2}}, {{2, 3, 4}, {1, 2}},
    {{2, 3, 4}, {0, 2}}, {{2, 3, 4}, {1}}, {{2, 3, 4}, {0}}, {{2, 3, 4}, {0, 1}},
    {{300, 40}, {1}},    {{40, 300}, {0}},
};

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& x : result) x = normal(random);
  return result;
}

std::string in_fortran_order(std::string file) {
  return file.replace(file.find("False"), 5, "True ");
}

// The elements of an .npy of floats, and its shape as it is written.
struct Result {
  std::string shape;
  std::string elements;
};

Result result_of(const std::string& file) {
  const std::size_t start = file.find("'shape': ") + 9;
  const std::size_t header = 10 + static_cast<unsigned char>(file[8]) +
                             std::size_t{256} * static_cast<unsigned char>(file[9]);
  return {file.substr(start, file.find(')', start) + 1 - start), file.substr(header)};
}

std::string npy_shape(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape) {
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  }
  return "(" + text + (shape.size() == 1 ? ",)" : ")");
}

// The elements of a result in C order, row by row.
std::string row_by_row(const std::string& elements, const Layout& layout) {
  std::string result;
  for (const std::size_t place : layout.places(false)) result += elements.substr(place * 4, 4);
  return result;
}

std::string range(std::int64_t first, std::int64_t end) {
  return std::to_string(first) + ":" + std::to_string(end);
}

// x.npy and other.npy of a layout, of the same shape.
class Place {
 public:
  Place(const Layout& layout, bool fortran) {
    write("x.npy", layout, fortran, 1);
    write("other.npy", layout, false, 2);
  }

  std::string path(const std::string& name) const { return directory_ / name; }

 private:
  void write(const std::string& name, const Layout& layout, bool fortran, unsigned seed) const {
    const std::string file =
        npy("<f4", layout.shape, bytes_of(random_floats(product(layout.shape), seed)));
    write_file(path(name), fortran ? in_fortran_order(file) : file);
  }

  TempDir directory_;
};

// Calls see(rows in all, first, end) for parts of so many rows.
template <class See>
void for_each_part(const Layout& layout, std::int64_t size, See see) {
  for (std::int64_t first = 0; first == 0 || first < layout.rows(); first += size) {
    see(first, first + size);
  }
}

template <class See>
void for_each_layout(See see) {
  for (const Layout& layout : kLayouts) {
    for (const bool fortran : {false, true}) {
      CAPTURE(layout.shape, layout.axes, fortran);
      see(layout, Place(layout, fortran));
    }
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

json parsed(const Words& words) {
  const Outcome outcome = run(words);
  CAPTURE(words, outcome.err);
  REQUIRE(outcome.status <= 1);
  return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("parts, one after another, are the whole, of any axes and either order", "[rows]") {
  for_each_layout([](const Layout& layout, const Place& at) {
    for (const Words& command : {Words{"apply"},
                                 {"softmax"},
                                 {"apply", "--residual", at.path("other.npy")},
                                 {"grad", "--dy", at.path("other.npy")}}) {
      const Words words = command + layout.option();
      const std::string whole = output_of(words + Words{at.path("x.npy")});
      const std::string expected = row_by_row(result_of(whole).elements, layout);
      for (const std::int64_t size : {std::max<std::int64_t>(2, layout.rows() / 3),
                                      std::max<std::int64_t>(1, layout.rows())}) {
        std::string found;
        std::string piped;
        for_each_part(layout, size, [&](std::int64_t first, std::int64_t end) {
          const Words rows = words + Words{"--rows", range(first, end)};
          const Result part = result_of(output_of(rows + Words{at.path("x.npy")}));
          CHECK(part.shape == npy_shape(layout.part_shape(std::min(end, layout.rows()) - first)));
          found += part.elements;
          piped += result_of(output_of(rows, pipe_of(read_file(at.path("x.npy"))))).elements;
        });
        CAPTURE(words, size);
        CHECK(difference(found, expected) == "");
        CHECK(difference(piped, expected) == "");
      }
    }
  });
}

TEST_CASE("means and rstds of rows are those of the whole, and grad takes them", "[rows]") {
  for_each_layout([](const Layout& layout, const Place& at) {
    for (const Words& keepdim : {Words{}, {"--no-keepdim"}}) {
      output_of(Words{at.path("x.npy"), "--save-mean", at.path("m.npy"), "--save-rstd",
                      at.path("r.npy"), "-o", at.path("y.npy")} +
                keepdim + layout.option());
      const std::string all = result_of(read_file(at.path("m.npy"))).elements;
      const Words backward = Words{"grad",   at.path("x.npy"), "--dy",   at.path("other.npy"),
                                   "--mean", at.path("m.npy"), "--rstd", at.path("r.npy")} +
                             layout.option();
      const std::string dx = row_by_row(result_of(output_of(backward)).elements, layout);
      std::string means;
      std::string gradients;
      for_each_part(layout, std::max<std::int64_t>(1, layout.rows() / 2),
                    [&](std::int64_t first, std::int64_t end) {
                      const Words rows{"--rows", range(first, end)};
                      output_of(Words{at.path("x.npy"), "--save-mean", at.path("part.npy"), "-o",
                                      at.path("y.npy")} +
                                keepdim + layout.option() + rows);
                      const Result part = result_of(read_file(at.path("part.npy")));
                      Shape shape{std::min(end, layout.rows()) - first};
                      if (keepdim.empty()) shape.resize(1 + layout.axes.size(), 1);
                      CHECK(part.shape == npy_shape(shape));
                      means += part.elements;
                      gradients += result_of(output_of(backward + rows)).elements;
                    });
      CHECK(means == all);
      CHECK(difference(gradients, dx) == "");
    }
  });
}

TEST_CASE("reports name rows and elements as those of the whole tensor", "[rows]") {
  for_each_layout([](const Layout& layout, const Place& at) {
    const Words stats = Words{"stats", at.path("x.npy")} + layout.option();
    const Words compare = Words{"compare",
                                at.path("x.npy"),
                                at.path("other.npy"),
                                "--json",
                                "--max-diffs",
                                "1000000",
                                "--worst",
                                "0"} +
                          layout.option();
    std::vector<std::string> lines{lines_of(output_of(stats + Words{"--csv"})).front()};
    json rows = json::array();
    json mismatches = json::array();
    std::int64_t elements = 0;
    std::int64_t mismatched_rows = 0;
    for_each_part(
        layout, std::max<std::int64_t>(2, layout.rows() / 3),
        [&](std::int64_t first, std::int64_t end) {
          const Words part{"--rows", range(first, end)};
          const auto more = lines_of(output_of(stats + part + Words{"--csv"}));
          lines.insert(lines.end(), more.begin() + 1, more.end());
          const json found = parsed(stats + part + Words{"--json"});
          CHECK(found["input"]["shape"] == layout.shape);
          CHECK(found["slice"]["of"] == layout.rows());
          for (const json& row : found["rows"]) rows.push_back(row);
          const json compared = parsed(compare + part);
          CHECK(compared["expected"]["shape"] == layout.shape);
          elements += compared["elements"].get<std::int64_t>();
          mismatched_rows += compared["rows"]["mismatched"].get<std::int64_t>();
          if (compared["rows"]["mismatched"] > 0) {
            const std::int64_t row = first;
            CHECK(parsed(compare)["rows"]["first"].size() == compared["rows"]["first"].size());
            CHECK(compared["slice"]["first"] == row);
          }
          for (const json& pair : compared["mismatches"]) mismatches.push_back(pair);
        });
    CHECK(lines == lines_of(output_of(stats + Words{"--csv"})));
    CHECK(rows == parsed(stats + Words{"--json"})["rows"]);
    const json whole = parsed(compare);
    CHECK(elements == whole["elements"]);
    CHECK(mismatched_rows == whole["rows"]["mismatched"]);
    std::vector<json> sorted(mismatches.begin(), mismatches.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const json& a, const json& b) { return a["index"] < b["index"]; });
    CHECK(sorted == whole["mismatches"].get<std::vector<json>>());
  });
}

TEST_CASE("ends of --rows are those of a slice of Python", "[rows]") {
  const TempDir directory;
  write_file(directory / "x.json", "[[0, 1], [2, 3], [4, 5], [6, 7]]");
  const auto first_and_count = [&](const std::string& rows) {
    const json found = parsed({"stats", directory / "x.json", "--json", "--rows", rows});
    CHECK(found["rows"].size() == found["slice"]["rows"]);
    CHECK(found["rows"][0]["row"] == found["slice"]["first"]);
    return Shape{found["slice"]["first"], found["slice"]["rows"]};
  };
  CHECK(first_and_count(":") == Shape{0, 4});
  CHECK(first_and_count("1:3") == Shape{1, 2});
  CHECK(first_and_count("2:") == Shape{2, 2});
  CHECK(first_and_count(":1") == Shape{0, 1});
  CHECK(first_and_count("-1:") == Shape{3, 1});
  CHECK(first_and_count("-3:-1") == Shape{1, 2});
  CHECK(first_and_count("-9:2") == Shape{0, 2});
  CHECK(first_and_count("3:9223372036854775807") == Shape{3, 1});
  CHECK(output_of({"show", directory / "x.json", "--rows", "4:6"}) ==
        "tensor([], size=(0, 2), dtype=torch.float64)\n");
  CHECK(json::parse(output_of({directory / "x.json", "--rows", "4:6"}))["shape"] == Shape{0, 2});
  CHECK(output_of({"stats", directory / "x.json", "--rows", "4:6", "--csv"}).find('\n') + 1 ==
        output_of({"stats", directory / "x.json", "--rows", "4:6", "--csv"}).size());
}

TEST_CASE("what is no choice of rows is refused", "[rows]") {
  const TempDir directory;
  const std::string x = directory / "x.json";
  write_file(x, "[[0, 1], [2, 3], [4, 5], [6, 7]]");
  const auto check = [](const Words& words, const Words& said) {
    CAPTURE(words);
    CHECK(refusal_fault(run(words), said) == "");
  };
  for (const std::string command : {"apply", "stats", "softmax", "explain", "report", "show"}) {
    CAPTURE(command);
    check({command, x, "--rows", "3"}, {"--rows: '3' is not A:B", "one row is --rows 3:4"});
    check({command, x, "--rows", "-1"}, {"--rows: '-1' is not A:B", "one row is --rows -1:"});
    check({command, x, "--rows", "a:b"}, {"--rows: 'a' is not an integer", "written 5:8"});
    check({command, x, "--rows", "1:2:3"}, {"--rows: '2:3' is not an integer"});
    check({command, x, "--rows", "1:9223372036854775808"}, {"--rows: '9223372036854775808'"});
    check({command, x, "--rows", ""}, {"--rows: '' is not A:B"});
    check({command, x, "--rows", "1", "3"}, {"--rows takes one value", "rows are written 1:3"});
    check({command, x, "--rows", "1:2", "--rows", "1:2"}, {"--rows is given twice"});
  }
  check({"explain", x, "--rows", "1:2", "--row", "1"}, {"found both --row and --rows"});
  check({"show", x, "--rows", "1:2", "--json"}, {"--rows has no effect beside --json"});
  check({"stats", x, "--row", "1"}, {"there is no option --row", "here it is --rows"});
}

TEST_CASE("a choice that a slice of Python leaves empty is empty", "[rows]") {
  const TempDir directory;
  const std::string x = directory / "x.json";
  write_file(x, "[[0, 1], [2, 3], [4, 5], [6, 7]]");
  const std::string empty = R"({"shape":[0,2],"data":[],"dtype":"float64"})";
  for (const std::string range : {"3:2", "4:3", "2:2", "5:9", "9:", ":-4", ":-9", "-1:-3", "0:0"}) {
    CAPTURE(range);
    const auto printed = [&](Words words) { return output_of(words + Words{"--rows", range}); };
    for (const std::string command : {"apply", "softmax"}) {
      CHECK(printed({command, x}) == empty + "\n");
    }
    CHECK(printed({"show", x}) == "tensor([], size=(0, 2), dtype=torch.float64)\n");
    CHECK(printed({"explain", x}) == "");
    CHECK(printed({"grad", x, "--dy", x}) == empty + "\n");
    CHECK(printed({"grad", x, "--dy", x, "--dbias", "-"}) == "[0.0,0.0]\n");
    CHECK(printed({"report", x}).find("There are no elements to look at.") != std::string::npos);
    CHECK(printed({"compare", x, x}).find("mismatched: 0 / 0") != std::string::npos);
    const json stats = json::parse(printed({"stats", x, "--json"}));
    CHECK(stats["rows"].empty());
    CHECK(stats["slice"]["rows"] == 0);
    CHECK(lines_of(printed({"stats", x, "--csv"})).size() == 1);
  }
}

TEST_CASE("what goes beside a tensor has the shape of the whole", "[rows]") {
  const TempDir directory;
  const std::string x = directory / "x.json";
  const std::string part = directory / "part.json";
  write_file(x, "[[0, 1], [2, 3], [4, 5], [6, 7]]");
  write_file(part, "[[0, 1], [2, 3]]");
  const auto check = [&](const Words& words, const Words& said) {
    CAPTURE(words);
    CHECK(refusal_fault(run(words + Words{"--rows", "1:3"}), said) == "");
  };
  check({x, "--residual", part}, {"--residual", "part.json has shape (2, 2)", "shape (4, 2)"});
  check({"grad", x, "--dy", part}, {"--dy", "part.json has shape (2, 2)", "shape (4, 2)"});
  check({"grad", x, "--dy", x, "--mean", "[1, 2]", "--rstd", x}, {"--mean"});
  // Tensors of other shapes differ, however the rows are.
  const Outcome compared = run({"compare", x, part, "--rows", "0:2"});
  CHECK(compared.status == 1);
  CHECK(compared.out.find("differ in shape: (4, 2), expected (2, 2)") != std::string::npos);
  // weight and bias are not cut.
  CHECK(output_of({x, "--rows", "1:3", "--weight", "[0, 0]", "--bias", "[1, 2]"}) ==
        "[[1.0,2.0],[1.0,2.0]]\n");
}

TEST_CASE("gradients of weight and bias are sums over the rows that were chosen", "[rows]") {
  const TempDir directory;
  const std::string x = directory / "x.json";
  write_file(x, "[[0, 1], [2, 3], [4, 5], [6, 7]]");
  CHECK(output_of({"grad", x, "--dy", x, "--rows", "1:3", "--dbias", "-"}) == "[6.0,8.0]\n");
}

TEST_CASE("rows of several tensors, and of lines as they come", "[rows]") {
  CHECK(output_of({"--from", "jsonl", "--rows", "-1:", "--eps", "0"},
                  pipe_of("[[1, 2], [3, 5]]\n[[7, 9]]\n")) == "[[-1.0,1.0]]\n[[-1.0,1.0]]\n");
  const TempDir directory;
  const std::string set = directory / "set.json";
  write_file(set, R"({"a": [[1, 2], [3, 5]], "b": [[1, 2, 4], [0, 0, 0], [1, 1, 1]]})");
  const json applied = json::parse(output_of({set + ":*", "--rows", "1:", "--to", "json"}));
  CHECK(applied["a"].size() == 1);
  CHECK(applied["b"].size() == 2);
  const json found = parsed({"stats", set, "--rows", "1:2", "--json"});
  CHECK(found["tensors"][0]["rows"] == 1);
  CHECK(found["tensors"][0]["largest"]["index"] == json{1, 1});
  CHECK(found["tensors"][1]["slice"] == json{{"first", 1}, {"rows", 1}, {"of", 3}});
  CHECK(found["summary"]["elements"] == 5);
  const json some = json::parse(output_of({set + ":*", "--rows", "3:", "--to", "json"}));
  CHECK(some["a"]["shape"] == Shape{0, 2});
  CHECK(some["b"]["shape"] == Shape{0, 3});
  CHECK(output_of({"compare", set, set, "--rows", ":2"}).find("2 tensors: 2 agree") !=
        std::string::npos);
}

TEST_CASE("text says which rows of how many it is about", "[rows]") {
  const std::string sample = data_file("sample.npy");
  const auto has = [&](const Words& words, const std::string& line) {
    const std::string text = output_of(words + Words{"--rows", "2:4"});
    CAPTURE(words, text);
    CHECK(text.find(line) != std::string::npos);
  };
  has({"stats", sample}, "2 rows of 4 elements: rows (0, 2) to (1, 0) of 6 along axes 0 and 1\n");
  has({"show", sample, "--header"}, "shape (2, 3, 4), rows (0, 2) to (1, 0) of 6\n");
  has({"compare", sample, sample}, "shape (2, 3, 4), rows (0, 2) to (1, 0) of 6)\n");
  has({"report", sample}, "rows (0, 2) to (1, 0) of 6, of 4 elements each");
  has({"stats", data_file("gpt2/acts.npz")}, "rows (0, 2) to (0, 3) of 8, of 16 elements each");
  has({"compare", data_file("gpt2/acts.npz"), data_file("gpt2/acts.npz")},
      "(float32), rows (0, 2) to (0, 3) of 8, tolerance");
  const TempDir directory;
  write_file(directory / "a.json", R"({"u": [[1, 2], [3, 4]], "v": [[1, 2], [3, 4]]})");
  write_file(directory / "b.json", R"({"u": [[1, 2], [3, 4]], "v": [[1, 2], [3, 5]]})");
  const Outcome differ =
      run({"compare", directory / "a.json", directory / "b.json", "--rows", "-1:"});
  CHECK(differ.status == 1);
  CHECK(differ.out.find("b.json:v --rows -1:\n") != std::string::npos);
  CHECK(run({"compare", directory / "a.json", directory / "b.json", "--rows", ":1"}).status == 0);
}

TEST_CASE("a report numbers the rows of its figures as the whole tensor does", "[rows]") {
  const TempDir directory;
  const std::string page = directory / "report.html";
  const auto row_of = [&](const std::string& name) {
    return json::parse(read_file(directory / name))["data"][0]["values"][0]["row"];
  };
  output_of({"report", data_file("sample.npy"), "--rows", "2:5", "-o", page, "--spec",
             directory / "figures"});
  CHECK(row_of("figures/tensor-x-mean.vg.json") == 2);
  CHECK(row_of("figures/tensor-row-x.vg.json") == 2);
  CHECK(read_file(page).find("data-label=\"(0, 2)\"") != std::string::npos);
  const std::string y = directory / "y.npy";
  output_of({data_file("sample.npy"), "-o", y});
  const Outcome outcome = run({"compare", data_file("sample.npy"), y, "--rows", "2:5", "--page",
                               page, "--spec", directory / "errors"});
  CHECK(outcome.status == 1);
  CHECK(row_of("errors/comparison-errors.vg.json") == 2);
}

TEST_CASE("explain goes through each of some rows", "[rows]") {
  const std::string sample = data_file("sample.npy");
  const auto rows_of = [](const std::string& lines) {
    std::vector<json> rows;
    for (const std::string& line : lines_of(lines)) rows.push_back(json::parse(line)["rows"][0]);
    return rows;
  };
  std::vector<json> expected;
  for (const std::string row : {"0,2", "1,0", "1,1"}) {
    expected.push_back(rows_of(output_of({"explain", sample, "--row", row, "--json"})).front());
  }
  CHECK(rows_of(output_of({"explain", sample, "--rows", "2:5", "--json"})) == expected);
  CHECK(rows_of(output_of({"explain", "--rows", "2:5", "--json"}, pipe_of(read_file(sample)))) ==
        expected);
  CHECK(rows_of(output_of({"explain", sample, "--rows", "2:5", "--json", "--residual", sample}))
            .size() == 3);
}

TEST_CASE("of a huge file only the rows that are named are read", "[rows]") {
  const TempDir directory;
  const std::string path = directory / "huge.npy";
  write_file(path, npy("<f4", {1'000'000'000, 256}, ""));
  std::filesystem::resize_file(path, 128 + std::uintmax_t{4} * 256 * 1'000'000'000);
  const Words last{path, "--rows", "-2:"};
  for (const Words& words :
       {Words{"apply"} + last, Words{"softmax"} + last, Words{"stats"} + last,
        Words{"compare", path} + last, Words{"grad", "--dy", path} + last, Words{"show"} + last,
        Words{"explain"} + last, Words{"report", "--residual", path} + last}) {
    CAPTURE(words);
    const Outcome outcome = run({.arguments = words, .seconds = 20});
    CHECK(outcome.err == "");
    CHECK(outcome.status == 0);
    CHECK(outcome.cpu_seconds < 2);
  }
}
