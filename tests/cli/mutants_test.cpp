#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <set>

#include "support/catch.hpp"
#include "support/commands.hpp"
#include "support/files.hpp"
#include "support/json.hpp"

// lnorm mutants and lnorm inputs: which wrong kernels a test would let through, and inputs that let none through.

namespace {

using namespace support;
using nlohmann::json;
using Ids = std::set<std::string>;

// Rows of normal numbers.
std::string numbers(int rows, int n, double scale, double mean = 0) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  json rows_of_numbers = json::array();
  for (int r = 0; r < rows; ++r) {
    json row = json::array();
    for (int i = 0; i < n; ++i) row.push_back(mean + scale * normal(random));
    rows_of_numbers.push_back(row);
  }
  return rows == 1 ? rows_of_numbers.front().dump() : rows_of_numbers.dump();
}

Ids ids_of(const json& array) {
  Ids ids;
  for (const json& id : array) ids.insert(id.get<std::string>());
  return ids;
}

// Nothing is finite: -1.
double number_of(const json& number) { return number.is_null() ? -1 : number.get<double>(); }

struct Mutants : Workplace {
  json report(const Words& words) const {
    return support::parsed_json(run("mutants"_w + words + "--json"_w).out);
  }
  Ids survivors(const Words& words) const { return ids_of(report(words).at("survivors")); }
  static Ids equivalent(const json& report) {
    Ids ids;
    for (const json& mutant : report.at("mutants")) {
      if (mutant.at("equivalent")) ids.insert(mutant.at("id").get<std::string>());
    }
    return ids;
  }
};

}  // namespace

TEST_CASE("kernels of float64 are caught by their mistakes, not by their last digit", "[mutants]") {
  const Mutants files;
  files.write("x.json", numbers(12, 11, 2));
  const json report = files.report("x.json --eps-on max --max-ulp 0 --kernels eps-1e-6,ddof-1"_w);
  CHECK(ids_of(report.at("survivors")) == Ids{"eps-1e-6"});
  // Of two rows every second one is another sum.
  files.write("two.json", numbers(2, 11, 2));
  CHECK(files.survivors("two.json --dy two.json --kernels every-2nd-row,every-4th-row"_w) == Ids{});
}

TEST_CASE("an input scaled by its width lets a kernel pass that sums nothing", "[mutants]") {
  const Mutants files;
  const Words test = "--rms --eps 1e-6 --rtol 1e-2 --atol 1e-2 --dtype float16"_w;
  for (const int n : {769, 8192}) {
    files.write("x.json", numbers(2, n, 1.0 / (2 * n)));
    const Outcome outcome = files.run("mutants x.json"_w + test);
    CHECK(outcome.status == 1);
    CHECK(files.survivors("x.json"_w + test).contains("no-reduction") == (n == 8192));
    CHECK(contains(lines_of(outcome.out).front(), " wrong kernels pass: "));
  }
}

TEST_CASE("a wrong kernel is equivalent by formula and options, never by values", "[mutants]") {
  const Mutants files;
  files.write("x.json", numbers(3, 16, 1));
  files.write("one.json", "[[1], [2]]");
  const Ids plain = Mutants::equivalent(files.report("x.json"_w));
  for (const std::string id : {"no-bias", "no-weight", "weight-reversed", "eps-1e-5", "ddof-0",
                               "layer-norm", "no-tail-8", "unrounded"}) {
    CAPTURE(id);
    CHECK(plain.contains(id));
  }
  for (const std::string id : {"rms", "padded-32", "first-row", "truncated", "unwritten-tail"}) {
    CHECK(!plain.contains(id));
  }
  json ones = json::array();
  for (int i = 0; i < 16; ++i) ones.push_back(1);
  files.write("ones.json", ones.dump());
  const json blind = files.report("x.json --weight ones.json"_w);
  CHECK(!Mutants::equivalent(blind).contains("no-weight"));
  CHECK(ids_of(blind.at("survivors")).contains("no-weight"));
  CHECK(Mutants::equivalent(files.report("x.json --weight 2"_w)).contains("weight-reversed"));
  const Ids one = Mutants::equivalent(files.report("one.json --bias 2"_w));
  CHECK(one.contains("mean-in-variance"));
  CHECK(one.contains("divide-by-variance"));
  CHECK(!one.contains("no-bias"));
  CHECK(Mutants::equivalent(files.report("x.json --rows :1"_w)).contains("first-row"));
}

