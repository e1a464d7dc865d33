// Large tensors through the real program: many blocks, several threads, rows in parts.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

using support::Command;
using support::file;
using support::Outcome;
using support::output_of;
using support::pipe_of;
using support::refusal_fault;
using support::run;
using support::TempDir;
using Words = std::vector<std::string>;

namespace {

// Numbers without a pattern that a block's length could hide.
std::string floats(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(std::sin(static_cast<double>(i * i % 100'003))) +
                     static_cast<float>(i % 11));
  }
  return support::bytes_of(values);
}

std::string npy_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return support::npy("<f4", shape, floats(count));
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The kernels that help lists, but the reference.
Words fast_kernels() {
  const std::string help = output_of({"apply", "--help"});
  const std::size_t start = help.find("--kernel ") + 9;
  const std::string names = help.substr(start, help.find('\n', start) - start);
  Words kernels;
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find('|', at), names.size());
    const std::string name = names.substr(at, end - at);
    if (name != "reference") kernels.push_back(name);
    at = end + 1;
  }
  return kernels;
}

}  // namespace

TEST_CASE("threads, kernels, files and pipes make no difference to the bytes") {
  const TempDir at;
  const std::string x = npy_of({1500, 768});  // 9 blocks
  support::write_file(at / "x.npy", x);
  const Words kernels = fast_kernels();
  CHECK(kernels.size() >= 1);
#ifdef LNORM_SANITIZED  // and slow to start
  const Words numbers_of_threads{"2"};
#else
  const Words numbers_of_threads{"1", "2", "7"};
#endif
  for (const Words& options :
       {Words{}, {"--to", "json"}, {"--rms", "--dtype", "float16"}, {"--bias", "0.5"}}) {
    CAPTURE(options);
    const std::string expected =
        output_of(Words{at / "x.npy", "--kernel", "portable", "--threads", "1"} + options);
    for (const std::string& kernel : kernels) {
      for (const std::string& threads : numbers_of_threads) {
        CAPTURE(kernel, threads);
        const Words common = Words{"--kernel", kernel, "--threads", threads} + options;
        CHECK((output_of(Words{at / "x.npy"} + common) == expected));
        CHECK((output_of(common, pipe_of(x)) == expected));
        output_of(Words{at / "x.npy", "-o", at / "y"} + common);
        CHECK((support::read_file(at / "y") == expected));
      }
    }
  }
}

TEST_CASE("reports and comparisons do not depend on the number of threads") {
  const TempDir at;
  support::write_file(at / "x.npy", npy_of({3000, 300}));
  output_of({at / "x.npy", "-o", at / "y.npy"});
  for (const Words& command : {Words{"stats", at / "x.npy", "--softmax", "--csv"},
                               {"stats", at / "x.npy", "--histogram"},
                               {"softmax", at / "x.npy"},
                               {"compare", at / "x.npy", at / "y.npy", "--json"}}) {
    CAPTURE(command);
    const Outcome one = run(command + Words{"--threads", "1"});
    CHECK(one.err.empty());
    for (const std::string threads : {"2", "5"}) {
      const Outcome several = run(command + Words{"--threads", threads});
      CHECK((several.out == one.out));
      CHECK(several.status == one.status);
    }
  }
}

TEST_CASE("a row that is not held comes out as one that is") {
  const TempDir at;
  const std::string x = npy_of({2, 300'000});
  support::write_file(at / "x.npy", x);
  for (const Words& options : {Words{}, {"--rms"}, {"--to", "json"}, {"--kernel", "portable"}}) {
    CAPTURE(options);
    const std::string expected = output_of(Words{at / "x.npy"} + options);
    CHECK((output_of(options, pipe_of(x)) == expected));
    output_of(Words{at / "x.npy", "-o", at / "y", "--threads", "3", "--save-rstd", at / "s.json"} +
              options);
    CHECK((support::read_file(at / "y") == expected));
  }
}

TEST_CASE("a pipe whose rows are not held needs a place for temporary files") {
  const TempDir at;
  const std::string x = npy_of({1, 300'000});
  CHECK(refusal_fault(
            run({.arguments = {}, .in = pipe_of(x), .environment = {{"TMPDIR", at / "no"}}}),
            {at / "no", "No such file"}) == "");
  CHECK(run({.arguments = {"-o", at / "y.npy"},
             .in = pipe_of(x),
             .environment = {{"TMPDIR", at.path().string()}}})
            .status == 0);
  CHECK(support::list_directory(at.path()) == Words{"y.npy"});
  CHECK(refusal_fault(run({"-o", at / "z.npy"}, pipe_of(x.substr(0, x.size() - 1))),
                      {"standard input", "cut off"}) == "");
  CHECK(support::list_directory(at.path()) == Words{"y.npy"});
}

TEST_CASE("the memory of a run does not grow with a row") {
  const TempDir at;
  support::write_file(at / "small.npy", npy_of({1 << 20}));  // 4 MiB
  support::write_file(at / "large.npy", npy_of({1 << 24}));  // 64 MiB
  const auto peak_kib = [&](const std::string& name, bool pipe) {
    const Outcome outcome = run({.arguments = pipe ? Words{} : Words{at / name},
                                 .in = pipe ? file(at / name) : support::Stream{},
                                 .out = file("/dev/null")});
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    return outcome.peak_kib;
  };
  for (const bool pipe : {false, true}) {
    const long small = peak_kib("small.npy", pipe);
    const long large = peak_kib("large.npy", pipe);
    CAPTURE(pipe, small, large);
#ifndef LNORM_SANITIZED  // which keeps what is freed
    CHECK(large < small + 1024);
#endif
  }
}

TEST_CASE("whoever has read a result to its end finds the other outputs") {
  const TempDir at;
  support::write_file(at / "x.npy", npy_of({100'000, 3}));
  const std::string script =
      LNORM_BINARY " x.npy --save-mean m.npy --save-rstd s.npy | { cat > y.npy; cat m.npy s.npy; }";
  for (int i = 0; i < 20; ++i) {
    const Outcome outcome = run({.arguments = {"-c", "rm -f m.npy s.npy; " + script},
                                 .directory = at.path().string(),
                                 .program = "/bin/sh"});
    REQUIRE(outcome.status == 0);
    REQUIRE(outcome.out.size() == 2 * (128 + 8 * 100'000));
  }
}

TEST_CASE("a number of threads is one to 256") {
  for (const std::string threads : {"0", "-1", "257", "99999999999999999999", "two", "1.5", ""}) {
    CAPTURE(threads);
    CHECK(refusal_fault(run({LNORM_DATA_DIR "/sample.npy", "--threads", threads}), {"--threads"}) ==
          "");
  }
}
