#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "lnorm/core/text.hpp"
#include "support/commands.hpp"
#include "support/json.hpp"

// The pages of report and of compare --page as files. tests/page/page_test.py opens them in a browser.

namespace {

using namespace support;
namespace fs = std::filesystem;
using lnorm::concat;
using nlohmann::json;

// Of every figure in a page: its specification.
std::vector<json> figures_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\">";
  std::vector<json> figures;
  for (std::size_t at = page.find(begin); at != page.npos; at = page.find(begin, at + 1)) {
    const std::size_t first = at + begin.size();
    figures.push_back(
        support::parsed_json(page.substr(first, page.find("</script>", first) - first)));
  }
  return figures;
}

struct PageFolder : Workplace {
  PageFolder() {
    std::vector<float> elements;
    for (std::int64_t i = 0; i < 3000; ++i) elements.push_back(static_cast<float>(i * i % 1009));
    write("x.npy", npy_of<float>({30, 100}, elements));
    elements[1234] += 3;
    write("y.npy", npy_of<float>({30, 100}, elements));
    write("set.json", R"({"h.2": [[1, 2, 4]], "h.10": [[1, 5, 2]], "b": [3, 4]})");
  }
};

}  // namespace

TEST_CASE("a page is one file without links to others", "[page]") {
  const PageFolder at;
  CHECK(at.output("report x.npy --softmax -o x.html"_w).empty());
  const std::string page = at.read("x.html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(contains(page, "default-src 'none'"));
  for (const char* const link : {" src=", "href=\"http", "url(", "@import"}) {
    CAPTURE(link);
    CHECK(!contains(page.substr(0, page.rfind("<script>")), link));
  }
  CHECK(page.size() < 1'000'000);
  CHECK(figures_of(page).size() == 12);
  // The same on standard output, from standard input, with any number of threads.
  CHECK(at.output("report x.npy --softmax --threads 1"_w) == page);
  CHECK(at.output("report x.npy --softmax --threads 4"_w) == page);
  const std::string piped = output_of("report --softmax"_w, pipe_of(at.read("x.npy")));
  CHECK(figures_of(piped) == figures_of(page));
}

TEST_CASE("a page names what was done", "[page]") {
  const PageFolder at;
  const std::string page =
      at.output("report x.npy --axes 0 --eps 0.5 --eps-on std --unbiased --weight 2 --bias 1"_w);
  for (const char* const text :
       {"y = (x - mean) / (sqrt(var) + 0.5) * weight + bias", "sum of squared deviations / (n - 1)",
        "100 rows of 30 elements, normalized over axis 0", "float32 in, float32 out",
        "(30, 100)"}) {
    CAPTURE(text);
    CHECK(contains(page, text));
  }
  CHECK(contains(at.output("report x.npy --rms"_w), "y = x / sqrt(mean(x^2) + 1e-05)"));
}

TEST_CASE("specifications are written by themselves", "[page]") {
  const PageFolder at;
  at.output("report x.npy -o x.html --spec specs"_w);
  const Words names = list_directory(at / "specs");
  const std::vector<json> figures = figures_of(at.read("x.html"));
  REQUIRE(names.size() == figures.size());
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(name.ends_with(".vg.json"));
    json spec = support::parsed_json(at.read("specs/" + name));
    CHECK(spec["$schema"] == "https://vega.github.io/schema/vega/v5.json");
    CHECK(spec["title"].is_string());
    spec.erase("title");
    CHECK(std::find(figures.begin(), figures.end(), spec) != figures.end());
  }
}

TEST_CASE("every tensor of a set has its section, in natural order", "[page]") {
  const PageFolder at;
  const std::string page = at.output("report set.json"_w);
  const std::size_t first = page.find("<h2>h.2</h2>");
  const std::size_t second = page.find("<h2>h.10</h2>");
  REQUIRE(first != page.npos);
  REQUIRE(second != page.npos);
  CHECK(first < second);
  CHECK(figures_of(page).size() == 4 + 3 * 11);
  // A tensor may be named twice.
  const std::string twice = at.output("report x.npy x.npy"_w);
  CHECK(contains(twice, "<section id=\"tensor-0\">"));
  CHECK(contains(twice, "<section id=\"tensor-1\">"));
  CHECK(contains(output_of({"report"}, pipe_of("{}")), "There are no tensors."));
  const std::string lines =
      output_of("report -:x --from jsonl"_w, pipe_of("{\"x\": [1, 2]}\n{\"x\": [3, 5, 4]}\n"));
  CHECK(figures_of(lines).size() == 4 + 2 * 11);
  CHECK(contains(lines, "<h2>standard input:1:x</h2>"));
  CHECK(contains(lines, "<h2>standard input:2:x</h2>"));
}

