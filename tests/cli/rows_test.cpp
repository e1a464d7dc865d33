#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/commands.hpp"
#include "support/elements.hpp"
#include "support/json.hpp"

// --rows A:B, as users meet it: what is done part by part is what is done at once.

namespace {

using namespace support;
using nlohmann::json;
using Shape = std::vector<std::int64_t>;

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

  // Where the elements lie in C order, row by row.
  std::vector<std::size_t> places() const {
    std::vector<std::size_t> result(static_cast<std::size_t>(product(shape)));
    for (std::size_t c = 0; c < result.size(); ++c) {
      std::int64_t row = 0;
      std::int64_t element = 0;
      auto rest = static_cast<std::int64_t>(c);
      std::int64_t below = product(shape);
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        below /= shape[axis];
        std::int64_t& number = is_normalized(axis) ? element : row;
        number = number * shape[axis] + rest / below;
        rest %= below;
      }
      result[static_cast<std::size_t>(row * row_length() + element)] = c;
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
  for (const std::size_t place : layout.places()) result += elements.substr(place * 4, 4);
  return result;
}

std::string range(std::int64_t first, std::int64_t end) {
  return std::to_string(first) + ":" + std::to_string(end);
}

// x.npy and other.npy of a layout, of the same shape.
struct LayoutFolder : Workplace {
  LayoutFolder(const Layout& layout, bool fortran) {
    const auto file = [&](unsigned seed) {
      return npy_of<float>(layout.shape, normals<float>(product(layout.shape), seed));
    };
    write("x.npy", fortran ? in_fortran_order(file(1)) : file(1));
    write("other.npy", file(2));
  }
};

struct FourRows : Workplace {
  FourRows() { write("x.json", "[[0, 1], [2, 3], [4, 5], [6, 7]]"); }
};

Words rows_option(const std::string& rows) { return {"--rows", rows}; }

// Calls see(first, end) for parts of so many rows.
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
      see(layout, LayoutFolder(layout, fortran));
    }
  }
}

// The run may find differences, which are no failure.
json parsed(const Workplace& at, const Words& words) {
  const Outcome outcome = at.run(words);
  CAPTURE(words, outcome.err);
  REQUIRE(outcome.status <= 1);
  return support::parsed_json(outcome.out);
}

}  // namespace

TEST_CASE("parts, one after another, are the whole, of any axes and either order", "[rows][many]") {
  for_each_layout([](const Layout& layout, const LayoutFolder& at) {
    for (const Words& command :
         {Words{"apply"}, {"softmax"}, "apply --residual other.npy"_w, "grad --dy other.npy"_w}) {
      const Words words = command + layout.option();
      const std::string whole = at.output(words + "x.npy"_w);
      const std::string expected = row_by_row(result_of(whole).elements, layout);
      for (const std::int64_t size : {std::max<std::int64_t>(2, layout.rows() / 3),
                                      std::max<std::int64_t>(1, layout.rows())}) {
        std::string found;
        std::string piped;
        for_each_part(layout, size, [&](std::int64_t first, std::int64_t end) {
          const Words rows = words + rows_option(range(first, end));
          const Result part = result_of(at.output(rows + "x.npy"_w));
          CHECK(part.shape == npy_shape(layout.part_shape(std::min(end, layout.rows()) - first)));
          found += part.elements;
          piped += result_of(at.output(rows, pipe_of(at.read("x.npy")))).elements;
        });
        CAPTURE(words, size);
        CHECK(difference(found, expected) == "");
        CHECK(difference(piped, expected) == "");
      }
    }
  });
}

TEST_CASE("means and rstds of rows are those of the whole, and grad takes them", "[rows][many]") {
  for_each_layout([](const Layout& layout, const LayoutFolder& at) {
    for (const Words& keepdim : {Words{}, {"--no-keepdim"}}) {
      at.output("x.npy --save-mean m.npy --save-rstd r.npy -o y.npy"_w + keepdim + layout.option());
      const std::string all = result_of(at.read("m.npy")).elements;
      const Words backward =
          "grad x.npy --dy other.npy --mean m.npy --rstd r.npy"_w + layout.option();
      const std::string dx = row_by_row(result_of(at.output(backward)).elements, layout);
      std::string means;
      std::string gradients;
      for_each_part(
          layout, std::max<std::int64_t>(1, layout.rows() / 2),
          [&](std::int64_t first, std::int64_t end) {
            const Words rows = rows_option(range(first, end));
            at.output("x.npy --save-mean part.npy -o y.npy"_w + keepdim + layout.option() + rows);
            const Result part = result_of(at.read("part.npy"));
            Shape shape{std::min(end, layout.rows()) - first};
            if (keepdim.empty()) shape.resize(1 + layout.axes.size(), 1);
            CHECK(part.shape == npy_shape(shape));
            means += part.elements;
            gradients += result_of(at.output(backward + rows)).elements;
          });
      CHECK(means == all);
      CHECK(difference(gradients, dx) == "");
    }
  });
}

