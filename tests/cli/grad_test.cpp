#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

#include "support/commands.hpp"
#include "support/zip.hpp"

// lnorm grad, as a user meets it. (property/backward_test.cpp has the accuracy.)

namespace {

using namespace support;
using Numbers = std::vector<double>;
using Extents = std::vector<std::int64_t>;

// Numbers from -2 to 2 that no block repeats.
Numbers numbers(std::size_t count, std::uint32_t seed) {
  Numbers result(count);
  for (double& number : result) {
    seed = seed * 1664525 + 1013904223;
    number = std::ldexp(static_cast<double>(seed >> 8) - 0x1p23, -22);
  }
  return result;
}

std::size_t count_of(const Extents& shape) { return static_cast<std::size_t>(product(shape)); }

// As JSON.
std::string row_of(std::span<const double> values) {
  std::string text;
  for (const double value : values) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.17g", value);
    text += (text.empty() ? "[" : ",") + std::string(buffer);
  }
  return text + "]";
}
std::string rows_of(std::size_t n, const Numbers& values) {
  std::string text;
  for (std::size_t start = 0; start < values.size(); start += n) {
    text += (start == 0 ? "[" : ",") + row_of(std::span(values).subspan(start, n));
  }
  return text + "]";
}

// What grad is to find, and how.
struct Problem {
  std::size_t n = 5;
  Numbers x = {};
  Numbers dy = {};
  Numbers weight = {};  // of n, or none
  double eps = 1e-5;
  double ddof = 0;
  bool on_std = false;
  bool rms = false;
  Numbers mean = {};  // of each row, if they are given
  Numbers rstd = {};
};

struct Gradients {
  Numbers dx;
  Numbers dweight;
  Numbers dbias;
};

// The formulas as they are written.
Gradients by_hand(const Problem& p) {
  const auto n = static_cast<double>(p.n);
  Gradients result{Numbers(p.x.size()), Numbers(p.n), Numbers(p.n)};
  for (std::size_t start = 0; start < p.x.size(); start += p.n) {
    const std::size_t row = start / p.n;
    double mean = 0;
    double squares = 0;
    for (std::size_t i = 0; i < p.n; ++i) mean += p.rms ? 0 : p.x[start + i] / n;
    if (!p.mean.empty()) mean = p.mean[row];
    for (std::size_t i = 0; i < p.n; ++i) squares += std::pow(p.x[start + i] - mean, 2);
    const double variance = squares / (n - p.ddof);
    double s = p.on_std ? std::sqrt(variance) + p.eps : std::sqrt(variance + p.eps);
    double t = p.on_std ? std::sqrt(variance) : s;
    if (!p.rstd.empty()) s = t = 1 / p.rstd[row];
    double g_sum = 0;
    double gx_sum = 0;
    const auto g = [&](std::size_t i) {
      return p.dy[start + i] * (p.weight.empty() ? 1 : p.weight[i]);
    };
    for (std::size_t i = 0; i < p.n; ++i) {
      g_sum += g(i);
      gx_sum += g(i) * (p.x[start + i] - mean);
    }
    for (std::size_t i = 0; i < p.n; ++i) {
      const double d = p.x[start + i] - mean;
      result.dx[start + i] =
          (g(i) - (p.rms ? 0 : g_sum / n)) / s - d * gx_sum / ((n - p.ddof) * s * s * t);
      result.dweight[i] += p.dy[start + i] * d / s;
      result.dbias[i] += p.dy[start + i];
    }
  }
  return result;
}

void check_close(const Numbers& actual, const Numbers& expected, double tolerance = 1e-12) {
  REQUIRE(actual.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    worst = std::max(worst, std::fabs(actual[i] - expected[i]) / (1 + std::fabs(expected[i])));
  }
  CHECK(worst <= tolerance);
}

// The folder runs lnorm grad.
class GradFolder : public Workplace {
 public:
  // x and dy of 6 rows, and a weight.
  GradFolder() : Workplace({"grad"}) {
    write("x.npy", npy_of<double>({6, 5}, x));
    write("dy.npy", npy_of<double>({6, 5}, dy));
    write("w.npy", npy_of<double>({5}, weight));
  }

  const Numbers x = numbers(30, 1);
  const Numbers dy = numbers(30, 2);
  const Numbers weight = numbers(5, 3);

  // Writes a file whose name ends in c, in C order, and one whose name ends in f, in Fortran order.
  template <class T = double>
  void write_both(const std::string& name, const Extents& shape, const Numbers& values) const {
    write(name + "c.npy", npy_of<T>(shape, values));
    write(name + "f.npy", fortran_npy_of<T>(shape, values));
  }
  // Writes x.npy and dy.npy.
  template <class T = double>
  void write_inputs(const Extents& shape, const Numbers& new_x, const Numbers& new_dy) const {
    write("x.npy", npy_of<T>(shape, new_x));
    write("dy.npy", npy_of<T>(shape, new_dy));
  }

