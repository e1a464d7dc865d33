#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// The pages of report and of compare --page as files. tests/page/page_test.py opens them in a browser.

namespace {

using namespace support;
namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

// Of every figure in a page: its specification.
std::vector<json> figures_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\">";
  std::vector<json> figures;
  for (std::size_t at = page.find(begin); at != page.npos; at = page.find(begin, at + 1)) {
    const std::size_t first = at + begin.size();
    figures.push_back(json::parse(page.substr(first, page.find("</script>", first) - first)));
  }
  return figures;
}

struct Workplace {
  Workplace() {
    std::vector<float> elements;
    for (std::int64_t i = 0; i < 3000; ++i) elements.push_back(static_cast<float>(i * i % 1009));
    write_file(directory / "x.npy", npy("<f4", {30, 100}, bytes_of(elements)));
    elements[1234] += 3;
    write_file(directory / "y.npy", npy("<f4", {30, 100}, bytes_of(elements)));
    write_file(directory / "set.json", R"({"h.2": [[1, 2, 4]], "h.10": [[1, 5, 2]], "b": [3, 4]})");
  }
  Command command(Words words) const {
    return {.arguments = std::move(words), .directory = directory.path().string()};
  }
  std::string page(const std::string& name) const { return read_file(directory / name); }
  TempDir directory;
};

}  // namespace

TEST_CASE("a page is one file without links to others", "[page]") {
  const Workplace at;
  CHECK(output_of(at.command({"report", "x.npy", "--softmax", "-o", "x.html"})).empty());
  const std::string page = at.page("x.html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.find("default-src 'none'") != page.npos);
  for (const char* const link : {" src=", "href=\"http", "url(", "@import"}) {
    CAPTURE(link);
    CHECK(page.substr(0, page.rfind("<script>")).find(link) == page.npos);
  }
  CHECK(page.size() < 1'000'000);
  CHECK(figures_of(page).size() == 11);
  // The same on standard output, from standard input, with any number of threads.
  CHECK(output_of(at.command({"report", "x.npy", "--softmax", "--threads", "1"})) == page);
  CHECK(output_of(at.command({"report", "x.npy", "--softmax", "--threads", "4"})) == page);
  const std::string piped = output_of({"report", "--softmax"}, pipe_of(at.page("x.npy")));
  CHECK(figures_of(piped) == figures_of(page));
}

TEST_CASE("a page names what was done", "[page]") {
  const Workplace at;
  const std::string page =
      output_of(at.command({"report", "x.npy", "--axes", "0", "--eps", "0.5", "--eps-on", "std",
                            "--unbiased", "--weight", "2", "--bias", "1"}));
  for (const char* const text :
       {"y = (x - mean) / (sqrt(var) + 0.5) * weight + bias", "sum of squared deviations / (n - 1)",
        "100 rows of 30 elements, normalized over axis 0", "float32 in, float32 out",
        "(30, 100)"}) {
    CAPTURE(text);
    CHECK(page.find(text) != page.npos);
  }
  CHECK(
      output_of(at.command({"report", "x.npy", "--rms"})).find("y = x / sqrt(mean(x^2) + 1e-05)") !=
      page.npos);
}

TEST_CASE("specifications are written by themselves", "[page]") {
  const Workplace at;
  output_of(at.command({"report", "x.npy", "-o", "x.html", "--spec", "specs"}));
  const std::vector<std::string> names = list_directory(at.directory / "specs");
  const std::vector<json> figures = figures_of(at.page("x.html"));
  REQUIRE(names.size() == figures.size());
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(name.ends_with(".vg.json"));
    json spec = json::parse(at.page("specs/" + name));
    CHECK(spec["$schema"] == "https://vega.github.io/schema/vega/v5.json");
    CHECK(spec["title"].is_string());
    spec.erase("title");
    CHECK(std::find(figures.begin(), figures.end(), spec) != figures.end());
  }
}