TEST_CASE("reports name rows and elements as those of the whole tensor", "[rows][many]") {
  for_each_layout([](const Layout& layout, const LayoutFolder& at) {
    const Words stats = "stats x.npy"_w + layout.option();
    const Words compare =
        "compare x.npy other.npy --json --max-diffs 1000000 --worst 0"_w + layout.option();
    const Words all_lines = lines_of(at.output(stats + "--csv"_w));
    const json whole = parsed(at, compare);
    Words lines{all_lines.front()};
    json rows = json::array();
    json mismatches = json::array();
    std::int64_t elements = 0;
    std::int64_t mismatched_rows = 0;
    for_each_part(layout, std::max<std::int64_t>(2, layout.rows() / 3),
                  [&](std::int64_t first, std::int64_t end) {
                    const Words part = rows_option(range(first, end));
                    const Words more = lines_of(at.output(stats + part + "--csv"_w));
                    lines.insert(lines.end(), more.begin() + 1, more.end());
                    const json found = parsed(at, stats + part + "--json"_w);
                    CHECK(found["input"]["shape"] == layout.shape);
                    CHECK(found["slice"]["of"] == layout.rows());
                    for (const json& row : found["rows"]) rows.push_back(row);
                    const json compared = parsed(at, compare + part);
                    CHECK(compared["expected"]["shape"] == layout.shape);
                    elements += compared["elements"].get<std::int64_t>();
                    mismatched_rows += compared["rows"]["mismatched"].get<std::int64_t>();
                    if (compared["rows"]["mismatched"] > 0) {
                      CHECK(whole["rows"]["first"].size() == compared["rows"]["first"].size());
                      CHECK(compared["slice"]["first"] == std::int64_t{first});
                    }
                    for (const json& pair : compared["mismatches"]) mismatches.push_back(pair);
                  });
    CHECK(lines == all_lines);
    CHECK(rows == parsed(at, stats + "--json"_w)["rows"]);
    CHECK(elements == whole["elements"]);
    CHECK(mismatched_rows == whole["rows"]["mismatched"]);
    std::vector<json> sorted(mismatches.begin(), mismatches.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const json& a, const json& b) { return a["index"] < b["index"]; });
    CHECK(sorted == whole["mismatches"].get<std::vector<json>>());
  });
}