  Numbers elements(const std::string& file) const { return parse_nested(read(file)).elements; }

  // Of another command than grad.
  std::string lnorm(const Words& words) const {
    return output_of({.arguments = words, .directory = path().string()});
  }

  // The bytes of the three gradients.
  struct Files {
    std::string dx;
    std::string dweight;
    std::string dbias;
    bool operator==(const Files&) const = default;
  };
  Files gradients(const Words& words, Stream in = {}) const {
    CHECK(output(words + "--dx dx_ --dweight dw_ --dbias db_ --to npy"_w, std::move(in)) == "");
    return {read("dx_"), read("dw_"), read("db_")};
  }
};

const Words kJson = "--dx dx.json --dweight dw.json --dbias db.json"_w;
const Words kInputs = "x.npy --dy dy.npy"_w;

void check_gradients(const GradFolder& at, const Words& words, const Gradients& expected) {
  CAPTURE(words);
  CHECK(at.output(words + kJson) == "");
  check_close(at.elements("dx.json"), expected.dx);
  check_close(at.elements("dw.json"), expected.dweight);
  check_close(at.elements("db.json"), expected.dbias);
}
void check_gradients(const GradFolder& at, const Words& words, const Problem& problem) {
  check_gradients(at, words, by_hand(problem));
}

// x and dy lie in these orders when not both lie in C order.
const std::vector<std::pair<std::string, std::string>> kOtherOrders{
    {"xf.npy", "dyf.npy"}, {"xf.npy", "dyc.npy"}, {"xc.npy", "dyf.npy"}};

}  // namespace

TEST_CASE("grad finds what the formulas say, with every option", "[grad]") {
  const GradFolder at;
  const auto check = [&](const Words& options, Problem problem) {
    problem.x = at.x;
    problem.dy = at.dy;
    check_gradients(at, kInputs + options, problem);
  };
  const Words weight = "--weight w.npy"_w;
  const Numbers& w = at.weight;
  check({}, {});
  check(weight, {.weight = w});
  check(weight + "--eps 0.25"_w, {.weight = w, .eps = 0.25});
  check(weight + "--eps 0.25 --eps-on std"_w, {.weight = w, .eps = 0.25, .on_std = true});
  check(weight + "--unbiased"_w, {.weight = w, .ddof = 1});
  check(weight + "--rms --ddof 2"_w, {.weight = w, .ddof = 2, .rms = true});
  Numbers one_more = w;
  for (double& number : one_more) number += 1;
  check(weight + "--zero-centered-weight"_w, {.weight = one_more});
  at.write("twos.json", "[2, 2, 2, 2, 2]");
  check("--gamma twos.json"_w, {.weight = Numbers(5, 2.0)});
}

TEST_CASE("grad writes the gradients that are named, dx to standard output if none is", "[grad]") {
  const GradFolder at;
  const GradFolder::Files all = at.gradients(kInputs);
  CHECK(at.output(kInputs) == all.dx);
  for (const std::string name : {"-o", "--output", "--dx"}) {
    CHECK(at.output(kInputs + Words{name, "dx.npy"}) == "");
    CHECK(at.read("dx.npy") == all.dx);
  }
  CHECK(at.output(kInputs + "--dweight dw.npy"_w) == "");
  CHECK(at.read("dw.npy") == all.dweight);
  CHECK(at.output(kInputs + "--dbias db.npy --dweight dw.npy"_w) == "");
  CHECK(at.read("dw.npy") == all.dweight);
  CHECK(at.read("db.npy") == all.dbias);
  CHECK(at.output(kInputs + "--dbias -"_w) == all.dbias);
  CHECK(at.output(kInputs + "--dx - --dbias db.npy"_w) == all.dx);
  // An output may be an input.
  CHECK(at.output(kInputs + "--dx dy.npy --dweight x.npy"_w) == "");
  CHECK(at.read("dy.npy") == all.dx);
  CHECK(at.read("x.npy") == all.dweight);
}