TEST_CASE("a page shows the features that stats has", "[page]") {
  const Workplace at;
  constexpr std::int64_t kFeatures = 900;  // more than a figure has points
  std::vector<float> elements;
  for (std::int64_t i = 0; i < 40 * kFeatures; ++i) {
    const std::int64_t feature = i % kFeatures;
    const auto x = static_cast<float>(i * i % 1009);
    elements.push_back(feature == 7 ? 0 : feature == 21 ? 100 * x : x);
  }
  elements[5 * kFeatures + 3] = NAN;
  at.write("x.npy", npy_of<float>({40, kFeatures}, elements));
  const std::string page = at.output("report x.npy"_w);
  const json stats = support::parsed_json(at.output("stats x.npy --features --json"_w));
  CHECK(contains(page, "<h3>Features</h3>"));
  for (const json& figure : figures_of(page)) {
    if (!figure["description"].get<std::string>().starts_with("Largest |x| of every feature")) {
      continue;
    }
    const json& bands = figure["data"][0]["values"];
    CHECK(bands.size() == 600);
    for (const json& band : bands) {
      double max = 0;
      for (std::size_t i = 0; i < band["features"]; ++i) {
        max = std::max(
            max, stats["features"][band["feature"].get<std::size_t>() + i]["absmax"].get<double>());
      }
      CHECK(band["max"] == max);
    }
  }
  // The lists are those of --top.
  const std::string found = page.substr(page.find("<h3>Features</h3>"));
  for (const auto& [by, words, most] : {std::tuple("absmax", "largest |x|", 5),
                                        {"variance-min", "smallest variance", 5},
                                        {"zeros", "most zeros", 5},
                                        {"non-finite", "most NaN and infinity", 1}}) {
    const json top = support::parsed_json(at.output(
        {"stats", "x.npy", "--features", "--json", "--top", std::to_string(most), "--by", by}));
    std::size_t place = 0;
    for (const json& feature : top["top"]["features"]) {
      CAPTURE(by, feature.dump());
      const std::string number = std::to_string(feature["index"][0].get<int>());
      place = found.find(concat(">", words, "</th>"), place);
      REQUIRE(place != found.npos);
      place = found.find("<td", place);
      CHECK(contains(found.substr(place, found.find("</td>", place) - place), ">" + number));
    }
    CHECK(found.find(concat(">", words, "</th>"), place) == found.npos);
  }
  CHECK(contains(found, "1 feature: 7"));
  CHECK(contains(found, "in feature 21"));
  CHECK(contains(at.output("report x.npy x.npy"_w), "Largest |x| of the features of every tensor"));
  write_sparse_npy(at / "wide.npy", {3, 65537});
  CHECK(contains(at.output("report wide.npy"_w), "Rows have more than 65536 elements"));
}

TEST_CASE("there are pages of what has few numbers or none", "[page]") {
  const auto page_of = [](const std::string& tensor, const Words& more = {}) {
    return output_of("report --from json"_w + more, pipe_of(tensor));
  };
  CHECK(contains(page_of("[]"), "There are no elements to look at."));
  CHECK(contains(page_of("[[], []]"), "There are no elements to look at."));
  CHECK(figures_of(page_of("3")).size() == 11);
  CHECK(figures_of(page_of("[[1, 1], [1, 1]]", "--eps 0"_w)).size() == 11);
  CHECK(contains(page_of("[[NaN, NaN], [Infinity, NaN]]"), "No element is finite"));
  CHECK(figures_of(page_of("[[1e308, -1e308], [1e-320, 0]]")).size() == 11);
  CHECK(figures_of(page_of("[[9223372036854775807, 1], [-9223372036854775808, 1]]")).size() == 11);
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
  const PageFolder at;
  const Words compare = "compare y.npy x.npy"_w;
  const Outcome paged = at.run(compare + "--page c.html --spec specs"_w);
  CHECK(paged.status == 1);
  CHECK(paged.out == at.run(compare).out);
  CHECK(figures_of(at.read("c.html")).size() == 3);
  CHECK(list_directory(at / "specs").size() == 3);
  CHECK(at.run("compare x.npy x.npy --page c.html --quiet"_w).status == 0);
  CHECK(contains(at.read("c.html"), "They agree."));
  CHECK(at.run("compare x.npy set.json:b --page c.html"_w).status == 1);
  CHECK(contains(at.read("c.html"), "The shapes differ"));
  CHECK(at.run("compare set.json set.json --page c.html"_w).status == 0);
  CHECK(figures_of(at.read("c.html")).empty());  // what is equal has no section
  // JSON is not changed.
  CHECK(at.run(compare + "--json --page c.html"_w).out == at.run(compare + "--json"_w).out);
}

