#include <filesystem>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

// stats, softmax, show and compare where streams end early, are full, are closed or very long.
// (What compare does with its exit status is in compare_test.cpp.)

namespace {

using namespace support;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Commands for x.npy whose output is longer than a pipe holds.
const std::vector<Words> kLong{
    {"stats", "--all"},
    {"stats", "--json"},
    {"stats", "--csv", "--softmax"},
    {"softmax"},
    {"softmax", "--to", "json"},
    {"softmax", "--to", "text", "--threshold", "1000000"},
    {"show", "--threshold", "1000000"},
    {"show", "--threshold", "1000000", "--header"},
};
const std::vector<Words> kShort{{"stats"}, {"stats", "--histogram"}, {"show"}};

struct Workplace {
  Workplace() {
    std::vector<float> elements;
    for (std::int64_t i = 0; i < 60'000; ++i) elements.push_back(static_cast<float>(i * i % 1009));
    write_file(directory / "x.npy", npy("<f4", {3000, 20}, bytes_of(elements)));
  }
  Command command(Words words, const std::string& input = "x.npy") const {
    words.insert(words.begin() + 1, input);
    return {.arguments = std::move(words), .directory = directory.path().string()};
  }
  TempDir directory;
};

// A tensor of zeros, which are a hole in the file.
void write_zeros(const std::string& path, std::int64_t rows, std::int64_t columns) {
  write_file(path, npy("<f4", {rows, columns}, ""));
  fs::resize_file(path, static_cast<std::uintmax_t>(128 + rows * columns * 4));
}

}  // namespace

TEST_CASE("a reader of any report may leave early") {
  const Workplace at;
  for (const Words& words : kLong) {
    CAPTURE(words);
    const std::string all = output_of(at.command(words));
    REQUIRE(all.size() > 100'000);
    for (const std::size_t limit : {0U, 1U, 70'000U}) {
      Command command = at.command(words);
      command.out = pipe_until(limit);
      const Outcome outcome = run(command);
      CHECK(outcome.status == 0);
      CHECK(outcome.err == "");
      CHECK(difference(outcome.out, all.substr(0, limit)) == "");
    }
  }
}

TEST_CASE("a report that cannot be written is an error of one line") {
  const Workplace at;
  std::vector<Words> all = kLong;
  all.insert(all.end(), kShort.begin(), kShort.end());
  for (const Words& words : all) {
    CAPTURE(words);
    Command command = at.command(words);
    command.out = file("/dev/full");
    CHECK(refusal_fault(run(command), {"standard output: No space left on device"}) == "");
    command.out = closed();
    CHECK(refusal_fault(run(command), {"standard output"}) == "");
  }
}

TEST_CASE("a closed standard input is an error, and no place for another file") {
  const Workplace at;
  for (const Words& words : {Words{"stats"}, {"softmax"}, {"show"}, {"compare", "x.npy"}}) {
    CAPTURE(words);
    Command command = at.command(words, "-");
    command.in = closed();
    CHECK(refusal_fault(run(command), {"standard input"}) == "");
  }
  for (const Words& words : {Words{"stats"}, {"softmax"}, {"show"}, {"compare", "x.npy"}}) {
    CAPTURE(words);
    Command command = at.command(words);
    const std::string expected = output_of(command);
    command.in = closed();
    CHECK(output_of(command) == expected);
  }
}

TEST_CASE("without INPUT at a terminal every command prints its short help") {
  for (const std::string name : {"stats", "softmax", "show"}) {
    CAPTURE(name);
    const Outcome outcome = run({name}, terminal());
    CHECK(outcome.status == 2);
    CHECK(outcome.out == "");
    CHECK(outcome.err.find("Usage: lnorm " + name + " [INPUT...]") != std::string::npos);
    CHECK(outcome.err.find("Examples:") != std::string::npos);
    CHECK(outcome.err.find("lnorm: ") == std::string::npos);
  }
}

TEST_CASE("a report on rows that do not fit where temporary files go is refused") {
  const TempDir directory;
  write_zeros(directory / "x.npy", 1'100'000, 1);
  CHECK(refusal_fault(run({.arguments = {"stats", directory / "x.npy"},
                           .environment = {{"TMPDIR", directory / "no"}}}),
                      {directory / "no", "No such file"}) == "");
  CHECK(run({.arguments = {"stats", directory / "x.npy"},
             .environment = {{"TMPDIR", directory.path().string()}}})
            .status == 0);
  CHECK(list_directory(directory.path()) == Words{"x.npy"});
}

TEST_CASE("the memory of the other commands does not grow with the tensor either") {
  const TempDir at;
  // Rows enough, in the smaller one already, that stats keeps them on disk.
  write_zeros(at / "small.npy", 1'100'000, 4);  // 17 MiB
  write_zeros(at / "large.npy", 2'200'000, 4);  // 34 MiB
  for (const Words& words : {Words{"stats", "--softmax", "--histogram"},
                             {"stats", "--csv"},
                             {"softmax", "-o", "/dev/null"},
                             {"compare"},
                             {"show"}}) {
    CAPTURE(words);
    const auto peak_kib = [&](const std::string& name) {
      Command command{.arguments = words, .out = file("/dev/null")};
      command.arguments.push_back(at / name);
      if (words[0] == "compare") command.arguments.push_back(at / name);
      const Outcome outcome = run(command);
      CHECK(outcome.status == 0);
      CHECK(outcome.err == "");
      return outcome.peak_kib;
    };
    const long small = peak_kib("small.npy");
    const long large = peak_kib("large.npy");
    CAPTURE(small, large);
#ifndef LNORM_SANITIZED           // which keeps what is freed
    CHECK(large < small + 4096);  // of what an allocator keeps there is now more, now less
#endif
  }
}