TEST_CASE("grad takes and writes every format", "[grad]") {
  const GradFolder at;
  const Words all = "--weight w.npy"_w;
  const GradFolder::Files expected = at.gradients(kInputs + all);
  at.write("all.npz", zip({{"x.npy", at.read("x.npy"), true},
                           {"dy.npy", at.read("dy.npy"), true},
                           {"w.npy", at.read("w.npy")}}));
  const std::string data = bytes_of(at.x) + bytes_of(at.dy) + bytes_of(at.weight);
  at.write("all.safetensors",
           safetensors("{" + safetensors_entry("x", "F64", "[6,5]", 0, 240) + "," +
                           safetensors_entry("dy", "F64", "[6,5]", 240, 480) + "," +
                           safetensors_entry("w", "F64", "[5]", 480, 520) + "}",
                       data));
  at.write("all.json", "{\"x\":" + rows_of(5, at.x) + ",\"dy\":" + rows_of(5, at.dy) +
                           ",\"w\":" + row_of(at.weight) + "}");
  for (const std::string x : {"npz", "safetensors", "json"}) {
    for (const std::string dy : {"npz", "safetensors", "json"}) {
      CAPTURE(x, dy);
      CHECK((at.gradients({"all." + x + ":x", "--dy", "all." + dy + ":dy", "--weight",
                           "all." + x + ":w"}) == expected));
    }
  }
  // Each output by its name; a tensor that needs one is called after what it is.
  CHECK(
      at.output(
          "all.npz:x --dy dy.npy --weight w.npy --dx g.npz --dweight g.safetensors --dbias g.json"_w) ==
      "");
  CHECK(at.lnorm("show g.npz:x --precision 17"_w) == at.lnorm("show dx_ --precision 17"_w));
  CHECK(at.lnorm("show g.safetensors:dweight --precision 17"_w) ==
        at.lnorm("show dw_ --precision 17"_w));
  check_close(at.elements("g.json"), by_hand({5, at.x, at.dy, at.weight}).dbias);
  CHECK(at.output(kInputs + "--dweight g.safetensors --name gamma.grad"_w) == "");
  CHECK(contains(at.read("g.safetensors"), "gamma.grad"));
  // --to is for all of them.
  CHECK(at.output(kInputs + kJson + "--to text"_w) == "");
  CHECK(at.read("dx.json").starts_with("tensor([["));
  CHECK(at.read("db.json").starts_with("tensor(["));
}

TEST_CASE("grad normalizes any axes of tensors in any memory order", "[grad]") {
  const GradFolder at;
  const Extents shape{4, 5, 6};
  const Numbers x = numbers(120, 4);
  const Numbers dy = numbers(120, 5);
  at.write_both("x", shape, x);
  at.write_both("dy", shape, dy);
  // Over the axis in the middle, by hand.
  Problem problem{5, Numbers(120), Numbers(120), {}};
  const auto moved = [](std::size_t i) { return (i / 30 * 6 + i % 6) * 5 + i / 6 % 5; };
  for (std::size_t i = 0; i < 120; ++i) {
    problem.x[moved(i)] = x[i];
    problem.dy[moved(i)] = dy[i];
  }
  const Gradients by_rows = by_hand(problem);
  Gradients expected_by_hand = by_rows;
  for (std::size_t i = 0; i < 120; ++i) expected_by_hand.dx[i] = by_rows.dx[moved(i)];
  check_gradients(at, "xc.npy --dy dyc.npy --axes 1"_w, expected_by_hand);

  for (const std::string axes : {"0", "1", "2", "0,2", "0,1,2"}) {
    const Words options{"--axes", axes};
    const GradFolder::Files expected = at.gradients("xc.npy --dy dyc.npy"_w + options);
    for (const auto& [x_name, dy_name] : kOtherOrders) {
      CAPTURE(axes, x_name, dy_name);
      CHECK((at.gradients(Words{x_name, "--dy", dy_name} + options) == expected));
      CHECK((at.gradients(Words{"-", "--dy", dy_name} + options, pipe_of(at.read(x_name))) ==
             expected));
      CHECK((at.gradients(Words{x_name, "--dy", "-"} + options, pipe_of(at.read(dy_name))) ==
             expected));
      CHECK(at.output(Words{x_name, "--dy", "-"} + options, pipe_of(at.read(dy_name))) ==
            expected.dx);
    }
  }
}

TEST_CASE("grad brings what is scattered in a file into C order first", "[grad]") {
  const GradFolder at;
  const Extents shape{60, 90, 2, 30};
  const Numbers x = numbers(count_of(shape), 6);
  const Numbers dy = numbers(count_of(shape), 7);
  at.write_both<float>("x", shape, x);
  at.write_both<float>("dy", shape, dy);
  const Words options = "--axes 1 --threads 2"_w;
  const GradFolder::Files expected = at.gradients("xc.npy --dy dyc.npy"_w + options);
  for (const auto& [x_name, dy_name] : kOtherOrders) {
    CAPTURE(x_name, dy_name);
    CHECK((at.gradients(Words{x_name, "--dy", dy_name} + options) == expected));
  }
}