TEST_CASE("ends of --rows are those of a slice of Python", "[rows]") {
  const FourRows at;
  const auto first_and_count = [&](const std::string& rows) {
    const json found = parsed(at, "stats x.json --json"_w + rows_option(rows));
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
}

TEST_CASE("what is no choice of rows is refused", "[rows]") {
  const FourRows at;
  const auto check = [&](const Words& words, const Words& said) {
    CAPTURE(words);
    CHECK(at.fault(words, said) == "");
  };
  for (const std::string command : {"apply", "stats", "softmax", "explain", "report", "show"}) {
    CAPTURE(command);
    check({command, "x.json", "--rows", "3"}, {"--rows: '3' is not A:B", "one row is --rows 3:4"});
    check({command, "x.json", "--rows", "-1"},
          {"--rows: '-1' is not A:B", "one row is --rows -1:"});
    check({command, "x.json", "--rows", "a:b"}, {"--rows: 'a' is not an integer", "written 5:8"});
    check({command, "x.json", "--rows", "1:2:3"}, {"--rows: '2:3' is not an integer"});
    check({command, "x.json", "--rows", "1:9223372036854775808"},
          {"--rows: '9223372036854775808'"});
    check({command, "x.json", "--rows", ""}, {"--rows: '' is not A:B"});
    check({command, "x.json", "--rows", "1", "3"},
          {"--rows takes one value", "rows are written 1:3"});
    check({command, "x.json", "--rows", "1:2", "--rows", "1:2"}, {"--rows is given twice"});
  }
  check("explain x.json --rows 1:2 --row 1"_w, {"found both --row and --rows"});
  check("show x.json --rows 1:2 --json"_w, {"--rows has no effect beside --json"});
  check("stats x.json --row 1"_w, {"there is no option --row", "here it is --rows"});
}

TEST_CASE("a choice that a slice of Python leaves empty is empty", "[rows][many]") {
  const FourRows at;
  const std::string empty = R"({"shape":[0,2],"data":[],"dtype":"float64"})";
  for (const std::string range :
       {"4:6", "3:2", "4:3", "2:2", "5:9", "9:", ":-4", ":-9", "-1:-3", "0:0"}) {
    CAPTURE(range);
    const auto printed = [&](const Words& words) { return at.output(words + rows_option(range)); };
    for (const Words& words : {"apply x.json"_w, "softmax x.json"_w, "grad x.json --dy x.json"_w}) {
      CHECK(printed(words) == empty + "\n");
    }
    CHECK(printed("show x.json"_w) == "tensor([], size=(0, 2), dtype=torch.float64)\n");
    CHECK(at.fault("explain x.json"_w + rows_option(range), {"--rows leaves no row of x.json"}) ==
          "");
    CHECK(printed("grad x.json --dy x.json --dbias -"_w) == "[0.0,0.0]\n");
    CHECK(contains(printed("report x.json"_w), "There are no elements to look at."));
    CHECK(at.fault("compare x.json x.json"_w + rows_option(range),
                   {"--rows leaves no elements of x.json"}) == "");
    const json stats = support::parsed_json(printed("stats x.json --json"_w));
    CHECK(stats["rows"].empty());
    CHECK(stats["slice"]["rows"] == 0);
    CHECK(lines_of(printed("stats x.json --csv"_w)).size() == 1);
  }
}

TEST_CASE("what goes beside a tensor has the shape of the whole", "[rows]") {
  const FourRows at;
  at.write("part.json", "[[0, 1], [2, 3]]");
  const auto check = [&](const Words& words, const Words& said) {
    CAPTURE(words);
    CHECK(at.fault(words + "--rows 1:3"_w, said) == "");
  };
  check("x.json --residual part.json"_w,
        {"--residual", "part.json has shape (2, 2)", "shape (4, 2)"});
  check("grad x.json --dy part.json"_w, {"--dy", "part.json has shape (2, 2)", "shape (4, 2)"});
  check({"grad", "x.json", "--dy", "x.json", "--mean", "[1, 2]", "--rstd", "x.json"}, {"--mean"});
  // Tensors of other shapes differ, however the rows are.
  const Outcome compared = at.run("compare x.json part.json --rows 0:2"_w);
  CHECK(compared.status == 1);
  CHECK(contains(compared.out, "differ in shape: (4, 2), expected (2, 2)"));
  // weight and bias are not cut.
  CHECK(at.output("x.json --rows 1:3 --weight [0,0] --bias [1,2]"_w) == "[[1.0,2.0],[1.0,2.0]]\n");
}

TEST_CASE("gradients of weight and bias are sums over the rows that were chosen", "[rows]") {
  CHECK(FourRows().output("grad x.json --dy x.json --rows 1:3 --dbias -"_w) == "[6.0,8.0]\n");
}

TEST_CASE("rows of several tensors, and of lines as they come", "[rows]") {
  CHECK(output_of("--from jsonl --rows -1: --eps 0"_w, pipe_of("[[1, 2], [3, 5]]\n[[7, 9]]\n")) ==
        "[[-1.0,1.0]]\n[[-1.0,1.0]]\n");
  const Workplace at;
  at.write("set.json", R"({"a": [[1, 2], [3, 5]], "b": [[1, 2, 4], [0, 0, 0], [1, 1, 1]]})");
  const json applied = support::parsed_json(at.output("set.json:* --rows 1: --to json"_w));
  CHECK(applied["a"].size() == 1);
  CHECK(applied["b"].size() == 2);
  const json found = parsed(at, "stats set.json --rows 1:2 --json"_w);
  CHECK(found["tensors"][0]["rows"] == 1);
  CHECK(found["tensors"][0]["largest"]["index"] == json{1, 1});
  CHECK(found["tensors"][1]["slice"] == json{{"first", 1}, {"rows", 1}, {"of", 3}});
  CHECK(found["summary"]["elements"] == 5);
  const json some = support::parsed_json(at.output("set.json:* --rows 3: --to json"_w));
  CHECK(some["a"]["shape"] == Shape{0, 2});
  CHECK(some["b"]["shape"] == Shape{0, 3});
  CHECK(contains(at.output("compare set.json set.json --rows :2"_w), "2 tensors: 2 agree"));
}

TEST_CASE("text says which rows of how many it is about", "[rows]") {
  const std::string sample = data_file("sample.npy");
  const auto has = [&](const Words& words, const std::string& line) {
    const std::string text = output_of(words + "--rows 2:4"_w);
    CAPTURE(words, text);
    CHECK(contains(text, line));
  };
  has({"stats", sample},
      "2 rows of 4 elements: rows 2 (0, 2) to 3 (1, 0) of 6 along axes 0 and 1\n");
  has({"show", sample, "--header"}, "shape (2, 3, 4), rows 2 (0, 2) to 3 (1, 0) of 6\n");
  has({"compare", sample, sample}, "shape (2, 3, 4), rows 2 (0, 2) to 3 (1, 0) of 6)\n");
  has({"report", sample}, "rows 2 (0, 2) to 3 (1, 0) of 6, of 4 elements each");
  has({"stats", data_file("gpt2/acts.npz")}, "rows 2 (0, 2) to 3 (0, 3) of 8, of 16 elements each");
  has({"compare", data_file("gpt2/acts.npz"), data_file("gpt2/acts.npz")},
      "(float32), rows 2 (0, 2) to 3 (0, 3) of 8, tolerance");
  const Workplace directory;
  directory.write("a.json", R"({"u": [[1, 2], [3, 4]], "v": [[1, 2], [3, 4]]})");
  directory.write("b.json", R"({"u": [[1, 2], [3, 4]], "v": [[1, 2], [3, 5]]})");
  const Outcome differ = directory.run("compare a.json b.json --rows -1:"_w);
  CHECK(differ.status == 1);
  CHECK(contains(differ.out, "b.json:v --rows -1:\n"));
  CHECK(directory.run("compare a.json b.json --rows :1"_w).status == 0);
}

TEST_CASE("a report numbers the rows of its figures as the whole tensor does", "[rows]") {
  const Workplace directory;
  const auto row_of = [&](const std::string& name) {
    return support::parsed_json(directory.read(name))["data"][0]["values"][0]["row"];
  };
  std::filesystem::copy(data_file("sample.npy"), directory / "x.npy");
  directory.output("report x.npy --rows 2:5 -o report.html --spec figures"_w);
  CHECK(row_of("figures/tensor-x-mean.vg.json") == 2);
  CHECK(row_of("figures/tensor-row-x.vg.json") == 2);
  CHECK(contains(directory.read("report.html"), "data-label=\"2 (0, 2)\""));
  directory.output("x.npy -o y.npy"_w);
  const Outcome outcome =
      directory.run("compare x.npy y.npy --rows 2:5 --page report.html --spec errors"_w);
  CHECK(outcome.status == 1);
  CHECK(row_of("errors/comparison-errors.vg.json") == 2);
}

TEST_CASE("explain goes through each of some rows", "[rows]") {
  const std::string sample = data_file("sample.npy");
  const auto rows_of = [](const std::string& lines) {
    std::vector<json> rows;
    for (const std::string& line : lines_of(lines))
      rows.push_back(support::parsed_json(line)["rows"][0]);
    return rows;
  };
  std::vector<json> expected;
  for (const std::string row : {"0,2", "1,0", "1,1"}) {
    expected.push_back(rows_of(output_of({"explain", sample, "--row", row, "--json"})).front());
  }
  CHECK(rows_of(output_of({"explain", sample, "--rows", "2:5", "--json"})) == expected);
  CHECK(rows_of(output_of("explain --rows 2:5 --json"_w, pipe_of(read_file(sample)))) == expected);
  CHECK(rows_of(output_of({"explain", sample, "--rows", "2:5", "--json", "--residual", sample}))
            .size() == 3);
}

TEST_CASE("of a huge file only the rows that are named are read", "[rows]") {
  const Workplace directory;
  write_sparse_npy(directory / "huge.npy", {1'000'000'000, 256});
  for (const std::string name :
       {"apply", "softmax", "stats", "compare huge.npy", "grad --dy huge.npy", "show", "explain",
        "report --residual huge.npy"}) {
    CAPTURE(name);
    Command command = directory.script("exec lnorm " + name + " huge.npy --rows -2:");
    command.seconds = 20;
    const Outcome outcome = run(command);
    CHECK(outcome.err == "");
    CHECK(outcome.status == 0);
    CHECK(outcome.cpu_seconds < 2);
  }
}
