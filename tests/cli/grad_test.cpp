#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"
#include "support/zip.hpp"

// lnorm grad, as a user meets it. (property/backward_test.cpp has the accuracy.)

namespace {

using namespace support;
using Words = std::vector<std::string>;
using Numbers = std::vector<double>;
using Extents = std::vector<std::int64_t>;

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Numbers from -2 to 2 that no block repeats.
Numbers numbers(std::size_t count, std::uint32_t seed) {
  Numbers result(count);
  for (double& number : result) {
    seed = seed * 1664525 + 1013904223;
    number = std::ldexp(static_cast<double>(seed >> 8) - 0x1p23, -22);
  }
  return result;
}

std::size_t count_of(const Extents& shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

template <class T = double>
std::string npy_of(const Extents& shape, const Numbers& values) {
  const std::vector<T> elements(values.begin(), values.end());
  return npy(sizeof(T) == 4 ? "<f4" : "<f8", shape, bytes_of(elements));
}

// The same tensor in Fortran order.
template <class T = double>
std::string fortran_npy_of(const Extents& shape, const Numbers& values) {
  Numbers moved(values.size());
  Extents index(shape.size());
  for (const double value : values) {
    std::int64_t position = 0;
    for (std::size_t axis = shape.size(); axis-- > 0;)
      position = position * shape[axis] + index[axis];
    moved[static_cast<std::size_t>(position)] = value;
    for (std::size_t axis = shape.size(); axis-- > 0 && ++index[axis] == shape[axis];) {
      index[axis] = 0;
    }
  }
  std::string file = npy_of<T>(shape, moved);
  file.replace(file.find("False"), 5, "True ");
  return file;
}

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
  std::size_t n = 1;
  Numbers x;
  Numbers dy;
  Numbers weight;  // of n, or none
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

class Workplace {
 public:
  // x and dy of 6 rows, and a weight.
  Workplace() {
    write("x.npy", npy_of({6, 5}, x));
    write("dy.npy", npy_of({6, 5}, dy));
    write("w.npy", npy_of({5}, weight));
  }

  const Numbers x = numbers(30, 1);
  const Numbers dy = numbers(30, 2);
  const Numbers weight = numbers(5, 3);

  void write(const std::string& name, const std::string& bytes) const {
    write_file(directory_ / name, bytes);
  }
  std::string read(const std::string& name) const { return read_file(directory_ / name); }
  Numbers elements(const std::string& json) const { return parse_nested(read(json)).elements; }
  std::vector<std::string> files() const { return list_directory(directory_.path()); }

  Command command(const Words& words, Stream in = {}) const {
    return {.arguments = Words{"grad"} + words,
            .in = std::move(in),
            .directory = directory_.path().string()};
  }
  Outcome run(const Words& words, Stream in = {}) const {
    return support::run(command(words, std::move(in)));
  }
  std::string output(const Words& words, Stream in = {}) const {
    return output_of(command(words, std::move(in)));
  }
  // Of another command than grad.
  std::string lnorm(const Words& words) const {
    return output_of({.arguments = words, .directory = directory_.path().string()});
  }
  Outcome shell(const std::string& script) const {
    return support::run({.arguments = {"-c", script, LNORM_BINARY},
                         .directory = directory_.path().string(),
                         .program = "/bin/sh"});
  }

  // The bytes of the three gradients.
  struct Files {
    std::string dx;
    std::string dweight;
    std::string dbias;
    bool operator==(const Files&) const = default;
  };
  Files gradients(const Words& words, Stream in = {}) const {
    CHECK(output(words + Words{"--dx", "dx_", "--dweight", "dw_", "--dbias", "db_", "--to", "npy"},
                 std::move(in)) == "");
    return {read("dx_"), read("dw_"), read("db_")};
  }

 private:
  TempDir directory_;
};

const Words kJson{"--dx", "dx.json", "--dweight", "dw.json", "--dbias", "db.json"};
const Words kInputs{"x.npy", "--dy", "dy.npy"};

void check_gradients(const Workplace& at, const Words& words, const Problem& problem) {
  CAPTURE(words);
  CHECK(at.output(words + kJson) == "");
  const Gradients expected = by_hand(problem);
  check_close(at.elements("dx.json"), expected.dx);
  check_close(at.elements("dw.json"), expected.dweight);
  check_close(at.elements("db.json"), expected.dbias);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("grad finds what the formulas say, with every option", "[grad]") {
  const Workplace at;
  const Problem plain{5, at.x, at.dy, {}};
  const Problem weighted{5, at.x, at.dy, at.weight};
  const auto with = [](Problem problem, const std::function<void(Problem&)>& change) {
    change(problem);
    return problem;
  };
  const Words weight{"--weight", "w.npy"};
  check_gradients(at, kInputs, plain);
  check_gradients(at, kInputs + weight, weighted);
  check_gradients(at, kInputs + weight + Words{"--eps", "0.25"},
                  with(weighted, [](Problem& p) { p.eps = 0.25; }));
  check_gradients(at, kInputs + weight + Words{"--eps", "0.25", "--eps-on", "std"},
                  with(weighted, [](Problem& p) {
                    p.eps = 0.25;
                    p.on_std = true;
                  }));
  check_gradients(at, kInputs + weight + Words{"--unbiased"},
                  with(weighted, [](Problem& p) { p.ddof = 1; }));
  check_gradients(at, kInputs + weight + Words{"--rms", "--ddof", "2"},
                  with(weighted, [](Problem& p) {
                    p.rms = true;
                    p.ddof = 2;
                  }));
  check_gradients(at, kInputs + weight + Words{"--zero-centered-weight"},
                  with(weighted, [](Problem& p) {
                    for (double& w : p.weight) w += 1;
                  }));
  at.write("twos.json", "[2, 2, 2, 2, 2]");
  check_gradients(at, kInputs + Words{"--gamma", "twos.json"},
                  with(plain, [](Problem& p) { p.weight = Numbers(5, 2.0); }));
}

TEST_CASE("grad writes the gradients that are named, dx to standard output if none is", "[grad]") {
  const Workplace at;
  const Workplace::Files all = at.gradients(kInputs);
  CHECK(at.output(kInputs) == all.dx);
  for (const std::string name : {"-o", "--output", "--dx"}) {
    CHECK(at.output(kInputs + Words{name, "dx.npy"}) == "");
    CHECK(at.read("dx.npy") == all.dx);
  }
  CHECK(at.output(kInputs + Words{"--dweight", "dw.npy"}) == "");
  CHECK(at.read("dw.npy") == all.dweight);
  CHECK(at.output(kInputs + Words{"--dbias", "db.npy", "--dweight", "dw.npy"}) == "");
  CHECK(at.read("dw.npy") == all.dweight);
  CHECK(at.read("db.npy") == all.dbias);
  CHECK(at.output(kInputs + Words{"--dbias", "-"}) == all.dbias);
  CHECK(at.output(kInputs + Words{"--dx", "-", "--dbias", "db.npy"}) == all.dx);
  // An output may be an input.
  CHECK(at.output(kInputs + Words{"--dx", "dy.npy", "--dweight", "x.npy"}) == "");
  CHECK(at.read("dy.npy") == all.dx);
  CHECK(at.read("x.npy") == all.dweight);
}

TEST_CASE("grad takes and writes every format", "[grad]") {
  const Workplace at;
  const Words all{"--weight", "w.npy"};
  const Workplace::Files expected = at.gradients(kInputs + all);
  at.write("all.npz", zip({{"x.npy", at.read("x.npy"), true},
                           {"dy.npy", at.read("dy.npy"), true},
                           {"w.npy", at.read("w.npy")}}));
  const std::string data = bytes_of(at.x) + bytes_of(at.dy) + bytes_of(at.weight);
  at.write("all.safetensors",
           safetensors(R"({"x":{"dtype":"F64","shape":[6,5],"data_offsets":[0,240]},)"
                       R"("dy":{"dtype":"F64","shape":[6,5],"data_offsets":[240,480]},)"
                       R"("w":{"dtype":"F64","shape":[5],"data_offsets":[480,520]}})",
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
  CHECK(at.output({"all.npz:x", "--dy", "dy.npy", "--weight", "w.npy", "--dx", "g.npz", "--dweight",
                   "g.safetensors", "--dbias", "g.json"}) == "");
  CHECK(at.lnorm({"show", "g.npz:x", "--precision", "17"}) ==
        at.lnorm({"show", "dx_", "--precision", "17"}));
  CHECK(at.lnorm({"show", "g.safetensors:dweight", "--precision", "17"}) ==
        at.lnorm({"show", "dw_", "--precision", "17"}));
  check_close(at.elements("g.json"), by_hand({5, at.x, at.dy, at.weight}).dbias);
  CHECK(at.output(kInputs + Words{"--dweight", "g.safetensors", "--name", "gamma.grad"}) == "");
  CHECK(contains(at.read("g.safetensors"), "gamma.grad"));
  // --to is for all of them.
  CHECK(at.output(kInputs + kJson + Words{"--to", "text"}) == "");
  CHECK(at.read("dx.json").starts_with("tensor([["));
  CHECK(at.read("db.json").starts_with("tensor(["));
}

TEST_CASE("grad normalizes any axes of tensors in any memory order", "[grad]") {
  const Workplace at;
  const Extents shape{4, 5, 6};
  const Numbers x = numbers(120, 4);
  const Numbers dy = numbers(120, 5);
  at.write("xc.npy", npy_of(shape, x));
  at.write("xf.npy", fortran_npy_of(shape, x));
  at.write("dyc.npy", npy_of(shape, dy));
  at.write("dyf.npy", fortran_npy_of(shape, dy));
  // Over the axis in the middle, by hand.
  Problem problem{5, Numbers(120), Numbers(120), {}};
  const auto moved = [](std::size_t i) { return (i / 30 * 6 + i % 6) * 5 + i / 6 % 5; };
  for (std::size_t i = 0; i < 120; ++i) {
    problem.x[moved(i)] = x[i];
    problem.dy[moved(i)] = dy[i];
  }
  const Gradients by_rows = by_hand(problem);
  Numbers dx(120);
  for (std::size_t i = 0; i < 120; ++i) dx[i] = by_rows.dx[moved(i)];
  CHECK(at.output(Words{"xc.npy", "--dy", "dyc.npy", "--axes", "1"} + kJson) == "");
  check_close(at.elements("dx.json"), dx);
  check_close(at.elements("dw.json"), by_rows.dweight);
  check_close(at.elements("db.json"), by_rows.dbias);

  for (const std::string axes : {"0", "1", "2", "0,2", "0,1,2"}) {
    const Words options{"--axes", axes};
    const Workplace::Files expected = at.gradients(Words{"xc.npy", "--dy", "dyc.npy"} + options);
    for (const auto& [x_name, dy_name] :
         {std::pair{"xf.npy", "dyf.npy"}, {"xf.npy", "dyc.npy"}, {"xc.npy", "dyf.npy"}}) {
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
  const Workplace at;
  const Extents shape{60, 90, 2, 30};
  const Numbers x = numbers(count_of(shape), 6);
  const Numbers dy = numbers(count_of(shape), 7);
  at.write("xc.npy", npy_of<float>(shape, x));
  at.write("xf.npy", fortran_npy_of<float>(shape, x));
  at.write("dyc.npy", npy_of<float>(shape, dy));
  at.write("dyf.npy", fortran_npy_of<float>(shape, dy));
  const Words options{"--axes", "1", "--threads", "2"};
  const Workplace::Files expected = at.gradients(Words{"xc.npy", "--dy", "dyc.npy"} + options);
  for (const auto& [x_name, dy_name] :
       {std::pair{"xf.npy", "dyf.npy"}, {"xf.npy", "dyc.npy"}, {"xc.npy", "dyf.npy"}}) {
    CAPTURE(x_name, dy_name);
    CHECK((at.gradients(Words{x_name, "--dy", dy_name} + options) == expected));
  }
}

TEST_CASE("a pipe whose rows are needed once goes through without a temporary file", "[grad]") {
  const Workplace at;
  const auto run_in = [&](const std::string& tmp, const Words& words, const std::string& piped) {
    Command command = at.command(words, pipe_of(at.read(piped)));
    command.environment = {{"TMPDIR", tmp}};
    return support::run(command);
  };
  const std::string dx = at.output(kInputs);
  for (const auto& [words, piped] :
       {std::pair{Words{"-", "--dy", "dy.npy"}, "x.npy"}, {{"x.npy", "--dy", "-"}, "dy.npy"}}) {
    CAPTURE(words);
    CHECK(run_in("no", words, piped).out == dx);
    CHECK(refusal_fault(run_in("no", words + Words{"--dbias", "db.npy"}, piped),
                        {"a temporary file in no", "No such file"}) == "");
    CHECK(run_in("/tmp", words + Words{"--dbias", "db.npy"}, piped).status == 0);
  }
  CHECK(refusal_fault(at.run({"x.npy", "--dy", "-"}, pipe_of(at.read("dy.npy").substr(0, 300))),
                      {"standard input", "cut off"}) == "");
  CHECK(refusal_fault(at.run({"x.npy", "--dy", "-", "--dweight", "dw.npy"},
                             pipe_of(at.read("dy.npy") + "more")),
                      {"standard input", "goes on after the tensor"}) == "");
}

TEST_CASE("grad of rows in parts is grad of rows", "[grad]") {
  const Workplace at;
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
  const auto shape = [](std::size_t a, std::size_t b) {
    return Extents{static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)};
  };
  at.write("tall.npy", npy_of(shape(length, rows), x));
  at.write("tall_dy.npy", npy_of(shape(length, rows), dy));
  const auto turned = [](std::string file) {  // the transposed array
    return file.replace(file.find("False"), 5, "True ");
  };
  std::string wide = turned(npy_of(shape(length, rows), x));
  std::string wide_dy = turned(npy_of(shape(length, rows), dy));
  for (std::string* const file : {&wide, &wide_dy}) {
    file->replace(file->find("(20000, 20)"), 11, "(20, 20000)");
  }
  at.write("w.npy", npy_of({20'000}, numbers(length, 25)));
  at.write("wide.npy", wide);
  at.write("wide_dy.npy", wide_dy);
  const Words tall{"tall.npy", "--dy", "tall_dy.npy", "--axes", "0", "--weight", "w.npy"};
  const Words held{"wide.npy", "--dy", "wide_dy.npy", "--axes", "1", "--weight", "w.npy"};
  CHECK(contains(at.run(tall + Words{"-o", "dx_", "--verbose"}).err, "rows in parts of "));
  const Workplace::Files expected = at.gradients(held);
  const Workplace::Files actual = at.gradients(tall + Words{"--threads", "3"});
  CHECK(actual.dweight == expected.dweight);
  CHECK(actual.dbias == expected.dbias);
  std::string dx = actual.dx;
  dx.replace(dx.find("False"), 5, "True ");
  dx.replace(dx.find("(20000, 20)"), 11, "(20, 20000)");
  at.write("tall_dx.npy", dx);
  at.write("wide_dx.npy", expected.dx);
  CHECK(contains(at.lnorm({"compare", "tall_dx.npy", "wide_dx.npy", "--max-ulp", "0"}), "agree"));
  CHECK(expected.dweight.substr(128, 24) == std::string(24, '\0'));
  CHECK(expected.dweight.substr(152, 8) != std::string(8, '\0'));
}

TEST_CASE("grad of a row that is not held", "[grad]") {
  const Workplace at;
  const std::size_t n = 100'000;
  Problem problem{n, numbers(2 * n, 10), numbers(2 * n, 11), numbers(n, 12)};
  // Two equal rows, and columns that cancel, in the first part and in the last.
  for (std::size_t i = 0; i < n; ++i) {
    problem.x[n + i] = problem.x[i];
    if (i < 3 || i == n - 1) problem.dy[n + i] = -problem.dy[i];
  }
  const Extents shape{2, static_cast<std::int64_t>(n)};
  at.write("x.npy", npy_of(shape, problem.x));
  at.write("dy.npy", npy_of(shape, problem.dy));
  at.write("w.npy", npy_of({shape[1]}, problem.weight));
  const Words words = kInputs + Words{"--weight", "w.npy"};
  CHECK(contains(at.run(words + Words{"-o", "dx_", "--verbose"}).err, "rows in parts of 65536 "));
  check_gradients(at, words + Words{"--threads", "2"}, problem);
  CHECK(at.read("dw.json").starts_with("[0.0,0.0,0.0,"));
  CHECK(at.read("dw.json").ends_with(",0.0]\n"));
  CHECK(at.read("db.json").starts_with("[0.0,0.0,0.0,"));
  const Workplace::Files expected = at.gradients(words + Words{"--threads", "1"});
  CHECK((at.gradients(Words{"-", "--dy", "dy.npy", "--weight", "w.npy", "--threads", "3"},
                      pipe_of(at.read("x.npy"))) == expected));
  CHECK(at.output(words) == expected.dx);
}

TEST_CASE("grad gives the same bytes for every number of threads", "[grad]") {
  const Workplace at;
  const Extents shape{40'000, 7};
  at.write("x.npy", npy_of<float>(shape, numbers(count_of(shape), 13)));
  at.write("dy.npy", npy_of<float>(shape, numbers(count_of(shape), 14)));
  for (const Words& options : {Words{}, {"--rms", "--weight", "-0.75"}, {"--dtype", "float16"}}) {
    CAPTURE(options);
    const Workplace::Files one = at.gradients(kInputs + options + Words{"--threads", "1"});
    for (const std::string threads : {"2", "5"}) {
      CHECK((at.gradients(kInputs + options + Words{"--threads", threads}) == one));
    }
  }
}

TEST_CASE("the memory of grad does not grow with the rows", "[grad]") {
  const Workplace at;
  const auto peak_kib = [&](std::int64_t rows) {
    const Extents shape{rows, 64};
    at.write("x.npy", npy("<f4", shape, std::string(count_of(shape) * 4, '\x40')));
    at.write("dy.npy", npy("<f4", shape, std::string(count_of(shape) * 4, '\x3f')));
    const Outcome outcome = at.run(
        kInputs + Words{"--threads", "2", "-o", "dx_", "--dweight", "dw_", "--dbias", "db_"});
    CHECK(outcome.status == 0);
    return outcome.peak_kib;
  };
  const long small = peak_kib(20'000);
  const long large = peak_kib(200'000);
  CAPTURE(small, large);
#ifndef LNORM_SANITIZED  // which keeps what is freed
  CHECK(large < small + 2048);
#endif
}

TEST_CASE("what a forward pass has saved takes the place of what would be computed", "[grad]") {
  const Workplace at;
  const Words saved{"--mean", "m.npy", "--rstd", "r.npy"};
  const Gradients computed = by_hand({5, at.x, at.dy, at.weight});
  for (const Words& keepdim : {Words{}, {"--no-keepdim"}}) {
    at.lnorm(Words{"x.npy", "--save-mean", "m.npy", "--save-rstd", "r.npy", "-o", "y.npy"} +
             keepdim);
    CHECK(at.output(kInputs + Words{"--weight", "w.npy"} + saved + kJson) == "");
    check_close(at.elements("dx.json"), computed.dx);
    check_close(at.elements("dw.json"), computed.dweight);
    check_close(at.elements("db.json"), computed.dbias);
  }
  // Other numbers than those that lnorm would save.
  Problem other{5, at.x, at.dy, at.weight};
  other.mean = numbers(6, 15);
  other.rstd = {0.5, 1, 1.5, 2, 0.25, 3};
  at.write("m.npy", npy_of({6}, other.mean));
  at.write("r.npy", npy_of({6, 1}, other.rstd));
  at.write("r.json", "[0.5, 1.0, 1.5, 2, 0.25, 3]");
  check_gradients(at, kInputs + Words{"--weight", "w.npy"} + saved, other);
  check_gradients(at, kInputs + Words{"--weight", "w.npy", "--mean", "m.npy", "--rstd", "r.json"},
                  other);
  const Workplace::Files expected = at.gradients(kInputs + saved);
  CHECK((at.gradients(kInputs + Words{"--mean", "-", "--rstd", "r.npy"},
                      pipe_of(at.read("m.npy"))) == expected));
  CHECK(at.output(kInputs + Words{"--mean", "m.npy", "--rstd", "-"}, pipe_of(at.read("r.npy"))) ==
        expected.dx);
  // ddof counts all the same.
  other.ddof = 2;
  check_gradients(at, kInputs + Words{"--weight", "w.npy", "--ddof", "2"} + saved, other);
  other.rms = true;
  other.mean.clear();
  check_gradients(
      at, kInputs + Words{"--weight", "w.npy", "--ddof", "2", "--rms", "--rstd", "r.npy"}, other);
}

TEST_CASE("saved numbers go with their rows, whatever the memory orders are", "[grad]") {
  const Workplace at;
  const Extents shape{4, 5, 6};
  const Numbers x = numbers(120, 16);
  const Numbers dy = numbers(120, 17);
  const Numbers mean = numbers(24, 18);
  Numbers rstd = numbers(24, 19);
  for (double& number : rstd) number = std::fabs(number) + 0.5;
  at.write("xc.npy", npy_of(shape, x));
  at.write("xf.npy", fortran_npy_of(shape, x));
  at.write("dyc.npy", npy_of(shape, dy));
  at.write("dyf.npy", fortran_npy_of(shape, dy));
  at.write("mc.npy", npy_of({4, 1, 6}, mean));
  at.write("mf.npy", fortran_npy_of({4, 6}, mean));
  at.write("rc.npy", npy_of({4, 6}, rstd));
  at.write("rf.npy", fortran_npy_of({4, 1, 6}, rstd));
  const auto words = [](const std::string& x_order, const std::string& dy_order,
                        const std::string& saved_order) {
    return Words{
        "x" + x_order + ".npy",     "--dy",   "dy" + dy_order + ".npy",  "--axes", "1", "--mean",
        "m" + saved_order + ".npy", "--rstd", "r" + saved_order + ".npy"};
  };
  const Workplace::Files expected = at.gradients(words("c", "c", "c"));
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
  CHECK(at.output(words("c", "c", "c") + Words{"-o", "dx.json"}) == "");
  const Numbers dx = at.elements("dx.json");
  Numbers first;
  for (std::size_t i = 0; i < 5; ++i) first.push_back(dx[i * 6]);
  check_close(first, by_hand(problem).dx);
}

TEST_CASE("dx has the dtype of x, dweight and dbias that of the weight and its shape", "[grad]") {
  const Workplace at;
  at.write("x16.safetensors",
           safetensors(R"({"x":{"dtype":"BF16","shape":[6,5],"data_offsets":[0,60]}})",
                       std::string(60, '\x3f')));
  at.write("w32.npy", npy_of<float>({5}, at.weight));
  at.write("ones.npy", npy("|i1", {6, 5}, std::string(30, '\1')));
  at.write("w8.npy", npy("|i1", {5}, std::string(5, '\1')));
  const auto dtypes = [&](const Words& words) {
    CHECK(at.output(words + Words{"--dx", "x.safetensors", "--dweight", "w.safetensors", "--dbias",
                                  "b.safetensors"}) == "");
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
  CHECK(dtypes({"x16.safetensors:x", "--dy", "dy.npy", "--weight", "w32.npy"}) ==
        "BF16 [6,5] F32 [5] F32 [5] ");
  CHECK(dtypes({"x16.safetensors:x", "--dy", "dy.npy"}) == "BF16 [6,5] BF16 [5] BF16 [5] ");
  CHECK(dtypes({"x16.safetensors:x", "--dy", "dy.npy", "--weight", "w8.npy"}) ==
        "BF16 [6,5] BF16 [5] BF16 [5] ");
  CHECK(dtypes({"ones.npy", "--dy", "ones.npy"}) == "F64 [6,5] F64 [5] F64 [5] ");
  CHECK(dtypes({"x.npy", "--dy", "dy.npy", "--weight", "w32.npy", "--dtype", "float16"}) ==
        "F16 [6,5] F16 [5] F16 [5] ");
  CHECK(dtypes({"x.npy", "--dy", "dy.npy", "--axis", "0"}) == "F64 [6,5] F64 [6,5] F64 [6,5] ");
  // One number for all columns has one gradient.
  CHECK(dtypes({"x.npy", "--dy", "dy.npy", "--weight", "2"}) == "F64 [6,5] F64 [] F64 [] ");
  CHECK(at.output(kInputs + Words{"--weight", "2", "--dbias", "db.json"}) == "");
  double sum = 0;
  for (const double number : at.dy) sum += number;
  check_close(at.elements("db.json"), {sum});
}

TEST_CASE("weight in Fortran order is the same weight, and its gradient is in C order", "[grad]") {
  const Workplace at;
  at.write("x.npy", npy_of({2, 3, 5}, at.x));
  at.write("dy.npy", npy_of({2, 3, 5}, at.dy));
  const Numbers weight = numbers(15, 20);
  at.write("wc.npy", npy_of({3, 5}, weight));
  at.write("wf.npy", fortran_npy_of({3, 5}, weight));
  const Words words = kInputs + Words{"--axis", "1", "--weight"};
  CHECK((at.gradients(words + Words{"wf.npy"}) == at.gradients(words + Words{"wc.npy"})));
}

TEST_CASE("grad of no rows, and of rows of no elements", "[grad]") {
  const Workplace at;
  at.write("x.npy", npy_of({0, 3}, {}));
  CHECK(at.output(Words{"x.npy", "--dy", "x.npy"} + kJson) == "");
  CHECK(contains(at.read("dx.json"), "\"shape\":[0,3]"));
  CHECK(at.read("dw.json") == "[0.0,0.0,0.0]\n");
  CHECK(at.read("db.json") == "[0.0,0.0,0.0]\n");
  at.write("x.npy", npy_of({3, 0}, {}));
  CHECK(at.output(Words{"x.npy", "--dy", "x.npy"} + kJson) == "");
  CHECK(contains(at.read("dx.json"), "\"shape\":[3,0]"));
  CHECK(contains(at.read("dw.json"), "\"shape\":[0]"));
  CHECK(at.output(Words{"x.npy", "--dy", "x.npy", "--weight", "3"} + kJson) == "");
  CHECK(at.read("dw.json") == "0.0\n");
  at.write("x.npy", npy_of({}, {3}));
  CHECK(at.output(Words{"x.npy", "--dy", "x.npy"} + kJson) == "");
  CHECK(at.read("dx.json") == "0.0\n");
  CHECK(at.read("db.json") == "3.0\n");
}

TEST_CASE("of columns that cancel nothing is left", "[grad]") {
  const Workplace at;
  at.write("x.json", "[[1, 2, 4], [1, 2, 4]]");
  at.write("dy.json", "[[1, 0.3, 5], [-1, -0.3, 5]]");
  for (const std::string name : {"x.json", "-"}) {
    CHECK(at.output(Words{name, "--dy", "dy.json"} + kJson, pipe_of(at.read("x.json"))) == "");
    CHECK(at.read("dw.json").starts_with("[0.0,0.0,1"));
    CHECK(at.read("db.json") == "[0.0,0.0,10.0]\n");
  }
}

TEST_CASE("what is not finite stays in its row and its columns", "[grad]") {
  const Workplace at;
  at.write("x.json", "[[1, 2, 4], [3, NaN, 9], [5, 5, 5]]");
  at.write("dy.json", "[[1, 0, 0], [0, 1, 2], [0, Infinity, 1]]");
  CHECK(at.output(Words{"x.json", "--dy", "dy.json"} + kJson) == "");
  const std::string dx = at.read("dx.json");
  CHECK(dx.find("NaN") > dx.find("],["));
  CHECK(dx.ends_with("],[NaN,NaN,NaN],[NaN,NaN,NaN]]\n"));
  CHECK(at.read("dw.json") == "[NaN,NaN,NaN]\n");
  CHECK(at.read("db.json") == "[1.0,NaN,3.0]\n");
}

TEST_CASE("grad of several tensors, each with its own dy and weight", "[grad]") {
  const Workplace at;
  std::vector<ZipEntry> acts;
  std::vector<ZipEntry> dys;
  std::string weights = "{";
  for (int layer = 0; layer < 3; ++layer) {
    const std::string name = "h." + std::to_string(layer);
    const auto seed = static_cast<std::uint32_t>(30 + 2 * layer);
    acts.push_back({name + ".in.npy", npy_of({6, 5}, numbers(30, seed))});
    dys.push_back({name + ".out.npy", npy_of({6, 5}, numbers(30, seed + 1))});
    weights += (layer > 0 ? ",\"" : "\"") + name + ".ln.weight\":[1,2," + std::to_string(layer) +
               ",0.5,4]";
  }
  at.write("acts.npz", zip(acts));
  at.write("dys.npz", zip(dys));
  at.write("model.json", weights + "}");
  at.write("same.npz", zip({{"h.0.in.npy", dys[0].bytes}, {"h.1.in.npy", dys[1].bytes}}));
  const Words set{"acts.npz:h.*.in",
                  "--dy",
                  "dys.npz:h.{1}.out",
                  "--weight",
                  "model.json:h.{1}.ln.weight",
                  "--dx",
                  "dx.npz",
                  "--dweight",
                  "dw.safetensors",
                  "--dbias",
                  "db.json"};
  CHECK(at.output(set) == "");
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
  CHECK(at.output({"acts.npz:h.[01].in", "--dy", "same.npz:{}", "--dx", "dx/", "--dbias", "db/"}) ==
        "");
  CHECK(
      contains(at.lnorm({"compare", "dx/h.1.in.npy", "dx.npz:h.1.in", "--rtol", "9e9"}), "agree"));
  const std::vector<std::string> before = at.files();
  CHECK(refusal_fault(at.run({"acts.npz:*", "--dy", "same.npz:{}", "--dx", "new.npz"}),
                      {"acts.npz:h.2.in: --dy same.npz: there is no tensor 'h.2.in'"}) == "");
  CHECK(refusal_fault(at.run({"acts.npz:*", "--dy", "dys.npz:h.0.out", "--dx", "new.npy"}),
                      {"--dx new.npy", "holds one tensor, found 3"}) == "");
  CHECK(refusal_fault(
            at.run({"acts.npz:*", "--dy", "-", "--dx", "new.npz"}, pipe_of(at.read("dy.npy"))),
            {"--dy - can be read for one input alone, found several"}) == "");
  CHECK(refusal_fault(at.run({"acts.npz", "--dy", "dy.npy"}),
                      {"acts.npz: found 3 tensors", "all of them: 'acts.npz:*'"}) == "");
  CHECK(at.files() == before);
  const Outcome others = at.run({"acts.npz:*", "--dy", "same.npz:{}", "--dx", "new.npz",
                                 "--dweight", "new.json", "--keep-going"});
  CHECK(others.status == 2);
  CHECK(contains(others.err, "h.2.in"));
  CHECK(contains(at.lnorm({"show", "new.npz"}), "2 tensors"));
  CHECK(contains(at.lnorm({"show", "new.json"}), "2 tensors"));
  // The same dy for all of them.
  CHECK(at.output({"acts.npz:*", "--dy", "dy.npy", "--dx", "new.npz"}) == "");
}

TEST_CASE("grad refuses what does not fit before anything is written", "[grad]") {
  const Workplace at;
  at.write("dx.npy", "old");
  at.write("short.npy", npy_of({3, 5}, numbers(15, 21)));
  at.write("rows.npy", npy_of({5}, numbers(5, 22)));
  at.write("int.npy", npy("<i4", {6}, std::string(24, '\1')));
  at.write("lines.jsonl", "[1, 2]\n[3, 4]\n");
  at.write("cut.npy", at.read("dy.npy").substr(0, 300));
  const std::vector<std::string> before = at.files();
  const Words out{"--dx", "dx.npy", "--dweight", "dw.npy", "--dbias", "db.npy"};
  const auto refused = [&](const Words& words, const Words& message, const Words& outputs) {
    CAPTURE(words);
    CHECK(refusal_fault(at.run(words + outputs), message) == "");
    CHECK(at.files() == before);
    CHECK(at.read("dx.npy") == "old");
  };
  for (const auto& [words, message] : std::vector<std::pair<Words, Words>>{
           {{"x.npy"}, {"grad needs --dy", "hint: "}},
           {{"x.npy", "dy.npy"}, {"grad needs --dy", "hint: lnorm grad x.npy --dy dy.npy"}},
           {{"x.npy", "--dy", "no.npy"}, {"--dy no.npy: No such file"}},
           {{"x.npy", "--dy", "short.npy"},
            {"--dy short.npy has shape (3, 5), but x.npy has shape (6, 5)"}},
           {{"x.npy", "--dy", "cut.npy"}, {"cut.npy", "cut off"}},
           {kInputs + Words{"-o", "other.npy"}, {"--dx", "given twice"}},
           {kInputs + Words{"--rstd", "rows.npy"}, {"--rstd needs --mean", "--rms"}},
           {kInputs + Words{"--mean", "rows.npy"}, {"--mean has no effect without --rstd"}},
           {kInputs + Words{"--mean", "rows.npy", "--rstd", "rows.npy", "--rms"},
            {"--mean has no effect beside --rms"}},
           {kInputs + Words{"--rms", "--rstd", "rows.npy", "--eps", "1"},
            {"--eps has no effect beside --rstd"}},
           {kInputs + Words{"--rms", "--rstd", "rows.npy", "--eps-on", "std"},
            {"--eps-on has no effect beside --rstd"}},
           {kInputs + Words{"--rms", "--rstd", "rows.npy"},
            {"--rstd rows.npy has shape (5)", "x.npy", "(6, 1) or (6)"}},
           {kInputs + Words{"--rms", "--rstd", "int.npy"}, {"--rstd int.npy is int32", "float32"}},
           {kInputs + Words{"--bias", "1"}, {"no option --bias", "hint: ", "dbias"}},
           {kInputs + Words{"--residual_grad"}, {"no option"}},
           {kInputs + Words{"--weight", "[1, 2]"}, {"--weight has shape (2)", "(5)"}},
           {kInputs + Words{"--zero-centered-weight"}, {"no effect without --weight"}},
           {kInputs + Words{"--ddof", "5"}, {"x.npy: ddof is 5", "5 elements"}},
           {kInputs + Words{"--axis", "2"}, {"x.npy: (6, 5)", "axis 2"}},
           {{"lines.jsonl", "--dy", "dy.npy"}, {"JSON Lines", "hint: name one: lines.jsonl:1"}},
           {{"-", "--dy", "-"}, {"standard input is named for two inputs"}},
           {kInputs + Words{"--as", "bfloat16"}, {"x.npy: is float64, found --as bfloat16"}},
           {kInputs + Words{"--kernel", "no"}, {"'no'"}},
       }) {
    refused(words, message, out);
  }
  refused(kInputs, {"dw.npy is named for two outputs"},
          {"--dweight", "dw.npy", "--dbias", "./dw.npy"});
  refused(kInputs, {"standard output is named for two outputs"}, {"--dx", "-", "--dbias", "-"});
  refused(kInputs, {"--dbias db.pt: .pt is not written", "--to npy"}, {"--dbias", "db.pt"});
  refused(kInputs, {"cannot create --dbias no/db.npy", "hint: mkdir -p no"},
          {"--dx", "dx.npy", "--dbias", "no/db.npy"});
  refused(kInputs, {"--nan has no effect", "hint: --dweight dw.json"},
          {"--dweight", "dw.npy", "--nan", "null"});
  CHECK(at.output(kInputs + Words{"--dbias", "db.pt", "--to", "npy"}) == "");
}

TEST_CASE("a reader of a gradient that leaves early is no failure", "[grad]") {
  const Workplace at;
  const Extents shape{2000, 50};
  at.write("x.npy", npy_of(shape, numbers(count_of(shape), 23)));
  at.write("dy.npy", npy_of(shape, numbers(count_of(shape), 24)));
  const Outcome dx =
      at.shell("{ \"$0\" grad x.npy --dy dy.npy --to json; echo $? >&2; } | head -c 1");
  CHECK(dx.out == "[");
  CHECK(dx.err == "0\n");
  // The others are written all the same.
  const Outcome all = at.shell(
      "{ \"$0\" grad x.npy --dy dy.npy --dx - --dweight dw.npy --dbias db.npy; echo $? >&2; } "
      "| head -c 1 > first");
  CHECK(all.err == "0\n");
  const std::string dweight = at.read("dw.npy");
  CHECK(at.output(kInputs + Words{"--dweight", "dw.npy"}) == "");
  CHECK(at.read("dw.npy") == dweight);
  const Outcome beside = at.shell(
      "{ \"$0\" grad x.npy --dy dy.npy --dx dx.npy --dweight - --to json; echo $? >&2; } "
      "| head -c 1 > first");
  CHECK(beside.err == "0\n");
  CHECK(at.read("dx.npy").starts_with("[["));
}