TEST_CASE("a pipe whose rows are needed once goes through without a temporary file", "[grad]") {
  const GradFolder at;
  const auto run_in = [&](const std::string& tmp, const Words& words, const std::string& piped) {
    Command command = at.command(words, pipe_of(at.read(piped)));
    command.environment = {{"TMPDIR", tmp}};
    return support::run(command);
  };
  const std::string dx = at.output(kInputs);
  for (const auto& [words, piped] :
       {std::pair{"- --dy dy.npy"_w, "x.npy"}, {"x.npy --dy -"_w, "dy.npy"}}) {
    CAPTURE(words);
    CHECK(run_in("no", words, piped).out == dx);
    CHECK(refusal_fault(run_in("no", words + "--dbias db.npy"_w, piped),
                        {"a temporary file in no", "No such file"}) == "");
    CHECK(run_in("/tmp", words + "--dbias db.npy"_w, piped).status == 0);
  }
  CHECK(at.fault("x.npy --dy -"_w, {"standard input", "cut off"},
                 pipe_of(at.read("dy.npy").substr(0, 300))) == "");
  CHECK(at.fault("x.npy --dy - --dweight dw.npy"_w, {"standard input", "goes on after the tensor"},
                 pipe_of(at.read("dy.npy") + "more")) == "");
}