TEST_CASE("every tensor of a set has its section, in natural order", "[page]") {
  const Workplace at;
  const std::string page = output_of(at.command({"report", "set.json"}));
  const std::size_t first = page.find("<h2>h.2</h2>");
  const std::size_t second = page.find("<h2>h.10</h2>");
  REQUIRE(first != page.npos);
  REQUIRE(second != page.npos);
  CHECK(first < second);
  CHECK(figures_of(page).size() == 3 + 3 * 10);
  // A tensor may be named twice.
  const std::string twice = output_of(at.command({"report", "x.npy", "x.npy"}));
  CHECK(twice.find("<section id=\"tensor-0\">") != twice.npos);
  CHECK(twice.find("<section id=\"tensor-1\">") != twice.npos);
  CHECK(output_of({"report"}, pipe_of("{}")).find("There are no tensors.") != std::string::npos);
  const std::string lines = output_of({"report", "-:x", "--from", "jsonl"},
                                      pipe_of("{\"x\": [1, 2]}\n{\"x\": [3, 5, 4]}\n"));
  CHECK(figures_of(lines).size() == 3 + 2 * 10);
  CHECK(lines.find("<h2>standard input:1:x</h2>") != std::string::npos);
  CHECK(lines.find("<h2>standard input:2:x</h2>") != std::string::npos);
}