TEST_CASE("kernels off by less than an ulp are tried by name, or where an ulp is too much",
          "[mutants]") {
  const Mutants files;
  files.write("x.json", numbers(3, 16, 1));
  const auto tries = [&](const Words& words) {
    return contains(files.report("x.json"_w + words).dump(), "\"id\":\"truncated\"");
  };
  CHECK(!tries({}));
  CHECK(!tries("--max-ulp 1"_w));
  CHECK(tries("--max-ulp 0.5"_w));
  CHECK(tries("--kernels truncated,rms"_w));
}

TEST_CASE("what one input catches is caught", "[mutants]") {
  const Mutants files;
  files.write("small.json", numbers(4, 1000, 1e-3));
  files.write("usual.json", numbers(4, 1000, 1, 2));
  const Words test = "--kernels eps-1e-3,rms --rtol 5e-2 --atol 5e-2"_w;
  CHECK(files.survivors("small.json"_w + test) == Ids{"rms"});
  CHECK(files.survivors("usual.json"_w + test) == Ids{"eps-1e-3"});
  const json both = files.report("small.json usual.json"_w + test);
  CHECK(both.at("survivors").empty());
  CHECK(both.at("agrees") == true);
  CHECK(both.at("inputs") == json{"small.json", "usual.json"});
  for (const json& mutant : both.at("mutants")) {
    CHECK(mutant.at("caught") == true);
    CHECK(mutant.at("caught_by") == json{mutant.at("id") == "rms" ? "usual.json" : "small.json"});
    CHECK(mutant.at("mismatched") > 0);
    CHECK(mutant.at("elements") == 8000);
  }
  CHECK(files.run("mutants small.json usual.json --quiet"_w + test).status == 0);
  CHECK(files.shell("cat usual.json | lnorm mutants - --kernels rms").status == 0);
}

TEST_CASE("how far off a wrong kernel is agrees with compare", "[mutants]") {
  const Mutants files;
  files.write("x.json", numbers(4, 50, 1, 1));
  files.write("w.json", numbers(1, 50, 1, 0.3));
  const Words given = "--weight w.json --dtype float16"_w;
  files.output("x.json -o right.npy"_w + given);
  for (const auto& [id, options] :
       std::vector<std::pair<std::string, Words>>{{"ddof-1", "--unbiased"_w},
                                                  {"eps-on-std", "--eps-on std"_w},
                                                  {"rms", "--rms"_w},
                                                  {"axes-0", "--axes 0"_w},
                                                  {"rounded-xhat", "--round xhat"_w}}) {
    CAPTURE(id);
    const json mutant =
        files.report("x.json"_w + given + Words{"--kernels", id}).at("mutants").front();
    if (id == "axes-0") {  // whose weight would have another shape
      CHECK(mutant.at("mismatched") > 0);
      continue;
    }
    files.output("x.json -o wrong.npy"_w + given + options);
    const json compared =
        support::parsed_json(files.run("compare wrong.npy right.npy --json"_w).out);
    CHECK(mutant.at("mismatched") == compared.at("mismatched"));
    CHECK(mutant.at("max_abs") == compared.at("greatest_absolute_difference").at("value"));
  }
}

TEST_CASE("a wrong kernel rounds where the right one does", "[mutants]") {
  const Mutants files;
  const Words given{LNORM_DATA_DIR "/kernel/x.npy",
                    "--weight",
                    LNORM_DATA_DIR "/kernel/weight.npy",
                    "--round",
                    "xhat",
                    "--kernels",
                    "one-pass",
                    "--max-ulp",
                    "0"};
  const json mutant = files.report(given).at("mutants").front();
  CHECK(mutant.at("mismatched") < 100);  // of 24576; half an ulp of xhat would show in thousands
}

