// Large tensors through the real program: many blocks, several threads, rows in parts.

#include <sstream>
#include <tuple>

#include "support/commands.hpp"
#include "support/pace.hpp"

namespace {

using namespace support;

// The kernels that help lists, but the reference.
Words fast_kernels() {
  const std::string help = output_of("apply --help all"_w);
  const std::size_t start = help.find("--kernel ") + 9;
  std::istringstream names(help.substr(start, help.find('\n', start) - start));
  Words kernels;
  for (std::string name; std::getline(names, name, '|');) {
    if (name != "reference") kernels.push_back(name);
  }
  return kernels;
}

}  // namespace

TEST_CASE("threads, kernels, files and pipes make no difference to the bytes", "[many]") {
  const Workplace at;
  const std::string x = waves({1500, 768});  // 9 blocks
  at.write("x.npy", x);
  const Words kernels = fast_kernels();
  CHECK(kernels.size() >= 1);
#ifdef LNORM_SANITIZED  // and slow to start
  const Words numbers_of_threads{"2"};
#else
  const Words numbers_of_threads{"1", "2", "7"};
#endif
  for (const Words& options : {Words{}, "--to json"_w, "--rms --dtype float16"_w, "--bias 0.5"_w}) {
    CAPTURE(options);
    const std::string expected = at.output("x.npy --kernel portable --threads 1"_w + options);
    int number = 0;
    for (const std::string& kernel : kernels) {
      for (const std::string& threads : numbers_of_threads) {
        if (!takes(number++, 2)) continue;
        CAPTURE(kernel, threads);
        const Words common = Words{"--kernel", kernel, "--threads", threads} + options;
        CHECK((at.output(Words{"x.npy"} + common) == expected));
        CHECK((output_of(common, pipe_of(x)) == expected));
        at.output("x.npy -o y"_w + common);
        CHECK((at.read("y") == expected));
      }
    }
  }
}

TEST_CASE("reports, comparisons and gradients do not depend on the number of threads") {
  const Workplace at;
  at.write("x.npy", waves({3000, 300}));
  at.output("x.npy -o y.npy"_w);
  at.write("rows.npy", waves({40'000, 7}));
  at.write("dy.npy", waves({40'000, 7}, 1.5));
  const Words gradients = "grad rows.npy --dy dy.npy --dx - --dweight dw --dbias db --to npy"_w;
  for (const Words& command :
       {"stats x.npy --softmax --csv"_w, "stats x.npy --histogram"_w, "softmax x.npy"_w,
        "compare x.npy y.npy --json"_w, gradients, gradients + "--rms --weight -0.75"_w,
        gradients + "--dtype float16"_w}) {
    CAPTURE(command);
    const auto run = [&](const std::string& threads) {
      const Outcome outcome = at.run(command + Words{"--threads", threads});
      CHECK(outcome.err.empty());
      const bool has_files = command[0] == "grad";
      return std::tuple(outcome.status, outcome.out,
                        has_files ? at.read("dw") + at.read("db") : "");
    };
    const auto one = run("1");
    for (const std::string threads : {"2", "5"}) CHECK((run(threads) == one));
  }
}

TEST_CASE("a row that is not held comes out as one that is") {
  const Workplace at;
  const std::string x = waves({2, 300'000});
  at.write("x.npy", x);
  for (const Words& options : {Words{}, {"--rms"}, "--to json"_w, "--kernel portable"_w}) {
    CAPTURE(options);
    const std::string expected = at.output(Words{"x.npy"} + options);
    CHECK((output_of(options, pipe_of(x)) == expected));
    at.output("x.npy -o y --threads 3 --save-rstd s.json"_w + options);
    CHECK((at.read("y") == expected));
  }
}

TEST_CASE("a pipe whose rows are not held needs a place for temporary files") {
  const Workplace at;
  const std::string x = waves({1, 300'000});
  CHECK(refusal_fault(
            run({.arguments = {}, .in = pipe_of(x), .environment = {{"TMPDIR", at / "no"}}}),
            {at / "no", "No such file"}) == "");
  CHECK(run({.arguments = {"-o", at / "y.npy"},
             .in = pipe_of(x),
             .environment = {{"TMPDIR", at.path().string()}}})
            .status == 0);
  CHECK(at.files() == Words{"y.npy"});
  CHECK(at.fault("-o z.npy"_w, {"standard input", "cut off"}, pipe_of(x.substr(0, x.size() - 1))) ==
        "");
  CHECK(at.files() == Words{"y.npy"});
}

TEST_CASE("the memory of a run does not grow with a row", "[many]") {
  const Workplace at;
  at.write("small.npy", waves({1 << 20}));  // 4 MiB
  at.write("large.npy", waves({1 << 24}));  // 64 MiB
  const auto peak_kib = [&](const std::string& name, bool pipe) {
    return peak_kib_of({.arguments = pipe ? Words{} : Words{at / name},
                        .in = pipe ? file(at / name) : Stream{},
                        .out = file("/dev/null")});
  };
  for (const bool pipe : {false, true}) {
    CAPTURE(pipe);
    check_memory(peak_kib("small.npy", pipe), peak_kib("large.npy", pipe), 8 * 1024);
  }
}

TEST_CASE("whoever has read a result to its end finds the other outputs") {
  const Workplace at;
  at.write("x.npy", waves({100'000, 3}));
  for (int i = 0; i < support::share(20); ++i) {
    const Outcome outcome = at.shell(
        "rm -f m.npy s.npy; "
        "lnorm x.npy --save-mean m.npy --save-rstd s.npy | { cat > y.npy; cat m.npy s.npy; }");
    REQUIRE(outcome.status == 0);
    REQUIRE(outcome.out.size() == 2 * (128 + 8 * 100'000));
  }
}

TEST_CASE("a number of threads is one to 256") {
  for (const std::string threads : {"0", "-1", "257", "99999999999999999999", "two", "1.5", ""}) {
    CAPTURE(threads);
    CHECK(fault_of({LNORM_DATA_DIR "/sample.npy", "--threads", threads}, {"--threads"}) == "");
  }
}