TEST_CASE("a page is titled with what the user named", "[page]") {
  const PageFolder at;
  const auto title = [](const std::string& page) {
    const std::size_t first = page.find("<title>") + 7;
    const std::string found = page.substr(first, page.find("</title>") - first);
    CHECK(contains(page, "<h1>" + found + "</h1>"));
    return found;
  };
  const auto of_comparison = [&](const std::string& actual, const std::string& expected) {
    at.run({"compare", actual, expected, "--page", "c.html"});
    return title(at.read("c.html"));
  };
  CHECK(of_comparison("y.npy", "x.npy") == "y.npy and x.npy");
  CHECK(of_comparison("set.json:h.2", "set.json:h.10") == "set.json:h.2 and set.json:h.10");
  CHECK(of_comparison("set.json:h.*", "set.json") == "set.json:h.* and set.json");
  CHECK(of_comparison("set.json:b", "x.npy") == "set.json:b and x.npy");
  CHECK(title(at.output("report x.npy"_w)) == "x.npy");
  CHECK(title(at.output("report set.json:b"_w)) == "set.json:b");
  CHECK(title(at.output("report set.json:h.*"_w)) == "set.json:h.*");
  CHECK(title(output_of("report -:h.*"_w, pipe_of(at.read("set.json")))) == "standard input:h.*");
}

TEST_CASE("the cells of heat maps have their mean, their greatest |x|, and what is not finite",
          "[page]") {
  const Workplace directory;
  // 2 x 2 elements a cell.
  std::vector<float> elements(192 * 256, 0.5F);
  elements[0] = -4;
  elements[1] = 1;
  for (std::size_t i = 0; i < 256; ++i) elements[10 * 256 + i] = INFINITY;
  directory.write("x.npy", npy_of<float>({192, 256}, elements));
  directory.output("report x.npy -o x.html --spec specs"_w);
  const json spec = support::parsed_json(directory.read("specs/tensor-x-map.vg.json"));
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
    for (json& spec : figures_of(output_of("report --from json"_w, pipe_of(tensor)))) {
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
  const PageFolder at;
  const auto refuses = [&](const Words& words, const Words& told) {
    CAPTURE(words);
    CHECK(at.fault(words, told) == "");
  };
  refuses("report none.npy -o r.html"_w, {"none.npy"});
  refuses("report x.npy -o r.npy"_w, {"-o r.npy", ".npy", "expected .html"});
  refuses("report x.npy -o none/r.html"_w, {"cannot create -o", "none/r.html", "mkdir -p none"});
  refuses("report x.npy -o r.html --spec x.npy"_w, "--spec x.npy"_w);
  refuses("report x.npy -o r.html --axes 5"_w, {"axis 5"});
  refuses({"report", "x.npy", "-o", "r.html", "--weight", "[1, 2]"}, {"weight"});
  refuses("report x.npy --json"_w, {"--json"});
  refuses("report x.npy --all -o r.html"_w, {"--all has no effect"});
  refuses("compare x.npy y.npy --page -"_w, "--page file"_w);
  refuses("compare x.npy y.npy --page r.txt"_w, {"--page r.txt", "expected .html"});
  refuses("compare x.npy y.npy --spec specs"_w, "--spec --page"_w);
  at.write("cut.npy", at.read("x.npy").substr(0, 9000));
  refuses("report cut.npy -o r.html --spec specs"_w, {"cut.npy"});
  CHECK(at.files() == Words{"cut.npy", "set.json", "x.npy", "y.npy"});

  const Command command = at.command("report x.npy"_w);
  const Outcome outcome = run(command.to(terminal()));
  CHECK(outcome.status == 2);
  CHECK(contains(outcome.err, "-o report.html"));
  refuses("report x.npy -o /dev/full"_w, {"/dev/full"});
  CHECK(run(command.to(pipe_until(1000))).status == 0);  // as head does
}

TEST_CASE("what cannot be done is left out of a page with --keep-going", "[page]") {
  const PageFolder at;
  at.write("bad.json", R"({"a": [1, 2], "b": [1, 2, 3], "c": [3, 5]})");
  const Outcome outcome =
      at.run({"report", "bad.json", "-o", "r.html", "--keep-going", "--weight", "[1, 2]"});
  CHECK(outcome.status == 2);
  CHECK(contains(outcome.err, "weight"));
  CHECK(figures_of(at.read("r.html")).size() == 4 + 2 * 11);
}

TEST_CASE("a page does not grow with the tensor, nor does the memory for it",
          "[page][memory][many]") {
  const Workplace directory;
  write_sparse_npy(directory / "small.npy", {2000, 500});
  write_sparse_npy(directory / "large.npy", {20000, 1500});
  const Outcome small = directory.run("report small.npy -o small.html"_w);
  const Outcome large = directory.run("report large.npy -o large.html"_w);
  REQUIRE(small.status == 0);
  REQUIRE(large.status == 0);
  CHECK(directory.read("large.html").size() < 3'000'000);
  check_memory(small.peak_kib, large.peak_kib, 16 * 1024);
}