TEST_CASE("wrong backward passes are judged by dx, dweight and dbias", "[mutants]") {
  const Mutants files;
  files.write("x.json", numbers(6, 50, 1, 1));
  files.write("dy.json", numbers(6, 50, 1, 0.5));
  files.write("w.json", numbers(1, 50, 1, 0.3));
  const Words given = "x.json --dy dy.json --dtype float32"_w;
  const Words kernel = "--weight w.json --kernels weight-forgotten"_w;
  files.run("grad --dx right.npy --weight w.json"_w + given);
  files.run("grad --dx wrong.npy"_w + given);
  const json mutant = files.report(given + kernel).at("mutants").front();
  const json compared = support::parsed_json(files.run("compare wrong.npy right.npy --json"_w).out);
  CHECK(mutant.at("caught") == true);
  CHECK(mutant.at("mismatched") == compared.at("mismatched"));
  CHECK(mutant.at("max_abs") == compared.at("greatest_absolute_difference").at("value"));

  // Of two formulas of one name both must be caught: the forward pass alone shows the one.
  files.write("zeros.json", numbers(6, 50, 0));
  CHECK(files.survivors("x.json --dy zeros.json --kernels float16-statistics"_w) ==
        Ids{"float16-statistics"});
  CHECK(files.survivors("x.json --kernels float16-statistics"_w).empty());

  // A gradient of ones is 0 in dx, whatever becomes of the variance's term.
  json ones = json::array();
  for (int r = 0; r < 6; ++r) ones.push_back(std::vector<double>(50, 1));
  files.write("ones.json", ones.dump());
  CHECK(files.survivors("x.json --dy ones.json --kernels no-*-term*,no-mean-of-g"_w) ==
        Ids{"no-variance-term"});
}

TEST_CASE("the options that stand beside wrong kernels are options of check", "[mutants]") {
  const std::string page = read_file(LNORM_SOURCE_DIR "/docs/wrong-kernels.md");
  const std::regex row(R"(\| `(--[a-z -]+[a-z0-9-]*)` \|\n)");  // a capital stands for a number
  std::set<std::string> seen;
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) {
    seen.insert((*at)[1]);
  }
  CHECK(seen.size() >= 17);
  for (const std::string& options : seen) {
    CAPTURE(options);
    if (options == "--saturate") continue;  // of a float8: tests/cli/float8_test.cpp
    const std::string check =
        "lnorm check '[[1, 2, 4]]' '[[1, 2, 4]]' --weight 2 --bias 1 --residual '[[1, 2, 4]]' ";
    const Outcome found = Workplace().shell(check + options);
    CHECK(found.status == 1);
    CHECK(found.err.empty());
  }
}

TEST_CASE("a wrong backward pass is equivalent by formula and options", "[mutants]") {
  const Mutants files;
  files.write("x.json", numbers(8, 16, 1));
  files.write("dy.json", numbers(8, 16, 1));
  const auto equivalent = [&](const Words& options) {
    return Mutants::equivalent(files.report("x.json --dy dy.json"_w + options));
  };
  const Ids plain = equivalent({});
  CHECK(!plain.contains("last-row-lost"));
  CHECK(equivalent("--rows :1"_w).contains("last-row-lost"));
  for (const std::string id : {"weight-forgotten", "xhat-with-affine"}) {
    CAPTURE(id);
    CHECK(plain.contains(id));
  }
  CHECK(!plain.contains("no-mean-of-g"));
  const Ids rms = equivalent("--rms --weight 2 --rows :6"_w);
  CHECK(rms.contains("no-mean-of-g"));
  CHECK(!rms.contains("no-mean-terms"));
  CHECK(!equivalent("--weight 2 --eps 0"_w).contains("weight-forgotten"));
  for (const std::string id : {"weight-forgotten", "xhat-with-affine", "last-row-lost"}) {
    CAPTURE(id);
    CHECK(!rms.contains(id));
  }
  // One row's dweight is rounded once.
  CHECK(equivalent("--rows :1 --dtype float16"_w).contains("float16-dweight"));
  CHECK(!equivalent("--rows :1 --dtype float16"_w).contains("bfloat16-dweight"));

  // Of two elements without eps xhat is 1 or -1, and dx is 0.
  files.write("two.json", numbers(4, 2, 1));
  const Ids signs = Mutants::equivalent(
      files.report("two.json --dy two.json --weight 2 --bias 1 --eps 0 --dtype float16"_w));
  for (const std::string id :
       {"weight-forgotten", "other-ddof", "rounded-xhat", "rounded-product"}) {
    CAPTURE(id);
    // The sums alone with the other divisor are not 0.
    CHECK(signs.contains(id) == (id != "other-ddof"));
  }
  CHECK(!equivalent("--weight 2 --bias 1 --dtype float64"_w).contains("rounded-xhat"));

  files.write("short.json", numbers(8, 15, 1));
  CHECK(files.fault("mutants x.json --dy short.json"_w,
                    {"--dy short.json has shape (8, 15), but x.json has shape (8, 16)"}) == "");
  CHECK(contains(files.shell("lnorm mutants x.json x.json --dy - < dy.json").err,
                 "--dy - can be read for one input alone, found several"));
  CHECK(files.shell("lnorm mutants x.json --dy - < dy.json --kernels no-mean-terms").status == 0);
}