TEST_CASE("there are pages of what has few numbers or none", "[page]") {
  const auto page_of = [](const std::string& tensor, const Words& more = {}) {
    Words words{"report", "--from", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return output_of(words, pipe_of(tensor));
  };
  CHECK(page_of("[]").find("There are no elements to look at.") != std::string::npos);
  CHECK(page_of("[[], []]").find("There are no elements to look at.") != std::string::npos);
  CHECK(figures_of(page_of("3")).size() == 10);
  CHECK(figures_of(page_of("[[1, 1], [1, 1]]", {"--eps", "0"})).size() == 10);
  CHECK(page_of("[[NaN, NaN], [Infinity, NaN]]").find("No element is finite") != std::string::npos);
  CHECK(figures_of(page_of("[[1e308, -1e308], [1e-320, 0]]")).size() == 10);
  CHECK(figures_of(page_of("[[9223372036854775807, 1], [-9223372036854775808, 1]]")).size() == 10);
  // An axis of one value has room about it, or Vega would round its label.
  for (const json& figure : figures_of(page_of("[[3.7, 3.7], [3.7, 3.7]]"))) {
    for (const json& scale : figure["scales"]) {
      if (scale["name"] == "y" && scale["domain"].is_array()) {
        CHECK(scale["domain"][0] < scale["domain"][1]);
      }
    }
  }
}

TEST_CASE("compare writes a page beside its report", "[page]") {
  const Workplace at;
  Command command = at.command({"compare", "y.npy", "x.npy"});
  const Outcome plain = run(command);
  command.arguments.insert(command.arguments.end(), {"--page", "c.html", "--spec", "specs"});
  const Outcome paged = run(command);
  CHECK(paged.status == 1);
  CHECK(paged.out == plain.out);
  CHECK(figures_of(at.page("c.html")).size() == 3);
  CHECK(list_directory(at.directory / "specs").size() == 3);
  CHECK(run(at.command({"compare", "x.npy", "x.npy", "--page", "c.html", "--quiet"})).status == 0);
  CHECK(at.page("c.html").find("They agree.") != std::string::npos);
  CHECK(run(at.command({"compare", "x.npy", "set.json:b", "--page", "c.html"})).status == 1);
  CHECK(at.page("c.html").find("The shapes differ") != std::string::npos);
  CHECK(run(at.command({"compare", "set.json", "set.json", "--page", "c.html"})).status == 0);
  CHECK(figures_of(at.page("c.html")).empty());  // what is equal has no section
  // JSON is not changed.
  command = at.command({"compare", "y.npy", "x.npy", "--json"});
  const std::string json_alone = run(command).out;
  command.arguments.insert(command.arguments.end(), {"--page", "c.html"});
  CHECK(run(command).out == json_alone);
}

TEST_CASE("a page is titled with what the user named", "[page]") {
  const Workplace at;
  const auto title = [](const std::string& page) {
    const std::size_t first = page.find("<title>") + 7;
    const std::string found = page.substr(first, page.find("</title>") - first);
    CHECK(page.find("<h1>" + found + "</h1>") != page.npos);
    return found;
  };
  const auto of_comparison = [&](const std::string& actual, const std::string& expected) {
    run(at.command({"compare", actual, expected, "--page", "c.html"}));
    return title(at.page("c.html"));
  };
  CHECK(of_comparison("y.npy", "x.npy") == "y.npy and x.npy");
  CHECK(of_comparison("set.json:h.2", "set.json:h.10") == "set.json:h.2 and set.json:h.10");
  CHECK(of_comparison("set.json:h.*", "set.json") == "set.json:h.* and set.json");
  CHECK(of_comparison("set.json:b", "x.npy") == "set.json:b and x.npy");
  CHECK(title(output_of(at.command({"report", "x.npy"}))) == "x.npy");
  CHECK(title(output_of(at.command({"report", "set.json:b"}))) == "set.json:b");
  CHECK(title(output_of(at.command({"report", "set.json:h.*"}))) == "set.json:h.*");
  CHECK(title(output_of({"report", "-:h.*"}, pipe_of(at.page("set.json")))) ==
        "standard input:h.*");
}

TEST_CASE("the cells of heat maps have their mean, their greatest |x|, and what is not finite",
          "[page]") {
  const TempDir directory;
  // 2 x 2 elements a cell.
  std::vector<float> elements(192 * 256, 0.5F);
  elements[0] = -4;
  elements[1] = 1;
  for (std::size_t i = 0; i < 256; ++i) elements[10 * 256 + i] = INFINITY;
  write_file(directory / "x.npy", npy("<f4", {192, 256}, bytes_of(elements)));
  output_of(
      {"report", directory / "x.npy", "-o", directory / "x.html", "--spec", directory / "specs"});
  const json spec = json::parse(read_file(directory / "specs/tensor-x-map.vg.json"));
  const json& cells = spec["data"][0]["values"][0];
  REQUIRE(cells["mean"].size() == 96 * 128);
  CHECK(cells["mean"][0] == -0.5);
  CHECK(cells["max"][0] == 4);
  CHECK(cells["non_finite"][0] == 0);
  CHECK(cells["mean"][5 * 128] == 0.5);
  CHECK(cells["non_finite"][5 * 128] == 2);
  CHECK(spec["usermeta"]["columns"].back() ==
        json{{"field", "non_finite"}, {"title", "not finite"}});
  CHECK(spec["signals"][0]["bind"]["options"] == json{"mean", "max"});
  CHECK(spec["signals"][0]["bind"]["labels"] == json{"mean", "max |x|"});
  CHECK(spec["signals"][1]["value"]["mean"]["domain"][1] <
        spec["signals"][1]["value"]["max"]["domain"][1]);
}

TEST_CASE("axes of numbers that Vega has no ticks for count in a power of ten", "[page]") {
  const auto figure = [](const std::string& tensor, const std::string& title) {
    for (json& spec : figures_of(output_of({"report", "--from", "json"}, pipe_of(tensor)))) {
      const json& axis = spec["axes"][title == "value of an element" ? 0 : 1];
      if (axis["title"].is_string() && axis["title"].get<std::string>().starts_with(title))
        return spec;
    }
    return json();
  };
  struct Case {
    std::string tensor;
    std::string title;
    double greatest;  // in that power
  };
  for (const Case& c : {Case{"[[1e-310, 3e-310]]", "mean in 1e-310", 3},
                        Case{"[[5e-324, 5e-324]]", "mean in 1e-324", 7.5},
                        Case{"[[1e305, 3e305]]", "mean in 1e305", 3},
                        Case{"[[1.7e308, 1.7e308]]", "mean in 1e308", 2.6},
                        Case{"[[1e-42, 3e-42]]", "mean", 3e-42}, Case{"[[1, 3]]", "mean", 3}}) {
    CAPTURE(c.tensor);
    const json spec = figure(c.tensor, "mean");
    CHECK(spec["axes"][1]["title"] == c.title);
    const double low = spec["scales"][1]["domain"][0];
    const double high = spec["scales"][1]["domain"][1];
    CHECK(low < high);
    CHECK(high <= c.greatest);
    // The numbers themselves are as they are.
    CHECK(spec["data"][0]["values"][0]["median"] > 0);
  }
  CHECK(figure("[[1e-310, 3e-310]]", "value of an element")["axes"][0]["title"] ==
        "value of an element in 1e-308");
  CHECK(figure("[[6e-8, 3e-8]]", "value of an element")["axes"][0]["format"] == ".2~e");
}

TEST_CASE("a page that cannot be made or written is refused, and nothing appears", "[page]") {
  const Workplace at;
  const auto refuses = [&](const Words& words, const Words& told) {
    CAPTURE(words);
    CHECK(refusal_fault(run(at.command(words)), told) == "");
  };
  refuses({"report", "none.npy", "-o", "r.html"}, {"none.npy"});
  refuses({"report", "x.npy", "-o", "r.npy"}, {"-o r.npy", ".npy", "expected .html"});
  refuses({"report", "x.npy", "-o", "none/r.html"},
          {"cannot create -o", "none/r.html", "mkdir -p none"});
  refuses({"report", "x.npy", "-o", "r.html", "--spec", "x.npy"}, {"--spec", "x.npy"});
  refuses({"report", "x.npy", "-o", "r.html", "--axes", "5"}, {"axis 5"});
  refuses({"report", "x.npy", "-o", "r.html", "--weight", "[1, 2]"}, {"weight"});
  refuses({"report", "x.npy", "--json"}, {"--json"});
  refuses({"report", "x.npy", "--all", "-o", "r.html"}, {"--all has no effect"});
  refuses({"compare", "x.npy", "y.npy", "--page", "-"}, {"--page", "file"});
  refuses({"compare", "x.npy", "y.npy", "--page", "r.txt"}, {"--page r.txt", "expected .html"});
  refuses({"compare", "x.npy", "y.npy", "--spec", "specs"}, {"--spec", "--page"});
  write_file(at.directory / "cut.npy", at.page("x.npy").substr(0, 9000));
  refuses({"report", "cut.npy", "-o", "r.html", "--spec", "specs"}, {"cut.npy"});
  CHECK(list_directory(at.directory.path()) == Words{"cut.npy", "set.json", "x.npy", "y.npy"});

  Command command = at.command({"report", "x.npy"});
  command.out = terminal();
  const Outcome outcome = run(command);
  CHECK(outcome.status == 2);
  CHECK(outcome.err.find("-o report.html") != std::string::npos);

  command = at.command({"report", "x.npy", "-o", "/dev/full"});
  CHECK(refusal_fault(run(command), {"/dev/full"}) == "");
  command = at.command({"report", "x.npy"});
  command.out = pipe_until(1000);
  CHECK(run(command).status == 0);  // as head does
}

TEST_CASE("what cannot be done is left out of a page with --keep-going", "[page]") {
  const Workplace at;
  Command command =
      at.command({"report", "bad.json", "-o", "r.html", "--keep-going", "--weight", "[1, 2]"});
  write_file(at.directory / "bad.json", R"({"a": [1, 2], "b": [1, 2, 3], "c": [3, 5]})");
  const Outcome outcome = run(command);
  CHECK(outcome.status == 2);
  CHECK(outcome.err.find("weight") != std::string::npos);
  CHECK(figures_of(at.page("r.html")).size() == 3 + 2 * 10);
}

TEST_CASE("a page does not grow with the tensor, nor does the memory for it", "[page][memory]") {
  const TempDir directory;
  // Holes in a file are zeros.
  const auto make = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    write_file(directory / name, npy("<f4", {rows, columns}, ""));
    fs::resize_file(directory / name, static_cast<std::uintmax_t>(128 + rows * columns * 4));
    return directory / name;
  };
  const Outcome small =
      run({"report", make("small.npy", 2000, 500), "-o", directory / "small.html"});
  const Outcome large =
      run({"report", make("large.npy", 20000, 1500), "-o", directory / "large.html"});
  REQUIRE(small.status == 0);
  REQUIRE(large.status == 0);
  CHECK(read_file(directory / "large.html").size() < 3'000'000);
#ifndef LNORM_SANITIZED
  CHECK(large.peak_kib < small.peak_kib + 16 * 1024);
#endif
}