TEST_CASE("grad of rows in parts is grad of rows", "[grad]") {
  const GradFolder at;
  // Columns that go through in parts are rows of the transposed tensors, which are held whole.
  const std::size_t length = 20'000;
  const std::size_t rows = 20;
  Numbers x = numbers(length * rows, 8);
  Numbers dy = numbers(length * rows, 9);
  // Rows that are equal two by two: where dy has opposite signs in them nothing is left of dweight, which asks for
  // all rows once more.
  for (std::size_t i = 0; i < x.size(); i += 2) {
    x[i + 1] = x[i];
    if (i < 3 * rows) dy[i + 1] = -dy[i];
  }
  const auto transposed = [](const std::string& file) {
    std::string result = in_fortran_order(file);
    return result.replace(result.find("(20000, 20)"), 11, "(20, 20000)");
  };
  at.write("tall.npy", npy_of<double>({20'000, 20}, x));
  at.write("tall_dy.npy", npy_of<double>({20'000, 20}, dy));
  at.write("wide.npy", transposed(at.read("tall.npy")));
  at.write("wide_dy.npy", transposed(at.read("tall_dy.npy")));
  at.write("w.npy", npy_of<double>({20'000}, numbers(length, 25)));
  const Words tall = "tall.npy --dy tall_dy.npy --axes 0 --weight w.npy"_w;
  const Words held = "wide.npy --dy wide_dy.npy --axes 1 --weight w.npy"_w;
  CHECK(contains(at.run(tall + "-o dx_ --verbose"_w).err, "rows in parts of "));
  const GradFolder::Files expected = at.gradients(held);
  const GradFolder::Files actual = at.gradients(tall + "--threads 3"_w);
  CHECK(actual.dweight == expected.dweight);
  CHECK(actual.dbias == expected.dbias);
  at.write("tall_dx.npy", transposed(actual.dx));
  at.write("wide_dx.npy", expected.dx);
  CHECK(contains(at.lnorm("compare tall_dx.npy wide_dx.npy --max-ulp 0"_w), "agree"));
  CHECK(expected.dweight.substr(128, 24) == std::string(24, '\0'));
  CHECK(expected.dweight.substr(152, 8) != std::string(8, '\0'));
}

TEST_CASE("grad of a row that is not held", "[grad]") {
  const GradFolder at;
  const std::size_t n = 100'000;
  Problem problem{n, numbers(2 * n, 10), numbers(2 * n, 11), numbers(n, 12)};
  // Two equal rows, and columns that cancel, in the first part and in the last.
  for (std::size_t i = 0; i < n; ++i) {
    problem.x[n + i] = problem.x[i];
    if (i < 3 || i == n - 1) problem.dy[n + i] = -problem.dy[i];
  }
  const Extents shape{2, static_cast<std::int64_t>(n)};
  at.write_inputs(shape, problem.x, problem.dy);
  at.write("w.npy", npy_of<double>({shape[1]}, problem.weight));
  const Words words = kInputs + "--weight w.npy"_w;
  CHECK(contains(at.run(words + "-o dx_ --verbose"_w).err, "rows in parts of 65536 "));
  check_gradients(at, words + "--threads 2"_w, problem);
  CHECK(at.read("dw.json").starts_with("[0.0,0.0,0.0,"));
  CHECK(at.read("dw.json").ends_with(",0.0]\n"));
  CHECK(at.read("db.json").starts_with("[0.0,0.0,0.0,"));
  const GradFolder::Files expected = at.gradients(words + "--threads 1"_w);
  CHECK((at.gradients("- --dy dy.npy --weight w.npy --threads 3"_w, pipe_of(at.read("x.npy"))) ==
         expected));
  CHECK(at.output(words) == expected.dx);
}

TEST_CASE("the memory of grad does not grow with the rows", "[grad][many]") {
  const GradFolder at;
  const auto peak_kib = [&](std::int64_t rows) {
    const Extents shape{rows, 64};
    at.write("x.npy", npy("<f4", shape, std::string(count_of(shape) * 4, '\x40')));
    at.write("dy.npy", npy("<f4", shape, std::string(count_of(shape) * 4, '\x3f')));
    return peak_kib_of(at.command(kInputs + "--threads 2 -o dx_ --dweight dw_ --dbias db_"_w));
  };
  check_memory(peak_kib(20'000), peak_kib(200'000), 8 * 1024);
}

TEST_CASE("what a forward pass has saved takes the place of what would be computed", "[grad]") {
  const GradFolder at;
  const Words saved = "--mean m.npy --rstd r.npy"_w;
  const Problem problem{5, at.x, at.dy, at.weight};
  for (const Words& keepdim : {Words{}, {"--no-keepdim"}}) {
    at.lnorm("x.npy --save-mean m.npy --save-rstd r.npy -o y.npy"_w + keepdim);
    check_gradients(at, kInputs + "--weight w.npy"_w + saved, problem);
  }
  // Other numbers than those that lnorm would save.
  Problem other = problem;
  other.mean = numbers(6, 15);
  other.rstd = {0.5, 1, 1.5, 2, 0.25, 3};
  at.write("m.npy", npy_of<double>({6}, other.mean));
  at.write("r.npy", npy_of<double>({6, 1}, other.rstd));
  at.write("r.json", "[0.5, 1.0, 1.5, 2, 0.25, 3]");
  check_gradients(at, kInputs + "--weight w.npy"_w + saved, other);
  check_gradients(at, kInputs + "--weight w.npy --mean m.npy --rstd r.json"_w, other);
  const GradFolder::Files expected = at.gradients(kInputs + saved);
  CHECK((at.gradients(kInputs + "--mean - --rstd r.npy"_w, pipe_of(at.read("m.npy"))) == expected));
  CHECK(at.output(kInputs + "--mean m.npy --rstd -"_w, pipe_of(at.read("r.npy"))) == expected.dx);
  // ddof counts all the same.
  other.ddof = 2;
  check_gradients(at, kInputs + "--weight w.npy --ddof 2"_w + saved, other);
  other.rms = true;
  other.mean.clear();
  check_gradients(at, kInputs + "--weight w.npy --ddof 2 --rms --rstd r.npy"_w, other);
}

TEST_CASE("saved numbers go with their rows, whatever the memory orders are", "[grad]") {
  const GradFolder at;
  const Extents shape{4, 5, 6};
  const Numbers x = numbers(120, 16);
  const Numbers dy = numbers(120, 17);
  const Numbers mean = numbers(24, 18);
  Numbers rstd = numbers(24, 19);
  for (double& number : rstd) number = std::fabs(number) + 0.5;
  at.write_both("x", shape, x);
  at.write_both("dy", shape, dy);
  at.write("mc.npy", npy_of<double>({4, 1, 6}, mean));
  at.write("mf.npy", fortran_npy_of<double>({4, 6}, mean));
  at.write("rc.npy", npy_of<double>({4, 6}, rstd));
  at.write("rf.npy", fortran_npy_of<double>({4, 1, 6}, rstd));
  const auto words = [](const std::string& x_order, const std::string& dy_order,
                        const std::string& saved_order) {
    return Words{
        "x" + x_order + ".npy",     "--dy",   "dy" + dy_order + ".npy",  "--axes", "1", "--mean",
        "m" + saved_order + ".npy", "--rstd", "r" + saved_order + ".npy"};
  };
  const GradFolder::Files expected = at.gradients(words("c", "c", "c"));
  for (const std::string order : {"ccf", "ffc", "fff", "cfc", "fcf"}) {
    CAPTURE(order);
    const Words given = words(order.substr(0, 1), order.substr(1, 1), order.substr(2));
    CHECK((at.gradients(given) == expected));
    CHECK(at.output(given) == expected.dx);
  }
  // The first column by hand.
  Problem problem{5, {}, {}, {}};
  problem.mean = {mean[0]};
  problem.rstd = {rstd[0]};
  for (std::size_t i = 0; i < 5; ++i) {
    problem.x.push_back(x[i * 6]);
    problem.dy.push_back(dy[i * 6]);
  }
  CHECK(at.output(words("c", "c", "c") + "-o dx.json"_w) == "");
  const Numbers dx = at.elements("dx.json");
  Numbers first;
  for (std::size_t i = 0; i < 5; ++i) first.push_back(dx[i * 6]);
  check_close(first, by_hand(problem).dx);
}

TEST_CASE("dx has the dtype of x, dweight and dbias that of the weight and its shape", "[grad]") {
  const GradFolder at;
  at.write("x16.safetensors",
           safetensors(R"({"x":{"dtype":"BF16","shape":[6,5],"data_offsets":[0,60]}})",
                       std::string(60, '\x3f')));
  at.write("w32.npy", npy_of<float>({5}, at.weight));
  at.write("ones.npy", npy("|i1", {6, 5}, std::string(30, '\1')));
  at.write("w8.npy", npy("|i1", {5}, std::string(5, '\1')));
  const auto dtypes = [&](const Words& words) {
    CHECK(at.output(words + "--dx x.safetensors --dweight w.safetensors --dbias b.safetensors"_w) ==
          "");
    std::string found;
    for (const std::string name : {"x", "w", "b"}) {
      const std::string file = at.read(name + ".safetensors");
      const std::size_t start = file.find("\"dtype\":\"") + 9;
      found += file.substr(start, file.find('"', start) - start) + " ";
      const std::size_t shape = file.find("\"shape\":") + 8;
      found += file.substr(shape, file.find(']', shape) + 1 - shape) + " ";
    }
    return found;
  };
  CHECK(dtypes("x16.safetensors:x --dy dy.npy --weight w32.npy"_w) ==
        "BF16 [6,5] F32 [5] F32 [5] ");
  CHECK(dtypes("x16.safetensors:x --dy dy.npy"_w) == "BF16 [6,5] BF16 [5] BF16 [5] ");
  CHECK(dtypes("x16.safetensors:x --dy dy.npy --weight w8.npy"_w) ==
        "BF16 [6,5] BF16 [5] BF16 [5] ");
  CHECK(dtypes("ones.npy --dy ones.npy"_w) == "F64 [6,5] F64 [5] F64 [5] ");
  CHECK(dtypes("x.npy --dy dy.npy --weight w32.npy --dtype float16"_w) ==
        "F16 [6,5] F16 [5] F16 [5] ");
  CHECK(dtypes("x.npy --dy dy.npy --axis 0"_w) == "F64 [6,5] F64 [6,5] F64 [6,5] ");
  // One number for all columns has one gradient.
  CHECK(dtypes("x.npy --dy dy.npy --weight 2"_w) == "F64 [6,5] F64 [] F64 [] ");
  CHECK(at.output(kInputs + "--weight 2 --dbias db.json"_w) == "");
  double sum = 0;
  for (const double number : at.dy) sum += number;
  check_close(at.elements("db.json"), {sum});
}

TEST_CASE("weight in Fortran order is the same weight, and its gradient is in C order", "[grad]") {
  const GradFolder at;
  at.write_inputs({2, 3, 5}, at.x, at.dy);
  const Numbers weight = numbers(15, 20);
  at.write_both("w", {3, 5}, weight);
  const Words words = kInputs + "--axis 1 --weight"_w;
  CHECK((at.gradients(words + Words{"wf.npy"}) == at.gradients(words + Words{"wc.npy"})));
}

TEST_CASE("grad of no rows, and of rows of no elements", "[grad]") {
  const GradFolder at;
  at.write("x.npy", npy_of<double>({0, 3}, {}));
  CHECK(at.output("x.npy --dy x.npy"_w + kJson) == "");
  CHECK(contains(at.read("dx.json"), "\"shape\":[0,3]"));
  CHECK(at.read("dw.json") == "[0.0,0.0,0.0]\n");
  CHECK(at.read("db.json") == "[0.0,0.0,0.0]\n");
  at.write("x.npy", npy_of<double>({3, 0}, {}));
  CHECK(at.output("x.npy --dy x.npy"_w + kJson) == "");
  CHECK(contains(at.read("dx.json"), "\"shape\":[3,0]"));
  CHECK(contains(at.read("dw.json"), "\"shape\":[0]"));
  CHECK(at.output("x.npy --dy x.npy --weight 3"_w + kJson) == "");
  CHECK(at.read("dw.json") == "0.0\n");
  at.write("x.npy", npy_of<double>({}, {3}));
  CHECK(at.output("x.npy --dy x.npy"_w + kJson) == "");
  CHECK(at.read("dx.json") == "0.0\n");
  CHECK(at.read("db.json") == "3.0\n");
}

TEST_CASE("of columns that cancel nothing is left", "[grad]") {
  const GradFolder at;
  at.write("x.json", "[[1, 2, 4], [1, 2, 4]]");
  at.write("dy.json", "[[1, 0.3, 5], [-1, -0.3, 5]]");
  for (const std::string name : {"x.json", "-"}) {
    CHECK(at.output(Words{name, "--dy", "dy.json"} + kJson, pipe_of(at.read("x.json"))) == "");
    CHECK(at.read("dw.json").starts_with("[0.0,0.0,1"));
    CHECK(at.read("db.json") == "[0.0,0.0,10.0]\n");
  }
}

TEST_CASE("what is not finite stays in its row and its columns", "[grad]") {
  const GradFolder at;
  at.write("x.json", "[[1, 2, 4], [3, NaN, 9], [5, 5, 5]]");
  at.write("dy.json", "[[1, 0, 0], [0, 1, 2], [0, Infinity, 1]]");
  CHECK(at.output("x.json --dy dy.json"_w + kJson) == "");
  const std::string dx = at.read("dx.json");
  CHECK(dx.find("NaN") > dx.find("],["));
  CHECK(dx.ends_with("],[NaN,NaN,NaN],[NaN,NaN,NaN]]\n"));
  CHECK(at.read("dw.json") == "[NaN,NaN,NaN]\n");
  CHECK(at.read("db.json") == "[1.0,NaN,3.0]\n");
}

TEST_CASE("grad of several tensors, each with its own dy and weight", "[grad]") {
  const GradFolder at;
  std::vector<ZipEntry> acts;
  std::vector<ZipEntry> dys;
  std::string weights = "{";
  for (int layer = 0; layer < 3; ++layer) {
    const std::string name = "h." + std::to_string(layer);
    const auto seed = static_cast<std::uint32_t>(30 + 2 * layer);
    acts.push_back({name + ".in.npy", npy_of<double>({6, 5}, numbers(30, seed))});
    dys.push_back({name + ".out.npy", npy_of<double>({6, 5}, numbers(30, seed + 1))});
    weights += (layer > 0 ? ",\"" : "\"") + name + ".ln.weight\":[1,2," + std::to_string(layer) +
               ",0.5,4]";
  }
  at.write("acts.npz", zip(acts));
  at.write("dys.npz", zip(dys));
  at.write("model.json", weights + "}");
  at.write("same.npz", zip({{"h.0.in.npy", dys[0].bytes}, {"h.1.in.npy", dys[1].bytes}}));
  CHECK(at.output("acts.npz:h.*.in --dy dys.npz:h.{1}.out --weight model.json:h.{1}.ln.weight "
                  "--dx dx.npz --dweight dw.safetensors --dbias db.json"_w) == "");
  for (const std::string layer : {"0", "1", "2"}) {
    CAPTURE(layer);
    at.gradients({"acts.npz:h." + layer + ".in", "--dy", "dys.npz:h." + layer + ".out", "--weight",
                  "model.json:h." + layer + ".ln.weight"});
    for (const auto& [file, alone] :
         {std::pair{"dx.npz", "dx_"}, {"dw.safetensors", "dw_"}, {"db.json", "db_"}}) {
      CAPTURE(file);
      CHECK(contains(at.lnorm({"compare", file + (":h." + layer + ".in"), alone, "--max-ulp", "0"}),
                     "agree"));
    }
  }
  // By the whole name.
  CHECK(at.output("acts.npz:h.[01].in --dy same.npz:{} --dx dx/ --dbias db/"_w) == "");
  CHECK(contains(at.lnorm("compare dx/h.1.in.npy dx.npz:h.1.in --rtol 9e9"_w), "agree"));
  const Words before = at.files();
  CHECK(at.fault("acts.npz:* --dy same.npz:{} --dx new.npz"_w,
                 {"acts.npz:h.2.in: --dy same.npz: there is no tensor 'h.2.in'"}) == "");
  CHECK(at.fault("acts.npz:* --dy dys.npz:h.0.out --dx new.npy"_w,
                 {"--dx new.npy", "holds one tensor, found 3"}) == "");
  CHECK(at.fault("acts.npz:* --dy - --dx new.npz"_w,
                 {"--dy - can be read for one input alone, found several"},
                 pipe_of(at.read("dy.npy"))) == "");
  CHECK(at.fault("acts.npz --dy dy.npy"_w,
                 {"acts.npz: found 3 tensors", "all of them: 'acts.npz:*'"}) == "");
  CHECK(at.files() == before);
  const Outcome others =
      at.run("acts.npz:* --dy same.npz:{} --dx new.npz --dweight new.json --keep-going"_w);
  CHECK(others.status == 2);
  CHECK(contains(others.err, "h.2.in"));
  CHECK(contains(at.lnorm("show new.npz"_w), "2 tensors"));
  CHECK(contains(at.lnorm("show new.json"_w), "2 tensors"));
  // The same dy for all of them.
  CHECK(at.output("acts.npz:* --dy dy.npy --dx new.npz"_w) == "");
}

TEST_CASE("grad refuses what does not fit before anything is written", "[grad]") {
  const GradFolder at;
  at.write("dx.npy", "old");
  at.write("short.npy", npy_of<double>({3, 5}, numbers(15, 21)));
  at.write("rows.npy", npy_of<double>({5}, numbers(5, 22)));
  at.write("int.npy", npy("<i4", {6}, std::string(24, '\1')));
  at.write("lines.jsonl", "[1, 2]\n[3, 4]\n");
  at.write("cut.npy", at.read("dy.npy").substr(0, 300));
  const Words before = at.files();
  const Words out = "--dx dx.npy --dweight dw.npy --dbias db.npy"_w;
  const auto refused = [&](const Words& words, const Words& message, const Words& outputs) {
    CAPTURE(words);
    CHECK(at.fault(words + outputs, message) == "");
    CHECK(at.files() == before);
    CHECK(at.read("dx.npy") == "old");
  };
  for (const auto& [words, message] : std::vector<std::pair<Words, Words>>{
           {{"x.npy"}, {"grad needs --dy", "hint: "}},
           {{"x.npy", "dy.npy"}, {"grad needs --dy", "hint: lnorm grad x.npy --dy dy.npy"}},
           {"x.npy --dy no.npy"_w, {"--dy no.npy: No such file"}},
           {"x.npy --dy short.npy"_w,
            {"--dy short.npy has shape (3, 5), but x.npy has shape (6, 5)"}},
           {"x.npy --dy cut.npy"_w, {"cut.npy", "cut off"}},
           {kInputs + "-o other.npy"_w, {"--dx", "given twice"}},
           {kInputs + "--rstd rows.npy"_w, {"--rstd needs --mean", "--rms"}},
           {kInputs + "--mean rows.npy"_w, {"--mean has no effect without --rstd"}},
           {kInputs + "--mean rows.npy --rstd rows.npy --rms"_w,
            {"--mean has no effect beside --rms"}},
           {kInputs + "--rms --rstd rows.npy --eps 1"_w, {"--eps has no effect beside --rstd"}},
           {kInputs + "--rms --rstd rows.npy --eps-on std"_w,
            {"--eps-on has no effect beside --rstd"}},
           {kInputs + "--rms --rstd rows.npy"_w,
            {"--rstd rows.npy has shape (5)", "x.npy", "(6, 1) or (6)"}},
           {kInputs + "--rms --rstd int.npy"_w, {"--rstd int.npy is int32", "float32"}},
           {kInputs + "--bias 1"_w, {"no option --bias", "hint: ", "dbias"}},
           {kInputs + Words{"--residual_grad"}, {"no option"}},
           {kInputs + Words{"--weight", "[1, 2]"}, {"--weight has shape (2)", "(5)"}},
           {kInputs + Words{"--zero-centered-weight"}, {"no effect without --weight"}},
           {kInputs + "--ddof 5"_w, {"x.npy: ddof is 5", "5 elements"}},
           {kInputs + "--axis 2"_w, {"x.npy: (6, 5)", "axis 2"}},
           {"lines.jsonl --dy dy.npy"_w, {"JSON Lines", "hint: name one: lines.jsonl:1"}},
           {"- --dy -"_w, {"standard input is named for two inputs"}},
           {kInputs + "--as bfloat16"_w,
            {"x.npy: is float64, which --as bfloat16 does not change"}},
           {kInputs + "--kernel no"_w, {"'no'"}},
       }) {
    refused(words, message, out);
  }
  refused(kInputs, {"dw.npy is named for two outputs"}, "--dweight dw.npy --dbias ./dw.npy"_w);
  refused(kInputs, {"standard output is named for two outputs"}, "--dx - --dbias -"_w);
  refused(kInputs, {"--dbias db.pt: .pt is not written", "--to npy"}, "--dbias db.pt"_w);
  refused(kInputs, {"cannot create --dbias no/db.npy", "hint: mkdir -p no"},
          "--dx dx.npy --dbias no/db.npy"_w);
  refused(kInputs, {"--nan has no effect", "hint: --dweight dw.json"},
          "--dweight dw.npy --nan null"_w);
  CHECK(at.output(kInputs + "--dbias db.pt --to npy"_w) == "");
}

TEST_CASE("a reader of a gradient that leaves early is no failure", "[grad]") {
  const GradFolder at;
  const Extents shape{2000, 50};
  at.write_inputs(shape, numbers(count_of(shape), 23), numbers(count_of(shape), 24));
  const Outcome dx =
      at.shell("{ lnorm grad x.npy --dy dy.npy --to json; echo $? >&2; } | head -c 1");
  CHECK(dx.out == "[");
  CHECK(dx.err == "0\n");
  // The others are written all the same.
  const Outcome all = at.shell(
      "{ lnorm grad x.npy --dy dy.npy --dx - --dweight dw.npy --dbias db.npy; echo $? >&2; } "
      "| head -c 1 > first");
  CHECK(all.err == "0\n");
  const std::string dweight = at.read("dw.npy");
  CHECK(at.output(kInputs + "--dweight dw.npy"_w) == "");
  CHECK(at.read("dw.npy") == dweight);
  const Outcome beside = at.shell(
      "{ lnorm grad x.npy --dy dy.npy --dx dx.npy --dweight - --to json; echo $? >&2; } "
      "| head -c 1 > first");
  CHECK(beside.err == "0\n");
  CHECK(at.read("dx.npy").starts_with("[["));
}