TEST_CASE("mutants judges rows that are not finite as compare does", "[mutants]") {
  const Mutants files;
  files.write("x.json", "[[1, NaN, 3], [1, 2, 4], [Infinity, 1, 2]]");
  files.write("zeros.json", "[[0, 0, 0], [0, 0, 0], [0, 0, 0]]");
  files.shell("lnorm x.json -o y.json");
  const auto mismatched = [&](const std::string& id, const std::string& kernel) {
    const json held = support::parsed_json(
        files.shell("lnorm compare " + kernel + " y.json --rtol 0 --atol 0 --json").out);
    const json tried = support::parsed_json(
        files.shell("lnorm mutants x.json --rtol 0 --atol 0 --json --kernels " + id).out);
    CHECK(tried.at("mutants").front().at("mismatched") == held.at("mismatched"));
  };
  mismatched("zeros", "zeros.json");
  mismatched("identity", "x.json");
  CHECK(files.fault("mutants x.json --no-equal-nan"_w,
                    {"x.json: the right result fails these criteria, too: finite"}) == "");
}

TEST_CASE("mutants lists what it tries, and reports for CI", "[mutants]") {
  const Mutants files;
  files.write("x.json", numbers(2, 9, 1));
  const json list = support::parsed_json(files.run("mutants --list --json"_w).out).at("kernels");
  CHECK(list.size() > 60);
  CHECK(list.front() == json{{"id", "eps-on-std"},
                             {"words", "eps is added to the standard deviation"},
                             {"options", "--eps-on std"}});
  Ids ids;
  for (const json& kernel : list) CHECK(ids.insert(kernel.at("id").get<std::string>()).second);
  CHECK(list.back().at("id") == "axes-*");
  CHECK(lines_of(files.run("mutants --list --kernels no-tail-*"_w).out).size() == 3);
  CHECK(lines_of(files.run("mutants --list --kernels no-tail-8,padded-64"_w).out).size() == 3);
  // A line each for the formulas of one kernel.
  const auto lost = lines_of(files.run("mutants --list --kernels last-row-lost"_w).out);
  CHECK(lost.size() == 10);
  CHECK(contains(lost.back(), "the last R mod 256 of R rows"));
  const Outcome outcome = files.run(
      "mutants x.json --kernels eps-*,zeros --skip-kernels eps-0 --max-abs 0.1 "
      "--save-json m.json --save-junit m.xml"_w);
  CHECK(outcome.status == 1);
  CHECK(support::parsed_json(read_file(files.path() / "m.json")).at("command") == "mutants");
  const std::string xml = read_file(files.path() / "m.xml");
  CHECK(contains(xml, R"(<testcase name="zeros" classname="lnorm.mutants" time="0"></testcase>)"));
  CHECK(contains(xml, R"(<failure message="passes: eps is 1e-12; off by at most )"));
  CHECK(contains(xml, R"(<skipped message="equivalent by formula and options"/>)"));
  CHECK(files.fault("mutants x.json --kernels eps-2"_w,
                    {"--kernels: no wrong kernel is called 'eps-2'", "did you mean eps-"}) == "");
  files.fault("mutants x.json --list"_w, {"--list tries nothing, found an input"});
  for (const Words& options : {"--rtol 1"_w, "-q"_w, "--save-json m.json"_w}) {
    CHECK(files.fault("mutants --list"_w + options,
                      {options.front() + " has no effect beside --list"}) == "");
  }
  CHECK(files.fault("mutants x.json --kernels no-bias,no-weight -q"_w,
                    {"every wrong kernel that is chosen is equivalent here",
                     "--dy tries those of the backward pass"}) == "");
  CHECK(files.fault("mutants x.json --kernels no-mean-of-g -q"_w,
                    {"no wrong kernel is tried: none of the chosen ones applies to these inputs",
                     "--dy tries those of the backward pass"}) == "");
  CHECK(files.report("x.json --kernels no-bias"_w).at("agrees") == false);
  files.fault("mutants x.json --kernels eps=2"_w, {"no wrong kernel is called 'eps=2'"});

  files.write("none.json", "[]");
  CHECK(files.fault("mutants none.json"_w,
                    {"none.json: has no elements to try wrong kernels on"}) == "");
  CHECK(files.shell("lnorm mutants x.json > /dev/full").status == 2);
}

TEST_CASE("every wrong kernel passes on some ordinary input at 1e-2", "[mutants]") {
  // An input below sqrt(eps), with a small weight and bias: all is small.
  const Mutants files;
  files.write("x.json", numbers(8, 1024, 1e-6));
  files.write("r.json", numbers(8, 1024, 2e-6));
  files.write("w.json", numbers(1, 1024, 1e-3));
  files.write("b.json", numbers(1, 1024, 2e-3));
  files.write("x2.json", "[" + numbers(32, 32, 1e-6) + "]");
  files.write("w2.json", numbers(32, 32, 1e-3));
  Ids alive;
  const Words affine = "x.json --weight w.json --bias b.json --rtol 1e-2 --atol 1e-2"_w;
  for (const Words& options :
       {"--dtype float32"_w, "--rms --eps-on std --ddof 1 --residual r.json --dtype float16"_w,
        "--zero-centered-weight --round xhat --dtype bfloat16 --eps 1e-4"_w,
        "--round sum,xhat,product --residual r.json --dtype float16"_w, "--dtype float8_e5m2"_w}) {
    alive.merge(files.survivors(affine + options));
  }
  files.write("x7.json", numbers(8, 1031, 1e-6));
  files.write("dy7.json", numbers(8, 1031, 1e-6));
  alive.merge(files.survivors("x7.json --weight 0.001 --dy dy7.json --rtol 1e-2 --atol 1e-2"_w));
  alive.merge(files.survivors(
      "x2.json --weight w2.json --bias w2.json --axes 1,2 --rtol 1e-2 --atol 1e-2"_w));
  files.write("dy.json", numbers(7, 1024, 1e-6));
  files.write("x5.json", numbers(7, 1024, 1));
  const Words backward =
      "x5.json --dy dy.json --weight w.json --bias b.json --rtol 1e-2 --atol 1e-2"_w;
  alive.merge(files.survivors(backward));
  alive.merge(files.survivors("x5.json --dy dy.json --eps-on std --rtol 1e-2 --atol 1e-2"_w));
  const json tried = support::parsed_json(files.run("mutants x5.json --dy dy.json --json"_w).out);
  for (const json& kernel : tried.at("mutants")) {
    const auto id = kernel.at("id").get<std::string>();
    if (id.starts_with("byte-order") || id == "other-dtype") continue;
    if (id == "sigmoid") continue;  // of what is small it is 1/2
    // No statistics are given here, there are no groups, and mutants knows a sum with a residual as it is rounded alone.
    if (id == "own-statistics" || id.starts_with("given-") || id == "weight-tiled" ||
        id == "unrounded-sum" || id == "not-saturated")  // mutants has no --saturate
      continue;
    CAPTURE(id);
    CHECK(alive.contains(id));
  }
  CHECK(alive.contains("axes-0"));
}

TEST_CASE("inputs leave no wrong kernel alive, and say which each is for",
          "[mutants][inputs][many]") {
  const Mutants files;
  struct Case {
    std::string made;
    std::string options;
    bool is_file = false;
  };
  for (const Case& one : std::vector<Case>{{"--shape 6,100 --dtype float16", ""},
                                           {"--shape 6,100 --dtype bfloat16", "--rms"},
                                           {"--shape 4,33", "--eps 1e-6", true},
                                           {"--shape 4,65 --dtype float64", "--rms --unbiased"},
                                           {"--shape 4,3,5", "--axes 0,2"},
                                           {"--shape 4,33", "--eps-on max --eps 1e-3"},
                                           {"--shape 3,6,7", "--axes 1,2 --eps-on std"},
                                           {"--shape 5,2", ""},
                                           {"--shape 1,2 --dtype float16", ""},
                                           {"--shape 2,9", "--zero-centered-weight --round xhat"},
                                           {"--shape 3,9 --dtype float64", "--rms"}}) {
    const std::string where = one.is_file ? "cases.npz" : "cases/";
    CAPTURE(one.made, one.options);
    const std::string options = one.options.empty() ? "" : " " + one.options;
    CHECK(files.shell("rm -rf cases; lnorm inputs " + one.made + options + " -o " + where).err ==
          "");
    const json manifest = support::parsed_json(
        read_file(files.path() / (one.is_file ? "cases.manifest.json" : "cases/manifest.json")));
    CHECK(manifest.at("cases").size() <= 12);
    Ids killed;
    for (const json& made : manifest.at("cases")) {
      CHECK(!made.at("for").get<std::string>().empty());
      killed.merge(ids_of(made.at("kills")));
    }
    const Outcome found = files.shell("lnorm mutants " + where + options + " --json");
    const json report = support::parsed_json(found.out);
    CHECK(ids_of(report.at("survivors")) == Ids());  // truncated and away are not tried
    CHECK(files
              .shell("lnorm mutants " + where + options +
                     " --kernels truncated,away --max-ulp 0.5 --quiet")
              .status == 0);
    for (const json& mutant : report.at("mutants")) {
      CAPTURE(mutant.dump());
      CHECK(killed.contains(mutant.at("id")) != mutant.at("equivalent").get<bool>());
    }
    CHECK(Mutants::equivalent(report) == ids_of(manifest.at("equivalent")));
    // What is one formula is off by the same.
    CHECK(manifest.at("same").empty() ==
          !(contains(one.options, "--rms") || contains(one.made, ",2")));
    for (const json& same : manifest.at("same")) {
      const Ids together = ids_of(same);
      std::set<std::pair<std::int64_t, double>> figures;
      for (const json& mutant : report.at("mutants")) {
        if (!together.contains(mutant.at("id").get<std::string>())) continue;
        figures.emplace(mutant.at("mismatched").get<std::int64_t>(),
                        number_of(mutant.at("max_abs")));
      }
      CHECK(figures.size() == 1);
    }
    CHECK(killed.contains("no-variance-term"));
  }
}

TEST_CASE("inputs are the same bytes every time, others by another seed", "[inputs][many]") {
  const Workplace files;
  const auto made = [&](const std::string& options) {
    return files.shell("lnorm inputs --shape 3,8 " + options + " -o c.npz && cat c.npz | cksum")
        .out;
  };
  const std::string first = made("");
  CHECK(first == made("--threads 1"));
  CHECK(first == made("--seed 0"));
  CHECK(first != made("--seed 1"));
  files.shell("lnorm inputs --shape 3,8 --dtype bfloat16 -o c.safetensors");
  CHECK(files.run("mutants c.safetensors --quiet --skip-kernels truncated,away"_w).status == 0);
  CHECK(files.fault("inputs -o c/"_w, {"inputs needs --shape", "--shape 8,1025"}) == "");
  files.fault("inputs --shape 3,8"_w, {"inputs needs -o, a folder or a file", "-o cases/"});
  CHECK(files.fault("inputs --shape 3,8 -o c.json"_w,
                    {"-o c.json: expected a folder, .npz or .safetensors"}) == "");
  files.fault("inputs --shape 3,0 -o c/"_w, {"shape (3, 0) has no elements"});
  CHECK(files.fault("inputs --shape 3,8 --dtype bfloat16 -o c.npz"_w,
                    {"-o c.npz: .npz has no bfloat16", "a folder, or .safetensors, has it"}) == "");
}

TEST_CASE("what inputs and mutants do not take back or tell apart, they say", "[mutants][inputs]") {
  const Workplace files;
  files.shell("lnorm inputs --shape 2,3 -o a/ && cp -r a b && lnorm inputs --shape 2,3 -o c.npz");
  const json both = support::parsed_json(files.run("mutants a b/ --json --kernels zeros"_w).out);
  CHECK(both.at("inputs").front() == "a: ordinary");
  CHECK(both.at("inputs").back() == "b/: opposite-rows");
  CHECK(contains(files.run("mutants a/ --rms --eps 1e-3 --kernels zeros -q"_w).err,
                 "a/manifest.json: the inputs were made with no options, found --eps 0.001 --rms"));
  CHECK(files.fault("mutants a/manifest.json"_w,
                    {"a/manifest.json: is a manifest, expected its folder or file",
                     "lnorm mutants a/"}) == "");
  files.fault(
      "mutants c.manifest.json"_w,
      {"c.manifest.json: is a manifest, expected its folder or file", "lnorm mutants c.npz"});

  files.shell("mkdir web && echo '{\"name\": \"site\"}' > web/manifest.json");
  CHECK(files.fault("inputs --shape 2,3 -o web/"_w,
                    {"web/manifest.json: has no array \"cases\", and would be replaced",
                     "another -o leaves it alone"}) == "");
  CHECK(files.fault("inputs --shape 2,3 -o d/ --round sum"_w,
                    {"--round: 'sum' is not one of xhat, product and y"}) == "");
  CHECK(!files.has("d"));

  // One case of a folder is lost; the others are tried.
  files.shell("rm b/ties.x.npy");
  files.fault("mutants b/"_w, {"b/ties.x.npy"});
  const Outcome rest = files.run("mutants b/ --keep-going --kernels zeros --json"_w);
  CHECK(rest.status == 2);
  CHECK(contains(rest.err, "b/ties.x.npy"));
  CHECK(support::parsed_json(rest.out).at("inputs").size() == 11);
}

TEST_CASE("a manifest is not trusted", "[mutants]") {
  const Workplace files;
  files.shell("mkdir c");
  const auto fault = [&](const std::string& manifest, const Words& expected) {
    files.write("c/manifest.json", manifest);
    CHECK(files.fault("mutants c/"_w, expected) == "");
  };
  fault("{", {"c/manifest.json:1:2: found the end of the text, expected JSON"});
  fault("{\"cases\":\n [,]}", {"c/manifest.json:2:3: found ',]}'"});
  fault("[1]", {"c/manifest.json: has no array \"cases\""});
  fault(R"({"cases": []})", {"c/manifest.json: has no cases"});
  fault(R"({"schema": 2, "cases": []})", {"c/manifest.json: has schema 2, expected 1"});
  fault(R"({"cases": [{"x": "x.json", "wieght": "w.json"}]})",
        {"c/manifest.json: case 0: has \"wieght\", expected name, x, weight, bias, dy, for or "
         "kills"});
  fault(R"({"cases": [{"name": "a", "x": "x.json"}, {"name": "a", "x": "x.json"}]})",
        {"c/manifest.json: case 1: is called a, like another case"});
  fault(R"({"cases": [{"x": 3}]})", {"c/manifest.json: case 0: \"x\" is no text"});
  fault(R"({"cases": [{"x": "../x.npy"}]})",
        {"c/manifest.json: case 0: \"x\" is no file of the folder"});
  files.write("c/manifest.json", R"({"cases": [{"x": "x.json"}]})");
  files.write("c/x.json", "[1, 2]");
  CHECK(files.fault("mutants c --weight 2"_w,
                    {"--weight: c/manifest.json says weight, bias and dy of its cases"}) == "");
}
